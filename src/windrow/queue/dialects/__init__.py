"""Foreign schemas over the one queue: for each dialect the SQL that makes it and the SQL that takes
it away, for Postgres and where it applies for SQLite. `loading.py` says how files are named."""

from __future__ import annotations
