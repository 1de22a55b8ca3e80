"""Sites that are added over HTTP: begun, followed, stopped, looked at again (A2, A3, A4)."""

from __future__ import annotations

import uuid

from tests.api.knowledge.asking import Asking
from tests.api.server import Server
from tests.web.site import Site


def small_site(site: Site) -> str:
    site.page("/", ["/hay", "/bales"], title="Farm", text="All about the farm.")
    site.page("/hay", ["/deep"], title="Hay", text="A windrow is a long row of cut hay.")
    site.page("/bales", title="Bales", text="The baler ties hay into bales.")
    site.page("/deep", title="Deep", text="Nobody comes so far.")
    return f"{site.url}/"


def test_a2_crawl_is_followed_to_its_end_and_its_pages_are_found(acme: Asking, site: Site) -> None:
    progress_id, source = acme.crawl(small_site(site), tags=["farm"], max_depth=2)

    seen = acme.follow(progress_id)

    percents = [one["progress"] for one in seen]
    assert percents == sorted(percents)
    assert percents[-1] == 100
    end = seen[-1]
    assert (end["status"], end["sourceId"], end["progressId"]) == ("completed", source, progress_id)
    assert (end["totalPages"], end["processedPages"], end["completedDocuments"]) == (3, 3, 3)
    assert site.pages_hit() == {"/", "/hay", "/bales"}, "two steps deep, as asked for"
    item = acme.get(f"/knowledge-items/{source}")
    assert (item["document_count"], item["pending_count"], item["tags"]) == (3, 0, ["farm"])
    assert item["update_frequency"] == 7


def test_a2_answers_that_have_not_changed_are_304(acme: Asking, site: Site) -> None:
    progress_id, _ = acme.crawl(small_site(site))
    acme.follow(progress_id)

    for path in ("/api/crawl-progress", "/api/progress", "/crawl-progress", "/progress"):
        first = acme.client.get(f"{path}/{progress_id}")
        again = acme.client.get(
            f"{path}/{progress_id}", headers={"If-None-Match": f"W/{first.headers['ETag']}"}
        )
        assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
        assert first.headers["X-Poll-Interval"] == again.headers["X-Poll-Interval"] == "0"


def test_a2_what_is_not_there_is_404_and_what_does_not_fit_422(acme: Asking) -> None:
    for path in ("/api/crawl-progress", "/progress"):
        for unknown in (str(uuid.uuid4()), "nowhere", "42"):
            said = acme.get(f"{path}/{unknown}", 404)
            assert said["detail"] == {"error": "Operation not found"}
    for verb in ("stop", "pause", "resume"):
        acme.post(f"/knowledge-items/{verb}/nowhere", expected=404)
    for body in (
        {"url": "ftp://example.org"},
        {"url": "/etc/passwd"},
        {"url": "library:msgspec"},
        {"url": "http://"},
        {"url": "http://example.org", "max_depth": 6},
        {"url": "http://example.org", "update_frequency": -1},
        {"url": "http://example.org", "colour": 1},
        {},
    ):
        said = acme.post("/api/knowledge-items/crawl", body, 422)
        assert said["success"] is False
    assert acme.get("/knowledge-items/nothing", 404)["code"] == "SOURCE_NOT_FOUND"


def test_a4_crawl_is_paused_resumed_and_stopped(acme: Asking, site: Site) -> None:
    progress_id, source = acme.crawl(site.generate(200, seconds=0.05), limit=200, max_depth=5)
    acme.post(f"/api/knowledge-items/pause/{progress_id}")

    paused = acme.get(f"/api/crawl-progress/{progress_id}")
    assert paused["status"] == "paused"
    [listed] = [
        one for one in acme.get("/api/progress/")["operations"] if one["source_id"] == source
    ]
    assert (listed["operation_id"], listed["status"]) == (progress_id, "paused")

    acme.post(f"/api/knowledge-items/resume/{progress_id}")
    assert acme.get(f"/api/crawl-progress/{progress_id}")["status"] in ("starting", "crawling")
    acme.post(f"/knowledge-items/stop/{progress_id}")
    end = acme.follow(progress_id)[-1]
    assert end["status"] == "cancelled"
    assert end["progress"] < 100
    acme.post(f"/knowledge-items/stop/{progress_id}", None, 409)
    acme.post(f"/knowledge-items/pause/{progress_id}", None, 409)
    acme.post(f"/knowledge-items/stop/{uuid.uuid4()}", None, 404)


def test_a2_crawl_without_a_single_page_has_failed_and_says_why(acme: Asking, site: Site) -> None:
    site.page("/", status=200)
    site.robots("User-agent: *\nDisallow: /")

    progress_id, source = acme.crawl(f"{site.url}/")

    end = acme.follow(progress_id)[-1]
    assert (end["status"], "robots.txt" in end["error"]) == ("failed", True)
    failed = acme.get("/progress", include_failed=True)["operations"]
    assert source in [one["source_id"] for one in failed]
    assert source not in [one["source_id"] for one in acme.get("/progress")["operations"]]


