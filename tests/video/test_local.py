"""Without keys: a file is transcribed on this machine, summarised by its own words, and found."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.cli.conftest import read, windrow
from tests.recordings import recorded_speech, silence
from tests.video.conftest import Studio
from tests.video.standins import KEY, TIKTOK, Fault, OpenAIStandin, ScrapeCreatorsStandin
from windrow import Queue
from windrow.catalog import Catalog
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard
from windrow.services.video import add_video, get_video, install_video
from windrow.services.working import open_own_handlers
from windrow.settings import Settings
from windrow.testing import drain

__all__ = ["read", "windrow"]


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/jobs.db"


def test_file_is_transcribed_summarised_and_found(read: Any, windrow: Any, tmp_path: Path) -> None:
    """P7: both providers have a local default that needs no key."""
    data = {"WINDROW_DATA_DIR": str(tmp_path / "data")}
    done = windrow("video", "add", str(recorded_speech(tmp_path)), **data)
    assert done.returncode == 0, done.stderr
    assert "best of times" in done.stdout.lower()
    assert done.stderr.split()[-1] == "done"
    [video] = read("video", "list", **data)
    assert read("video", "show", str(video["id"]), **data)["transcript"]
    found = read("search", "the best of times", **data)
    assert "best of times" in str(found).lower()


def test_what_is_no_recording_fails_with_the_reason_and_silence_does_not(
    read: Any, windrow: Any, tmp_path: Path
) -> None:
    data = {"WINDROW_DATA_DIR": str(tmp_path / "data")}
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "words.mp4").write_text("not a video at all " * 100)
    for name in ("empty.mp4", "words.mp4"):
        failed = windrow("video", "add", name, "--quiet", **data)
        assert failed.returncode == 1
    ended = read("video", "list", **data)
    assert {one["status"] for one in ended} == {"failed"}
    assert all(one["error"] for one in ended)
    quiet = read("video", "add", str(silence(tmp_path, 1)), **data)
    assert (quiet["status"], quiet["transcript"]) == ("done", None)


async def test_address_of_a_file_is_fetched_and_heard(small_studio: Studio, tmp_path: Path) -> None:
    """Where it may be fetched from: rows come from anybody."""
    app = web.Application()
    app.router.add_static("/", silence(tmp_path, 1).parent)
    async with TestServer(app, host="127.0.0.1") as server:
        url = f"http://127.0.0.1:{server.port}"
        for guard, name, status, why in (
            (Guard(allow_private=True), "silence.ogg", "done", ""),
            (Guard(allow_private=True), "nothing.ogg", "failed", "404"),
            (Guard(), "silence.ogg", "failed", "127.0.0.1"),
        ):
            async with Fetcher(guard=guard) as fetcher:
                object.__setattr__(small_studio.videos, "fetcher", fetcher)
                ended = await small_studio.run(f"{url}/{name}")
            assert ended.status == status
            assert why in (ended.error or "")


def test_install_is_safe_to_repeat_and_mistakes_are_said(windrow: Any) -> None:
    first = windrow("db", "install", "video")
    assert "clipnest_videos is set up" in first.stdout
    assert "up to date" in windrow("db", "install", "video").stdout
    assert windrow("db", "install", "audio").returncode == 2
    assert windrow("video", "show", "77").returncode == 1
    assert windrow("video", "add", "nowhere.mp4").returncode == 1


async def test_retried_embedding_does_not_pay_for_the_chat_again(
    scrapecreators: ScrapeCreatorsStandin, openai: OpenAIStandin, store_url: str, tmp_path: Path
) -> None:
    """P7. The embedder is another job, which is tried again by itself."""
    settings = Settings(
        database_url=store_url,
        data_dir=str(tmp_path / "data"),
        scrapecreators_key=KEY,
        scrapecreators_url=scrapecreators.url,
        llm_url=openai.url,
        llm_key=KEY,
        llm_model="barn-1",
        embed_url=openai.url,
        embed_model="small",
        embed_dimension=4,
    )
    openai.embedding_faults = deque([Fault(503), Fault(500)])
    async with (
        Queue.open(store_url) as queue,
        open_own_handlers(settings, queue, ["video", "index"]) as handlers,
    ):
        await install_video(queue, settings)
        video = await add_video(queue, settings, TIKTOK)
        await drain(queue, handlers, scheduled=True)
        assert (await get_video(queue, video.id)).status == "done"
        [document] = await Catalog(queue.database).documents.page(None, "default")
        assert document.is_searchable
    assert openai.asked["/v1/embeddings"] == 3
    assert openai.billed["chat"] == 1
    assert set(scrapecreators.billed.values()) == {1}
