"""OpenTelemetry on the side of the worker: `Worker(…, observers=[Tracing()])`.

Every run is a span of a trace of its own, linked to the span its job was enqueued in. It is no
child of it: a job may run days later and several times, and a trace that goes on for days helps
nobody. While the handler runs, its span is the current one, in the loop and in threads. Follow-up
jobs carry its context on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from windrow.errors import MissingExtra
from windrow.queue.job import Job
from windrow.queue.lease import safe_message
from windrow.queue.outcome import Cancel, Done, Fail, Outcome, Retry
from windrow.queue.tracing import context_of, tracer, with_context
from windrow.worker.observers import Call, Observer, outcome_name

try:
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        Link,
        Span,
        SpanKind,
        Status,
        StatusCode,
        TracerProvider,
        use_span,
    )
except ImportError as error:
    raise MissingExtra("otel", "tracing") from error


class Tracing(Observer):
    """A span for each run, of this tracer provider or of the one set for the process."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = tracer(provider)
        # By the claimed job, not by its id: one that was lost and claimed again by the same worker
        # runs twice at once for a moment.
        self._spans: dict[Job, Span] = {}

    def started(self, job: Job) -> None:
        self._spans[job] = self._tracer.start_span(
            f"run {job.kind}",
            context=Context(),  # a trace of its own, whatever the worker runs in
            kind=SpanKind.CONSUMER,
            links=_links(job),
            attributes=_attributes(job),
        )

    async def around(self, job: Job, call: Call) -> Any:
        span = self._spans.get(job)
        if span is None:
            return await call()
        # How it ended is said by `ended`, which knows what became of the error.
        with use_span(span, record_exception=False, set_status_on_exception=False):
            value = await call()
            if isinstance(value, Done) and value.then:
                return replace(value, then=[with_context(new) for new in value.then])
            return value

    def ended(self, job: Job, outcome: Outcome | None, seconds: float) -> None:
        span = self._spans.pop(job, None)
        if span is None:
            return
        span.set_attribute("windrow.outcome", outcome_name(job, outcome))
        match outcome:
            case None:
                span.set_status(Status(StatusCode.ERROR, "the lease was lost to another worker"))
            case Retry(error=error) | Fail(error=error):
                _record(span, error)
            case Cancel(reason=reason):
                span.set_attribute("windrow.reason", reason)
        span.end()


def _links(job: Job) -> Sequence[Link]:
    enqueued_in = context_of(job.headers)
    return [] if enqueued_in is None else [Link(enqueued_in)]


def _attributes(job: Job) -> dict[str, str | int]:
    known: dict[str, str | int] = {
        "messaging.system": "windrow",
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "windrow.kind": job.kind,
        "windrow.run": job.runs,
        "windrow.attempts": job.attempts,
    }
    optional = {"windrow.tenant": job.tenant, "windrow.group": job.group}
    return {**known, **{name: value for name, value in optional.items() if value is not None}}


def _record(span: Span, error: BaseException | str) -> None:
    if isinstance(error, str):
        span.set_status(Status(StatusCode.ERROR, error))
        return
    message = safe_message(error)
    try:
        span.record_exception(error)
    except BaseException:  # its `__str__` failed
        span.add_event("exception", {"exception.message": message})
    span.set_status(Status(StatusCode.ERROR, f"{type(error).__qualname__}: {message}"))
