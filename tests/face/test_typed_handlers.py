"""Jobs enqueued by their handler: the payload is checked, and the result has its type."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field

from windrow import Done, Job, NewJob, Queue, Retry, Worker, handler
from windrow.errors import ConfigError, InvalidJob, PayloadMismatch, ResultMismatch
from windrow.worker.registry import Handler


@dataclass
class Thumb:
    url: str
    width: int = 100


class Image(msgspec.Struct):
    path: str


class Page(BaseModel):
    address: str = Field(alias="url")
    width: int = 100


class Size(TypedDict):
    url: str
    width: int


@handler("typed.thumbnail", queue="images", max_attempts=2)
async def thumbnail(job: Job, payload: Thumb) -> Image:
    return Image(f"{payload.url}.png")


@handler("typed.struct")
def by_struct(job: Job, payload: Image) -> Done[Page] | Retry:
    return Done(Page(url=payload.path))


@handler("typed.model")
async def by_model(job: Job, payload: Page) -> list[Thumb]:
    return [Thumb(payload.address)]


@handler("typed.dict")
async def by_typed_dict(job: Job, payload: Size) -> Size | None:
    return payload


@handler("typed.plain")
async def plain(job: Job, payload: dict[str, Any]) -> dict[str, Any]:
    return payload


@handler("typed.bare")
async def bare(job: Job) -> None: ...


@handler("typed.batch", batch=10)
async def batched(jobs: list[Job], payloads: list[Thumb]) -> list[Done[Image] | Retry]:
    return [Done(Image(payload.url)) for payload in payloads]


HANDLERS = [thumbnail, by_struct, by_model, by_typed_dict, plain, bare, batched]


@pytest.mark.parametrize(
    ("chosen", "payload", "stored", "result"),
    [
        (thumbnail, Thumb("a"), {"url": "a", "width": 100}, Image("a.png")),
        (by_struct, Image("a"), {"path": "a"}, Page(url="a")),
        (by_model, Page(url="a"), {"url": "a", "width": 100}, [Thumb("a")]),
        (
            by_typed_dict,
            {"url": "a", "width": 1},
            {"url": "a", "width": 1},
            {"url": "a", "width": 1},
        ),
        (plain, {"any": [1]}, {"any": [1]}, {"any": [1]}),
        (bare, None, None, None),
        (batched, Thumb("a"), {"url": "a", "width": 100}, Image("a")),
    ],
    ids=["dataclass", "struct", "model", "typed dict", "dict", "no payload", "batch"],
)
async def test_result_of_a_job_enqueued_by_its_handler_has_the_declared_type(
    queue: Queue, chosen: Handler, payload: Any, stored: Any, result: Any
) -> None:
    made = await chosen.enqueue(queue, payload)
    await Worker(queue, HANDLERS).run(until_idle=True)

    ended = await queue.wait(made, timeout=5)

    assert (ended.payload, ended.result) == (stored, result)
    assert type(ended.result) is type(result)


async def test_job_enqueued_by_name_has_plain_values(queue: Queue) -> None:
    made = await queue.enqueue("typed.thumbnail", {"url": "a"})
    await Worker(queue, HANDLERS).run(until_idle=True)

    ended = await queue.wait(made.id, timeout=5)

    assert ended.result == {"path": "a.png"}
    assert thumbnail.typed(ended).result == Image("a.png")


async def test_options_beside_the_payload_come_before_those_of_the_handler(queue: Queue) -> None:
    usual = await thumbnail.enqueue(queue, Thumb("a"))
    chosen = await thumbnail.enqueue(queue, Thumb("a"), queue="urgent", priority=8, max_attempts=9)

    assert (usual.queue, usual.priority, usual.max_attempts) == ("images", 5, 2)
    assert (chosen.queue, chosen.priority, chosen.max_attempts) == ("urgent", 8, 9)


async def test_queue_takes_a_handler_in_place_of_a_name(queue: Queue) -> None:
    job = await queue.enqueue(thumbnail, Thumb("a"), unique="a")
    again = await queue.enqueue(thumbnail, Thumb("a"), unique="a")

    assert (job.kind, job.queue) == ("typed.thumbnail", "images")
    assert again.id == job.id


async def test_job_of_another_kind_that_holds_the_unique_key_is_returned_as_it_is(
    queue: Queue,
) -> None:
    held = await queue.enqueue("other", {"n": 1}, unique="a")
    lease = await queue.claim()

    found = await thumbnail.enqueue(queue, Thumb("a"), unique="a")
    await lease.complete(lease.jobs[0], {"n": 2})

    assert (found.id, found.kind) == (held.id, "other")
    ended: Job[Any] = await queue.wait(found, timeout=5)
    assert ended.result == {"n": 2}


def test_decorator_without_the_kind_says_how_to_write_it() -> None:
    wrong: Any = resize
    with pytest.raises(ConfigError, match=r"write @handler\('thumbnail'\)"):
        handler(wrong)


class Shop:
    async def thumbnail(self, job: Job, payload: Thumb) -> Image:
        return Image(f"{payload.url}.png")

    __call__ = thumbnail


async def sized(width: int, job: Job, payload: Thumb) -> Image:
    return Image(f"{payload.url}-{width}.png")


@pytest.mark.parametrize(
    ("function", "path"),
    [
        (Shop().thumbnail, "a.png"),
        (Shop(), "a.png"),
        (functools.partial(sized, 5), "a-5.png"),
        (thumbnail, "a.png"),
    ],
    ids=["method", "object", "partial", "handler"],
)
async def test_types_are_those_of_the_function_that_is_called_in_the_end(
    queue: Queue, function: Any, path: str
) -> None:
    made: Handler[Any, Any] = handler("typed.callable")(function)
    assert (made.run, made.payload_type, made.result_type) == ("async", Thumb, Image)
    with pytest.raises(PayloadMismatch, match="field `url`"):
        made.job({"ulr": "a"})

    job = await made.enqueue(queue, Thumb("a"))
    await Worker(queue, [made]).run(until_idle=True)
    assert (await queue.wait(job, timeout=5)).result == Image(path)


def resize() -> None: ...


def takes_three(job: Job, payload: Thumb, more: int) -> None: ...


def takes_by_name(job: Job, *, payload: Thumb) -> None: ...


@pytest.mark.parametrize("function", [resize, takes_three, takes_by_name, Shop.thumbnail])
def test_function_that_cannot_be_called_with_job_and_payload_is_refused(function: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        handler("typed.wrong")(function)

    said = f"{function.__qualname__} must take a job, or a job and a payload: "
    assert str(raised.value).startswith(said)


def test_a_partial_cannot_run_in_a_process() -> None:
    with pytest.raises(ConfigError, match="sized cannot run in a process"):
        handler("typed.process", run="process")(functools.partial(sized, 5))


async def test_what_is_no_queue_no_job_and_no_id_is_refused_in_one_line(queue: Queue) -> None:
    wrong: Any = thumbnail
    for call, said in (
        (lambda: wrong.enqueue(Thumb("a")), "its first argument here is of type Thumb"),
        (lambda: wrong.enqueue("sqlite:///x"), "its first argument here is of type str"),
        (lambda: queue.enqueue_many([wrong]), "one item is of type Handler: a handler's job"),
        (lambda: queue.enqueue_many(wrong.job(Thumb("a"))), "takes a list of NewJob, not of type"),
        (lambda: queue.cancel(wrong), "an id must be a text such as job.id, not of type Handler"),
        (lambda: queue.wait(wrong), "an id must be a text such as job.id, not of type Handler"),
    ):
        with pytest.raises(InvalidJob) as raised:
            await call()
        assert said in str(raised.value)


async def test_handler_makes_new_jobs(queue: Queue) -> None:
    jobs = [thumbnail.job(Thumb("a"), priority=9), bare.job()]

    assert jobs[0] == NewJob("typed.thumbnail", Thumb("a"), priority=9)
    await queue.enqueue_many(jobs)
    assert [job.kind for job in await queue.list()] == ["typed.bare", "typed.thumbnail"]


async def test_schedule_takes_a_handler_with_or_without_a_name(queue: Queue) -> None:
    named = await queue.schedule("nightly", thumbnail, Thumb("a"), cron="0 3 * * *")
    by_kind = await queue.schedule(thumbnail, Thumb("b"), every=60)
    bare_one = await queue.schedule(bare, every=60, queue="low")

    assert (named.name, named.job.kind) == ("nightly", "typed.thumbnail")
    assert (by_kind.name, by_kind.job.kind) == ("typed.thumbnail", "typed.thumbnail")
    assert (by_kind.job.queue, by_kind.job.max_attempts) == ("images", 2)
    assert (bare_one.name, bare_one.job.queue) == ("typed.bare", "low")
    with pytest.raises(PayloadMismatch, match=r"\$\.url"):
        await queue.schedule(thumbnail, Thumb(url=3), every=60)  # type: ignore[arg-type]


def test_blocking_queue_does_the_same(store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        made = thumbnail.enqueue(queue, Thumb("a"), priority=8)
        queue.enqueue(bare)
        queue.schedule(thumbnail, Thumb("a"), every=60)
        queue.run(lambda inner: Worker(inner, HANDLERS).run(until_idle=True))
        assert queue.wait(made, timeout=5).result.path == "a.png"
        with pytest.raises(PayloadMismatch, match=r"Expected `str`, got `int` - at `\$\.url`"):
            thumbnail.enqueue(queue, Thumb(url=3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("chosen", "payload", "message"),
    [
        (thumbnail, Thumb(url=3), "a valid Thumb: Expected `str`, got `int` - at `$.url`"),  # type: ignore[arg-type]
        (thumbnail, {"ulr": "a"}, "a valid Thumb: Object missing required field `url`"),
        (thumbnail, None, "a valid Thumb: Expected `object`, got `null`"),
        (by_struct, Thumb("a"), "a valid Image: Object missing required field `path`"),
        (
            by_model,
            {"url": "a", "width": "wide"},
            "unable to parse string as an integer - at `$.width`",
        ),
        (by_typed_dict, {"url": "a"}, "a valid Size: Object missing required field `width`"),
        (batched, "a", "a valid Thumb: Expected `object`, got `str`"),
    ],
)
async def test_payload_that_the_handler_cannot_take_is_refused_before_anything_is_written(
    queue: Queue, chosen: Handler, payload: Any, message: str
) -> None:
    for refused in (
        lambda: chosen.enqueue(queue, payload),
        lambda: queue.enqueue(chosen, payload),
        lambda: queue.enqueue_many([chosen.job(payload)]),
    ):
        with pytest.raises(PayloadMismatch) as raised:
            await refused()
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)
        assert isinstance(raised.value, InvalidJob)
    assert await queue.list() == []


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (resize, "not the plain function resize: decorate it with @handler('resize')"),
        (Thumb, "not the class Thumb"),
        (None, "not None"),
        (7, "not 7"),
        (NewJob("typed.bare"), "not a NewJob: enqueue_many([job]) takes these"),
    ],
    ids=["function", "class", "none", "number", "new job"],
)
async def test_what_is_no_kind_is_refused_in_one_line(queue: Queue, kind: Any, given: str) -> None:
    with pytest.raises(InvalidJob) as raised:
        await queue.enqueue(kind, {"url": "a"})

    assert str(raised.value) == (
        f"the kind must be the name of a handler ('thumbnail') or a handler itself, {given}"
    )
    with pytest.raises(InvalidJob, match="the kind must be the name of a handler"):
        await queue.schedule("nightly", kind, {"url": "a"}, every=60)


async def test_handler_as_the_kind_of_a_new_job_is_refused(queue: Queue) -> None:
    wrong: Any = thumbnail
    with pytest.raises(InvalidJob, match=r"typed.thumbnail.job\(payload\) makes a NewJob"):
        await queue.enqueue_many([NewJob(wrong, {"url": "a"})])


async def test_stored_result_that_no_longer_fits_names_the_field(queue: Queue) -> None:
    made = await thumbnail.enqueue(queue, Thumb("a"))
    lease = await queue.claim(["images"])
    await lease.complete(lease.jobs[0], {"path": 3})

    ended = await queue.wait(made, timeout=5)

    with pytest.raises(ResultMismatch, match=r"not a valid Image: Expected `str`.*\$\.path"):
        print(ended.result)
    assert (await queue.get(made.id)).result == {"path": 3}


async def test_job_of_another_kind_is_not_given_the_type(queue: Queue) -> None:
    job = await queue.enqueue("other")

    with pytest.raises(InvalidJob, match=r"is of the kind 'other', not 'typed\.thumbnail'"):
        thumbnail.typed(job)
