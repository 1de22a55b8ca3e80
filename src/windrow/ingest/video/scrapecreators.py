"""`ScrapeCreators`: transcripts and metadata of videos on TikTok, Instagram and YouTube.

Each answer costs credits, so each is handed to `remember` (a job's `step`) as it came: a second run
reads the first one's. That a video has no transcript, or is not there (404), is an answer. Answers
are those of the platforms: any field may be missing, null, or of another type, and then it is not
known.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Self

import msgspec

from windrow.errors import ProviderError
from windrow.ingest.enrich.llm import Remember, forget
from windrow.ingest.providers import Provider
from windrow.ingest.video import Platform, Video
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

Answer = Mapping[str, Any]

_TIMES: Final = "-->"
_NUMBER: Final = re.compile(r"\d+")
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>|<\d[\d:.]*>")
_BLOCK: Final = re.compile(r"(NOTE|STYLE|REGION)(\s|$)")


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


def read_transcript(platform: Platform, answer: Any) -> str | None:
    """What is said; None if there is no transcript, which is no error."""
    found = _dict(answer)
    match platform:
        case "tiktok":
            said = _text(found, "transcript")
            return _said(text_of(said)) if said else None
        case "instagram":
            parts = [_text(one, "text") for one in _dicts(found.get("transcripts"))]
            return _said("\n\n".join(text_of(part) for part in parts if part))
        case "youtube":
            whole = _text(found, "transcript_only_text")
            lines = [_text(one, "text") for one in _dicts(found.get("transcript"))]
            by_lines = "\n".join(" ".join(line.split()) for line in lines if line)
            return _said(by_lines) or (_said(text_of(whole)) if whole else None)


def read_video(platform: Platform, answer: Any, transcript: str | None) -> Video:
    """What is known of a video."""
    found = _dict(answer)
    match platform:
        case "tiktok":
            known = _tiktok(_dict(found.get("aweme_detail")))
        case "instagram":
            known = _instagram(_dict(_dict(found.get("data")).get("xdt_shortcode_media")))
        case "youtube":
            known = _youtube(found)
    return msgspec.structs.replace(known, transcript=transcript)


def _tiktok(found: Answer) -> Video:
    author, clip = _dict(found.get("author")), _dict(found.get("video"))
    milliseconds = _number(clip, "duration")
    return Video(
        title=_first_line(_text(found, "desc")),
        description=_text(found, "desc"),
        author=_text(author, "unique_id") or _text(author, "nickname"),
        language=_text(found, "desc_language"),
        duration_seconds=None if milliseconds is None else milliseconds / 1000,
        published_at=_moment(found.get("create_time")),
        metadata=_numbers(_dict(found.get("statistics"))),
    )


def _instagram(found: Answer) -> Video:
    captions = _dicts(_dict(found.get("edge_media_to_caption")).get("edges"))
    text = next((_text(_dict(one.get("node")), "text") for one in captions), None)
    counts = {
        name: _number(_dict(found.get(edge)), "count")
        for name, edge in (
            ("like_count", "edge_media_preview_like"),
            ("comment_count", "edge_media_to_parent_comment"),
        )
    }
    views = {name: _number(found, name) for name in ("video_view_count", "video_play_count")}
    return Video(
        title=_text(found, "title") or _first_line(text),
        description=text,
        author=_text(_dict(found.get("owner")), "username"),
        duration_seconds=_number(found, "video_duration"),
        published_at=_moment(found.get("taken_at_timestamp")),
        metadata=_known(counts | views),
    )


def _youtube(found: Answer) -> Video:
    channel = _dict(found.get("channel"))
    milliseconds = _number(found, "durationMs")
    keywords = found.get("keywords")
    known = {
        "view_count": _number(found, "viewCountInt"),
        "like_count": _number(found, "likeCountInt"),
        "keywords": [one for one in keywords if isinstance(one, str)]
        if isinstance(keywords, list)
        else None,
    }
    return Video(
        title=_text(found, "title"),
        description=_text(found, "description"),
        author=_text(channel, "title") or _text(channel, "handle"),
        duration_seconds=None if milliseconds is None else milliseconds / 1000,
        published_at=_moment(found.get("publishDate")),
        metadata=_known(known),
    )


def _dict(value: Any) -> Answer:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[Answer]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(found: Answer, name: str) -> str | None:
    value = found.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _number(found: Answer, name: str) -> float | int | None:
    """Numbers come as such or as text."""
    value = found.get(name)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _numbers(found: Answer) -> dict[str, Any]:
    return _known({name: _number(found, name) for name in found})


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _moment(value: Any) -> str | None:
    """A time as text; those that are numbers are seconds since 1970."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).isoformat()
    except (OverflowError, OSError, ValueError):
        return None


def _first_line(text: str | None) -> str | None:
    return text.split("\n", 1)[0].strip()[:120] if text else None


def _said(text: str) -> str | None:
    return text.strip() or None


def text_of(captions: str) -> str:
    """The cues of captions as lines; a text that is no WEBVTT is taken as it is.

    Rolling captions say a line again when the next one comes: lines that repeat the one before are
    left out.
    """
    text = captions.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").strip()
    if not text.startswith("WEBVTT") and _TIMES not in text:
        return text
    lines: list[str] = []
    for block in re.split(r"\n[ \t]*\n", text):
        for line in _cue(block):
            if not lines or lines[-1] != line:
                lines.append(line)
    return "\n".join(lines)


def _cue(block: str) -> list[str]:
    """What is said in a block; nothing in one that has no times, such as a header or a note."""
    lines = block.strip().split("\n")
    if _BLOCK.match(lines[0]):
        return []
    times = next((place for place, line in enumerate(lines) if _TIMES in line), None)
    if times is None:
        return []
    said = [_plain(line) for line in lines[times + 1 :] if _TIMES not in line]
    # Some write cues without a blank line between: then the number of the next one is here.
    return [line for line in said if line and not _NUMBER.fullmatch(line)]


def _plain(line: str) -> str:
    return " ".join(html.unescape(_TAG.sub("", line)).split())
