"""The knowledge API: sources, what is done for them, and what is found in them. Every endpoint is
there with and without `/api` before it; the bridge for other crawlers only with it."""
