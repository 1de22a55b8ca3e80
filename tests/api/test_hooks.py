"""/hooks/videos: a wake-up, as a Supabase project sends it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from windrow import Queue
from windrow.api.app import create_app
from windrow.services.video import add_video, install_video
from windrow.settings import Settings

URL = "https://www.tiktok.com/@farm/video/7"


@pytest.fixture
async def queue(tmp_path: Path) -> AsyncIterator[Queue]:
    async with Queue.open(f"sqlite:///{tmp_path}/jobs.db") as queue:
        yield queue


@pytest.fixture
async def client(queue: Queue) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(queue, Settings(api_keys="hay"))
    transport = httpx.ASGITransport(app)
    headers = {"Authorization": "Bearer hay"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as client:
        yield client
    for close in app.state.closing:
        await close()


def inserted(id: Any) -> dict[str, Any]:
    record = {"id": id, "video_url": URL, "created_at": "2026"}
    return {
        "type": "INSERT",
        "table": "clipnest_videos",
        "schema": "public",
        "record": record,
        "old_record": None,
        "user_id": None,
    }


async def test_p5_webhook_is_idempotent_and_needs_a_key(
    client: httpx.AsyncClient, queue: Queue, tmp_path: Path
) -> None:
    assert (await client.post("/hooks/videos", json=inserted(1))).status_code == 404
    settings = Settings(data_dir=str(tmp_path))
    await install_video(queue, settings)
    video = await add_video(queue, settings, URL)
    stranger = await client.post(
        "/hooks/videos", json=inserted(video.id), headers={"Authorization": "Bearer straw"}
    )
    assert stranger.status_code == 401
    for _ in range(2):
        told = await client.post("/hooks/videos", json=inserted(video.id))
        assert (told.status_code, told.json()["status"]) == (202, "under way")
    [job] = await queue.list(kind="video.scrape")
    await queue.delete(job.id)
    told = await client.post("/hooks/videos", json=inserted(video.id))
    assert told.json()["status"] == "enqueued"
    assert len(await queue.list(kind="video.scrape")) == 1
    assert (await client.post("/hooks/videos", json=inserted(77))).status_code == 404
    gone = {"type": "DELETE", "record": None, "old_record": {"id": video.id}}
    assert (await client.post("/hooks/videos", json=gone)).json()["status"] == "ignored"
    assert (await client.post("/hooks/videos", json={"type": "INSERT"})).status_code == 400
