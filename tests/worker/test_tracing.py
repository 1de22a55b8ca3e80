"""OpenTelemetry spans: one for the enqueue, one for each run, linked."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from windrow import Cancel, Done, Job, NewJob, Queue, Worker, handler
from windrow.worker.tracing import Tracing


class Spans:
    """A tracer provider that keeps what has ended, to be asked by name."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def __call__(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        [span] = self(name)
        return span


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
async def traced(store_url: str, spans: Spans) -> AsyncIterator[Queue]:
    async with Queue.open(store_url, tracing=spans.provider) as queue:
        yield queue


async def run_all(queue: Queue, spans: Spans, *handlers: Any) -> None:
    await Worker(queue, handlers, observers=[Tracing(spans.provider)]).run(until_idle=True)


def id_of(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def links_of(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


async def test_every_attempt_is_a_span_of_its_own_linked_to_the_enqueue(
    traced: Queue, spans: Spans
) -> None:
    @handler("work", backoff=0)
    async def work(job: Job) -> str:
        if job.attempts == 0:
            raise ConnectionError("the server did not answer")
        return "done"

    job = await traced.enqueue("work", queue="mail", tenant="acme")
    await run_all(traced, spans, work)

    enqueued = spans.one("enqueue work")
    first, second = spans("run work")
    assert links_of(first) == links_of(second) == [id_of(enqueued)]
    assert len({id_of(span)[0] for span in (enqueued, first, second)}) == 3
    assert [first.parent, second.parent] == [None, None]
    assert (enqueued.kind, first.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)

    assert first.status.status_code is StatusCode.ERROR
    assert first.status.description == "ConnectionError: the server did not answer"
    [event] = first.events
    assert (event.name, (event.attributes or {})["exception.type"]) == (
        "exception",
        "ConnectionError",
    )
    assert second.status.status_code is StatusCode.UNSET
    assert second.events == ()
    assert [(span.attributes or {})["windrow.outcome"] for span in (first, second)] == [
        "retry",
        "done",
    ]
    assert [(span.attributes or {})["windrow.run"] for span in (first, second)] == [1, 2]
    assert (
        dict(second.attributes or {}).items()
        >= {
            "messaging.destination.name": "mail",
            "messaging.message.id": job.id,
            "windrow.tenant": "acme",
        }.items()
    )


async def test_what_a_handler_enqueues_belongs_to_its_run(traced: Queue, spans: Spans) -> None:
    @handler("first")
    async def first(job: Job) -> Done:
        await traced.enqueue("inside")
        return Done(then=[NewJob("after", headers={"mine": 1})])

    @handler("inside")
    def inside(job: Job) -> str:
        return f"{trace.get_current_span().get_span_context().span_id:016x}"

    @handler("after")
    async def after(job: Job) -> Any:
        return job.headers["mine"]

    await traced.enqueue("first")
    await run_all(traced, spans, first, inside, after)

    run = spans.one("run first")
    assert links_of(spans.one("run after")) == [id_of(run)]
    enqueued_inside = spans.one("enqueue inside")
    assert enqueued_inside.parent is not None
    assert (enqueued_inside.parent.trace_id, enqueued_inside.parent.span_id) == id_of(run)
    [ran_inside] = await traced.list(kind="inside")
    seen = (await traced.get(ran_inside.id)).result
    assert seen == f"{id_of(spans.one('run inside'))[1]:016x}"


async def test_many_are_enqueued_in_one_span(traced: Queue, spans: Spans) -> None:
    @handler("work", batch=10)
    async def work(jobs: list[Job]) -> list[Any]:
        return ["done", Cancel("not wanted")]

    await traced.enqueue_many([NewJob("work"), NewJob("work")])
    await traced.enqueue_many([NewJob("a"), NewJob("b", queue="other")])
    await run_all(traced, spans, work)

    together = spans.one("enqueue work")
    assert (together.attributes or {})["messaging.batch.message_count"] == 2
    assert [links_of(span) for span in spans("run work")] == [[id_of(together)]] * 2
    outcomes = [(span.attributes or {})["windrow.outcome"] for span in spans("run work")]
    assert sorted(map(str, outcomes)) == ["cancel", "done"]
    assert "messaging.destination.name" not in (spans.one("enqueue").attributes or {})


async def test_a_payload_that_does_not_fit_is_an_error_of_its_run(
    traced: Queue, spans: Spans
) -> None:
    @dataclass
    class Page:
        url: str

    @handler("work")
    async def work(job: Job, page: Page) -> None:
        raise AssertionError("must not be called")

    await traced.enqueue("work", {"url": 7})
    await run_all(traced, spans, work)

    run = spans.one("run work")
    assert (run.attributes or {})["windrow.outcome"] == "fail"
    assert "PayloadMismatch" in (run.status.description or "")


async def test_a_job_lost_and_claimed_again_has_a_span_for_each_run(
    traced: Queue, spans: Spans
) -> None:
    lost: list[str] = []

    @handler("work", lease=60)
    async def work(job: Job) -> str:
        if not lost:
            lost.append(job.id)
            await traced.store.extend_leases([job.lease_token or ""], 0)
            await traced.store.rescue_jobs()
            await asyncio.Event().wait()
        return "done"

    job = await traced.enqueue("work")
    await run_all(traced, spans, work)

    assert (await traced.get(job.id)).result == "done"
    ended = {
        (span.attributes or {})["windrow.run"]: (span.attributes or {})["windrow.outcome"]
        for span in spans("run work")
    }
    assert ended == {1: "lost", 2: "done"}


async def test_headers_of_ones_own_stay_as_they_are(traced: Queue, spans: Spans) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @handler("work")
    async def work(job: Job) -> None: ...

    own = await traced.enqueue("work", headers={"traceparent": parent})
    await traced.enqueue("work", headers={"traceparent": "nonsense", "n": 1})
    await run_all(traced, spans, work)

    assert (await traced.get(own.id)).headers == {"traceparent": parent}
    linked = (int(parent[3:35], 16), int(parent[36:52], 16))
    assert sorted(links_of(span) for span in spans("run work")) == [[], [linked]]


async def test_without_a_tracer_provider_nothing_is_added(store_url: str) -> None:
    @handler("work")
    async def work(job: Job) -> None: ...

    async with Queue.open(store_url, tracing=True) as queue:
        job = await queue.enqueue("work", headers={"n": 1})
        await Worker(queue, [work], observers=[Tracing()]).run(until_idle=True)
        ended = await queue.get(job.id)
    assert (ended.state, ended.headers) == ("completed", {"n": 1})


def test_blocking_code_enqueues_in_the_span_it_is_in(store_url: str, spans: Spans) -> None:
    tracer = spans.provider.get_tracer("application")
    with (
        Queue.sync(store_url, tracing=spans.provider) as queue,
        tracer.start_as_current_span("request"),
    ):
        queue.enqueue("work")
    enqueued, request = spans.one("enqueue work"), spans.one("request")
    assert enqueued.parent is not None
    assert (enqueued.parent.trace_id, enqueued.parent.span_id) == id_of(request)


@pytest.mark.parametrize(
    "code",
    [
        "from windrow import Queue; Queue.open('sqlite:///jobs.db', tracing=True)",
        "import windrow.worker.tracing",
    ],
)
def test_without_opentelemetry_the_extra_is_named(code: str) -> None:
    hidden = f"import sys; sys.modules['opentelemetry'] = None; {code}"
    ended = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True)
    assert ended.returncode == 1
    assert (
        "MissingExtra: install the extra for tracing: pip install 'windrow[otel]'" in ended.stderr
    )
