"""The HTTP API. Thin: it reads a request, calls a service and writes the answer."""
