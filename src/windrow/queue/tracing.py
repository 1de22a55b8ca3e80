"""OpenTelemetry on the side of those who enqueue: a span for each call, whose context travels in
the jobs' headers as W3C `traceparent`. The runs link to it: see worker/tracing.py.

Imported only when asked for. Without a tracer provider nothing is recorded and no header is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from windrow.errors import MissingExtra
from windrow.queue.job import NewJob
from windrow.queue.kinds import usual

try:
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanContext, SpanKind, Tracer, TracerProvider
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as error:
    raise MissingExtra("otel", "tracing") from error

HEADER: Final = "traceparent"
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class EnqueueTracing:
    """A span around each `enqueue` and `enqueue_many`."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = tracer(provider)

    @contextmanager
    def __call__(self, jobs: Sequence[NewJob]) -> Iterator[Sequence[NewJob]]:
        kinds = {job.kind for job in jobs}
        name = f"enqueue {kinds.pop()}" if len(kinds) == 1 else "enqueue"
        with self._tracer.start_as_current_span(
            name, kind=SpanKind.PRODUCER, attributes=_attributes(jobs)
        ):
            yield [with_context(job) for job in jobs]


def tracer(provider: TracerProvider | None) -> Tracer:
    """Windrow's tracer, of this provider or of the one that is set for the process."""
    return trace.get_tracer("windrow", tracer_provider=provider)


def with_context(job: NewJob) -> NewJob:
    """The job with the current span in its headers, unless it has one there already."""
    headers = dict(job.headers or {})
    if HEADER in headers:
        return job
    _PROPAGATOR.inject(headers)
    return msgspec.structs.replace(job, headers=headers) if HEADER in headers else job


def context_of(headers: Mapping[str, Any]) -> SpanContext | None:
    """The span a job was enqueued in, if its headers say."""
    carrier = {name: value for name, value in headers.items() if isinstance(value, str)}
    found = trace.get_current_span(_PROPAGATOR.extract(carrier, Context())).get_span_context()
    return found if found.is_valid else None


def _attributes(jobs: Sequence[NewJob]) -> dict[str, str | int]:
    """In the words of OpenTelemetry's conventions for messaging, where it has them."""
    known: dict[str, str | int] = {
        "messaging.system": "windrow",
        "messaging.operation.type": "send",
        "messaging.batch.message_count": len(jobs),
    }
    queues = {job.queue or usual(job.kind).queue for job in jobs}
    if len(queues) == 1:
        known["messaging.destination.name"] = queues.pop()
    return known
