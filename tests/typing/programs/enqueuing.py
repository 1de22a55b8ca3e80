"""Enqueueing by handler: the checker knows the payload, the options and the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import msgspec
from pydantic import BaseModel

from windrow import Job, NewJob, Queue, handler


@dataclass
class Thumb:
    url: str


class Struct(msgspec.Struct):
    url: str


class Model(BaseModel):
    url: str


class Size(TypedDict):
    width: int


@handler("thumbnail")
async def thumbnail(job: Job, payload: Thumb) -> str:
    return payload.url


@handler("struct")
def by_struct(job: Job, payload: Struct) -> Struct:
    return payload


@handler("model")
def by_model(job: Job, payload: Model) -> Model:
    return payload


@handler("typed dict")
def by_typed_dict(job: Job, payload: Size) -> Size:
    return payload


@handler("dict")
def by_dict(job: Job, payload: dict[str, Any]) -> int:
    return len(payload)


@handler("cleanup")
async def cleanup(job: Job) -> None: ...


def resize() -> None: ...


async def right(queue: Queue) -> None:
    job = await thumbnail.enqueue(queue, Thumb(url="a"), priority=8, queue="images")
    assert_type(job, Job[str])
    assert_type(thumbnail.job(Thumb("a"), delay=5), NewJob)
    await by_struct.enqueue(queue, Struct(url="a"))
    await by_model.enqueue(queue, Model(url="a"))
    await by_typed_dict.enqueue(queue, {"width": 1})
    await by_dict.enqueue(queue, {"any": [1]}, unique="a", on_conflict="replace")
    await cleanup.enqueue(queue, delay=5)
    await queue.enqueue(thumbnail, Thumb("a"), tags=["x"])
    await queue.enqueue(cleanup)
    await queue.enqueue("thumbnail", {"url": "a"}, priority=8)
    await queue.enqueue_many([thumbnail.job(Thumb("a")), cleanup.job(), NewJob("other")])
    await queue.schedule("nightly", thumbnail, Thumb("a"), cron="0 3 * * *")
    await queue.schedule(thumbnail, Thumb("a"), every=60, queue="images")
    await queue.schedule(cleanup, every=60)
    await queue.schedule("hourly", "cleanup", every=3600)


async def wrong(queue: Queue) -> None:
    await thumbnail.enqueue(queue)  # E: No overload variant
    await thumbnail.enqueue(queue, {"url": "a"})  # E: No overload variant
    await thumbnail.enqueue(queue, Thumb(url=5))  # E: incompatible type "int"
    await thumbnail.enqueue(queue, Thumb("a"), priorty=8)  # E: argument "priorty"
    await thumbnail.enqueue(queue, Thumb("a"), priority="8")  # E: No overload variant
    await thumbnail.enqueu(queue, Thumb("a"))  # E: has no attribute "enqueu"
    thumbnail.enqueue(queue, Thumb("a"))  # E: must be used
    await by_struct.enqueue(queue, Thumb("a"))  # E: No overload variant
    await by_model.enqueue(queue, Struct("a"))  # E: No overload variant
    await by_typed_dict.enqueue(queue, {"widht": 1})  # E: No overload variant
    await queue.enqueue(thumbnail, 3)  # E: Cannot infer
    await queue.enqueue(thumbnail)  # E: incompatible type
    await queue.enqueue(resize)  # E: No overload variant
    await queue.enqueue(Thumb)  # E: No overload variant
    await queue.enqueue(None)  # E: No overload variant
    await queue.enqueue("thumbnail", priorty=8)  # E: argument "priorty"
    thumbnail.job()  # E: Missing positional argument "payload"
    thumbnail.job(Thumb("a"), tx=None)  # E: argument "tx"
    await queue.schedule(thumbnail, every=60)  # E: incompatible type
    await queue.schedule(thumbnail, Thumb("a"), evry=60)  # E: argument "evry"
    await queue.schedule("nightly", thumbnail, 3, every=60)  # E: Cannot infer
    await queue.schedule(cleanup, every=60, delay=5)  # E: argument "delay"


with Queue.sync("sqlite:///jobs.db") as blocking:
    made = thumbnail.enqueue(blocking, Thumb("a"), priority=8)
    assert_type(blocking.wait(made, timeout=5).result, str)
    assert_type(blocking.enqueue(by_struct, Struct("a")).result, Struct)
    blocking.schedule(thumbnail, Thumb("a"), every=60)
    cleanup.enqueue(blocking)
    thumbnail.enqueue(blocking, Struct("a"))  # E: No overload variant
    blocking.enqueue(thumbnail)  # E: incompatible type
    blocking.schedule(cleanup, evry=60)  # E: argument "evry"
    blocking.wait(made, timout=5)  # E: argument "timout"
