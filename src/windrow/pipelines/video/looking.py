"""What is said in a video: by ScrapeCreators for the platforms it knows, else on this machine, of a
file or of what is at an address. What was paid for, or took long, is kept as a step of the job."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

import msgspec

from windrow.errors import ConfigError, FileRefused, InvalidOptions, ProviderError
from windrow.ingest.video import Video, platform_of
from windrow.queue.job import Job
from windrow.queue.queue import Queue
from windrow.settings import Settings, data_folder

if TYPE_CHECKING:
    from windrow.ingest.enrich.llm import Model
    from windrow.ingest.fetch.fetcher import Fetcher
    from windrow.ingest.transcribe import Transcriber
    from windrow.ingest.video.scrapecreators import ScrapeCreators

MOST_BYTES: Final = 512 * 1024 * 1024  # of a video that is fetched
FETCH_SECONDS: Final = 600.0
NO_KEY: Final = (
    "{platform} is asked through ScrapeCreators, and there is no key: set "
    "WINDROW_SCRAPECREATORS_KEY, or add the file itself"
)


def video_folder(settings: Settings) -> Path:
    """Where files are kept that were added; no others are opened."""
    return data_folder(settings) / "videos"


@dataclass(frozen=True, slots=True)
class Videos:
    """What the stages of videos work with."""

    queue: Queue
    folder: Path  # where files that were added are kept; no others are read
    scrapecreators: ScrapeCreators | None = None
    model: Model | None = None
    fetcher: Fetcher | None = None
    _opened: list[Transcriber] = field(default_factory=list)

    async def transcriber(self) -> Transcriber:
        """Opened with the first video that needs it: it takes a while, and an extra."""
        if not self._opened:
            from windrow.ingest.transcribe.local import LocalTranscriber

            self._opened.append(LocalTranscriber())
        return self._opened[0]

    async def close(self) -> None:
        for one in self._opened:
            await one.close()
        self._opened.clear()


async def look_at(videos: Videos, url: str, job: Job) -> Video:
    """What is known of a video. What another try does not change is raised as such."""
    platform = platform_of(url)
    if platform is not None:
        if videos.scrapecreators is None:
            raise ConfigError(NO_KEY.format(platform=platform))
        return await videos.scrapecreators.get(platform, url, job.step)
    found = await job.step("transcript", _transcribe, videos, url)
    return msgspec.convert(found, Video)


async def _transcribe(videos: Videos, url: str) -> Video:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidOptions(f"{url!r} is no address: {error}") from error
    if parts.scheme in ("http", "https"):
        with tempfile.TemporaryDirectory(prefix="windrow-video-") as folder:
            path = Path(folder) / "video"
            await _download(videos, url, path)
            return await _hear(videos, path, url)
    if parts.scheme in ("file", "") and parts.path.startswith("/"):
        return await _hear(videos, _own_file(videos, parts.path), url)
    raise InvalidOptions(f"{url!r} is neither an address of the web nor a file that was added")


async def _download(videos: Videos, url: str, path: Path) -> None:
    if videos.fetcher is None:
        raise ConfigError("nothing is fetched here")
    found = await videos.fetcher.fetch(url, timeout=FETCH_SECONDS, max_bytes=MOST_BYTES)
    if found.status >= 400:
        transient = found.status >= 500 or found.status in (408, 429)
        why = f"answers with {found.status}"
        raise ProviderError(url, why, status=found.status, transient=transient)
    await asyncio.to_thread(path.write_bytes, found.body)


def _own_file(videos: Videos, path: str) -> Path:
    """Rows may come from anybody: only files that were added are opened for them."""
    file = Path(unquote(path)).resolve()
    if not file.is_relative_to(videos.folder.resolve()):
        raise FileRefused(path, "it was not added with `windrow video add`")
    return file


async def _hear(videos: Videos, path: Path, url: str) -> Video:
    from windrow.ingest.audio import probe
    from windrow.ingest.transcribe import Speech

    found = await probe(path)
    speech = Speech(path, found.seconds or 0.0)
    transcriber = await videos.transcriber()
    transcript = await transcriber.poll(await transcriber.start(speech), speech)
    if transcript is None:  # that of this machine is never late
        raise RuntimeError("speech was not heard to its end")
    name = unquote(urlsplit(url).path).rsplit("/", 1)[-1]
    return Video(
        transcript=transcript.text.strip() or None,
        title=name or None,
        language=transcript.language or None,
        duration_seconds=found.seconds,
        metadata={"transcribed_by": transcript.model},
    )
