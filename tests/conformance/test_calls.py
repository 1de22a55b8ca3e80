"""Recordings of calls: written once, and with the job that found them out or not at all."""

from __future__ import annotations

import pytest

from windrow import Done, Queue, Retry
from windrow.catalog import Catalog
from windrow.catalog.calls import AnalysisRow, ArtifactRow, CallNote, CallRow
from windrow.ids import new_id
from windrow.queue.store import Store

pytestmark = pytest.mark.requires("documents")


async def test_a_call_that_is_there_stays_as_it_is(store: Store) -> None:
    row = CallRow(new_id(), "acme", "default", "monday.ogg")
    other = CallRow(new_id(), None, "default", "tuesday.ogg")
    catalog = Catalog(store.database)
    await catalog.calls.put([row, other])
    await catalog.calls.put([CallRow(row.id, "acme", "other", "renamed.ogg", "failed")])

    [call] = await catalog.calls.get("acme", [row.id])
    assert (call.name, call.status, call.collection) == ("monday.ogg", "pending", "default")
    assert (call.error, call.seconds, call.analysis) == (None, None, None)
    assert await catalog.calls.get("", [row.id]) == []
    assert [one.tenant for one in await catalog.calls.get(None, [other.id])] == [None]
    assert {one.id for one in await catalog.calls.newest()} == {row.id, other.id}
    assert [one.id for one in await catalog.calls.newest("acme", status="pending")] == [row.id]
    assert await catalog.calls.newest("acme", status="done") == []


async def test_calls_under_way_are_counted_by_their_stage(store: Store) -> None:
    of_acme, of_none, done, failed = (new_id() for _ in range(4))
    catalog = Catalog(store.database)
    await catalog.calls.put(
        [
            CallRow(of_acme, "acme", "default", "a.ogg", "analyze"),
            CallRow(of_none, None, "default", "b.ogg"),
            CallRow(done, "acme", "default", "c.ogg", "done"),
            CallRow(failed, None, "default", "d.ogg", "failed"),
        ]
    )
    assert await catalog.calls.count() == {"analyze": 1, "pending": 1}
    assert await catalog.calls.count("acme") == {"analyze": 1}
    assert await catalog.calls.count("somebody") == {}


async def test_j6_what_is_kept_of_a_call_is_kept_once(store: Store) -> None:
    call = new_id()
    catalog = Catalog(store.database)
    await catalog.calls.put_artifacts([ArtifactRow(call, "audio", "a/audio.flac", 10)])
    await catalog.calls.put_artifacts(
        [ArtifactRow(call, "audio", "elsewhere", 99), ArtifactRow(call, "speech", "s", 5)]
    )
    kept = {one.name: (one.key, one.size) for one in await catalog.calls.list_artifacts(call)}
    assert kept == {"audio": ("a/audio.flac", 10), "speech": ("s", 5)}
    await catalog.calls.delete_artifacts(call, ["speech", "never there"])
    assert [one.name for one in await catalog.calls.list_artifacts(call)] == ["audio"]


async def test_j6_an_analysis_of_the_same_is_written_once(store: Store) -> None:
    row = CallRow(new_id(), "acme", "default", "monday.ogg")
    catalog = Catalog(store.database)
    await catalog.calls.put([row])
    await catalog.calls.put_analysis(AnalysisRow(row.id, {"title": "first"}, "hash 1"))
    await catalog.calls.put_analysis(AnalysisRow(row.id, {"title": "again"}, "hash 1"))
    [call] = await catalog.calls.get(None, [row.id])
    assert (call.analysis, call.analysed_from) == ({"title": "first"}, "hash 1")
    await catalog.calls.put_analysis(AnalysisRow(row.id, {"title": "of another"}, "hash 2"))
    [call] = await catalog.calls.get(None, [row.id])
    assert call.analysis == {"title": "of another"}


async def test_notes_of_a_call_are_written_with_the_completion_or_not_at_all(store: Store) -> None:
    queue = Queue(store)
    rows = [CallRow(new_id(), None, "default", name) for name in ("one", "two")]
    catalog = Catalog(store.database)
    await catalog.calls.put(rows)
    for _ in rows:
        await queue.enqueue("extract")
    lease = await queue.claim(limit=2, seconds=60)
    for row, job in zip(rows, lease.jobs, strict=True):
        await catalog.calls.note(CallNote(row.id, 61.5, "damaged"), tx=job.tx)
        await catalog.calls.put_artifacts([ArtifactRow(row.id, "audio", "k", 1)], tx=job.tx)
    await lease.finish(lease.jobs[0], Done())
    await lease.finish(lease.jobs[1], Retry("not yet", after=60))

    [one] = await catalog.calls.get(None, [rows[0].id])
    [two] = await catalog.calls.get(None, [rows[1].id])
    assert (one.seconds, one.note, two.seconds, two.note) == (61.5, "damaged", None, None)
    assert len(await catalog.calls.list_artifacts(one.id)) == 1
    assert await catalog.calls.list_artifacts(two.id) == []
