"""Documents become searchable: contents are written to the index, switched to, removed."""
