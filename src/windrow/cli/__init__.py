"""The command line: parses, calls a service or the queue, prints a table or JSON."""
