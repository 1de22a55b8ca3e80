"""Videos on each store, beside servers that stand in for the providers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.video.standins import (
    KEY,
    OpenAIStandin,
    ScrapeCreatorsStandin,
    open_openai,
    open_scrapecreators,
)
from tests.worker.conftest import clock, own_kinds, queue, run_sql
from windrow import Job, Queue
from windrow.ingest.enrich.llm import Model
from windrow.ingest.video.scrapecreators import ScrapeCreators
from windrow.pipelines.chain import Chain
from windrow.pipelines.index.payloads import WRITE
from windrow.pipelines.video.chain import video_chain, video_sweeper
from windrow.pipelines.video.looking import Videos
from windrow.services.video import VideoInfo, add_video, get_video, install_video
from windrow.settings import Settings
from windrow.testing import drain

__all__ = ["clock", "own_kinds", "queue", "run_sql"]


class Studio:
    """A queue with the table of videos, and who works on it."""

    def __init__(self, queue: Queue, videos: Videos, settings: Settings) -> None:
        self.queue = queue
        self.videos = videos
        self.settings = settings
        self.chain: Chain = video_chain(videos, backoff="none")
        self.sweeper = video_sweeper(self.chain, videos)

    async def add(self, what: str) -> VideoInfo:
        return await add_video(self.queue, self.settings, what)

    async def work(self, *, scheduled: bool = False) -> list[Job]:
        """Run all there is, and with `scheduled` what is to be tried again later too."""
        return await drain(self.queue, self.chain.handlers, scheduled=scheduled)

    async def run(self, what: str, *, scheduled: bool = True) -> VideoInfo:
        added = await self.add(what)
        await self.work(scheduled=scheduled)
        return await get_video(self.queue, added.id)

    async def indexed(self) -> list[Any]:
        """What the index is asked to write."""
        return [job.payload["content"] for job in await self.queue.list(kind=WRITE)]


@pytest.fixture
async def scrapecreators() -> AsyncIterator[ScrapeCreatorsStandin]:
    async with open_scrapecreators() as standin:
        yield standin


@pytest.fixture
async def openai() -> AsyncIterator[OpenAIStandin]:
    async with open_openai() as standin:
        yield standin


# For an answer. One that hangs is waited for so long; any other may be late on a busy machine, and
# would be paid for twice.
SECONDS = 3.0


@asynccontextmanager
async def open_studio(
    queue: Queue, api: ScrapeCreatorsStandin, chat: OpenAIStandin, folder: Path
) -> AsyncIterator[Studio]:
    settings = Settings(data_dir=str(folder))
    await install_video(queue, settings)
    async with (
        ScrapeCreators(KEY, api.url, seconds=SECONDS) as client,
        Model(chat.url, "barn-1", KEY, seconds=SECONDS) as model,
    ):
        yield Studio(queue, Videos(queue, folder / "videos", client, model), settings)


@pytest.fixture
async def studio(
    queue: Queue, scrapecreators: ScrapeCreatorsStandin, openai: OpenAIStandin, tmp_path: Path
) -> AsyncIterator[Studio]:
    """On each store."""
    async with open_studio(queue, scrapecreators, openai, tmp_path) as studio:
        yield studio


@pytest.fixture
async def small_studio(
    scrapecreators: ScrapeCreatorsStandin, openai: OpenAIStandin, tmp_path: Path
) -> AsyncIterator[Studio]:
    """On SQLite, for what is the same on every store."""
    async with (
        Queue.open(f"sqlite:///{tmp_path}/jobs.db") as queue,
        open_studio(queue, scrapecreators, openai, tmp_path) as studio,
    ):
        yield studio
