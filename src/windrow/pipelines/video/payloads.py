"""The jobs of videos: their kinds and queues, how long they may take, what they carry."""

from __future__ import annotations

from typing import Final

import msgspec

from windrow.ingest.video import Video

NAME: Final = "video"
SCRAPE_QUEUE: Final = "scrape_jobs"
ENRICH_QUEUE: Final = "enrich_jobs"
SCRAPE_VIDEO: Final = "video.scrape"
SCRAPE_SECONDS: Final = 120
ENRICH_SECONDS: Final = 300
MAX_READS: Final = 3  # and so the trigger that inserts jobs says


class VideoPayload(msgspec.Struct, frozen=True):
    """A row, as the trigger tells of it."""

    id: int | str
    video_url: str


class Scraped(msgspec.Struct, frozen=True):
    id: int | str
    video_url: str
    video: Video
