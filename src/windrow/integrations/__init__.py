"""Windrow inside the frameworks that applications are written with."""

from __future__ import annotations
