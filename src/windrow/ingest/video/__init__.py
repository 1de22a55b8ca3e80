"""Videos: where they are, what is known of them, and what is said in them."""
