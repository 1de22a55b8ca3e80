"""What `@handler` makes of functions, by what they take and return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from windrow import Cancel, Done, Fail, Job, NewJob, Queue, Retry, Snooze, Worker, handler
from windrow.worker.registry import Handler


@dataclass
class Thumb:
    url: str


@dataclass
class Image:
    path: str


@handler("value", queue="images", timeout=60, backoff="processing")
async def value(job: Job, payload: Thumb) -> Image:
    return Image(payload.url)


@handler("outcome")
async def outcome(job: Job, payload: Thumb) -> Done[Image] | Retry | Snooze | Fail | Cancel:
    return Done(Image(payload.url), then=[NewJob("index")])


@handler("mixed")
def mixed(job: Job, payload: Thumb) -> Image | Retry | None:
    return None if job.attempts else Retry(after=5)


@handler("maybe")
async def maybe(job: Job, payload: Thumb) -> Done[Image] | None:
    return None


@handler("untyped")
async def untyped(job: Job, payload: dict[str, Any]) -> Done:
    return Done(1)


@handler("blocking", run="process")
def blocking(job: Job, payload: list[Thumb]) -> list[Image]:
    return [Image(one.url) for one in payload]


@handler("bare")
async def bare(job: Job) -> None: ...


@handler("never")
def never(job: Job) -> Snooze:
    return Snooze(5)


@handler("batch", batch=100)
async def batch(jobs: list[Job], payloads: list[Thumb]) -> list[Done[Image] | Retry]:
    return [Done(Image(one.url)) for one in payloads]


@handler("quiet batch", batch=100, batch_wait=0.5)
def quiet_batch(jobs: list[Job]) -> None: ...


HANDLERS = [value, outcome, mixed, bare, batch]


async def work(queue: Queue) -> None:
    await Worker(queue, HANDLERS, concurrency=5).run(until_idle=True)
    Worker(queue, [value, work])  # E: incompatible type


async def results(queue: Queue) -> None:
    thumb = Thumb("a")
    assert_type(value, Handler[Thumb, Image])
    assert_type((await queue.wait(await value.enqueue(queue, thumb))).result, Image)
    assert_type((await queue.wait(await outcome.enqueue(queue, thumb))).result, Image)
    assert_type((await queue.wait(await mixed.enqueue(queue, thumb))).result, Image | None)
    assert_type((await queue.wait(await maybe.enqueue(queue, thumb))).result, Image | None)
    assert_type((await queue.wait(await untyped.enqueue(queue, {"a": 1}))).result, Any)
    assert_type((await queue.wait(await blocking.enqueue(queue, [thumb]))).result, list[Image])
    assert_type((await queue.wait(await bare.enqueue(queue))).result, None)
    assert_type((await queue.wait(await never.enqueue(queue))).result, None)
    assert_type((await queue.wait(await batch.enqueue(queue, thumb))).result, Image)
    assert_type((await queue.wait(await quiet_batch.enqueue(queue))).result, None)
    assert_type((await queue.wait(await queue.enqueue(outcome, thumb))).result, Image)
    assert_type((await queue.wait("0190a0b0")).result, Any)
    assert_type(outcome.typed(await queue.get("0190a0b0")).result, Image)
    ended = await queue.wait(await value.enqueue(queue, thumb))
    print(ended.result.pth)  # E: has no attribute "pth"


@handler("other result")
async def other_result(job: Job, payload: Thumb) -> Done[Image]:
    follow_up = NewJob("index", priorty=8)  # E: Unexpected keyword argument "priorty"
    if job.attempts:
        return Done(Image("a"), then=follow_up)  # E: incompatible type "NewJob"
    if payload.url:
        return Done(Image("a"), then=[value.job(payload), follow_up])
    return Done(payload)  # E: incompatible type "Thumb"


@handler("late", quue="images")  # E: Unexpected keyword argument "quue"
async def misspelled(job: Job) -> None: ...


@handler("single", batch=100)  # E: incompatible type
async def single(job: Job) -> None: ...


@handler("nothing")  # E: incompatible type
async def nothing() -> None: ...
