"""`start_once`: a start that is paid for, asked for as seldom as can be.

A provider that is asked and whose answer is lost, because the worker died or nothing came back, may
have begun. So each try is written down before it is made, and what is known of it afterwards: its
id, or that it was refused. One try without an end is repeated, for most of them have begun nothing;
after a second one nobody tries a third time by itself.
"""

from __future__ import annotations

from typing import Final

from windrow.errors import ProviderError, RateLimited
from windrow.ingest.transcribe import Speech
from windrow.pipelines.calls.context import Calls
from windrow.queue.job import Job

MOST_UNANSWERED: Final = 2
_OPERATION: Final = "operation"


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
