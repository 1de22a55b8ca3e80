"""Packages that are installed here, as pages to read."""
