"""Over HTTP from a URL to a `Resource`, whatever the other side does."""
