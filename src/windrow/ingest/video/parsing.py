"""What ScrapeCreators answers, as a `Video`. It answers with what the platforms answer it: any
field may be missing, null, or of another type, and then it is not known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from windrow.ingest.video.video import Platform, Video
from windrow.ingest.video.webvtt import text_of

Answer = Mapping[str, Any]


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
