"""What BullMQ has no part in: copies to and from other databases, and options it does not know."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis import asyncio as redis

from tests.bullmq.conftest import add_theirs
from windrow import Queue
from windrow.errors import ConfigError, IllegalTransition, Unsupported
from windrow.queue.bullmq.connection import Links
from windrow.queue.bullmq.location import parse_url
from windrow.queue.job import JobState
from windrow.services.copying import copy_database
from windrow.services.database import database_status
from windrow.services.taking_back import take_back_jobs


@pytest.mark.parametrize("is_dry_run", [True, False])
async def test_copies_to_and_from_bullmq_are_refused_and_move_nothing(
    tmp_path: Path, url: str, is_dry_run: bool
) -> None:
    other = f"sqlite:///{tmp_path / 'jobs.db'}"
    async with Queue.open(url) as there, Queue.open(other) as here:
        await there.enqueue("page")
        await here.enqueue("page")
        for source, target in ((url, other), (other, url)):
            with pytest.raises(Unsupported, match="let the old queue run empty"):
                await copy_database(source, target, wait=0, is_dry_run=is_dry_run)
            with pytest.raises(Unsupported, match="let the old queue run empty"):
                await take_back_jobs(source, target)
        assert len(await there.list()) == len(await here.list()) == 1
    assert (await database_status(url)).leaving_for == ()


async def test_the_next_tick_of_a_scheduler_of_bullmq_can_not_be_removed(url: str) -> None:
    """BullMQ does not let go of it: whoever took it would have it twice."""
    location = parse_url(url)
    await add_theirs(url, "ticks", jobId="repeat:tick:1000")
    client = redis.from_url(location.redis_url)
    await client.hset(f"{location.prefix}:ticks:repeat:tick:1000", "rjk", "tick")
    await client.zadd(f"{location.prefix}:ticks:repeat", {"tick": 1000})
    await client.aclose()
    async with Queue.open(url) as queue:
        with pytest.raises(IllegalTransition):
            await queue.cancel("ticks:repeat:tick:1000")
        with pytest.raises(IllegalTransition):
            await queue.delete("ticks:repeat:tick:1000")
        assert (await queue.get("ticks:repeat:tick:1000")).state is JobState.READY


def test_options_that_there_are_not_are_refused_in_one_sentence() -> None:
    for query in ("nonsense=1", "row=sqlite:///x.db", "ssl_ca_certs=x"):
        with pytest.raises(ConfigError, match=query.partition("=")[0]):
            parse_url(f"bullmq+redis://host/0?{query}")
    location = parse_url("bullmq+rediss://host/0?ssl_ca_certs=x&socket_timeout=2&prefix=p")
    assert location.redis_url == "rediss://host/0?ssl_ca_certs=x&socket_timeout=2"
    with pytest.raises(ConfigError, match="socket_timeout"):
        Links(parse_url("bullmq+redis://host/0?socket_timeout=soon"))
