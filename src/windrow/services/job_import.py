"""Jobs from a file of JSON lines: the way in for the waiting work of any other queue.

The whole file is checked before the first job is written. A job without an id gets one by its line
number and the content of the file, so a file that is imported twice adds nothing twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import msgspec

from windrow.errors import InvalidJob
from windrow.ids import named_id
from windrow.queue.checks import SizeLimits, to_row
from windrow.queue.job import NewJob
from windrow.queue.records import InsertOutcome
from windrow.services.jobs import open_queue
from windrow.settings import Settings

_BATCH: Final = 500
_NAMESPACE: Final = "c03d2fa6-f4bf-42e6-8c3d-7aaae790b250"  # of the ids made here


class _Line(NewJob, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line: the fields of `NewJob`, and no others."""


@dataclass(slots=True)
class JobImport:
    """What became of the lines of a file."""

    lines: int = 0
    outcomes: Counter[InsertOutcome] = field(default_factory=Counter)


async def import_jobs(
    settings: Settings,
    lines: BinaryIO,
    *,
    is_dry_run: bool = False,
    show: Callable[[JobImport], None] = lambda _: None,
) -> JobImport:
    """Enqueue the job of each line, in their order; `lines` is read twice. Raises InvalidJob, which
    names the line, before anything is written."""
    name = _check(lines, SizeLimits(settings.max_payload_bytes, settings.max_result_bytes))
    report = JobImport()
    lines.seek(0)
    if is_dry_run:
        report.lines = sum(1 for _ in _read(lines))
        return report
    async with open_queue(settings, migrate=None) as queue:
        for batch in _batches(lines, name):
            inserted = await queue.enqueue_many(batch)
            report.lines += len(batch)
            report.outcomes.update(one.outcome for one in inserted)
            show(report)
    return report


def _check(lines: BinaryIO, limits: SizeLimits) -> str:
    """Check every line; returns a UUID that names the content of the file."""
    digest = hashlib.sha256()
    for number, job in _read(lines, digest.update):
        try:
            to_row(job, limits)
        except InvalidJob as error:
            raise InvalidJob(f"line {number}: {error}") from error
    return named_id(_NAMESPACE, digest.hexdigest())


def _batches(lines: BinaryIO, name: str) -> Iterator[list[NewJob]]:
    batch: list[NewJob] = []
    for number, job in _read(lines):
        if job.id is None:
            job = msgspec.structs.replace(job, id=named_id(name, str(number)))
        batch.append(job)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _read(
    lines: BinaryIO, see: Callable[[bytes], None] = lambda _: None
) -> Iterator[tuple[int, NewJob]]:
    """The jobs of the lines that are not blank, each with the number of its line."""
    for number, line in enumerate(lines, 1):
        see(line)
        if not line.strip():
            continue
        try:
            yield number, msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidJob(f"line {number}: {error}") from None
