"""Adding a video and seeing it through its stages, for somebody who waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windrow.pipelines.index.payloads import QUEUE as INDEX_QUEUE
from windrow.pipelines.index.payloads import WRITE
from windrow.queue.job import LIVE
from windrow.queue.queue import Queue
from windrow.services.attending import Attendance, Interrupted, attend
from windrow.services.video import VideoInfo, add_video, get_video, install_video
from windrow.settings import Settings

Progress = Callable[[VideoInfo], None]


@dataclass(frozen=True, slots=True)
class VideoRun:
    video: VideoInfo
    is_interrupted: bool = False


async def run_add_video(
    settings: Settings, what: str, show: Progress, *, waits: bool = True, concurrency: int = 2
) -> VideoRun:
    """Add a video, and wait until it can be found. Its table is set up if there is none."""
    own = ("video", "index")
    async with attend(settings, concurrency=concurrency, own=own) as attendance:
        await install_video(attendance.queue, settings)
        video = await add_video(attendance.queue, settings, what)
        return await _see_through(attendance, video, show) if waits else VideoRun(video)


async def _see_through(attendance: Attendance, video: VideoInfo, show: Progress) -> VideoRun:
    queue = attendance.queue
    try:
        while not video.is_final or await _is_being_indexed(queue):
            show(video)
            await attendance.pause()
            video = await get_video(queue, video.id)
    except Interrupted:
        return VideoRun(await get_video(queue, video.id), is_interrupted=True)
    show(video)
    return VideoRun(video)


async def _is_being_indexed(queue: Queue) -> bool:
    """Whether something is on its way into the index, and somebody is there to put it in."""
    if not await queue.list(kind=WRITE, queue=INDEX_QUEUE, state=list(LIVE), limit=1):
        return False
    return any(one.takes(INDEX_QUEUE, WRITE) for one in await queue.workers())
