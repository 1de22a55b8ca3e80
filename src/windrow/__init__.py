"""Windrow: a durable job queue and ingestion engine for Python."""

from __future__ import annotations

__version__ = "0.1.0.dev0"
