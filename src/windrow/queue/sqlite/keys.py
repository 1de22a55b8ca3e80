"""Group keys as SQLite has them: ids and hashes of 16 bytes each."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any


def pack_id(value: str) -> bytes:
    return uuid.UUID(value).bytes


def unpack_id(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


def pack_keys(keys: Iterable[tuple[str, str]]) -> bytes:
    """Groups and keys (hex) as `find_group_keys` takes them."""
    return b"".join(pack_id(group_id) + bytes.fromhex(key) for group_id, key in keys)


def key_values(group_id: str, key: str, job_id: str) -> dict[str, Any]:
    return {"group_id": pack_id(group_id), "key": bytes.fromhex(key), "job_id": pack_id(job_id)}
