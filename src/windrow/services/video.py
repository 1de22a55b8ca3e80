"""What people ask of videos: set up their table, add one and see it through, see how far it is, be
told of a row."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from windrow.errors import ConfigError, FileGone, InvalidOptions, StoreError, VideoNotFound
from windrow.ingest.web.urls import normalise
from windrow.pipelines.index.payloads import QUEUE as INDEX_QUEUE
from windrow.pipelines.index.payloads import WRITE
from windrow.pipelines.video.chain import video_chain, video_sweeper
from windrow.pipelines.video.keeping import TABLE
from windrow.pipelines.video.looking import Videos, video_folder
from windrow.queue.job import LIVE
from windrow.queue.queue import Queue
from windrow.settings import Settings

if TYPE_CHECKING:
    from windrow.services.attending import Attendance

DIALECT: Final = "video"
FINAL: Final = ("done", "failed")
_WEB: Final = ("http://", "https://")
_UNSAFE: Final = re.compile(r"[^\w.-]+")
_COLUMNS: Final = (
    "id, video_url, processing_status, processing_error, title, summary, topics, transcript"
)


@dataclass(frozen=True, slots=True)
class Installed:
    is_new: bool
    is_visible: bool  # the queues are seen as pgmq.q_scrape_jobs and so on
    why_not: str | None = None


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """A row of the table."""

    id: int | str
    url: str
    status: str | None
    error: str | None
    title: str | None
    summary: str | None
    transcript: str | None

    @property
    def is_final(self) -> bool:
        return self.status in FINAL


@dataclass(frozen=True, slots=True)
class VideoRun:
    video: VideoInfo
    is_interrupted: bool = False


Progress = Callable[[VideoInfo], None]
Told = Literal["enqueued", "under way", "ignored"]


async def install_video(queue: Queue, settings: Settings) -> Installed:
    """Set up the table, an existing or a new one, with its trigger, its queues and its sweeper."""
    why_not = None
    try:
        await queue.store.install_dialect("pgmq")
    except (ConfigError, StoreError) as error:
        why_not = str(error)  # not for this database, or there is another PGMQ
    is_new = await queue.store.install_dialect(DIALECT)
    videos = Videos(queue, video_folder(settings))
    await video_sweeper(video_chain(videos), videos).schedule()
    return Installed(is_new, why_not is None, why_not)


async def add_video(queue: Queue, settings: Settings, what: str) -> VideoInfo:
    """Have a video looked into: an address, or a file, of which a copy is kept. Raises FileGone
    and InvalidOptions, and then nothing is begun."""
    await _require_table(queue)
    url = await asyncio.to_thread(_address, what, video_folder(settings))
    [row] = await queue.store.change_rows(
        f"insert into {TABLE} (video_url) values ($1) returning id",  # noqa: S608 - a constant
        url,
    )
    return await get_video(queue, row["id"])


async def run_add_video(
    settings: Settings, what: str, show: Progress, *, waits: bool = True, concurrency: int = 2
) -> VideoRun:
    """Add a video, and wait until it can be found. Its table is set up if there is none."""
    from windrow.services.attending import attend  # not at the top: the API needs no worker

    own = ("video", "index")
    async with attend(settings, concurrency=concurrency, own=own) as attendance:
        await install_video(attendance.queue, settings)
        video = await add_video(attendance.queue, settings, what)
        return await _see_through(attendance, video, show) if waits else VideoRun(video)


async def _see_through(attendance: Attendance, video: VideoInfo, show: Progress) -> VideoRun:
    from windrow.services.attending import Interrupted

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


async def get_video(queue: Queue, id: Any) -> VideoInfo:
    """Raises VideoNotFound."""
    await _require_table(queue)
    sql = f"select {_COLUMNS} from {TABLE} where cast(id as text) = $1"  # noqa: S608 - constants
    rows = await queue.store.fetch_rows(sql, str(id))
    if not rows:
        raise VideoNotFound(str(id))
    return _info(rows[0])


async def list_videos(queue: Queue, limit: int = 50) -> list[VideoInfo]:
    """The newest first."""
    await _require_table(queue)
    sql = f"select {_COLUMNS} from {TABLE} order by created_at desc"  # noqa: S608 - constants
    return [_info(row) for row in await queue.store.fetch_rows(f"{sql} limit {int(limit)}")]


async def told_of_row(queue: Queue, type: str, id: Any) -> Told:
    """A webhook says that a row was written. The trigger has enqueued it already, so this is only
    for rows that came without one, and can be said any number of times. Raises VideoNotFound."""
    if type not in ("INSERT", "UPDATE"):
        return "ignored"
    video = await get_video(queue, id)
    if video.status != "pending":
        return "ignored" if video.is_final or video.status is None else "under way"
    videos = Videos(queue, Path())
    [inserted] = await queue.enqueue_many(
        [video_chain(videos).begin({"id": video.id, "video_url": video.url})]
    )
    return "enqueued" if inserted.outcome == "inserted" else "under way"


def _address(what: str, folder: Path) -> str:
    if what.startswith(_WEB):
        address = normalise(what)
        if address is None:
            raise InvalidOptions(f"{what!r} is no address of the web")
        return address
    path = Path(os.path.abspath(os.path.expanduser(what)))
    if not path.is_file():
        raise FileGone(os.fspath(path))
    return _keep(path, folder).as_uri()


def _keep(path: Path, folder: Path) -> Path:
    """A copy under a name that is made of its content: the same file is kept once."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:32]
    target = folder / digest / (_UNSAFE.sub("_", path.name)[-100:] or "video")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        beside = target.with_name(f"{target.name}.{os.getpid()}.part")
        shutil.copyfile(path, beside)
        beside.replace(target)
    return target


async def _require_table(queue: Queue) -> None:
    installed = {one.name for one in await queue.store.list_dialects() if one.installed_at}
    if DIALECT not in installed:
        raise ConfigError("there is no table of videos yet: run `windrow db install video`")


def _info(row: dict[str, Any]) -> VideoInfo:
    id = row["id"]
    return VideoInfo(
        id=id if isinstance(id, int) else str(id),
        url=row["video_url"],
        status=row["processing_status"],
        error=row["processing_error"],
        title=row["title"],
        summary=row["summary"],
        transcript=row["transcript"],
    )
