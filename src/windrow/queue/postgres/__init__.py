"""The store for many machines: Postgres 15 or newer, through asyncpg."""

from __future__ import annotations
