"""`ScrapeCreators`: transcripts and metadata of videos on TikTok, Instagram and YouTube.

Each answer costs credits, so each is handed to `remember` (a job's `step`) as it came: a second run
reads the first one's. That a video has no transcript, or is not there (404), is an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from windrow.errors import ProviderError
from windrow.ingest.enrich.llm import Remember, forget
from windrow.ingest.providers import Provider
from windrow.ingest.video.parsing import read_transcript, read_video
from windrow.ingest.video.video import Platform, Video
from windrow.settings import Settings

NAME: Final = "scrapecreators"
LIMIT: Final = "api:scrapecreators"  # the key of its jobs: parked when it is asked too often
# Instagram's transcripts are made when they are asked for, which takes up to a minute.
ANSWER_SECONDS: Final = 90.0
TRANSCRIPTS: Final[Mapping[Platform, str]] = {
    "tiktok": "/v1/tiktok/video/transcript",
    "instagram": "/v2/instagram/media/transcript",
    "youtube": "/v1/youtube/video/transcript",
}
VIDEOS: Final[Mapping[Platform, str]] = {
    "tiktok": "/v2/tiktok/video",
    "instagram": "/v1/instagram/post",
    "youtube": "/v1/youtube/video",
}


class ScrapeCreators:
    """async with ScrapeCreators(key) as api: await api.get("youtube", "https://youtu.be/…")"""

    def __init__(
        self,
        key: str,
        url: str = "https://api.scrapecreators.com",
        *,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._key = key
        self._url = url.rstrip("/")
        self._provider = Provider(NAME, limit_key=LIMIT, seconds=seconds)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self | None:
        """None if no key is set."""
        if not settings.scrapecreators_key:
            return None
        return cls(settings.scrapecreators_key, settings.scrapecreators_url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._provider.close()

    async def get(self, platform: Platform, url: str, remember: Remember = forget) -> Video:
        """What is known of a video. Raises ProviderError and RateLimited."""
        said = await remember("transcript", lambda: self._ask(TRANSCRIPTS[platform], url))
        about = await remember("metadata", lambda: self._ask(VIDEOS[platform], url))
        return read_video(platform, about, read_transcript(platform, said))

    async def _ask(self, path: str, url: str) -> Any:
        answer = await self._provider.ask(
            "GET",
            f"{self._url}{path}",
            headers={"x-api-key": self._key},
            params={"url": url},
            takes=(404,),
        )
        if answer.status == 404:
            return None
        found = answer.read(dict[str, Any])
        if found.get("success") is False:
            why = found.get("message") or found.get("error") or "no reason given"
            raise ProviderError(NAME, f"refuses: {why}", status=answer.status)
        return found
