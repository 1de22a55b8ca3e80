"""What is handed in: files that are uploaded, pages of other crawlers, webhooks of a Firecrawl
(N13)."""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest

from tests.api.knowledge.asking import Asking
from tests.api.knowledge.conftest import SECRET
from tests.api.server import Server
from tests.web.site import minimal_pdf


def test_many_files_are_uploaded_and_broken_ones_reported(acme: Asking) -> None:
    files = [
        ("file", ("meadow.md", b"# Meadow\n\nClover grows on the meadow.", "text/markdown")),
        ("file", ("barn.pdf", minimal_pdf("The loft of the barn"), "application/pdf")),
        ("file", ("broken.pdf", b"%PDF-1.7 and then nothing", "application/pdf")),
        ("file", ("empty.txt", b"  ", "text/plain")),
        ("file", ("mower.py", b"def mow():\n    return 'grass cut short'\n", "text/x-python")),
        ("file", ("image.bin", bytes(range(256)), "application/octet-stream")),
    ]
    said = acme.post("/api/documents/upload", files=files, data={"tags": '["up"]'})

    outcome = {one["filename"]: one["success"] for one in said["files"]}
    assert [name for name, is_taken in outcome.items() if is_taken] == [
        "meadow.md",
        "barn.pdf",
        "mower.py",
    ]
    assert all(one["error"] for one in said["files"] if not one["success"])
    seen = acme.follow(said["progressId"])
    end = seen[-1]
    assert (end["status"], end["completedDocuments"], end["uploadType"]) == (
        "completed",
        3,
        "document",
    )
    source = said["files"][0]["source_id"]
    found = acme.post("/rag/query", {"query": "clover on the meadow", "source": source})
    assert found["results"][0]["metadata"]["tags"] == ["up"]
    acme.post(f"/knowledge-items/{source}/refresh", None, 400)


def test_file_of_the_same_name_replaces_the_one_before(acme: Asking, other: Asking) -> None:
    def upload(asking: Asking, text: str) -> str:
        files = [("file", ("note.txt", text.encode(), "text/plain"))]
        said = asking.post("/documents/upload", files=files)
        assert asking.follow(said["progressId"])[-1]["status"] == "completed"
        source: str = said["files"][0]["source_id"]
        return source

    source = upload(acme, "The first words about scythes.")
    assert upload(acme, "Other words about scythes.") == source
    assert upload(acme, "Other words about scythes.") == source, "and nothing was to be done"

    [page] = acme.get("/pages", source_id=source)["pages"]
    assert acme.get(f"/pages/{page['id']}")["full_content"] == "Other words about scythes."
    assert upload(other, "Theirs.") == source
    other.delete(f"/sources/{source}")
    assert acme.get(f"/knowledge-items/{source}")["document_count"] == 1


def test_two_files_of_one_name_in_a_request_are_not_both_taken(acme: Asking) -> None:
    name = f"{uuid.uuid4().hex}.txt"
    bodies = (b"  ", b"The first of them.", b"The second of them.")

    said = acme.post(
        "/documents/upload", files=[("file", (name, body, "text/plain")) for body in bodies]
    )

    assert [one["success"] for one in said["files"]] == [False, True, False]
    assert "another file of this name" in said["files"][2]["error"]
    acme.follow(said["progressId"])
    [page] = acme.get("/pages", source_id=said["files"][1]["source_id"])["pages"]
    assert acme.get(f"/pages/{page['id']}")["full_content"] == "The first of them."


