"""What tenants may use in a period and what they have used: counted once, whoever dies when."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.builders import add, claim, complete, fail, make_group
from windrow import Done, Queue, Retry
from windrow.accounts import Accounts
from windrow.accounts.usage import QuotaRow, RunRow, UsageRow
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")

MAY = datetime(2026, 5, 1, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)


async def test_a_quota_comes_back_as_it_was_set_last(store: Store) -> None:
    accounts = Accounts(store.database)
    await accounts.quotas.put([QuotaRow("zeta", 5, "day"), QuotaRow("acme", 10, "month")])
    await accounts.quotas.put([QuotaRow("acme", 20, "day")])

    assert await accounts.quotas.all() == [
        QuotaRow("acme", 20, "day"),
        QuotaRow("zeta", 5, "day"),
    ]
    assert await accounts.quotas.delete(["acme", "nobody", "a\0b"]) == 1
    assert await accounts.quotas.all() == [QuotaRow("zeta", 5, "day")]


async def test_usage_is_of_a_tenant_and_a_period(store: Store) -> None:
    rows = [UsageRow("acme", MAY, 2), UsageRow("acme", JUNE, 3), UsageRow("zeta", MAY, 5)]
    accounts = Accounts(store.database)
    await accounts.usage.add([*rows, UsageRow("acme", MAY, 1)])
    await accounts.usage.add(rows)

    found = [await accounts.usage.get(*of) for of in (("acme", MAY), ("acme", JUNE), ("zeta", MAY))]
    assert found == [5, 6, 10]
    assert await accounts.usage.get("zeta", JUNE) == 0


async def test_usage_counts_with_the_completion_or_not_at_all(store: Store) -> None:
    queue = Queue(store)
    for _ in range(2):
        await queue.enqueue("page", tenant="acme")
    lease = await queue.claim(limit=2, seconds=60)
    first, second = lease.jobs

    accounts = Accounts(store.database)
    await accounts.usage.add([UsageRow("acme", MAY, 1)], tx=first.tx)
    assert await accounts.usage.get("acme", MAY) == 0
    await lease.finish(first, Done())
    await accounts.usage.add([UsageRow("acme", MAY, 1)], tx=second.tx)
    await lease.finish(second, Retry("not yet", after=60))

    assert await accounts.usage.get("acme", MAY) == 1


@pytest.mark.requires("groups")
async def test_a_run_counts_while_it_goes_on_and_once_when_it_has_ended(store: Store) -> None:
    group = await make_group(store)
    run = RunRow(group.id, "acme", MAY)
    accounts = Accounts(store.database)
    await accounts.usage.open_runs([run])
    for _ in range(3):
        await add(store, group=group.id)
    done, lost, last = await claim(store, 3)

    await complete(store, done)
    await fail(store, lost)
    assert await accounts.usage.get("acme", MAY) == 1
    await complete(store, last)
    assert await accounts.usage.get("acme", MAY) == 2, "also before anybody settles it"

    # Whoever is killed in the middle comes again, and several may come at once.
    await asyncio.gather(*(accounts.usage.settle_runs([group.id, "no id"]) for _ in range(5)))
    await accounts.usage.open_runs([run])
    await accounts.usage.settle_runs([group.id])

    assert await accounts.usage.get("acme", MAY) == 2
    assert await accounts.usage.get("zeta", MAY) == 0
    assert await accounts.usage.get("acme", JUNE) == 0


@pytest.mark.requires("groups")
async def test_runs_of_earlier_periods_are_forgotten_but_what_they_used(store: Store) -> None:
    ended, open_ = await make_group(store), await make_group(store)
    accounts = Accounts(store.database)
    for group in (ended, open_):
        await accounts.usage.open_runs([RunRow(group.id, "acme", MAY)])
        await add(store, group=group.id)
    for job in await claim(store, 2):
        await complete(store, job)
    await accounts.usage.settle_runs([ended.id])
    other = await make_group(store)

    await accounts.usage.open_runs([RunRow(other.id, "acme", JUNE)])
    assert await accounts.usage.get("acme", MAY) == 2
    await accounts.usage.settle_runs([open_.id, ended.id])

    assert await accounts.usage.get("acme", MAY) == 2
    assert await accounts.usage.get("acme", MAY + timedelta(days=1)) == 0
