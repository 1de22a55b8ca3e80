"""The embedded store: one file, the standard library's `sqlite3`, one writer thread."""

from __future__ import annotations