def test_uploads_that_cannot_be_taken_are_said(acme: Asking, server: Server) -> None:
    broken = [("file", ("a.pdf", b"%PDF-1.7", "application/pdf"))]
    said = acme.post("/documents/upload", files=broken, expected=422)
    assert said["files"][0]["success"] is False
    acme.post("/documents/upload", {"file": "a"}, 422)
    good = [("file", ("a.txt", b"a", "text/plain"))]
    acme.post("/documents/upload", files=good, data={"tags": "{"}, expected=422)
    acme.post("/documents/upload", files=good * 101, expected=400)
    for path, size, expected in (("/api/documents/upload", 51, 413), ("/api/index", 11, 413)):
        connection = HTTPConnection(server.url.removeprefix("http://"), timeout=30)
        connection.putrequest("POST", path)
        connection.putheader("Content-Length", str(size * 1024 * 1024))
        connection.endheaders()
        assert connection.getresponse().status == expected
        connection.close()


def test_pages_of_other_crawlers_are_found_counted_and_replaced(acme: Asking) -> None:
    host = f"{uuid.uuid4().hex}.test"
    page = {"url": f"https://{host}/swath?utm_source=x", "title": "Swath", "language": "en"}
    # Others say more of it: they are not in the way of who asks for a domain.
    louder = [
        {"url": f"https://other.test/{n}", "markdown": f"{n} scythe swath " * 9} for n in range(60)
    ]
    for begun in [acme.post("/api/index", one, 202) for one in louder]:
        acme.follow(begun["job_id"])
    before = acme.get("/api/stats")
    for text in ("A swath is what a mower leaves.", "A swath is what the scythe leaves."):
        said = acme.post("/api/index", {**page, "markdown": text, "isMobile": False}, 202)
        assert acme.follow(said["job_id"])[-1]["status"] == "completed"

    after = acme.get("/api/stats")
    assert after["total_documents"] == before["total_documents"] + 1
    assert after["total_chunks"] == before["total_chunks"] + 1
    for mode in ("hybrid", "semantic", "keyword", "bm25"):
        asked = {"query": "swath scythe", "mode": mode, "filters": {"domain": host}}
        [found] = acme.post("/api/search", asked)["results"]
        assert (found["url"], found["title"]) == (f"https://{host}/swath", "Swath")
        assert "scythe" in found["text"]
    assert acme.post("/api/search", {**asked, "offset": 1})["results"] == []
    for wrong in (
        {"query": ""},
        {"query": "x", "limit": 0},
        {"query": "x", "filters": {"country": "de"}},
    ):
        acme.post("/api/search", wrong, 422)
    acme.post("/api/index", {"url": "nowhere", "markdown": "x"}, 422)
    acme.post("/api/index", {"url": f"https://{host}/", "markdown": " "}, 422)


