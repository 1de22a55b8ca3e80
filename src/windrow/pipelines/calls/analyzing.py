"""`analyze`: what is made of a transcript, written once, and both put where they are found."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any, Final

import msgspec

from windrow.catalog import Catalog
from windrow.catalog.calls import AnalysisRow, Call
from windrow.catalog.sources import SourceRow
from windrow.catalog.writer import SourceText
from windrow.errors import InvalidJob
from windrow.ingest.enrich.analysis import LOCAL, Analysis, analyse
from windrow.ingest.transcribe import Transcript
from windrow.pipelines.calls.context import Calls
from windrow.pipelines.calls.payloads import AnalyzePayload, Keys
from windrow.pipelines.knowledge.feeding import write_jobs
from windrow.queue.job import Job
from windrow.queue.outcome import Done

SOURCE: Final = "calls"
NOTHING_SAID: Final = "nobody says anything"


async def analyze(calls: Calls, job: Job, payload: AnalyzePayload) -> Done:
    """The same input is analysed once, whoever asks: the row says what it was made from."""
    catalog = Catalog(calls.queue.database)
    found = await catalog.calls.get(job.tenant or "", [payload.call_id])
    if not found:
        raise InvalidJob(f"there is no call {payload.call_id}")
    [call] = found
    transcript = await _transcript(calls, Keys(job.tenant, call.id))
    analysed_from = _input(transcript, calls.model.name if calls.model else LOCAL)
    if call.analysed_from == analysed_from and call.analysis is not None:
        analysis = dict(call.analysis)
    else:
        made = await analyse(transcript.text, calls.model, job.step)
        analysis = _with_talk_time(made, transcript)
    await catalog.calls.put_analysis(AnalysisRow(call.id, analysis, analysed_from), tx=job.tx)
    await catalog.sources.put([_source(call)], tx=job.tx)
    text = _text(call, transcript, analysis, analysed_from)
    # Nothing is looked up: the id of the document is the call's.
    [put] = await catalog.writer.put([text], known=[], tx=job.tx)
    document = put.document
    then = write_jobs([document.pending], tenant=job.tenant, priority=job.priority)
    result = {"title": analysis["title"], "lines": len(transcript.lines), "document": document.id}
    return Done(result, then=then)


async def _transcript(calls: Calls, keys: Keys) -> Transcript:
    async with calls.working_folder() as folder:
        path = folder / "transcript.json"
        await calls.artifacts.get(keys.transcript, path)
        return Transcript.from_json(path.read_bytes())


def _input(transcript: Transcript, maker: str) -> str:
    """What names an input and who works on it."""
    return hashlib.sha256(transcript.to_json() + b"\0" + maker.encode()).hexdigest()


def _with_talk_time(analysis: Analysis, transcript: Transcript) -> dict[str, Any]:
    by_speaker = transcript.talk_seconds()
    known = {speaker: seconds for speaker, seconds in by_speaker.items() if speaker}
    plain: dict[str, Any] = msgspec.to_builtins(analysis)
    return {
        **plain,
        "talk_seconds": round(sum(by_speaker.values()), 2),
        "talk_seconds_by_speaker": known,
        "transcribed_by": transcript.model,
        "language": transcript.language,
    }


def _source(call: Call) -> SourceRow:
    """All calls of a collection are of one source."""
    uri = f"{SOURCE}:{call.collection}"
    id = hashlib.sha256(uri.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return SourceRow(call.tenant, id, call.collection, "call", uri, title="Calls")


def _text(
    call: Call, transcript: Transcript, analysis: dict[str, Any], analysed_from: str
) -> SourceText:
    """What a call is found by: what was made of it, then what was said."""
    return SourceText(
        tenant=call.tenant,
        collection=call.collection,
        source=_source(call).id,
        uri=f"call:{call.id}",
        text=None if transcript.is_empty else _markdown(transcript, analysis),
        skipped=NOTHING_SAID if transcript.is_empty else None,
        title=analysis["title"] or call.name,
        language="markdown",
        tags=("call",),
        metadata={"call_id": call.id, "file": call.name, "seconds": call.seconds},
        dated_at=call.created_at,
        content_hash=analysed_from,
        id=str(uuid.uuid5(uuid.UUID(call.id), "document")),
    )


def _markdown(transcript: Transcript, analysis: dict[str, Any]) -> str:
    parts = [f"# {analysis['title']}", analysis["summary"]]
    if analysis["topics"]:
        parts.append("Topics: " + ", ".join(analysis["topics"]))
    if analysis["action_items"]:
        parts.append("## Action items")
        parts.append("\n".join(f"- {item}" for item in analysis["action_items"]))
    parts.append("## Transcript")
    parts += [
        f"{line.speaker}: {line.text}" if line.speaker else line.text for line in transcript.lines
    ]
    return "\n\n".join(part for part in parts if part)
