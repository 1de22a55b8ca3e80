"""What people ask of calls: have a recording transcribed and analysed, and see what came of it."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windrow.catalog import Catalog
from windrow.catalog.calls import ArtifactInfo, ArtifactRow, Call, CallRow
from windrow.errors import FileGone, FileRefused, SourceNotFound
from windrow.ids import is_id
from windrow.ingest.artifacts import Artifacts, open_artifacts
from windrow.ingest.transcribe import Transcript
from windrow.pipelines.calls.payloads import (
    CHAIN,
    DONE,
    FAILED,
    PENDING,
    STAGES,
    Keys,
    call_id_of,
    tag_of,
)
from windrow.pipelines.calls.stages import begin_job
from windrow.pipelines.sweeping import plan_sweeps
from windrow.queue.job import LIVE, Job, Priority
from windrow.queue.queue import Queue
from windrow.services.attending import Attendance, Interrupted, attend
from windrow.settings import Settings

COLLECTION: Final = "default"
OWN: Final = ("calls", "index")  # the kinds of jobs that a call becomes
SWEEP: Final = f"{CHAIN}.sweep"
SWEEP_SECONDS: Final = 300
_BLOCK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StageInfo:
    """A stage of a call and how far it is: `waiting`, `running`, `done` or `failed`."""

    name: str
    state: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CallInfo:
    """A call with its stages and what is kept of it."""

    call: Call
    stages: tuple[StageInfo, ...]
    artifacts: tuple[ArtifactInfo, ...]
    jobs: tuple[Job, ...]  # the newest first

    @property
    def is_settled(self) -> bool:
        return self.call.status in (DONE, FAILED)

    @property
    def done(self) -> int:
        return sum(stage.state == "done" for stage in self.stages)


@dataclass(frozen=True, slots=True)
class CallRun:
    info: CallInfo
    is_interrupted: bool


async def add_call(
    queue: Queue,
    artifacts: Artifacts,
    path: Path,
    *,
    org: str | None = None,
    collection: str = COLLECTION,
) -> str:
    """Have a recording transcribed and analysed; the id of the call. The same recording is the same
    call: one that is done or on its way stays so, one that failed begins again. Raises FileGone and
    FileRefused, and then nothing is begun."""
    call_id = call_id_of(org, await asyncio.to_thread(_digest, path))
    catalog = Catalog(queue.database)
    known = await catalog.calls.get(org or "", [call_id])
    if known and (known[0].status not in (PENDING, FAILED) or await _is_at_work(queue, call_id)):
        return call_id
    # Kept before anybody is told of it: whoever runs the job finds it.
    keys = Keys(org, call_id)
    await artifacts.put(keys.source, path)
    size = await artifacts.size(keys.source) or 0
    await catalog.calls.put([CallRow(call_id, org, collection, path.name)])
    await catalog.calls.put_artifacts([ArtifactRow(call_id, "source", keys.source, size)])
    await queue.enqueue_many([begin_job(queue, call_id, org, priority=Priority.COMMAND)])
    await _plan_sweep(queue)
    return call_id


async def _is_at_work(queue: Queue, call_id: str) -> bool:
    """Whether a job of a call waits or runs, in whichever queue: its unique key may be taken only
    in that one."""
    return bool(await queue.list(tag=tag_of(call_id), state=list(LIVE), limit=1))


async def get_call(queue: Queue, call_id: str, *, org: str | None = None) -> CallInfo:
    """Raises SourceNotFound."""
    catalog = Catalog(queue.database)
    found = await catalog.calls.get(org, [call_id]) if is_id(call_id) else []
    if not found:
        missing = SourceNotFound(call_id, "there is no such call")
        missing.hint = "`windrow calls list` shows what there is"
        raise missing
    [call] = found
    jobs = await queue.list(tag=tag_of(call.id), limit=len(STAGES))
    artifacts = await catalog.calls.list_artifacts(call.id)
    return CallInfo(call, _stages(call, jobs), tuple(artifacts), tuple(jobs))


async def list_calls(
    queue: Queue, *, org: str | None = None, status: str | None = None, limit: int = 50
) -> list[Call]:
    """The newest first."""
    return await Catalog(queue.database).calls.newest(org, status=status, limit=limit)


async def get_transcript(settings: Settings, call: Call) -> Transcript | None:
    """What was said; None: that is not known yet."""
    artifacts = open_artifacts(settings)
    try:
        with tempfile.TemporaryDirectory(prefix="windrow-call-") as folder:
            path = Path(folder) / "transcript.json"
            await artifacts.get(Keys(call.tenant, call.id).transcript, path)
            return Transcript.from_json(path.read_bytes())
    except FileGone:
        return None
    finally:
        await artifacts.close()


async def run_add(
    settings: Settings,
    path: Path,
    show: Callable[[CallInfo], None],
    *,
    org: str | None = None,
    collection: str = COLLECTION,
    waits: bool = True,
) -> CallRun:
    """Add a recording and see it through its stages, for somebody who waits."""
    async with attend(settings, own=OWN) as attendance:
        artifacts = open_artifacts(settings)
        try:
            call_id = await add_call(
                attendance.queue, artifacts, path, org=org, collection=collection
            )
        finally:
            await artifacts.close()
        return await _see_through(attendance, call_id, show, waits=waits)


async def _see_through(
    attendance: Attendance, call_id: str, show: Callable[[CallInfo], None], *, waits: bool
) -> CallRun:
    queue = attendance.queue
    is_interrupted = False
    try:
        while waits:
            info = await get_call(queue, call_id)
            show(info)
            is_live = any(job.state in LIVE for job in info.jobs)
            if info.is_settled and not is_live and await _is_found(queue, info.call):
                break
            await attendance.pause()
    except Interrupted:
        is_interrupted = True
    return CallRun(await get_call(queue, call_id), is_interrupted)


async def _is_found(queue: Queue, call: Call) -> bool:
    """Whether the index has what it is to have of a call."""
    if call.status == FAILED:
        return True
    counts = await Catalog(queue.database).documents.count(call.tenant or "", call.collection)
    return not any(one.pending for one in counts)


async def _plan_sweep(queue: Queue) -> None:
    """From the first call on somebody sees to those that no job is at work for."""
    if not any(one.name == SWEEP for one in await queue.schedules()):
        await plan_sweeps(queue, SWEEP, SWEEP_SECONDS)


def _stages(call: Call, jobs: list[Job]) -> tuple[StageInfo, ...]:
    """By the row, which changes with each hand-off; how far a stage is, by its job."""
    by_name = {job.kind.rpartition(".")[2]: job for job in reversed(jobs)}
    at = _place(call, by_name)
    stages: list[StageInfo] = []
    for place, name in enumerate(STAGES):
        job = by_name.get(name)
        if place < at:
            stages.append(StageInfo(name, "done"))
        elif place > at or call.status == PENDING:
            stages.append(StageInfo(name, "waiting"))
        elif call.status == FAILED:
            stages.append(StageInfo(name, "failed", call.error))
        else:
            stages.append(StageInfo(name, "running", _message(job)))
    return tuple(stages)


def _message(job: Job | None) -> str | None:
    if job is None:
        return None
    return (job.progress and job.progress.message) or job.state.value


def _place(call: Call, by_name: dict[str, Job]) -> int:
    """The place of the stage that a call is in, by its row; of one that failed, by its last job."""
    if call.status == DONE:
        return len(STAGES)
    if call.status in STAGES:
        return STAGES.index(call.status)
    reached = [place for place, name in enumerate(STAGES) if name in by_name]
    return max(reached, default=0)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileGone(str(path)) from error
    except OSError as error:
        raise FileRefused(str(path), error.strerror or str(error)) from error
    return digest.hexdigest()