class Sender:
    """A Firecrawl that tells of its crawls."""

    def __init__(self, server: Server) -> None:
        self._url = f"{server.url}/api/webhook/firecrawl"

    def send(
        self, event: Any, *, secret: str = SECRET, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        signed = {"X-Firecrawl-Signature": f"sha256={digest}", **(headers or {})}
        return httpx.post(self._url, content=body, headers=signed, timeout=60)

    def tell(self, event: Any, key: str = "k-acme") -> dict[str, Any]:
        answer = self.send(event, headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200, answer.text
        said: dict[str, Any] = answer.json()
        return said


@pytest.fixture
def sender(server: Server) -> Sender:
    return Sender(server)


def page_event(url: str, text: str | None, **more: Any) -> dict[str, Any]:
    document = {"metadata": {"sourceURL": url, "title": "Dew", "statusCode": 200}}
    return {
        "success": True,
        "type": "crawl.page",
        "id": str(uuid.uuid4()),
        "webhookId": str(uuid.uuid4()),
        "data": [document if text is None else {**document, "markdown": text}],
        **more,
    }


def test_n13_pages_that_a_webhook_tells_of_are_found(acme: Asking, sender: Sender) -> None:
    url = f"https://{uuid.uuid4().hex}.test/dew"
    said = sender.tell(page_event(url, "# Dew\n\nThe morning dew lies on the swaths."))

    assert (said["status"], said["queued"]) == ("queued", 1)
    assert acme.follow(said["job_id"])[-1]["status"] == "completed"
    page = acme.get("/pages/by-url", url=url)
    assert "morning dew" in page["full_content"]
    assert page["title"] == "Dew"


def test_n13_delivery_that_comes_again_changes_nothing(acme: Asking, sender: Sender) -> None:
    url = f"https://{uuid.uuid4().hex}.test/"
    old, new = page_event(url, "Old words."), page_event(url, "New words.")
    for event in (old, new, old, new, old):
        said = sender.tell(event)
        assert acme.follow(said["job_id"])[-1]["status"] == "completed"

    assert acme.get("/pages/by-url", url=url)["full_content"] == "New words."
    [source] = acme.get("/knowledge-items", search=url.rstrip("/"))["items"]
    assert source["document_count"] == 1


def test_n13_events_without_anything_to_find_are_acknowledged(sender: Sender) -> None:
    url = "https://empty.test/"
    failed = {"success": False, "error": "HTTP 500", "data": [{"metadata": {"sourceURL": url}}]}
    for event in (
        page_event(url, None),
        page_event(url, "words", **failed),
        page_event(url, "", type="batch_scrape.page"),
        page_event(url, "x", data=[]),
        page_event(url, "x", data=["what", 1, {}]),
        {"success": True, "type": "crawl.started", "id": "1", "data": []},
        {"success": True, "type": "crawl.completed", "id": "1", "data": []},
    ):
        said = sender.tell(event)
        assert (said["success"], said["status"], said["queued"]) == (True, "acknowledged", 0)


def test_n13_failed_pages_are_said_and_do_not_take_the_place_of_good_ones(
    acme: Asking, sender: Sender
) -> None:
    url = f"https://{uuid.uuid4().hex}.test/hedge"
    good = sender.tell(page_event(url, "A hedge keeps the wind off."))
    acme.follow(good["job_id"])
    gone = page_event(url, "# 404\n\nNot found here.")
    gone["data"][0]["metadata"].update(statusCode=404, error="Not Found")
    down = page_event(url, None, success=False, error="it did not answer", type="batch_scrape.page")
    odd = page_event(url, "Words of an error.")
    odd["data"][0]["metadata"].update(statusCode=None, error="SCRAPE_TIMEOUT")

    said = [sender.tell(event) for event in (gone, down, odd)]

    assert [(one["status"], one["queued"]) for one in said] == [("acknowledged", 0)] * 3
    assert [one["skipped"] for one in said] == [
        [{"url": url, "error": "it was answered with 404: Not Found"}],
        [{"url": url, "error": "it did not answer"}],
        [{"url": url, "error": "SCRAPE_TIMEOUT"}],
    ]
    refused = acme.post("/api/index", {"url": url, "markdown": "Down.", "statusCode": 503}, 422)
    assert "503" in refused["detail"]["error"]
    assert acme.get("/pages/by-url", url=url)["full_content"] == "A hedge keeps the wind off."


def test_n13_wrong_or_missing_signatures_are_refused(server: Server, sender: Sender) -> None:
    event = page_event("https://a.test/", "words")
    url = f"{server.url}/api/webhook/firecrawl"
    key = {"Authorization": "Bearer k-acme"}

    refused = [
        sender.send(event, secret="another"),
        httpx.post(url, json=event, timeout=60),
        httpx.post(url, json=event, headers=key, timeout=60),
        httpx.post(
            url, json=event, headers={**key, "X-Firecrawl-Signature": "sha256=00"}, timeout=60
        ),
        sender.send(event, headers={"Authorization": "Bearer wrong"}),
    ]

    assert [one.status_code for one in refused] == [401] * 5
    reader = sender.send(event, headers={"Authorization": "Bearer k-reader"})
    assert reader.status_code == 403
    for broken in (b"{", b"[]", b'{"data": []}', b'{"type": "crawl.page", "data": 1}'):
        assert sender.send(broken).status_code == 400
