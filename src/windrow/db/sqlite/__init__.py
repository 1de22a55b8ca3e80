"""Connections to SQLite, its errors, and statements run there."""
