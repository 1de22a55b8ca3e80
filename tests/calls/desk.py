"""Short ways to say what tests of calls are about."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from windrow import Job, Queue
from windrow.catalog import Catalog
from windrow.catalog.calls import ArtifactRow, Call, CallRow
from windrow.clock import FakeClock
from windrow.ids import new_id
from windrow.pipelines.calls.context import Calls
from windrow.pipelines.calls.payloads import STAGES, Keys, StartPayload, tag_of
from windrow.pipelines.calls.stages import calls_chain
from windrow.queue.bullmq.store import BullmqStore
from windrow.queue.job import JobState
from windrow.queue.lease import Lease
from windrow.queue.opening import open_store
from windrow.services.calls import add_call
from windrow.testing import drain
from windrow.worker.registry import Handler

ORG = "7b8c1f3e-2b43-4a5f-9a55-0d9f1f6b1c11"


@asynccontextmanager
async def open_on_one_store(template: Path, folder: Path) -> AsyncIterator[Queue]:
    """A queue on SQLite, with a clock that is moved on."""
    path = folder / "jobs.db"
    shutil.copyfile(template, path)
    opened = Queue(await open_store(f"sqlite:///{path}", clock=FakeClock()))
    yield opened
    await opened.close()


async def lose_locks(store: BullmqStore, jobs: Sequence[Job]) -> None:
    """What happens when the locks of jobs have run out, without waiting for that."""
    links = store._links
    for job in jobs:
        await links.client.delete(links.lock_key(job.queue, job.id))
    for _ in range(2):  # BullMQ marks in one check, and takes up in the next
        for job in jobs:
            await links.client.delete(links.scripts(job.queue).keys["stalled-check"])
        await store.rescue_jobs()


class Died(BaseException):
    """What a worker does not survive."""


class Desk:
    def __init__(self, queue: Queue, calls: Calls, work: Path) -> None:
        self.queue = queue
        self.calls = calls
        self.work = work  # where runs have their files
        self.chain = calls_chain(calls)
        self.handlers = self.chain.handlers

    async def jobs(self) -> list[Job]:
        """Of its stages, wherever they wait."""
        queues = {one.queue for one in self.handlers}
        return [job for name in sorted(queues) for job in await self.queue.list(queue=name)]

    @property
    def clock(self) -> FakeClock:
        clock = self.queue.store.clock
        assert isinstance(clock, FakeClock)
        return clock

    async def add(self, path: Path) -> str:
        return await add_call(self.queue, self.calls.artifacts, path, org=ORG)

    async def add_uploaded(self, name: str = "call.mp3", seconds: float = 36.0) -> str:
        """A call whose sound was taken out and uploaded already: it is about to be started."""
        call_id, store = new_id(), self.queue.store
        keys = Keys(ORG, call_id)
        path = self.work.parent / "speech.ogg"
        path.write_bytes(b"OggS of a few words")
        catalog = Catalog(store.database)
        await catalog.calls.put([CallRow(call_id, ORG, "default", name, "transcribe_start")])
        for part, key in (("audio", keys.audio), ("speech", keys.speech)):
            await self.calls.artifacts.put(key, path)
            await catalog.calls.put_artifacts(
                [ArtifactRow(call_id, part, key, path.stat().st_size)]
            )
        payload = StartPayload(call_id, seconds)
        job = self.chain.job("transcribe_start", payload, tenant=ORG, tags=[tag_of(call_id)])
        await self.queue.enqueue_many([job])
        return call_id

    async def run(self) -> list[Job]:
        """Everything there is to run, however long it has to wait."""
        return await drain(self.queue, self.handlers, scheduled=True)

    async def call(self, call_id: str) -> Call:
        [call] = await Catalog(self.queue.database).calls.get(ORG, [call_id])
        return call

    async def kept(self, call_id: str) -> set[str]:
        """What is in the store of artifacts of a call; the rows say the same."""
        keys = Keys(ORG, call_id)
        named = {
            name: await self.calls.artifacts.size(getattr(keys, name))
            for name in ("source", "audio", "speech", "transcript")
        }
        found = {name: size for name, size in named.items() if size is not None}
        rows = await Catalog(self.queue.database).calls.list_artifacts(call_id)
        assert {row.name: row.size for row in rows} == found
        return set(found)

    async def die_in(self, stage: str) -> None:
        """Run one job of a stage up to the moment in which it would be completed, and die."""
        await self._hasten()
        queues = sorted({one.queue for one in self.handlers})
        lease = await self.queue.claim(queues, limit=1, seconds=60, worker="doomed")
        [job] = lease.jobs
        assert job.kind == f"call.{stage}"
        with suppress(Died):
            await self.handler(stage)(job, self.handler(stage).payload_of(job))
        await self.bury(lease)

    async def bury(self, lease: Lease) -> None:
        """The worker is gone, its transaction with it, and after a while its lease."""
        for job in lease.jobs:
            await job.tx.rollback()
        if isinstance(self.queue.store, BullmqStore):
            await lose_locks(self.queue.store, lease.jobs)
            return
        self.clock.advance(61)
        await self.queue.tend()

    async def run_until(self, stage: str) -> None:
        """Run the stages before this one."""
        if before := self.handlers[: STAGES.index(stage)]:
            await drain(self.queue, before, scheduled=True)

    def handler(self, stage: str) -> Handler:
        return self.handlers[STAGES.index(stage)]

    async def _hasten(self) -> None:
        if not self.queue.store.capabilities.settable_clock:
            for job in await self.queue.list(state=JobState.SCHEDULED):
                if job.kind in {one.kind for one in self.handlers}:
                    await self.queue.retry(job.id)
            return
        self.clock.advance(3600)
        await self.queue.tend()
