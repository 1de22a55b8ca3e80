"""Pipelines run as workers do: by the database's own time."""

from __future__ import annotations

from tests.worker.conftest import clock, own_kinds, queue, run_sql

__all__ = ["clock", "own_kinds", "queue", "run_sql"]
