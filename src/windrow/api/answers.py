"""Answers as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response


def answer(body: Any, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response:
    """JSON; times as ISO 8601."""
    return Response(
        msgspec.json.encode(body),
        status,
        headers=None if headers is None else dict(headers),
        media_type="application/json",
    )
