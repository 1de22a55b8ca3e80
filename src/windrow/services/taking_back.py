"""Ending a copy that cannot be finished: what was on its way becomes live in the source again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from windrow.errors import ConfigError
from windrow.queue.copying import CopyStore, Parcel
from windrow.queue.opening import open_store
from windrow.redaction import redact_url
from windrow.services.copying import address_of, require_transfers

NOT_ASKED = (
    "the target was not asked what it has received: should it come back, jobs that are in both "
    "places would run twice. Do not let workers use it, or empty it first"
)


@dataclass(slots=True)
class TakeBackReport:
    """What became of the parcels that were on their way."""

    source: str
    target: str | None  # None: it was not asked
    warning: str | None = None
    taken_back: int = 0  # jobs that can run in the source again
    arrived: int = 0  # jobs that the target has: they stay there
    known: int = 0  # jobs and schedules that are in the source anyway
    groups: int = 0
    schedules: int = 0
    reasons: dict[str, str] = field(default_factory=dict)  # what stays in the outbox, and why

    @property
    def is_over(self) -> bool:
        return not self.reasons


async def take_back_jobs(source_url: str, target_url: str | None = None) -> TakeBackReport:
    """With a target, what it has received stays there and it will receive nothing more of the rest,
    whoever is still copying. Without one (it is lost) nobody can tell: no copy may be running."""
    source = cast(CopyStore, await open_store(source_url))
    try:
        await require_transfers(source)
        await source.check_schema()
        report = TakeBackReport(redact_url(source_url), None)
        if target_url is None:
            report.warning = NOT_ASKED
            await take_back(source, None, report)
            return report
        report.target = redact_url(target_url)
        target = cast(CopyStore, await open_store(target_url))
        try:
            await require_transfers(target)
            await target.check_schema()
            await take_back(source, target, report)
        finally:
            await target.close()
        return report
    finally:
        await source.close()


async def count_leaving(source_url: str) -> int:
    """How many jobs are on their way to other databases."""
    source = cast(CopyStore, await open_store(source_url))
    try:
        await source.check_schema()
        parcels = [await source.read_parcel(number) for number in await source.list_parcels()]
        return sum(len(parcel.jobs) for parcel in parcels if parcel is not None)
    finally:
        await source.close()


async def take_back(source: CopyStore, target: CopyStore | None, report: TakeBackReport) -> None:
    seen: set[str] = set()
    for _ in range(2):  # what the target refused is in parcels of its own then
        for number, address in (await source.list_parcels()).items():
            if number in seen:
                continue
            seen.add(number)
            if target is not None:
                _require_same(address, report.target)
                if await _has_arrived(source, target, number, report):
                    continue
            await _take_back_parcel(source, number, report)


def _require_same(address: str, target: str | None) -> None:
    if target is None or address != address_of(target):
        raise ConfigError(f"jobs are on their way to {address}: only that database can be asked")


async def _has_arrived(
    source: CopyStore, target: CopyStore, number: str, report: TakeBackReport
) -> bool:
    """Make the number void in the target, unless it has received the parcel: then that is dropped
    here, all but what the target refused."""
    receipt = await target.receive_parcel(Parcel(number, "", ()))
    if not receipt.items:
        return False
    await source.drop_parcel(number, receipt.refused)
    report.arrived += receipt.checked
    return True


async def _take_back_parcel(source: CopyStore, number: str, report: TakeBackReport) -> None:
    parcel = await source.read_parcel(number)
    if parcel is None:
        return
    receipt = await source.take_back(number)
    report.taken_back += receipt.checked
    report.known += len(receipt.known)
    report.groups += sum(group.id not in receipt.refused for group in parcel.groups)
    report.schedules += sum(item.name not in receipt.known for item in parcel.schedules)
    report.reasons |= receipt.refused
