"""Crawls that feed the index, as sessions (N13): our own, and those that webhooks tell of."""

from __future__ import annotations

import uuid

from tests.api.knowledge.asking import Asking
from tests.api.knowledge.test_handed_in import Sender, page_event
from tests.api.server import Server
from tests.web.site import Site

STEPS = {"fetch", "read", "chunk", "embed", "write", "switch"}


def test_n13_crawl_of_our_own_has_a_session(acme: Asking, other: Asking, site: Site) -> None:
    site.page("/", ["/hay", "/gone"], title="Farm", text="All about the farm.")
    site.page("/hay", title="Hay", text="A windrow is a long row of cut hay.")
    progress_id, source = acme.crawl(f"{site.url}/")
    acme.follow(progress_id)

    said = acme.get(f"/api/sessions/{progress_id}")

    assert (said["status"], said["pages"], said["indexed"], said["failed"]) == (
        "completed",
        3,
        2,
        1,
    )
    assert (said["type"], said["crawl_id"], said["source_ids"]) == ("crawl", progress_id, [source])
    assert set(said["seconds"]) >= STEPS
    assert said["started_at"] < said["ended_at"]
    assert progress_id in [one["id"] for one in acme.get("/api/sessions")["sessions"]]
    other.get(f"/api/sessions/{progress_id}", 404)
    assert progress_id not in [one["id"] for one in other.get("/api/sessions")["sessions"]]


def test_n13_second_crawl_of_an_unchanged_site_is_a_session_of_its_own(
    acme: Asking, site: Site
) -> None:
    site.page("/", ["/hay"], title="Farm", text="All about the farm.")
    site.page("/hay", title="Hay", text="Hay is dry.")
    first, source = acme.crawl(f"{site.url}/")
    acme.follow(first)
    second = acme.post(f"/knowledge-items/{source}/refresh")["progressId"]
    acme.follow(second)

    sessions = [acme.get(f"/api/sessions/{one}") for one in (first, second)]

    counts = [(one["pages"], one["indexed"], one["failed"]) for one in sessions]
    assert counts == [(2, 2, 0), (2, 2, 0)]
    assert "embed" not in sessions[1]["seconds"], "nothing was to be done"


def test_n13_crawl_that_webhooks_tell_of_has_a_session(acme: Asking, server: Server) -> None:
    sender, crawl = Sender(server), str(uuid.uuid4())
    site = f"https://{uuid.uuid4().hex}.test"
    sender.tell({"success": True, "type": "crawl.started", "id": crawl, "data": []})
    jobs = []
    for name in ("a", "b", "a"):
        event = page_event(f"{site}/{name}", f"Words of {name}.", id=crawl)
        jobs.append(sender.tell(event)["job_id"])
    lost = page_event(f"{site}/c", None, id=crawl, success=False, error="it did not answer")
    sender.tell(lost)
    assert acme.get(f"/api/sessions/{crawl}")["status"] == "crawling"
    sender.tell({"success": True, "type": "crawl.completed", "id": crawl, "data": []})
    for job in jobs:
        acme.follow(job)

    said = acme.get(f"/api/sessions/{crawl}")

    assert (said["status"], said["pages"], said["indexed"], said["failed"]) == (
        "completed",
        3,
        2,
        1,
    )
    assert (said["type"], said["crawl_id"]) == ("webhook", crawl)
    assert set(said["seconds"]) >= STEPS
    assert acme.get(f"/api/sessions/{said['id']}") == said
    acme.get(f"/api/sessions/{uuid.uuid4()}", 404)
    acme.get("/api/sessions/nowhere", 404)
