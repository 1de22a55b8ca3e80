"""Videos on their way: P2, P4 to P8."""

from __future__ import annotations

from typing import Any

import pytest

from tests.video.conftest import Studio
from tests.video.standins import (
    GONE,
    INSTAGRAM,
    SAID,
    SILENT,
    TIKTOK,
    YOUTUBE,
    Fault,
    OpenAIStandin,
    ScrapeCreatorsStandin,
)
from windrow.catalog import Catalog
from windrow.queue.job import JobState
from windrow.services.video import get_video

QUOTA = {"error": {"code": "insufficient_quota", "message": "pay first"}}


async def test_row_that_is_inserted_is_scraped_enriched_and_found(
    studio: Studio, openai: OpenAIStandin
) -> None:
    """P5, P6, P7: each call is paid for once."""
    added = await studio.add(TIKTOK)
    assert added.status == "pending"
    [job] = await studio.queue.list(kind="video.scrape")
    assert (job.queue, job.max_attempts) == ("scrape_jobs", 3)
    await studio.work()
    done = await get_video(studio.queue, added.id)
    assert (done.status, done.error, done.summary) == ("done", None, "It broke.")
    assert "".join((done.transcript or "").split()) == "".join(SAID.split())
    [content] = await studio.indexed()
    [kept] = await Catalog(studio.queue.database).contents.get([content])
    assert "It broke." in kept.text
    assert "order the belt" in kept.text
    assert openai.billed["chat"] == 1


@pytest.mark.parametrize("url", [TIKTOK, INSTAGRAM, YOUTUBE])
async def test_each_platform_says_what_was_said(small_studio: Studio, url: str) -> None:
    done = await small_studio.run(url)
    assert done.status == "done"
    assert "".join((done.transcript or "").split()) == "".join(SAID.split())
    assert done.title


@pytest.mark.parametrize("url", [SILENT, GONE])
async def test_video_without_a_transcript_is_done_with_what_is_known(
    small_studio: Studio, openai: OpenAIStandin, url: str
) -> None:
    """P6: no transcript → partial update, done."""
    done = await small_studio.run(url)
    assert (done.status, done.transcript, done.summary) == ("done", None, None)
    assert done.title == ("The belt" if url == SILENT else None)
    assert openai.asked == {}


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (Fault(400, {"success": False, "error": "bad url"}), "failed", "400: bad url"),
        (Fault(401, {"success": False, "message": "bad key"}), "failed", "401: bad key"),
        (Fault(402, {"success": False, "message": "no credits"}), "failed", "402: no credits"),
        (Fault(403), "failed", "403"),
        (Fault(200, {"success": False, "message": "private"}), "failed", "private"),
        (Fault(429, QUOTA), "failed", "pay first"),
        (Fault(408), "done", None),
        (Fault(409), "done", None),
        (Fault(429, headers={"Retry-After": "3"}), "done", None),
        (Fault(429, headers={"retry-after-ms": "1500"}), "done", None),
        (Fault(429, headers={"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}), "done", None),
        (Fault(500), "done", None),
        (Fault(503, "<html>"), "done", None),
        (Fault(200, "<html>garbage"), "done", None),
        (Fault(hangs=True), "done", None),
    ],
)
async def test_what_goes_wrong_at_scrapecreators_ends_as_documented(
    small_studio: Studio,
    scrapecreators: ScrapeCreatorsStandin,
    fault: Fault,
    status: str,
    reason: str | None,
) -> None:
    """Each once, at the first call. (Of what is kept when a later one fails: test_killed.py.)"""
    scrapecreators.faults.append(fault)
    ended = await small_studio.run(YOUTUBE)
    assert ended.status == status
    assert (reason or "") in (ended.error or "")
    assert all(count == 1 for count in scrapecreators.billed.values())
    assert scrapecreators.asked.total() == (1 if status == "failed" else 3)


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        (Fault(401), "failed", "401"),
        (Fault(403), "failed", "403"),
        (Fault(404), "failed", "404"),
        (Fault(429, QUOTA), "failed", "pay first"),
        (Fault(503, headers={"x-should-retry": "false"}), "failed", "503"),
        (Fault(408), "done", None),
        (Fault(409), "done", None),
        (Fault(429, headers={"Retry-After": "3"}), "done", None),
        (Fault(500), "done", None),
        (Fault(200, "garbage"), "done", None),
        (Fault(hangs=True), "done", None),
    ],
)
async def test_what_goes_wrong_at_the_model_ends_as_documented(
    small_studio: Studio,
    openai: OpenAIStandin,
    scrapecreators: ScrapeCreatorsStandin,
    fault: Fault,
    status: str,
    reason: str | None,
) -> None:
    openai.faults.append(fault)
    ended = await small_studio.run(TIKTOK)
    assert ended.status == status
    assert (reason or "") in (ended.error or "")
    assert openai.billed["chat"] == (0 if status == "failed" else 1)
    assert all(count == 1 for count in scrapecreators.billed.values())


async def test_answer_that_never_fits_fails_with_the_reason_after_one_repair(
    small_studio: Studio, openai: OpenAIStandin
) -> None:
    openai.chat = {"title": 7}
    ended = await small_studio.run(TIKTOK)
    assert ended.status == "failed"
    assert "does not fit" in (ended.error or "")
    assert openai.billed["chat"] == 2


async def test_trouble_that_does_not_end_is_given_up_after_three_reads(
    small_studio: Studio, scrapecreators: ScrapeCreatorsStandin
) -> None:
    """P4: the row says why, and the rest keeps flowing."""
    bad = await small_studio.add(TIKTOK)
    scrapecreators.faults.extend([Fault(503, {"message": "away"})] * 3)
    await small_studio.work(scheduled=True)
    good = await small_studio.run(YOUTUBE)
    ended = await get_video(small_studio.queue, bad.id)
    assert (ended.status, good.status) == ("failed", "done")
    assert "503: away" in (ended.error or "")
    assert scrapecreators.asked["/v1/tiktok/video/transcript"] == 3


async def test_row_set_to_pending_again_is_looked_at_again(
    studio: Studio, scrapecreators: ScrapeCreatorsStandin, run_sql
) -> None:
    scrapecreators.faults.append(Fault(401))
    assert (await studio.run(TIKTOK)).status == "failed"
    run_sql("update clipnest_videos set processing_status = 'pending'")
    [job] = await studio.queue.list(kind="video.scrape", state="ready")
    run_sql("update clipnest_videos set processing_status = 'pending'")  # it is under way
    await studio.work()
    [row] = run_sql("select processing_status, processing_error from clipnest_videos")
    assert tuple(row) == ("done", None)
    assert (await studio.queue.get(job.id)).state is JobState.COMPLETED
    assert len(await studio.queue.list(kind="video.scrape")) == 2


async def test_platform_without_a_key_and_strange_addresses_say_so(studio: Studio, run_sql) -> None:
    object.__setattr__(studio.videos, "scrapecreators", None)
    assert "WINDROW_SCRAPECREATORS_KEY" in ((await studio.run(TIKTOK)).error or "")
    for url, why in (("ftp://a/b", "neither"), ("file:///etc/passwd", "was not added")):
        run_sql(f"insert into clipnest_videos (video_url) values ('{url}')")
        await studio.work()
        found: Any = run_sql(
            f"select processing_error from clipnest_videos where video_url = '{url}'"
        )
        assert why in found[0][0]
