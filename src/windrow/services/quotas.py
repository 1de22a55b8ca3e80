"""How much tenants may use of the HTTP API in a day or a month (by UTC): a credit for each page;
and how much they have in the queue of the web, and may run at once.

Nothing is set aside for what is asked for: it is looked whether enough is left, and what was done
is counted. So those that ask at the same moment may together get more than is left, each of them at
most that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from windrow.accounts import Accounts
from windrow.accounts.usage import Per, QuotaRow, UsageRow
from windrow.errors import ConfigError, QuotaExceeded
from windrow.pipelines.web.payloads import QUEUE, SCRAPE, BudgetPayload
from windrow.queue.checks import check_name
from windrow.queue.job import JobState
from windrow.queue.queue import Queue
from windrow.services.jobs import open_queue
from windrow.settings import Settings

PERS: Final[tuple[Per, ...]] = get_args(Per)
MOST: Final = 2**31 - 1  # clients want an integer that is not too large
MOST_COUNTED: Final = 10_000  # jobs
WAITING: Final = (JobState.READY, JobState.SCHEDULED, JobState.HELD)
_FORM: Final = "tenant=credits or tenant=credits/day; a month is meant where nothing is said"


@dataclass(frozen=True, slots=True)
class Usage:
    """Of a quota, in the period that goes on now."""

    credits: int  # of the whole period
    used: int
    start: datetime
    end: datetime

    @property
    def left(self) -> int:
        return max(0, self.credits - self.used)


@dataclass(frozen=True, slots=True)
class QueueUse:
    active: int
    waiting: int
    max_concurrency: int
    last_success_at: datetime | None


def parse_quotas(text: str) -> dict[str, QuotaRow]:
    """The quotas of the setting `api_quotas`, by tenant."""
    return {quota.tenant: quota for quota in _parsed(text)}


def make_quota(tenant: str, credits: int, per: str) -> QuotaRow:
    """Raises ConfigError."""
    for known in PERS:
        if known == per:
            break
    else:
        raise ConfigError(f"{per!r} is no period; there are {', '.join(PERS)}")
    if not 0 <= credits <= MOST:
        raise ConfigError(f"a quota is from 0 to {MOST} credits, not {credits}")
    return QuotaRow(check_name(tenant, "tenant"), credits, known)


def period_of(quota: QuotaRow, now: datetime) -> tuple[datetime, datetime]:
    """When the day or month began, and when the next one does."""
    start = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if quota.per == "day":
        return start, start + timedelta(days=1)
    start = start.replace(day=1)
    return start, (start + timedelta(days=32)).replace(day=1)


async def read_usage(queue: Queue, quota: QuotaRow) -> Usage:
    start, end = period_of(quota, queue.store.clock.now() or datetime.now(UTC))
    used = await Accounts(queue.database).usage.get(quota.tenant, start)
    return Usage(quota.credits, used, start, end)


async def take_budget(
    queue: Queue, quota: QuotaRow | None, wanted: int = 1
) -> BudgetPayload | None:
    """What somebody who wants so many credits may use: all that is left. None: it is not counted.
    Raises QuotaExceeded."""
    if quota is None:
        return None
    usage = await read_usage(queue, quota)
    if usage.left < wanted:
        raise QuotaExceeded(usage.left, wanted, usage.end)
    return BudgetPayload(period=usage.start, credits=usage.left)


async def count_one(queue: Queue, quota: QuotaRow | None, budget: BudgetPayload | None) -> None:
    """Count what was done without a job."""
    if quota is not None and budget is not None:
        await Accounts(queue.database).usage.add([UsageRow(quota.tenant, budget.period, 1)])


async def list_quotas(settings: Settings) -> dict[str, QuotaRow]:
    """By tenant: those that were set, and those of the settings, which count before them."""
    async with open_queue(settings) as queue:
        return await read_quotas(queue, settings)


async def read_quotas(queue: Queue, settings: Settings) -> dict[str, QuotaRow]:
    stored = {quota.tenant: quota for quota in await Accounts(queue.database).quotas.all()}
    return stored | parse_quotas(settings.api_quotas)


async def set_quota(settings: Settings, tenant: str, credits: int | None, per: str) -> bool:
    """Set what a tenant may use, whatever key it comes with; None: as much as it likes. Whether
    that changed anything."""
    if credits is None:
        async with open_queue(settings) as queue:
            return bool(await Accounts(queue.database).quotas.delete([tenant]))
    quota = make_quota(tenant, credits, per)
    async with open_queue(settings) as queue:
        await Accounts(queue.database).quotas.put([quota])
    return True


async def get_queue_use(queue: Queue, tenant: str | None = None) -> QueueUse:
    """Of a tenant, or of all. A tenant's jobs are counted up to 10,000."""
    if tenant is None:
        counts = await queue.counts(QUEUE)
        active, waiting = counts[JobState.ACTIVE], sum(counts[state] for state in WAITING)
    else:
        active = await _count_jobs(queue, tenant, (JobState.ACTIVE,))
        waiting = await _count_jobs(queue, tenant, WAITING)
    last = await queue.list(
        queue=QUEUE, kind=SCRAPE, state=JobState.COMPLETED, tenant=tenant, limit=1
    )
    return QueueUse(
        active=active,
        waiting=waiting,
        max_concurrency=await get_max_concurrency(queue, tenant),
        last_success_at=last[0].finished_at if last else None,
    )


async def get_max_concurrency(queue: Queue, tenant: str | None = None) -> int:
    """What the workers that are alive can run at once, or the limit of the tenant if that is
    less."""
    room = sum(one.concurrency for one in await queue.workers() if one.takes(QUEUE, SCRAPE))
    if tenant is None:
        return room
    key = f"tenant:{tenant}"
    limits = [one.active for one in await queue.limits() if one.key == key]
    return min([room, *(limit for limit in limits if limit is not None)])


async def _count_jobs(queue: Queue, tenant: str, states: tuple[JobState, ...]) -> int:
    found = await queue.list(queue=QUEUE, tenant=tenant, state=states, limit=MOST_COUNTED)
    return len(found)


def _parsed(text: str) -> Iterator[QuotaRow]:
    for item in text.replace(",", " ").split():
        tenant, _, amount = item.partition("=")
        credits, _, per = amount.partition("/")
        if not tenant or not (credits.isascii() and credits.isdigit()):
            raise ConfigError(f"api_quotas: {item!r} is not {_FORM}")
        yield make_quota(tenant, int(credits), per or "month")
