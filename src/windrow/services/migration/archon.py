"""An export of Archon's crawls, which it keeps in memory: JSON, a list of operations or an object
of them by id. What had not ended is crawled again, as a source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from windrow.catalog.sources import SourceRow
from windrow.errors import InvalidOptions, MigrationFailed
from windrow.ingest.web.urls import normalise
from windrow.pipelines.knowledge.context import source_id
from windrow.pipelines.knowledge.sites import crawl_job
from windrow.queue.copying import CopiedJob
from windrow.queue.job import JobState
from windrow.services.migration.arriving import (
    DONE,
    Context,
    Left,
    Past,
    Reading,
    as_count,
    as_errors,
    as_text,
    make_job,
    read_time,
    spoilt,
)
from windrow.services.migration.origins import BATCH, Row, Table

OPERATIONS: Final = "operations"
COLLECTION: Final = "default"
DAY_SECONDS: Final = 86_400
_IDS: Final = ("progressId", "progress_id", "operation_id", "id")
_FAILED: Final = ("failed", "error")
_OVER: Final = {"completed": JobState.COMPLETED, "cancelled": JobState.CANCELLED}


class JsonOrigin:
    """A file of JSON. It is never written to."""

    errors: ClassVar[tuple[type[Exception], ...]] = ()  # it is read when it is opened

    def __init__(self, path: Path) -> None:
        self.name = f"json:{path.resolve()}"
        self.former: Sequence[str] = ()
        try:
            self._rows = _operations(msgspec.json.decode(path.read_bytes()))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise MigrationFailed(f"{path} cannot be read as JSON: {error}") from error

    async def keep_name(self, *, is_known: bool) -> None:
        """It is known by its path."""

    async def list_tables(self) -> list[Table]:
        return [Table(OPERATIONS, frozenset(_IDS))]

    async def read(self, table: Table, order: Sequence[str]) -> AsyncIterator[list[Row]]:
        for start in range(0, len(self._rows), BATCH):
            await asyncio.sleep(0)
            yield self._rows[start : start + BATCH]

    async def mark(self, tables: Sequence[str], is_deprecated: bool) -> None:
        """An export is nobody's table."""

    async def hold(self, tables: Sequence[str]) -> None:
        """It was read as a whole."""

    async def release(self) -> None:
        """Nothing is held."""

    async def drop(self, tables: Sequence[str]) -> None:
        raise MigrationFailed("an export has no tables: remove the file by hand")

    async def close(self) -> None:
        self._rows = []


def from_operation(row: Row, id: str, context: Context) -> CopiedJob | Left:
    status = str(row.get("status") or "").lower()
    over = _OVER.get(status)
    if over is not None and not context.with_finished:
        return Left(DONE)
    url = (
        as_text(row.get("url")) or as_text(row.get("current_url")) or as_text(row.get("currentUrl"))
    )
    if url is None:
        return Left("it has no address: it was no crawl")
    past = Past(
        state=over or (JobState.FAILED if status in _FAILED else JobState.READY),
        created_at=read_time(row.get("started_at")),
        errors=as_errors(row.get("error")),
    )
    address = normalise(url)
    if address is None:
        return spoilt(context, id, "web.crawl", row, f"{url!r} is no address of the web", past)
    days = as_count(row.get("update_frequency"))
    depth = as_count(row.get("max_depth"))
    source = SourceRow(
        tenant=None,
        id=source_id(address),
        collection=COLLECTION,
        kind="site",
        uri=address,
        title=as_text(row.get("title")) or address,
        options={"crawl": {"maxDiscoveryDepth": depth}} if depth else {},
        tags=_tags(row),
        refresh_seconds=days * DAY_SECONDS or None,
    )
    if over is None:
        context.sources.append(source)  # of what is over only the job is kept
    try:
        new = crawl_job(source, source.options.get("crawl", {}), id=id)
    except InvalidOptions as error:
        return spoilt(context, id, "web.crawl", row, str(error), past)
    return make_job(context, id, new, past)


def _tags(row: Row) -> tuple[str, ...]:
    tags = row.get("tags")
    named = [str(tag) for tag in tags] if isinstance(tags, list) else []
    kind = as_text(row.get("knowledge_type"))
    return tuple(dict.fromkeys([*named, *([kind] if kind else [])]))


def _operations(found: Any) -> list[Row]:
    if isinstance(found, dict):
        inner = next((found[name] for name in ("operations", "progress") if name in found), found)
        if isinstance(inner, dict):
            return [{"id": key, **_operation(row)} for key, row in inner.items()]
        found = inner
    if not isinstance(found, list):
        raise MigrationFailed("the export is neither a list of operations nor an object of them")
    return [_operation(row) for row in found]


def _operation(found: Any) -> Row:
    return found if isinstance(found, dict) else {"value": found}


READINGS: Final = [Reading(OPERATIONS, _IDS, (), from_operation)]
