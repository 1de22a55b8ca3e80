"""What is to come from an origin: tables are read in batches, and each row becomes an arrival."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from windrow.catalog.sources import SourceRow
from windrow.errors import MigrationFailed
from windrow.queue.importing import Arrival
from windrow.services.migration import legacy, nuq
from windrow.services.migration.arriving import (
    DONE,
    Context,
    Left,
    Reading,
    checksum,
    is_spoilt,
    spoilt,
)
from windrow.services.migration.origins import Origin, Row, Table
from windrow.services.migration.readings import choose
from windrow.services.migration.reports import MigrationReport, TableReport

MESSAGES: Final = "messages"  # of the ingestion tables: what went wrong, by number


def tables_of(found: Sequence[Table]) -> list[str]:
    """The names of the tables that a migration empties: those that are marked, and dropped."""
    names = {table.name for table, _ in choose(found)}
    names |= {table.name for table in found if table.name == nuq.GROUPS}
    return sorted(names)


@dataclass(frozen=True, slots=True)
class Batch:
    table: str
    arrivals: list[Arrival]
    sources: list[SourceRow] = field(default_factory=list)  # that the jobs ask for


async def gather(
    origin: Origin, report: MigrationReport, *, with_finished: bool
) -> AsyncIterator[Batch]:
    """What is to come, table by table; the report counts the rows, and those that are not to."""
    found = await origin.list_tables()
    chosen = choose(found)
    if not chosen:
        raise MigrationFailed(f"{report.origin} has none of the tables that can be moved")
    context = Context(origin.name, datetime.now(UTC), with_finished)
    context.messages = await _messages(origin, found)
    groups = await _groups(origin, found, report, with_finished)
    await _weigh(origin, chosen, context)
    later: list[Batch] = []
    for table, reading in chosen:
        counts = report.tables.setdefault(table.name, TableReport())
        context.enter(table.name)
        async for rows in origin.read(table, reading.order):
            alone = [row for row in rows if not nuq.is_member(table.name, row, groups)]
            counts.rows += len(alone)
            made = [_arrival(row, reading, context, counts) for row in alone]
            arrivals = [one for one in made if one is not None]
            if after := [one for one in arrivals if one.item.id in context.later]:
                later.append(Batch(table.name, after))
                arrivals = [one for one in arrivals if one.item.id not in context.later]
            yield Batch(table.name, arrivals, context.take_sources())
    for batch in later:
        yield batch
    async for arrivals in nuq.group_arrivals(origin, found, groups, context):
        counts = report.tables[nuq.GROUPS]
        counts.rows += len(arrivals)
        counts.spoilt += sum(is_spoilt(one.item) for one in arrivals)
        yield Batch(nuq.GROUPS, arrivals)


async def _weigh(origin: Origin, chosen: Sequence[tuple[Table, Reading]], context: Context) -> None:
    """Look through the tables that may ask for the same things, before anything is made of them."""
    context.is_weighing = True
    for table, reading in chosen:
        if table.name in legacy.NAMES:
            context.enter(table.name)
            async for rows in origin.read(table, reading.order):
                for row in rows:
                    _convert(row, reading.key_of(row), reading, context)
    context.is_weighing = False


def _arrival(row: Row, reading: Reading, context: Context, counts: TableReport) -> Arrival | None:
    key = reading.key_of(row)
    made = _convert(row, key, reading, context)
    if isinstance(made, Left):
        counts.left[made.reason] += 1
        return None
    counts.spoilt += is_spoilt(made)
    return Arrival(key=f"{context.table}/{key}", checksum=checksum(row), item=made)


def _convert(row: Row, key: str, reading: Reading, context: Context) -> Any:
    id = context.id_of(key)
    try:
        return reading.convert(row, id, context)
    except Exception as error:  # others write what they like: the rest must come all the same
        return spoilt(context, id, "unknown", row, f"{type(error).__name__}: {error}")


async def _messages(origin: Origin, found: Sequence[Table]) -> dict[Any, str]:
    texts: dict[Any, str] = {}
    for table in found:
        if table.name == MESSAGES and {"id", "error_message"} <= table.columns:
            async for rows in origin.read(table, ["id"]):
                texts |= {row["id"]: str(row["error_message"]) for row in rows}
    return texts


async def _groups(
    origin: Origin, found: Sequence[Table], report: MigrationReport, with_finished: bool
) -> dict[str, Row]:
    """NuQ's groups that are to come, by id."""
    groups: dict[str, Row] = {}
    for table in found:
        if table.name == nuq.GROUPS:
            counts = report.tables.setdefault(nuq.GROUPS, TableReport())
            async for rows in origin.read(table, ["created_at", "id"]):
                wanted = [row for row in rows if with_finished or nuq.is_active(row)]
                groups |= {str(row["id"]): row for row in wanted}
                if ended := len(rows) - len(wanted):
                    counts.rows += ended
                    counts.left[DONE] += ended
    return groups
