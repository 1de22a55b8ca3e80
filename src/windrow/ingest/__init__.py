"""From a source to documents: fetch, convert, look at. Knows nothing of jobs."""
