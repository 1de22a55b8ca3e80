"""Layer 2: processes that claim jobs, run their handlers and write the outcomes back."""

from __future__ import annotations
