"""`Video`: what is known of a video, whoever told it; `platform_of` says where an address leads."""

from __future__ import annotations

from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

Platform = Literal["tiktok", "instagram", "youtube"]

_HOSTS: Final[dict[str, Platform]] = {
    "tiktok.com": "tiktok",
    "instagram.com": "instagram",
    "youtube.com": "youtube",
    "youtu.be": "youtube",
    "youtube-nocookie.com": "youtube",
}


class Video(msgspec.Struct, frozen=True, omit_defaults=True):
    """`transcript` is None if nothing is said in it, or nobody knows what."""

    transcript: str | None = None
    title: str | None = None
    description: str | None = None
    author: str | None = None
    language: str | None = None
    duration_seconds: float | None = None
    published_at: str | None = None
    metadata: dict[str, Any] = {}  # counts of views and the like, as they were told


def platform_of(url: str) -> Platform | None:
    """Where a video is, if it is somewhere that providers know; None for any other address."""
    try:
        host = (urlsplit(url).hostname or "").removesuffix(".")
    except ValueError:
        return None
    for name, platform in _HOSTS.items():
        if host == name or host.endswith(f".{name}"):
            return platform
    return None
