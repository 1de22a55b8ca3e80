"""Moving everything from one database to another while it is in use, and saying what was done."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from windrow.errors import ConfigError
from windrow.queue.admitting import add_checksums
from windrow.queue.copying import CopyStore, Parcel, QueueRow, Receipt, new_number
from windrow.queue.job import JobState
from windrow.queue.opening import open_store
from windrow.queue.records import JobFilter, Retention
from windrow.redaction import redact_url

PARCEL_JOBS: Final = 500
POLL_SECONDS: Final = 0.2
WAIT_SECONDS: Final = 60.0
MOST_NAMED: Final = 20  # jobs, and groups, that a report names one by one
# A group moves when nothing came to it for so long: whoever is adding to it would not find it.
SETTLE_SECONDS: Final = 10.0

Counts = dict[str, dict[str, int]]  # by queue and state


@dataclass(slots=True)
class CopyReport:
    """What a copy did. `left` is what is still in the source, by queue and state, `in_transit` what
    was taken out of it and the target refused; `reasons` say why, the first of them by job."""

    source: str
    target: str
    is_dry_run: bool
    moved: Counter[str] = field(default_factory=Counter)  # jobs by their state in the source
    known: int = 0  # jobs and schedules that were in the target before
    groups: int = 0
    schedules: int = 0
    queues: int = 0
    limits: int = 0
    parcels: int = 0
    resumed: int = 0  # parcels that an earlier copy had left in the outbox
    checked: int = 0  # jobs read back in the target and found to be the same
    sent: str = ""  # checksum of what was sent …
    received: str = ""  # … and of what was read back
    in_transit: int = 0
    left: Counts = field(default_factory=dict)
    groups_left: int = 0  # still in the source, as far as they were counted
    reasons: dict[str, str] = field(default_factory=dict)
    before: dict[str, Counts] = field(default_factory=dict)
    after: dict[str, Counts] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left behind."""
        return not self.left and not self.in_transit and not self.reasons and not self.groups_left


async def copy_database(
    source_url: str,
    target_url: str,
    *,
    wait: float = WAIT_SECONDS,
    settle: float = SETTLE_SECONDS,
    is_draining: bool = False,
    is_dry_run: bool = False,
) -> CopyReport:
    """Move all jobs, groups, schedules and settings. May be repeated at any time, and go on in
    several places at once."""
    source = cast(CopyStore, await open_store(source_url))
    try:
        target = cast(CopyStore, await open_store(target_url))
        try:
            await require_transfers(source)
            await require_transfers(target)
            await source.check_schema()
            if not is_dry_run:
                await target.migrate()
            if not is_dry_run or await target.schema_version():
                await target.check_schema()
            report = CopyReport(redact_url(source_url), redact_url(target_url), is_dry_run)
            await Copy(source, target, report, settle).run(wait, is_draining)
            return report
        finally:
            await target.close()
    finally:
        await source.close()


async def require_transfers(store: CopyStore) -> None:
    """Raises Unsupported, which says why, for a store whose jobs are not copied."""
    if not store.capabilities.transfers:
        await store.list_parcels()


