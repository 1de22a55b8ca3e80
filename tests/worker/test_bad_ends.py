"""A wrong return value or a broken exception fails its own job and no other."""

from __future__ import annotations

import asyncio
import enum
import re
import sys
import types
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from windrow import Cancel, Done, Fail, Job, NewJob, Queue, Retry, Snooze, Worker, handler
from windrow.errors import InvalidJob, RateLimited, WindrowError
from windrow.queue.job import JobState
from windrow.worker.registry import Handler

GOOD = 100
PATIENCE = 30.0


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class PrintsNone(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]


class ExitsWhenPrinted(Exception):
    def __str__(self) -> str:
        sys.exit(3)


class BadNotes(Exception):
    @property
    def __notes__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no notes")


class BadRetryAfter(Exception):
    @property
    def retry_after(self) -> float:
        raise KeyboardInterrupt


class EndlessRetryAfter(Exception):
    retry_after = float("inf")


class KeylessLimit(RateLimited):
    def __init__(self) -> None:
        Exception.__init__(self, "no key")


class BadClass(Exception):
    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class ExitsWhenAsked(Exception):
    """Whoever asks for its class ends the process, unless they are careful."""

    @property
    def __class__(self) -> Any:
        sys.exit(3)

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class BadBaseClass(BaseException):
    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class BadZone(tzinfo):
    """Its time cannot be written, and neither can the reason be looked at."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise BadBaseClass


class NoName(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            raise RuntimeError("no name")
        return super().__getattribute__(name)


class Nameless(Unprintable, metaclass=NoName): ...


class BadTransient(WindrowError):
    @property
    def transient(self) -> bool:  # type: ignore[override]
        raise RuntimeError("not known")


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Unchecked(Snooze):
    def __init__(self) -> None:
        object.__setattr__(self, "after", None)


class Colour(enum.StrEnum):
    RED = "red"


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth):
        value = [value]
    return value


def chained(count: int) -> Exception:
    error = ValueError("first")
    for number in range(count):
        following = ValueError(str(number))
        following.__cause__ = error
        error = following
    return error


def circular() -> Exception:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    return one


def divide() -> float:
    return 1 / 0


def odd_frame() -> Any:
    return types.FunctionType(divide.__code__.replace(co_filename="a\x00\ud800"), {})()


def odd_syntax() -> Exception:
    error = SyntaxError("odd")
    error.lineno, error.offset, error.text = "x", object(), 7  # type: ignore[assignment]
    return error


def throw(error: BaseException) -> Any:
    raise error


F = JobState.FAILED
C = JobState.COMPLETED
# What a handler does, the state its job ends in, and what its error says.
Case = tuple[Callable[[], Any], JobState, str]
CASES: dict[str, Case] = {
    "Fail(404)": (lambda: Fail(404), F, r'Fail\("404"\)'),  # type: ignore[arg-type]
    "Fail(None)": (lambda: Fail(None), F, "an exception or a text"),  # type: ignore[arg-type]
    "Fail(class)": (lambda: Fail(ValueError), F, "this is a class"),  # type: ignore[arg-type]
    "Retry(5)": (lambda: Retry(5), F, r"Retry\(after=5\)"),  # type: ignore[arg-type]
    "Retry(after=text)": (lambda: Retry(after="5"), F, "seconds"),  # type: ignore[arg-type]
    "Cancel(None)": (lambda: Cancel(None), F, "must be a text"),  # type: ignore[arg-type]
    "Cancel(5)": (lambda: Cancel(5), F, r'Cancel\("5"\)'),  # type: ignore[arg-type]
    "Snooze(None)": (lambda: Snooze(None), F, r"Snooze\(60\)"),  # type: ignore[arg-type]
    "Snooze unchecked": (Unchecked, F, r"Snooze\(60\)"),
    "Snooze(nan)": (lambda: Snooze(float("nan")), F, "100 years"),
    "Done(then=job)": (lambda: Done(then=NewJob("x")), F, "list of jobs"),  # type: ignore[arg-type]
    "Done(then=texts)": (lambda: Done(then=["x"]), F, "list of NewJob"),  # type: ignore[list-item]
    "Done(then=bad job)": (lambda: Done(then=[NewJob("")]), F, "kind"),
    "Done(Fail)": (lambda: Done(Fail("x")), F, "return the outcome by itself"),
    "Fail in a tuple": (lambda: (Fail("x"),), F, "return the outcome by itself"),
    "the class": (lambda: Snooze, F, "returned the class Snooze"),
    "a set": (lambda: {1, 2}, C, ""),
    "NaN": (lambda: {"x": float("nan")}, F, "result.x is not a finite number"),
    "an object": (object, F, "cannot be written as JSON"),
    "odd keys": (lambda: {(1, 2): object()}, F, "cannot be written as JSON"),
    "deep": (lambda: nested(100_000), F, "cannot be written as JSON|pickling"),
    "less deep": (lambda: nested(300), C, ""),
    "no JSON": (lambda: msgspec.Raw(b"{oops"), F, "cannot be written as JSON"),
    "no JSON inside": (lambda: {"page": msgspec.Raw(b"1],[2")}, F, "cannot be written as JSON"),
    "number out of range": (lambda: msgspec.Raw(b"[1e400]"), F, "out of range"),
    "no UTF-8": (lambda: msgspec.Raw(b'"\xff"'), F, "cannot be written as JSON"),
    "JSON with NUL": (lambda: msgspec.Raw(b'"\\u0000"'), C, ""),
    "surrogates": (lambda: "\ud800", C, ""),
    "NUL": (lambda: {"a\x00": "\x00"}, C, ""),
    "Fail(NUL)": (lambda: Fail("a\x00\ud800"), F, "a"),
    "Cancel(NUL)": (lambda: Cancel("a\x00\ud800"), JobState.CANCELLED, "a"),
    "Fail(long)": (lambda: Fail("x" * 5_000_000), F, "xxx"),
    "Fail(enum)": (lambda: Fail(Colour.RED), F, "red"),
    "Fail(odd text)": (lambda: Fail(Text("odd")), F, "odd"),
    "Fail(unprintable)": (lambda: Fail(Unprintable()), F, "without a readable message"),
    "unprintable": (lambda: throw(Unprintable()), F, "without a readable message"),
    "prints None": (lambda: throw(PrintsNone()), F, "without a readable message"),
    "exits": (lambda: throw(ExitsWhenPrinted()), F, "without a readable message"),
    "bad class": (lambda: throw(BadClass()), F, "no class|process died"),
    "exits when asked": (lambda: throw(ExitsWhenAsked()), F, "3|process died"),
    "bad result": (lambda: datetime(1, 1, 1, tzinfo=BadZone()), F, "be stored"),  # type: ignore[abstract]
    "nameless": (lambda: throw(Nameless()), F, "without a readable message|process died"),
    "bad transient": (lambda: throw(BadTransient("x")), F, "not known"),
    "bad notes": (lambda: throw(BadNotes("noted")), F, "noted"),
    "bad retry_after": (lambda: throw(BadRetryAfter()), F, ""),
    "endless retry_after": (lambda: throw(EndlessRetryAfter("soon")), F, "soon"),
    "rate limit without key": (lambda: throw(KeylessLimit()), F, "key"),
    "StopIteration": (lambda: throw(StopIteration(1)), F, "StopIteration"),
    "StopAsyncIteration": (lambda: throw(StopAsyncIteration(1)), F, "1"),
    "GeneratorExit": (lambda: throw(GeneratorExit()), F, "no message|GeneratorExit"),
    "KeyboardInterrupt": (lambda: throw(KeyboardInterrupt()), F, "no message"),
    "SystemExit": (lambda: sys.exit(2), F, "2"),
    "CancelledError": (lambda: throw(asyncio.CancelledError()), F, "cancelled its own task"),
    "group": (lambda: throw(BaseExceptionGroup("two", [SystemExit(), ValueError()])), F, "two"),
    "chain": (lambda: throw(chained(2000)), F, "1999"),
    "circle": (lambda: throw(circular()), F, "one"),
    "recursion": (lambda: (f := lambda g: g(g))(f), F, "recursion"),
    "odd frame": (odd_frame, F, "division by zero"),
    "odd syntax": (lambda: throw(odd_syntax()), F, "odd"),
}


def acts(name: str) -> Any:
    return CASES[name][0]()


@handler("good")
async def good(job: Job) -> None: ...


@handler("bad async", max_attempts=1)
async def bad_async(job: Job, payload: str) -> Any:
    return acts(payload)


@handler("bad thread", max_attempts=1)
def bad_thread(job: Job, payload: str) -> Any:
    return acts(payload)


@handler("bad process", max_attempts=1, run="process")
def bad_process(job: Job, payload: str) -> Any:
    return acts(payload)


@handler("bad batch", max_attempts=1, batch=5)
async def bad_batch(jobs: list[Job], payloads: list[str]) -> Any:
    return [acts(one) for one in payloads]


@handler("bad tx", max_attempts=1)
async def bad_tx(job: Job, payload: str) -> Any:
    await job.tx.execute("select 1")
    return acts(payload)


@handler("bad told", max_attempts=1, on_failure=lambda job, why: [NewJob("good", {"why": why})])
async def bad_told(job: Job, payload: str) -> Any:
    return acts(payload)


HANDLERS = [bad_async, bad_thread, bad_process, bad_batch, bad_tx, bad_told]


async def run_beside_good(
    queue: Queue, handlers: Sequence[Handler], bad: Sequence[NewJob]
) -> list[Job]:
    """Run bad jobs before and after good ones; what became of the bad ones. The good ones complete
    in their first run, and the worker goes on and can be stopped."""
    half = len(bad) // 2
    jobs = await queue.enqueue_many([*bad[:half], *[NewJob("good")] * GOOD, *bad[half:]])
    worker = Worker(queue, [good, *handlers])
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(PATIENCE):
            ended = [await queue.wait(job.id) for job in jobs]
            last = await queue.enqueue("good")
            assert (await queue.wait(last.id)).state is C
            assert not running.done()
    finally:
        worker.stop()
        await asyncio.wait_for(running, PATIENCE)
    goods = ended[half : half + GOOD]
    assert {(job.kind, job.state, job.crashes, job.runs) for job in goods} == {("good", C, 0, 1)}
    return [*ended[:half], *ended[half + GOOD :]]


@pytest.mark.parametrize("bad", HANDLERS, ids=lambda one: one.kind)
async def test_bad_end_fails_its_own_job_with_a_clear_message(queue: Queue, bad: Handler) -> None:
    cases = dict(CASES)
    if bad.is_batch:  # a transient error of a batch is one of all its jobs
        del cases["rate limit without key"]
    ended = await run_beside_good(queue, [bad], [NewJob(bad.kind, name) for name in cases])
    seen = {name: job.state for name, job in zip(cases, ended, strict=True)}
    assert seen == {name: state for name, (_, state, _) in cases.items()}
    assert {job.crashes for job in ended} == {0}
    for name, job in zip(cases, ended, strict=True):
        if job.state is not C:
            assert re.search(cases[name][2], job.errors[-1].message), name


async def raises(error: type[BaseException]) -> None:
    raise error


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_step_that_exits_on_the_loop_of_a_thread_fails_its_own_job(
    queue: Queue, error: type[BaseException]
) -> None:
    @handler("step", max_attempts=1)
    def step(job: Job) -> None:
        job.step("exit", raises, error)

    [job] = await run_beside_good(queue, [step], [NewJob("step")])
    assert (job.state, job.crashes) == (F, 0)


@pytest.mark.parametrize(
    "changed",
    [
        *({"id": "x"}, {"id": None}, {"lease_token": None}, {"lease_token": 5}, {"tx": 5}),
        *({"limits": 5}, {"attempts": "x"}, {"max_attempts": None}, {"kind": None}),
    ],
    ids=str,
)
@pytest.mark.parametrize("batch", [None, 2])
async def test_handler_that_changes_its_job_ends_that_job_and_no_other(
    queue: Queue, changed: dict[str, Any], batch: int | None
) -> None:
    @handler("change", batch=batch)
    async def change(jobs: Any) -> Any:
        for job in jobs if batch else [jobs]:
            for name, value in changed.items():
                setattr(job, name, value)

    [job] = await run_beside_good(queue, [change], [NewJob("change")])
    assert job.crashes == 0
    assert job.state is (F if {"id", "lease_token"} & set(changed) else C)


@pytest.mark.parametrize("error", [SystemExit, ValueError, BadClass])
async def test_back_off_that_raises_anything_fails_each_job_of_its_batch(
    queue: Queue, error: type[BaseException]
) -> None:
    @handler("retry", batch=3, backoff=lambda attempts: throw(error()))
    async def retry(jobs: list[Job]) -> list[Retry]:
        return [Retry("again") for _ in jobs]

    ended = await run_beside_good(queue, [retry], [NewJob("retry")] * 6)
    assert {(job.state, job.crashes) for job in ended} == {(F, 0)}


# Anything that a handler may put into an outcome, return or raise.

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
odd = st.sampled_from(
    [object(), Snooze, ValueError, {1, 2}, {(1,): 2}, Text("odd"), Colour.RED, Unprintable()]
)
anything = plain | odd | st.builds(ValueError, plain) | st.builds(NewJob, plain)
calls = st.tuples(
    st.sampled_from([Done, Retry, Snooze, Fail, Cancel]),
    st.lists(anything, max_size=2),
    st.fixed_dictionaries({}, optional={"then": anything, "after": anything, "error": anything}),
)
exceptions = st.sampled_from(
    [
        *(ValueError, StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt),
        *(SystemExit, asyncio.CancelledError, Unprintable, PrintsNone, ExitsWhenPrinted, BadNotes),
        *(BadRetryAfter, EndlessRetryAfter, OSError, UnicodeDecodeError, KeylessLimit, InvalidJob),
        *(BadClass, ExitsWhenAsked, BadTransient),
    ]
)
acts_of_a_handler = st.one_of(
    anything.map(lambda value: lambda: value),
    calls.map(lambda call: lambda: call[0](*call[1], **call[2])),
    st.tuples(exceptions, st.lists(anything, max_size=2)).map(
        lambda raised: lambda: throw(raised[0](*raised[1]))
    ),
)


KINDS = ("in loop", "in thread", "in batch", "with tx")


@settings(
    max_examples=5,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=st.lists(acts_of_a_handler, min_size=60, max_size=60))
def test_whatever_handlers_return_or_raise_the_worker_goes_on(
    store_url: str, drawn: list[Callable[[], Any]]
) -> None:
    def act(job: Job) -> Any:
        """What was drawn for the job; nothing in its third run, so that it ends."""
        return None if job.runs > 2 else drawn[job.payload]()

    @handler("in loop", backoff=0)
    async def in_loop(job: Job) -> Any:
        return without_wait(act(job))

    @handler("in thread", backoff=0)
    def in_thread(job: Job) -> Any:
        return without_wait(act(job))

    @handler("in batch", backoff=0, batch=4)
    async def in_batch(jobs: list[Job]) -> Any:
        return [without_wait(act(job)) for job in jobs]

    @handler("with tx", backoff=0, max_attempts=1, on_failure=lambda job, why: act(job))
    async def with_tx(job: Job) -> Any:
        await job.tx.execute("select 1")
        return without_wait(act(job))

    async def run() -> None:
        async with Queue.open(store_url) as queue:
            bad = [NewJob(KINDS[n % len(KINDS)], n) for n in range(len(drawn))]
            ended = await run_beside_good(queue, [in_loop, in_thread, in_batch, with_tx], bad)
            assert {job.crashes for job in ended} == {0}

    asyncio.run(run())


def without_wait(outcome: Any) -> Any:
    """The outcome, due at once if it asks for another run: the test waits for the end."""
    if isinstance(outcome, Snooze):
        return Snooze(0)
    return Retry(outcome.error, after=0) if isinstance(outcome, Retry) else outcome
