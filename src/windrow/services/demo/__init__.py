"""The demo: a small site, a folder and a note come in, are searched, and a worker is killed."""