class Copy:
    """One run from a source to a target; the report is filled in as it goes."""

    def __init__(
        self,
        source: CopyStore,
        target: CopyStore,
        report: CopyReport,
        settle: float = SETTLE_SECONDS,
    ) -> None:
        self._source = source
        self._target = target
        self._report = report
        self._settle = settle
        self._address = address_of(report.target)
        self._refused: dict[str, str] = {}
        self._began = new_number()  # parcels with a lower number are an earlier copy's

    async def run(self, wait: float, is_draining: bool) -> None:
        report = self._report
        has_tables = bool(await self._target.schema_version())
        report.before = {
            "source": await _count(self._source),
            "target": await _count(self._target) if has_tables else {},
        }
        if report.is_dry_run:
            await self._forecast()
            return
        await self._refuse_itself()
        await self._copy_settings(is_draining)
        await self._pass_until_over(time.monotonic() + wait)
        await self._sum_up()

    async def _pass_until_over(self, deadline: float) -> None:
        """Move what can be moved, again and again: jobs end, and new ones come."""
        while True:
            self._refused = {}
            await self._hand_over_outbox()
            await self._source.rescue_jobs()
            await self._source.stage_jobs()
            await self._move_jobs()
            await self._move_groups()
            if await self._is_source_empty() or time.monotonic() >= deadline:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _is_source_empty(self) -> bool:
        source = self._source
        return not (
            await _count(source) or await source.list_remaining(1) or await source.list_parcels()
        )

    async def _hand_over_outbox(self) -> None:
        """Finish what an earlier copy, or another one, began."""
        parcels = await self._source.list_parcels()
        for address in parcels.values():
            if address != self._address:
                raise ConfigError(
                    f"jobs are on their way to {address}: finish that copy first, by "
                    f"`windrow db copy --to` that address, or take them back by --take-back"
                )
        await self._hand_over(list(parcels))
        self._report.resumed += sum(number < self._began for number in parcels)

    async def _move_jobs(self) -> None:
        while number := await self._source.take_jobs(self._address, PARCEL_JOBS):
            await self._hand_over([number])

    async def _move_groups(self) -> None:
        after: str | None = None
        while True:
            numbers, after = await self._source.take_groups(
                self._address, PARCEL_JOBS, after, self._settle
            )
            await self._hand_over(numbers)
            if after is None:
                return

    async def _hand_over(self, numbers: Sequence[str]) -> None:
        """The parcels of one unit leave the outbox when all of them have arrived, so that until
        then the unit can be taken back as a whole."""
        unit: str | None = None
        is_refused = False
        arrived: dict[str, Collection[str]] = {}  # and what of each was not taken
        for number in numbers:
            parcel = await self._source.read_parcel(number)
            if parcel is None:  # another copy was faster
                continue
            if unit is None or parcel.unit != unit:
                await self._drop(arrived)
                unit, arrived, is_refused = parcel.unit, {}, False
            if is_refused:  # its groups were: they stay together, in their order
                arrived[number] = parcel.ids
                continue
            receipt = await self._target.receive_parcel(parcel)
            # No items: the number was made void to take the parcel back, and that was interrupted.
            arrived[number] = receipt.refused if receipt.items else parcel.ids
            is_refused = any(group.id in arrived[number] for group in parcel.groups)
            self._note(parcel, receipt)
        await self._drop(arrived)

    async def _drop(self, arrived: Mapping[str, Collection[str]]) -> None:
        for number, kept in arrived.items():
            await self._source.drop_parcel(number, kept)

    def _note(self, parcel: Parcel, receipt: Receipt) -> None:
        if not receipt.items:
            return
        report = self._report
        known = set(receipt.known)
        moved = [job for job in parcel.jobs if job.id not in receipt.refused]
        report.parcels += 1
        report.moved.update(job.state.value for job in moved if job.id not in known)
        report.groups += sum(group.id not in receipt.refused for group in parcel.groups)
        left = known | receipt.refused.keys()
        report.schedules += sum(item.name not in left for item in parcel.schedules)
        report.known += len(known)
        report.checked += receipt.checked
        report.sent = add_checksums(report.sent, receipt.sent)
        report.received = add_checksums(report.received, receipt.checksum)
        self._refused |= receipt.refused

    async def _copy_settings(self, is_draining: bool) -> None:
        """Settings that the target does not have. Then, to drain, the queues are paused: in this
        order, so that the target never learns of that pause, however often this is repeated."""
        report = self._report
        kept = await self._source.list_retention()
        infos = {info.name: info for info in await self._source.list_queues()}
        rows = []
        for name in sorted({*infos, *kept}):
            info, seconds = infos.get(name), kept.get(name, Retention())
            rows.append(
                QueueRow(
                    name,
                    info is not None and info.is_paused,
                    None if info is None else info.max_depth,
                    "reject" if info is None else info.on_full,
                    seconds.completed,
                    seconds.failed,
                    seconds.cancelled,
                )
            )
        await self._target.add_queues(rows)
        report.queues = len(rows)
        await self._copy_limits()
        if is_draining:
            for name in infos:
                await self._source.pause_queue(name)

    async def _copy_limits(self) -> None:
        there = {limit.key for limit in await self._target.list_limits() if _is_set(limit)}
        for limit in await self._source.list_limits():
            if limit.key in there or not _is_set(limit):
                continue
            await self._target.set_limit(limit)
            if limit.parked_until is not None:
                await self._target.park_key(limit.key, until=limit.parked_until)
            self._report.limits += 1

    async def _refuse_itself(self) -> None:
        """A parcel that nobody sent is received by the target: the source must not know of it."""
        probe = Parcel(new_number(), self._address, ())
        await self._target.receive_parcel(probe)
        if await self._source.has_received(probe.id):
            raise ConfigError("the source and the target are the same database")

    async def _forecast(self) -> None:
        report = self._report
        for states in report.before["source"].values():
            report.moved.update(states)
        running = report.moved.pop(JobState.ACTIVE.value, 0)
        if running:
            report.reasons["active"] = f"{running} jobs run now: they would be waited for"
        report.schedules = len(await self._source.list_schedules())
        report.resumed = len(await self._source.list_parcels())

    async def _sum_up(self) -> None:
        report = self._report
        report.left = await _count(self._source)
        for number in await self._source.list_parcels():
            parcel = await self._source.read_parcel(number)
            report.in_transit += 0 if parcel is None else len(parcel.jobs)
        report.reasons |= self._refused
        for job in await self._source.list_jobs(JobFilter(), limit=MOST_NAMED):
            report.reasons[job.id] = _why(job)
        groups = await self._source.list_remaining(MOST_NAMED)
        report.groups_left = len(groups)
        for group_id in groups:
            report.reasons[group_id] = (
                "a job of it runs, or something came to it just now: a group moves as a whole"
            )
        report.after = {"source": report.left, "target": await _count(self._target)}


def address_of(url: str) -> str:
    """What tells one database from another: the URL without its options."""
    return url.partition("?")[0]


def _why(job: Any) -> str:
    if job.state is JobState.ACTIVE:
        return f"it runs, claimed by {job.worker}"
    if job.group is not None or job.root_of is not None:
        return "a job of its group runs, or one came just now: a group moves as a whole"
    if job.state is JobState.HELD:
        return "it waits for the running job with its unique key"
    return "it came at the very end: copy again"


def _is_set(limit: Any) -> bool:
    return (
        limit.active is not None or limit.per_second is not None or limit.parked_until is not None
    )


async def _count(store: CopyStore) -> Counts:
    return {
        info.name: {state.value: n for state, n in info.counts.items() if n}
        for info in await store.list_queues()
        if any(info.counts.values())
    }
