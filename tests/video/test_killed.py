"""Workers that die at every boundary of the stages: nothing is lost, nothing is paid for twice."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from tests.faults import FaultyStore
from tests.processes import ROOT, Command
from tests.video.conftest import Studio
from tests.video.standins import (
    KEY,
    TIKTOK,
    YOUTUBE,
    Fault,
    OpenAIStandin,
    ScrapeCreatorsStandin,
)
from windrow import Queue, Worker
from windrow.pipelines.index.payloads import WRITE
from windrow.pipelines.video.chain import video_chain
from windrow.services.video import VideoInfo, add_video, get_video, install_video
from windrow.settings import Settings
from windrow.worker.registry import Handler

# The verbs at the boundaries of a chain: what is saved when a stage begins, what it has paid for,
# and its end with the hand-off. Each is lost on its way there, and on its way back.
BOUNDARIES = [
    pytest.param("claim_jobs", 1, marks=pytest.mark.chaos),
    ("save_work", 1),
    ("save_step", 1),
    pytest.param("save_step", 2, marks=pytest.mark.chaos),
    pytest.param("save_step", 3, marks=pytest.mark.chaos),
    ("finish_jobs", 1),
    ("finish_jobs", 2),
]


# Seconds: a worker that stands still for longer than this, less a heartbeat, loses its jobs.
LEASE = 3


def short_leases(studio: Studio) -> list[Handler]:
    return [replace(one, lease=LEASE, heartbeat=0.25) for one in studio.chain.handlers]


async def work_until_final(studio: Studio, worker: Worker, video: VideoInfo) -> None:
    working = asyncio.create_task(worker.run())
    while not (video := await get_video(studio.queue, video.id)).is_final:
        await asyncio.sleep(0.02)
    worker.stop()
    await working
    assert video.status == "done"


@pytest.mark.parametrize("is_arrived", [True, False])
@pytest.mark.parametrize(("verb", "call"), BOUNDARIES)
async def test_call_that_is_lost_at_a_boundary_costs_nothing(
    studio: Studio,
    scrapecreators: ScrapeCreatorsStandin,
    openai: OpenAIStandin,
    verb: str,
    call: int,
    is_arrived: bool,
) -> None:
    faulty = FaultyStore(studio.queue.store)
    (faulty.lose_reply if is_arrived else faulty.fail_before)(verb, call)
    video = await studio.add(TIKTOK)
    worker = Worker(Queue(faulty), short_leases(studio), lease=LEASE)
    await work_until_final(studio, worker, video)
    assert set(scrapecreators.billed.values()) == {1}
    assert openai.billed["chat"] == 1
    assert len(await studio.indexed()) == 1


async def test_call_that_takes_longer_than_the_lease_is_not_made_twice(
    small_studio: Studio, scrapecreators: ScrapeCreatorsStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P8: kept alive by the heartbeat."""
    slow = scrapecreators.fault

    async def take_long(request: web.Request) -> web.Response | None:
        await asyncio.sleep(LEASE + 0.5 if "transcript" in request.path else 0)
        return await slow(request)

    monkeypatch.setattr(scrapecreators, "fault", take_long)
    assert small_studio.videos.scrapecreators is not None
    small_studio.videos.scrapecreators._provider._seconds = 60
    video = await small_studio.add(YOUTUBE)
    handlers = short_leases(small_studio)
    await asyncio.gather(
        *(Worker(small_studio.queue, handlers, lease=LEASE).run(until_idle=True) for _ in range(2))
    )
    assert (await get_video(small_studio.queue, video.id)).status == "done"
    assert set(scrapecreators.billed.values()) == {1}
    [job] = await small_studio.queue.list(kind="video.scrape")
    assert (job.runs, job.crashes) == (1, 0)


@pytest.mark.chaos
@pytest.mark.parametrize("kills", [1, 2, 3])
async def test_killed_workers_lose_nothing(
    scrapecreators: ScrapeCreatorsStandin, openai: OpenAIStandin, tmp_path: Path, kills: int
) -> None:
    """kill -9 of a real worker while it waits for an answer of a provider: of each of its calls,
    one after the other. The call that was under way is made again, no other is."""
    settings = Settings(
        database_url=f"sqlite:///{tmp_path}/jobs.db", data_dir=str(tmp_path / "data")
    )
    async with asyncio.timeout(120), Queue.open(settings.database_url) as queue:
        await install_video(queue, settings)
        video = await add_video(queue, settings, TIKTOK)
        for number in range(kills):
            hanging = (scrapecreators, scrapecreators, openai)[number]
            hanging.faults.append(Fault(hangs=True))
            asked = _asked(scrapecreators, openai)
            worker = _worker(settings, scrapecreators, openai)
            while hanging.faults or _asked(scrapecreators, openai) == asked:
                await asyncio.sleep(0.02)
            worker.send_signal(signal.SIGKILL)
            await asyncio.to_thread(worker.wait)
            _let_leases_run_out(tmp_path / "jobs.db")
        last = _worker(settings, scrapecreators, openai, "--until-idle")
        assert await asyncio.to_thread(last.wait) == 0
        ended = await get_video(queue, video.id)
        assert (ended.status, ended.error) == ("done", None)
        [index] = await queue.list(kind=WRITE)
        assert index.state == "completed"
    assert set(scrapecreators.billed.values()) == {1}
    assert openai.billed["chat"] == 1


def _asked(*standins: ScrapeCreatorsStandin | OpenAIStandin) -> int:
    return sum(standin.asked.total() for standin in standins)


def _worker(
    settings: Settings,
    scrapecreators: ScrapeCreatorsStandin,
    openai: OpenAIStandin,
    *words: str,
) -> Command:
    environment = {
        **os.environ,
        "WINDROW_DATABASE_URL": settings.database_url,
        "WINDROW_DATA_DIR": settings.data_dir,
        "WINDROW_SCRAPECREATORS_KEY": KEY,
        "WINDROW_SCRAPECREATORS_URL": scrapecreators.url,
        "WINDROW_LLM_URL": openai.url,
        "WINDROW_LLM_KEY": KEY,
        "WINDROW_LLM_MODEL": "barn-1",
    }
    return Command("worker", *words, cwd=ROOT, environment=environment)


def _let_leases_run_out(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE windrow_lease SET expires_at = 0")


def test_the_chain_reads_as_its_stages(small_studio: Studio) -> None:
    told = [
        (one.name, one.handler.queue, one.handler.lease, one.status)
        for one in video_chain(small_studio.videos)
    ]
    assert told == [
        ("scrape", "scrape_jobs", 120, "scraping"),
        ("enrich", "enrich_jobs", 300, "enriching"),
    ]