def test_refresh_uses_the_options_the_source_was_added_with(acme: Asking, site: Site) -> None:
    source = acme.add(small_site(site), max_depth=1)
    assert site.pages_hit() == {"/"}
    site.page("/", ["/hay"], title="Farm", text="The farm has a pond now.")
    site.forget()

    begun = acme.post(f"/api/knowledge-items/{source}/refresh")

    assert acme.follow(begun["progressId"])[-1]["status"] == "completed"
    assert site.pages_hit() == {"/"}, "one page, as it was added"
    assert acme.get(f"/knowledge-items/{source}")["document_count"] == 1
    acme.post("/api/knowledge-items/none/refresh", None, 404)


def test_sources_are_listed_in_pages_changed_and_removed(acme: Asking, site: Site) -> None:
    url = small_site(site)
    source = acme.add(url, title="A farm of ours", knowledge_type="business", update_frequency=0)

    page = acme.get("/api/knowledge-items", search="FARM OF", per_page=1000)
    assert ([one["source_id"] for one in page["items"]], page["total"]) == ([source], 1)
    assert (page["page"], page["per_page"], page["pages"]) == (1, 100, 1)
    assert acme.get("/knowledge-items/summary", search=url, page=2)["items"] == []
    assert acme.get("/knowledge-items", search="FARM OF", knowledge_type="technical")["total"] == 0

    acme.put(f"/knowledge-items/{source}", {"title": "Theirs", "update_frequency": 3})
    changed = acme.get(f"/knowledge-items/{source}")
    assert (changed["title"], changed["update_frequency"]) == ("Theirs", 3)

    assert acme.delete(f"/sources/{source}")["documents"] == 3
    acme.get(f"/knowledge-items/{source}", 404)
    acme.delete(f"/api/knowledge-items/{source}", 404)


def test_source_that_is_removed_while_it_is_crawled_leaves_nothing_behind(
    acme: Asking, site: Site
) -> None:
    progress_id, source = acme.crawl(site.generate(40, seconds=0.5), limit=40, max_depth=5)
    while not site.in_flight:
        pass

    acme.delete(f"/knowledge-items/{source}")

    assert acme.follow(progress_id)[-1]["status"] == "cancelled"
    while acme.get("/queue/jobs", state="active")["jobs"]:
        pass
    acme.get("/pages/by-url", 404, url=f"{site.url}/p/0")
    assert source not in [one["source_id"] for one in acme.get("/rag/sources")["sources"]]


def test_a2_what_another_tenant_has_is_not_there(acme: Asking, other: Asking, site: Site) -> None:
    url = small_site(site)
    progress_id, source = acme.crawl(url, max_depth=1)
    acme.follow(progress_id)

    for path in (f"/progress/{progress_id}", f"/api/crawl-progress/{progress_id}"):
        other.get(path, 404)
    for verb in ("stop", "pause", "resume"):
        other.post(f"/knowledge-items/{verb}/{progress_id}", None, 404)
    other.get(f"/knowledge-items/{source}", 404)
    other.put(f"/knowledge-items/{source}", {"title": "mine"}, 404)
    other.post(f"/knowledge-items/{source}/refresh", None, 404)
    other.delete(f"/knowledge-items/{source}", 404)
    assert other.get("/knowledge-items", search=url)["total"] == 0

    their_own = other.add(url, max_depth=1)
    assert their_own == source, "the id is of the address"
    other.delete(f"/sources/{source}")
    assert acme.get(f"/knowledge-items/{source}")["document_count"] == 1


def test_a2_progress_and_pauses_survive_a_server_that_is_killed(
    server: Server, acme: Asking, site: Site
) -> None:
    url = site.generate(60, seconds=0.05)
    progress_id, source = acme.crawl(url, limit=60, max_depth=5)
    while acme.get(f"/progress/{progress_id}")["progress"] < 10:
        pass
    acme.post(f"/knowledge-items/pause/{progress_id}")
    while acme.get("/queue/jobs", state="active")["jobs"]:
        pass  # those that run would have to wait for the end of their leases
    before = acme.get(f"/progress/{progress_id}")

    server.kill()
    server.start()

    after = acme.get(f"/progress/{progress_id}")
    assert before["status"] == "paused"
    assert {**after, "timestamp": None} == {**before, "timestamp": None}
    acme.post(f"/knowledge-items/resume/{progress_id}")
    seen = acme.follow(progress_id)
    percents = [after["progress"], *(one["progress"] for one in seen)]
    assert percents == sorted(percents)
    assert (seen[-1]["status"], seen[-1]["completedDocuments"]) == ("completed", 60)
    assert acme.get(f"/knowledge-items/{source}")["document_count"] == 60
