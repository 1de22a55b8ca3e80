"""The pages as a browser gets them: who may see and do what, and what strangers wrote."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.api.server import Server
from tests.dashboard.conftest import ADMIN, BROKEN, READER, TENANT, Shown
from windrow import NewJob, Queue
from windrow.catalog import Catalog
from windrow.catalog.calls import CallRow
from windrow.catalog.documents import DocumentRow
from windrow.catalog.sources import SourceRow
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.queue.records import Group
from windrow.web import knowledge
from windrow.web.markdown import render_markdown
from windrow.web.pages import ENVIRONMENT
from windrow.web.runs import progress_of
from windrow.web.site import ROUTES

PAGES = sorted(
    route.path
    for route in ROUTES
    if "GET" in (route.methods or ()) and "{" not in route.path and route.path != "/ui/events"
)
TOKEN = re.compile(r'name="token" value="([^"]+)"')


@contextmanager
def log_in(server: Server, key: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=60) as client:
        assert client.post("/ui/login", data={"key": key}).status_code == 200
        yield client


def token_of(client: httpx.Client) -> str:
    found = TOKEN.search(client.get("/").text)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def admin(server: Server, shown: Shown) -> Iterator[httpx.Client]:
    with log_in(server, ADMIN) as client:
        yield client


def test_every_page_opens_and_may_load_nothing_from_elsewhere(admin: httpx.Client) -> None:
    for path in PAGES:
        answer = admin.get(path)
        assert answer.status_code == 200, path
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r'(?:src|href)="(?:https?:)?//', answer.text), path
        assert "style=" not in answer.text, path
        assert not re.search(r"<script(?! type=\"module\" src=\"/ui/static/)", answer.text), path


def test_nothing_is_shown_without_a_session(server: Server, shown: Shown) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for route in ROUTES:
            if route.path == "/ui/login":
                continue
            path = route.path.replace("{id}", shown.page)
            for method in sorted((route.methods or set()) - {"HEAD"}):
                answer = client.request(method, path)
                where = answer.headers["location"].partition("?")[0]
                assert (answer.status_code, where) == (303, "/ui/login"), path
        assert client.post("/ui/login", data={"key": "wrong"}).status_code == 401
        client.cookies.set("windrow_session", "0" * 64 + ".9999999999.forged")
        assert client.get("/").status_code == 303


def test_cookie_is_kept_from_scripts_and_other_sites(server: Server) -> None:
    answer = httpx.post(f"{server.url}/ui/login", data={"key": ADMIN}, timeout=60)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ADMIN not in cookie


def test_forms_of_other_sites_and_readers_change_nothing(
    server: Server, admin: httpx.Client, shown: Shown
) -> None:
    path = f"/ui/jobs/{shown.foreign}"
    assert admin.post(path, data={"do": "delete"}).status_code == 403
    assert admin.post(path, data={"do": "delete", "token": "guess"}).status_code == 403
    with log_in(server, READER) as reader:
        page = reader.get(path)
        assert page.status_code == 200
        assert 'value="delete"' not in page.text
        token = token_of(reader)
        assert reader.post(path, data={"do": "delete", "token": token}).status_code == 403
        assert reader.get("/ui/add").status_code == 403
    assert admin.get(path).status_code == 200


def test_readers_are_not_led_to_what_they_may_not_do(server: Server, shown: Shown) -> None:
    empty = "/ui/runs?state=cancelled"
    with log_in(server, READER) as reader, log_in(server, TENANT) as writer:
        for client in (reader, writer):
            assert "There are none." in client.get(empty).text
        assert "/ui/add" not in reader.get(empty).text
        assert "/ui/add" not in reader.get("/ui/search").text
        assert '<a href="/ui/add">Start a crawl</a>' in writer.get(empty).text


def test_tenants_see_their_own(server: Server, shown: Shown) -> None:
    with log_in(server, TENANT) as client:
        assert client.get(f"/ui/jobs/{shown.foreign}").status_code == 404
        jobs = client.get("/ui/jobs").text
        assert ">mine<" in jobs
        assert "thumbnail" not in jobs
        assert "nightly" not in client.get("/ui/schedules").text
        assert "database_url" not in client.get("/ui/settings").text
        overview = client.get("/").text
        assert "images" not in overview
        assert "Workers" not in overview


def test_what_strangers_wrote_is_text(admin: httpx.Client, shown: Shown) -> None:
    for path in ("/ui/failed", f"/ui/jobs/{shown.failed[0]}", f"/ui/jobs/{shown.page}"):
        text = admin.get(path).text
        assert "&lt;script&gt;" in text
        assert "<script>" not in text
        assert "onerror=&#34;" in text or "onerror=&quot;" in text
        assert 'href="javascript:' not in text


def test_markdown_makes_links_of_web_addresses_only() -> None:
    for bad in ("javascript:alert(1)", "JAVASCRIPT:x", "data:text/html,x", "vbscript:x"):
        assert "<a" not in render_markdown(f"[x]({bad})")
    assert 'rel="noopener noreferrer nofollow"' in render_markdown("[x](https://example.org)")
    assert "<img" not in render_markdown("![x](https://example.org/a.png)")
    assert "<b>" not in render_markdown("<b>x</b>")


def test_a_failed_job_is_edited_and_runs_again(admin: httpx.Client, shown: Shown) -> None:
    path = f"/ui/jobs/{shown.failed[2]}"
    form = {"do": "edit", "token": token_of(admin), "payload": '{"n": 5}', "priority": "9"}
    assert "The job is changed" in admin.post(path, data=form).text
    page = admin.get(path).text
    assert '<span class="state ready">' in page
    refused = admin.post(path, data=form | {"payload": "{"})
    assert refused.status_code == 400
    assert "no JSON" in refused.text


def test_what_has_completed_is_neither_edited_nor_tried_again(
    admin: httpx.Client, shown: Shown
) -> None:
    page = admin.get(f"/ui/jobs/{shown.page}").text
    assert 'value="delete"' in page
    assert 'value="retry"' not in page
    assert 'value="edit"' not in page


def test_what_is_for_later_can_be_run_now(admin: httpx.Client, shown: Shown) -> None:
    assert "Run now" in admin.get(f"/ui/jobs/{shown.foreign}").text


def test_jobs_are_found_by_their_key_and_by_what_they_carry(
    admin: httpx.Client, shown: Shown
) -> None:
    def found(text: str) -> bool:
        return f"/ui/jobs/{shown.secret}" in admin.get("/ui/jobs", params={"text": text}).text

    assert found("long meadow")
    assert found("meadow-1")
    assert not found("short meadow")
    assert not found("hush-47")  # it is hidden, and not to be guessed either
    assert f"/ui/jobs/{shown.secret}" in str(admin.get(f"/ui/jobs?text={shown.secret}").url)
    assert "hush" not in admin.get("/ui/jobs").text


def test_jobs_that_failed_alike_run_again_and_no_others(
    server: Server, admin: httpx.Client, shown: Shown
) -> None:
    assert f'name="pattern" value="{BROKEN}"' in admin.get("/ui/failed").text
    form = {"pattern": BROKEN, "token": token_of(admin)}
    assert "2 jobs will run again" in admin.post("/ui/failed", data=form).text
    states = [state_of(admin, job) for job in shown.broken]
    assert states == ["ready", "ready", "failed"]
    with log_in(server, TENANT) as tenant:
        page = tenant.get("/ui/failed").text
        assert "no paper" in page
        assert "the printer" not in page
        form = {"pattern": "no paper", "token": token_of(tenant)}
        assert "2 jobs will run again" in tenant.post("/ui/failed", data=form).text


def state_of(client: httpx.Client, job: str) -> str:
    found = re.search(
        r'<dt>state</dt><dd><span class="state (\w+)">', client.get(f"/ui/jobs/{job}").text
    )
    assert found is not None
    return found[1]


def test_keys_are_made_shown_once_and_revoked(server: Server, admin: httpx.Client) -> None:
    token = token_of(admin)
    form = {"do": "make", "name": "fields", "tenant": "acme", "role": "admin", "token": token}
    [key] = re.findall(r"wr-[\w-]{40,}", admin.post("/ui/settings", data=form).text)
    assert key not in admin.get("/ui/settings").text
    assert "already" in admin.post("/ui/settings", data=form).text

    with log_in(server, key) as tenant:
        assert "acme" in tenant.get("/").text
        more = form | {"name": "more", "tenant": "", "token": token_of(tenant)}
        assert tenant.post("/ui/settings", data=more).status_code == 403
    form = {"do": "revoke", "name": "fields", "token": token}
    assert "counts no longer" in admin.post("/ui/settings", data=form).text
    assert "fields" not in admin.get("/ui/settings").text


def test_stages_of_calls_are_shown_with_the_calls_in_each(
    server: Server, admin: httpx.Client
) -> None:
    async def add() -> None:
        async with Queue.open(server.database) as queue:
            await Catalog(queue.database).calls.put(
                [CallRow(new_id(), None, "default", "a.ogg", "analyze")]
            )

    asyncio.run(add())
    shown = admin.get("/ui/pipelines").text
    stages = re.findall(
        r">([a-z ]+)</a>\s*<dl class=\"facts\"><dt>calls</dt><dd[^>]*>(\d+)<", shown
    )
    assert stages == [
        ("extract audio", "0"),
        ("transcribe start", "0"),
        ("transcribe poll", "0"),
        ("analyze", "1"),
    ]


def test_secrets_are_not_among_the_settings(admin: httpx.Client) -> None:
    page = admin.get("/ui/settings").text
    assert "api_keys" in page
    assert ADMIN not in page


def test_pages_do_not_read_more_when_there_are_more_jobs(admin: httpx.Client) -> None:
    """Filters that find nothing, and pages behind pages, are answers too."""
    assert "There are none." in admin.get("/ui/jobs", params={"queue": "nowhere"}).text
    assert admin.get("/ui/jobs", params={"state": "no such"}).status_code == 400
    assert admin.get("/ui/jobs/nonsense").status_code in (400, 404)
    assert admin.get("/ui/runs/00000000-0000-0000-0000-000000000000").status_code == 404


def test_sources_are_shown_page_by_page_and_large_ones_counted_in_part(
    server: Server, admin: httpx.Client
) -> None:
    async def fill() -> None:
        large, *others = [
            SourceRow("hay", f"barn-{n:03}", "docs", "site", f"https://barn-{n:03}.example/")
            for n in range(knowledge.PAGE + 1)
        ]
        documents = [
            DocumentRow(new_id(), "hay", "docs", source.id, f"{source.uri}{number}", size=1)
            for source, count in ((large, knowledge.MOST_COUNTED + 1), (others[0], 3))
            for number in range(count)
        ]
        async with Queue.open(server.database) as queue:
            catalog = Catalog(queue.database)
            await catalog.sources.put([large, *others])
            await catalog.documents.put(documents)

    asyncio.run(fill())
    first = admin.get("/ui/sources?after_tenant=hay").text
    assert f'<td class="n">{knowledge.MOST_COUNTED}+</td>' in first
    assert '<td class="n">3</td>' in first
    assert "barn-100" not in first
    more = re.search(r'href="([^"]+)" rel="next"', first)
    assert more is not None
    second = admin.get(more[1].replace("&amp;", "&")).text
    assert "barn-100" in second
    assert "barn-099" not in second
    assert f"<dd>{knowledge.MOST_COUNTED + 1}</dd>" in admin.get("/ui/sources/barn-000").text


def test_failures_are_told_of_to_everybody_with_a_way_to_them(
    server: Server, admin: httpx.Client, shown: Shown
) -> None:
    page = admin.get("/").text
    assert "All is well" not in page
    assert re.search(r'jobs failed in the last hour</b> <a href="/ui/failed">', page)
    assert "<code>windrow jobs list --state failed</code>" in page
    with log_in(server, TENANT) as client:
        own = client.get("/").text
    assert "<b>2 jobs failed in the last hour</b>" in own
    assert "All is well" not in own


def test_findings_read_as_sentences_and_link_what_they_name() -> None:
    told = ENVIRONMENT.filters["told"]
    id = new_id()
    assert told("nobody takes `a<b>`, as " + id) == (
        f'Nobody takes <code>a&lt;b&gt;</code>, as <a href="/ui/jobs/{id}">{id}</a>'
    )
    assert told(f"group {id} is paused") == f'Group <a href="/ui/runs/{id}">{id}</a> is paused'
    assert told(f"`windrow jobs retry {id}`", capital=False) == (
        f"<code>windrow jobs retry {id}</code>"
    )


def test_a_job_tells_its_runs_beside_what_is_used_up(admin: httpx.Client, shown: Shown) -> None:
    page = admin.get(f"/ui/jobs/{shown.failed[0]}").text
    assert "<dt>runs</dt><dd>1; 1 failed and 0 crashed</dd>" in page


def test_a_paused_group_is_promised_no_end(server: Server, admin: httpx.Client) -> None:
    async def fill() -> str:
        async with Queue.open(server.database) as queue:
            group = await queue.create_group(hold=True)
            for _ in range(2):
                await queue.enqueue("bale", queue="barn", group=group.id)
            lease = await queue.claim(["barn"], limit=1)
            await lease.complete(lease.jobs[0])
            return group.id

    id = asyncio.run(fill())
    left = re.compile(r"until done, about<b>(.*?)</b>")
    running = left.search(admin.get(f"/ui/runs/{id}").text)
    said = admin.post(f"/ui/runs/{id}", data={"do": "pause", "token": token_of(admin)}).text
    paused = left.search(said)
    assert running is not None
    assert paused is not None
    assert (running[1] != "–", paused[1]) == (True, "–")
    assert "The run is paused" in said


def test_a_group_that_stands_still_has_no_estimate_and_says_since_when() -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    counts = {JobState.COMPLETED: 400, JobState.READY: 2}
    group = Group("g", "active", False, False, 2, counts, None, None, began, None)

    moving = progress_of(group, began + timedelta(seconds=39), began + timedelta(seconds=40))
    assert (moving["left"], moving["silent"]) == (0.2, None)
    still = progress_of(group, began + timedelta(seconds=40), began + timedelta(seconds=640))
    assert (still["left"], still["silent"]) == (None, 600.0)

    counts[JobState.COMPLETED] = 4  # one every 160 s: 600 s without an end are not unusual
    slow = progress_of(group, began + timedelta(seconds=40), began + timedelta(seconds=640))
    assert (slow["left"], slow["silent"]) == (320.0, None)


def test_the_last_end_of_a_group_may_be_that_of_an_old_job(
    server: Server, admin: httpx.Client
) -> None:
    """One of low priority, or that was retried."""

    async def fill() -> str:
        async with Queue.open(server.database) as queue:
            group = await queue.create_group(hold=True)
            await queue.enqueue_many(
                [NewJob("bale", queue="barn", group=group.id) for _ in range(61)]
            )
            lease = await queue.claim(["barn"], limit=60)
            for job in lease.jobs:
                await lease.complete(job)
            return group.id

    id = asyncio.run(fill())
    database = sqlite3.connect(server.database.removeprefix("sqlite:///"), timeout=30)
    with contextlib.closing(database), database:
        database.execute(
            "UPDATE windrow_job_finished SET finished_at = finished_at - 3600000000 "
            "WHERE group_id = ?1 AND id > (SELECT min(id) FROM windrow_job_finished "
            "WHERE group_id = ?1)",
            [id],
        )
        database.execute(
            "UPDATE windrow_job_group SET created_at = created_at - 3600000000 WHERE id = ?", [id]
        )
    assert "ended for<b>" not in admin.get(f"/ui/runs/{id}").text


def test_the_queue_that_stages_share_is_drawn_as_none_of_them(admin: httpx.Client) -> None:
    page = admin.get("/ui/pipelines").text
    calls = page[page.index("<h2>Calls</h2>") : page.index("<h2>Webhooks</h2>")]
    cards = re.findall(r'(→</span>\s*)?<div class="card"><a [^>]*>([^<]*)</a>', calls)
    assert [name for _, name in cards][-3:] == ["analyze", "index", "jobs of all stages"]
    assert [bool(arrow) for arrow, _ in cards][-3:] == [True, True, False]


def test_jobs_that_have_ended_show_no_progress_and_all_lines_of_their_errors(
    server: Server, admin: httpx.Client
) -> None:
    async def make(state: str) -> str:
        async with Queue.open(server.database) as queue:
            job = await queue.enqueue("film", {}, queue=f"films-{state}")
            lease = await queue.claim([job.queue])
            await lease.progress(lease.jobs[0], 99, "frame 99")
            if state == "completed":
                await lease.complete(lease.jobs[0])
            elif state == "failed":
                await lease.fail(lease.jobs[0], "first line\n  second line", retry=False)
            return job.id

    for state in ("active", "completed", "failed"):
        id = asyncio.run(make(state))
        row = admin.get("/ui/jobs", params={"queue": f"films-{state}"}).text
        page = admin.get(f"/ui/jobs/{id}").text
        assert ("frame 99" in row, "frame 99" in page) == (
            (True, True) if state == "active" else (False, False)
        )
        assert f'title="{id}">…{id[-12:]}<' in row
    assert '<span class="lines">first line\n  second line</span>' in page


def test_who_logs_in_is_told_where(server: Server) -> None:
    page = httpx.get(f"{server.url}/ui/login", timeout=60).text
    assert ">Windrow</h1>" in page
    assert "durable ingestion engine" in page
