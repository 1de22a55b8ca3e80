"""The transcription of a call by a provider: a start that is paid for, asked for as seldom as can
be, and polls, each after a longer wait than the one before.

A provider that is asked and whose answer is lost, because the worker died or nothing came back, may
have begun. So each try is written down before it is made, and what is known of it afterwards: its
id, or that it was refused. One try without an end is repeated, for most of them have begun nothing;
after a second one nobody tries a third time by itself.

A transcript is asked for when it can be there, then ever less often. That follows from how long the
job has waited, by the database's clock: nothing needs to be kept from one poll to the next.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from windrow.catalog import Catalog
from windrow.catalog.calls import ArtifactRow
from windrow.errors import ProviderError, RateLimited
from windrow.ingest.audio import to_ogg_opus
from windrow.ingest.transcribe import Speech, Transcriber, Transcript
from windrow.pipelines.calls.context import Calls
from windrow.pipelines.calls.payloads import AnalyzePayload, Keys, PollPayload, StartPayload
from windrow.pipelines.chain import Next
from windrow.queue.job import Job
from windrow.queue.outcome import Fail, Snooze

MOST_UNANSWERED: Final = 2
_OPERATION: Final = "operation"
SHORTEST_DEADLINE: Final = 3600.0
DEADLINE_PART: Final = 2.0  # of how long the recording is
WAIT_PART: Final = 0.25  # of how long it was waited for
LONGEST_WAIT: Final = 600.0


async def start(calls: Calls, job: Job, payload: StartPayload) -> Next:
    """Have the speech transcribed; nobody asks for the result before it can be there."""
    keys = Keys(job.tenant, payload.call_id)
    if await calls.artifacts.size(keys.transcript) is not None:
        return Next(PollPayload(payload.call_id, payload.seconds, ""))
    transcriber = calls.transcriber
    uri = await _upload(calls, keys) if transcriber.wants_upload else None
    operation = await start_once(calls, job, Speech(Path(), payload.seconds, uri))
    if uri is not None:
        size = await calls.artifacts.size(keys.speech) or 0
        speech = ArtifactRow(payload.call_id, "speech", keys.speech, size)
        await Catalog(calls.queue.database).calls.put_artifacts([speech], tx=job.tx)
    polled = PollPayload(payload.call_id, payload.seconds, operation)
    return Next(polled, delay=first_wait(transcriber, payload.seconds))


async def _upload(calls: Calls, keys: Keys) -> str | None:
    """Where the speech is, as providers take it; put there unless it is."""
    uri = calls.artifacts.address(keys.speech)
    if uri is not None and await calls.artifacts.size(keys.speech) is None:
        async with calls.working_folder() as folder:
            await calls.artifacts.get(keys.audio, folder / "audio.flac")
            path = await to_ogg_opus(folder / "audio.flac", folder / "speech.ogg")
            await calls.artifacts.put(keys.speech, path)
    return uri


async def start_once(calls: Calls, job: Job, speech: Speech) -> str:
    """The id of what was begun, now or by an earlier run of the job."""
    transcriber = calls.transcriber
    if not transcriber.quotas:  # it runs here, and costs nothing
        return await transcriber.start(speech)
    kept = {step.name: step for step in await calls.queue.steps(job.id)} if job.runs > 1 else {}
    if _OPERATION not in kept:
        number = sum(name.startswith("start ") for name in kept)
        refused = sum(name.startswith("refused ") for name in kept)
        if number - refused >= MOST_UNANSWERED:
            raise ProviderError(
                transcriber.model,
                f"was asked to start {number - refused} times, and no answer was kept: it may be "
                "at work already. It is not asked again by itself",
            )
        await job.step(f"start {number}", bool)
        try:
            return str(await job.step(_OPERATION, transcriber.start, speech))
        except (ProviderError, RateLimited) as error:
            if _is_refusal(error):
                await job.step(f"refused {number}", str, error)
            raise
    return str(await job.step(_OPERATION, transcriber.start, speech))


def _is_refusal(error: ProviderError | RateLimited) -> bool:
    """Whether the provider has said that it began nothing. An answer that cannot be read, or none
    at all, does not say so."""
    if isinstance(error, RateLimited) or not error.was_sent or not error.transient:
        return True
    return error.status is not None and error.status >= 300


async def poll(calls: Calls, job: Job, payload: PollPayload) -> AnalyzePayload | Snooze | Fail:
    """Ask for the transcript, and again later: waiting costs no attempt and no row."""
    keys = Keys(job.tenant, payload.call_id)
    if await calls.artifacts.size(keys.transcript) is None:
        try:
            transcript = await _ask(calls, job, keys, payload)
        except ProviderError as error:
            # It was paid for: as long as it can be had, somebody asks.
            if not error.transient or not payload.operation_id:
                raise
            return await _later(calls, job, payload, str(error), error.retry_after)
        if transcript is None:
            return await _later(calls, job, payload)
        await _keep(calls, keys, transcript)
    await calls.artifacts.remove(keys.speech)
    size = await calls.artifacts.size(keys.transcript) or 0
    kept = ArtifactRow(payload.call_id, "transcript", keys.transcript, size)
    catalog = Catalog(calls.queue.database)
    await catalog.calls.put_artifacts([kept], tx=job.tx)
    await catalog.calls.delete_artifacts(payload.call_id, ["speech"], tx=job.tx)
    return AnalyzePayload(payload.call_id)


async def _ask(calls: Calls, job: Job, keys: Keys, payload: PollPayload) -> Transcript | None:
    transcriber = calls.transcriber
    if transcriber.wants_upload:
        return await transcriber.poll(payload.operation_id, Speech(Path(), payload.seconds))
    async with calls.working_folder() as folder:
        path = folder / "audio.flac"
        await calls.artifacts.get(keys.audio, path)
        speech = Speech(path, payload.seconds, heard=partial(_tell, job, payload.seconds))
        return await transcriber.poll(payload.operation_id, speech)


async def _tell(job: Job, seconds: float, heard: float) -> None:
    """How far it is, for people who watch."""
    percent = min(99.0, 100 * heard / seconds) if seconds else None
    await job.report_progress(percent, f"heard {heard:.0f} of {seconds:.0f} s")


async def _later(
    calls: Calls, job: Job, payload: PollPayload, why: str = "", after: float | None = None
) -> Snooze | Fail:
    so_far = waited(job)
    if so_far > deadline(payload.seconds):
        because = f": {why}" if why else ""
        return Fail(f"there is no transcript after {so_far / 60:.0f} minutes{because}")
    wait = max(next_wait(calls.transcriber, so_far), after or 0.0)
    await job.report_progress(message=f"{why or 'not ready yet'}; asked again in {wait:.0f} s")
    return Snooze(wait)


async def _keep(calls: Calls, keys: Keys, transcript: Transcript) -> None:
    async with calls.working_folder() as folder:
        path = folder / "transcript.json"
        path.write_bytes(transcript.to_json())
        await calls.artifacts.put(keys.transcript, path)


def first_wait(transcriber: Transcriber, seconds: float) -> float:
    """From the start to the first poll."""
    return max(seconds * transcriber.seconds_per_second, transcriber.poll_seconds)


def next_wait(transcriber: Transcriber, so_far: float) -> float:
    """From one poll to the next."""
    return max(min(so_far * WAIT_PART, LONGEST_WAIT), transcriber.poll_seconds)


def deadline(seconds: float) -> float:
    """How long after the start nobody believes in a transcript any more."""
    return max(SHORTEST_DEADLINE, seconds * DEADLINE_PART)


def waited(job: Job) -> float:
    """Since the start: the job was enqueued with its end."""
    now = job.started_at or job.created_at
    return (now - job.created_at).total_seconds()
