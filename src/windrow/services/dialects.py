"""Dialects: foreign schemas over the queue's tables, for workers that are not ours."""

from __future__ import annotations

from windrow.queue.dialects.loading import DialectInfo
from windrow.queue.store import open_store


async def install_dialect(url: str, name: str) -> bool:
    """Install a dialect or bring it up to date; whether it is new."""
    store = await open_store(url)
    try:
        return await store.install_dialect(name)
    finally:
        await store.close()


async def remove_dialect(url: str, name: str) -> bool:
    """Take a dialect away; whether it was there."""
    store = await open_store(url)
    try:
        return await store.remove_dialect(name)
    finally:
        await store.close()


async def list_dialects(url: str) -> list[DialectInfo]:
    """The dialects there are for a database, and which of them are installed."""
    store = await open_store(url)
    try:
        return await store.list_dialects()
    finally:
        await store.close()
