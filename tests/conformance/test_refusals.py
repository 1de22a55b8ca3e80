"""What a store does not declare it refuses, in words that say what to do instead."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import fields
from typing import Any, cast

import pytest

from tests.builders import UNKNOWN_ID, row, wish
from windrow.catalog import Catalog
from windrow.catalog.sources import SourceNote
from windrow.errors import ConfigError, Unsupported, WindrowError
from windrow.queue.bullmq.store import BullmqStore
from windrow.queue.importing import ImportStore
from windrow.queue.records import EventFilter, GroupRow, LimitRow, ScheduleRow
from windrow.queue.store import Capabilities, Store

# How each capability is used. The others are no verb of their own.
USES: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "job_transactions": lambda store: store.begin(),
    "groups": lambda store: store.create_group(GroupRow(id=UNKNOWN_ID)),
    "limits": lambda store: store.set_limit(LimitRow("key", active=1)),
    "schedules": lambda store: store.put_schedule(
        ScheduleRow(name="hourly", job=row(), every_seconds=3600)
    ),
    "bounds": lambda store: store.set_queue("default", 5, "reject"),
    "replaces": lambda store: store.insert_jobs([row(unique="key", on_conflict="replace")]),
    "edits": lambda store: store.edit_job(UNKNOWN_ID, {"priority": 1}),
    "exact_claims": lambda store: store.claim_jobs(wish(1, tenants=("acme",))),
    "events": lambda store: store.read_events(None, EventFilter(), span=10, limit=10),
    "documents": lambda store: Catalog(store.database).sources.put(
        [SourceNote(tenant=None, id="s")]
    ),
    "dialects": lambda store: store.install_dialect("unified_queue"),
    "transfers": lambda store: cast(ImportStore, store).import_arrivals("elsewhere", []),
    "transactional_insert": lambda store: store.insert_jobs([row()], tx=object()),
}
NO_VERB = {
    "reads_in_transaction",
    "atomic_ends",
    "many_machines",
    "tenancy",
    "sees_jobs",
    "needs_loop",
    "settable_clock",
    "foreign_ids",
    "table_prefix",
}


def test_every_capability_has_a_use_or_is_none_of_a_verb() -> None:
    assert {*USES, *NO_VERB} == {field.name for field in fields(Capabilities)}
    assert not {*USES} & NO_VERB


def test_every_verb_is_carried_out_or_refused() -> None:
    verbs = {name for name in dir(Store) if not name.startswith("_")} - {"database"}
    store = object.__new__(BullmqStore)

    assert [verb for verb in sorted(verbs) if not hasattr(store, verb)] == []


@pytest.mark.parametrize("capability", USES)
async def test_what_is_not_declared_is_refused_with_advice(store: Store, capability: str) -> None:
    if getattr(store.capabilities, capability):
        try:
            await USES[capability](store)
        except Unsupported:
            raise
        except WindrowError:  # declared, and this use of it is no good; that is another's business
            return
        return
    with pytest.raises(Unsupported) as refused:
        await USES[capability](store)

    assert refused.value.capability == capability
    assert not refused.value.transient
    # It says what to do, not only what cannot be done.
    assert any(word in str(refused.value) for word in ("use ", "give ", "commit "))
    assert await store.list_queues() == []


async def test_tenants_are_refused_where_the_database_cannot_keep_them_apart(store: Store) -> None:
    if store.capabilities.tenancy:
        store.as_tenant("acme")
        return
    with pytest.raises(ConfigError, match="Postgres"):
        store.as_tenant("acme")


async def test_jobs_that_need_what_is_missing_are_refused_whole(store: Store) -> None:
    bad = {
        "groups": row(group=UNKNOWN_ID),
        "limits": row(limits=("key",)),
        "replaces": row(unique="key", on_conflict="replace"),
    }
    for capability, one in bad.items():
        if getattr(store.capabilities, capability):
            continue
        with pytest.raises(Unsupported) as refused:
            await store.insert_jobs([row(), one])
        assert refused.value.capability == capability
    assert await store.list_queues() == []
