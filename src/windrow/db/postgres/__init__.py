"""Connections to Postgres, its errors, and statements run there."""
