"""The queue itself over HTTP, for workers and applications in any language."""
