"""The stages of a call: extract_audio → transcribe_start → transcribe_poll → analyze.

Each looks first whether what it makes is there, under a key that is the same for every run: then it
only removes what is not needed any more and hands on. Files are kept before rows are written and
inputs removed before the stage is completed, so a run that dies at any point is repeated at no cost
but time. Only a start is paid for: see `transcription`.
"""

from __future__ import annotations

from typing import Any

from windrow.catalog import Catalog
from windrow.catalog.calls import ArtifactRow, CallNote
from windrow.ingest.audio import extract_audio, probe
from windrow.pipelines.calls.analyzing import analyze
from windrow.pipelines.calls.context import Calls
from windrow.pipelines.calls.payloads import (
    CHAIN,
    DONE,
    EXTRACT,
    FAILED,
    STAGES,
    AnalyzePayload,
    ExtractPayload,
    Keys,
    PollPayload,
    StartPayload,
    queue_of,
    tag_of,
)
from windrow.pipelines.calls.transcription import poll, start
from windrow.pipelines.chain import Chain, Next, StatusRow
from windrow.pipelines.sweeping import Sweeper
from windrow.queue.job import Job, NewJob
from windrow.queue.outcome import Done, Fail, Snooze
from windrow.queue.queue import Queue

LEASE_SECONDS = 120


def calls_chain(calls: Calls) -> Chain:
    """The stages, each with its limits and its way to try again."""
    table = f"{calls.queue.store.capabilities.table_prefix}call"
    row = StatusRow(
        table,
        field="call_id",
        column="status",
        error="error",
        done=DONE,
        failed=FAILED,
        tenant="tenant",
    )
    chain = Chain(CHAIN, status=row)

    def usual(stage: str) -> dict[str, Any]:
        queue = queue_of(stage, calls.queue.store.capabilities)
        return {"status": stage, "queue": queue, "preset": "processing", "lease": LEASE_SECONDS}

    @chain.stage("extract_audio", **usual("extract_audio"))
    async def extract_audio(job: Job, payload: ExtractPayload) -> StartPayload:
        return await extract(calls, job, payload)

    @chain.stage("transcribe_start", limits=calls.limits(0), **usual("transcribe_start"))
    async def transcribe_start(job: Job, payload: StartPayload) -> Next:
        return await start(calls, job, payload)

    @chain.stage("transcribe_poll", limits=calls.limits(1), **usual("transcribe_poll"))
    async def transcribe_poll(job: Job, payload: PollPayload) -> AnalyzePayload | Snooze | Fail:
        return await poll(calls, job, payload)

    @chain.stage("analyze", **usual("analyze"))
    async def analyze_(job: Job, payload: AnalyzePayload) -> Done:
        return await analyze(calls, job, payload)

    return chain


def begin_job(queue: Queue, call_id: str, tenant: str | None, **options: Any) -> NewJob:
    """The job that begins a call. While one of its stages waits or runs there is no second one."""
    return NewJob(
        EXTRACT,
        {"call_id": call_id},
        queue=queue_of(STAGES[0], queue.store.capabilities),
        tenant=tenant,
        unique=tag_of(call_id),
        tags=(tag_of(call_id),),
        headers={"call_id": call_id},
        **options,
    )


def calls_sweeper(calls: Calls, chain: Chain) -> Sweeper:
    """Sees to calls that no job is at work for."""

    def begin(row: dict[str, Any]) -> NewJob:
        return begin_job(calls.queue, row["call_id"], row["tenant"] or None)

    return Sweeper(chain, calls.queue, columns=["tenant"], begin=begin)


async def extract(calls: Calls, job: Job, payload: ExtractPayload) -> StartPayload:
    """The sound of the recording alone, in the place of the recording."""
    keys = Keys(job.tenant, payload.call_id)
    found = await job.step("extract", _extract, calls, keys)
    await calls.artifacts.remove(keys.source)
    size = await calls.artifacts.size(keys.audio) or 0
    catalog = Catalog(calls.queue.database)
    await catalog.calls.note(CallNote(payload.call_id, **found), tx=job.tx)
    audio = ArtifactRow(payload.call_id, "audio", keys.audio, size)
    await catalog.calls.put_artifacts([audio], tx=job.tx)
    await catalog.calls.delete_artifacts(payload.call_id, ["source"], tx=job.tx)
    return StartPayload(payload.call_id, found["seconds"])


async def _extract(calls: Calls, keys: Keys) -> dict[str, Any]:
    async with calls.working_folder() as folder:
        path = folder / "audio.flac"
        if await calls.artifacts.size(keys.audio) is not None:
            await calls.artifacts.get(keys.audio, path)
            return {"seconds": (await probe(path)).seconds or 0.0, "note": None}
        await calls.artifacts.get(keys.source, folder / "source")
        audio = await extract_audio(folder / "source", path)
        await calls.artifacts.put(keys.audio, path)
    return {"seconds": audio.seconds, "note": audio.note}
