"""What ScrapeCreators answers, in all the ways it does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.ingest.video import Platform, platform_of
from windrow.ingest.video.scrapecreators import read_transcript, read_video, text_of

PLATFORMS: list[Platform] = ["tiktok", "instagram", "youtube"]


@pytest.mark.parametrize(
    ("captions", "text"),
    [
        ("WEBVTT\n\n1\n0:00 --> 0:01\nHay\n\n2\n0:01 --> 0:02\nis dry", "Hay\nis dry"),
        ("\ufeffWEBVTT - title\r\nKind: captions\r\n\r\n0:00 --> 0:01\r\nHay", "Hay"),
        ("WEBVTT\n\nNOTE by hand\n\n0:00 --> 0:01\n<v Ann>Hay &amp; <b>straw</b>", "Hay & straw"),
        ("WEBVTT\n\n0:00 --> 0:01\nHay\n\n0:01 --> 0:02\nHay\nis dry", "Hay\nis dry"),
        ("WEBVTT\n0:00 --> 0:01\nHay\n2\n0:01 --> 0:02\nis dry", "Hay\nis dry"),
        ("WEBVTT", ""),
        ("Hay is dry.", "Hay is dry."),
        ("", ""),
    ],
)
def test_captions_become_what_is_said(captions: str, text: str) -> None:
    """P6: WEBVTT cleaned."""
    assert text_of(captions) == text


@pytest.mark.parametrize(
    ("platform", "answer", "said"),
    [
        ("tiktok", {"transcript": None}, None),
        ("tiktok", {"transcript": "WEBVTT\n\n"}, None),
        ("tiktok", {"transcript": "WEBVTT\n\n0:00 --> 0:01\nHay"}, "Hay"),
        ("instagram", {"transcripts": None}, None),
        ("instagram", {"transcripts": [{"text": None}, {"text": "Hay"}, "?"]}, "Hay"),
        ("youtube", {"transcript": None, "transcript_only_text": "Hay"}, "Hay"),
        ("youtube", {"transcript": [{"text": "Hay\nis", "startMs": "1"}, {}]}, "Hay is"),
        ("youtube", {"transcript": []}, None),
        ("youtube", None, None),
    ],
)
def test_no_transcript_is_an_answer(platform: Platform, answer: Any, said: str | None) -> None:
    assert read_transcript(platform, answer) == said


def test_what_is_known_is_read_from_each_platform() -> None:
    tiktok = {
        "aweme_detail": {
            "desc": "Hay\nis dry",
            "author": {"unique_id": "farm"},
            "video": {"duration": "15000"},
            "create_time": 1_700_000_000,
            "statistics": {"play_count": 7, "share_count": "x"},
        }
    }
    video = read_video("tiktok", tiktok, "Hay")
    assert (video.title, video.author, video.duration_seconds) == ("Hay", "farm", 15.0)
    assert video.published_at == "2023-11-14T22:13:20+00:00"
    assert (video.metadata, video.transcript) == ({"play_count": 7}, "Hay")
    youtube = {"title": "Hay", "durationMs": 15000, "viewCountInt": "7", "keywords": ["hay", 7]}
    assert read_video("youtube", youtube, None).metadata == {"view_count": 7, "keywords": ["hay"]}


_NAMES = st.sampled_from(
    ["transcript", "transcripts", "text", "aweme_detail", "desc", "author", "video", "duration",
     "statistics", "create_time", "data", "xdt_shortcode_media", "edge_media_to_caption", "edges",
     "node", "owner", "taken_at_timestamp", "channel", "title", "durationMs", "keywords"]
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(PLATFORMS), _JSON)
def test_no_answer_breaks_the_parsers(platform: Platform, answer: Any) -> None:
    said = read_transcript(platform, answer)
    assert said is None or said.strip()
    assert read_video(platform, answer, said).transcript == said


def test_addresses_lead_to_their_platforms() -> None:
    assert platform_of("https://m.youtube.com/watch?v=1") == "youtube"
    assert platform_of("https://youtu.be/1") == "youtube"
    assert platform_of("https://vm.tiktok.com/1") == "tiktok"
    assert platform_of("https://www.instagram.com/reel/1") == "instagram"
    assert platform_of("https://notyoutube.com/1") is None
    assert platform_of("https://[broken") is None
