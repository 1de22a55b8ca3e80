"""Chunks of documents, where they can be found by meaning and by words."""
