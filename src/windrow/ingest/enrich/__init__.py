"""Documents become more than their source says: what has changed, what a model makes of them."""
