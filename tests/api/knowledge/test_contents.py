"""What is in sources, and what is found in it: pages, chunks, code, answers to questions."""

from __future__ import annotations

import uuid

import pytest

from tests.api.knowledge.asking import Asking
from tests.web.site import SiteServer

CODE = "def rake(field):\n    " + "\n    ".join(f"field.turn({n})" for n in range(12))


@pytest.fixture(scope="module")
def farm(acme_of_module: Asking, site_server: SiteServer) -> str:
    """A source of two pages; its id."""
    site = site_server.site()
    site.page("/", ["/bales"], title="Hay", text="A windrow is a long row of cut hay.")
    site.page(
        "/bales",
        title="Bales",
        text=f"The baler ties hay into bales.</p><pre><code>{CODE}</code></pre><p>So it does.",
    )
    return acme_of_module.add(f"{site.url}/", title="The farm")


def test_pages_are_listed_and_read_by_id_and_address(acme: Asking, farm: str) -> None:
    listed = acme.get("/api/pages", source_id=farm)
    assert (listed["total"], listed["has_more"]) == (2, False)
    first, second = listed["pages"]
    assert (first["title"], second["title"]) == ("Hay", "Bales")

    page = acme.get(f"/pages/{second['id']}")
    assert "ties hay into bales" in page["full_content"]
    assert page["word_count"] == len(page["full_content"].split())
    assert acme.get("/api/pages/by-url", url=first["url"])["id"] == first["id"]
    assert [one["id"] for one in acme.get("/pages", source_id=farm, section="Bales")["pages"]] == [
        second["id"]
    ]
    assert acme.get("/pages", source_id=farm, limit=1, offset=1)["pages"] == [second]
    acme.get(f"/pages/{uuid.uuid4()}", 404)
    acme.get("/pages/by-url", 404, url="http://nowhere.test/")
    acme.get("/pages", 404, source_id="nothing")


def test_chunks_are_those_of_the_index(acme: Asking, farm: str) -> None:
    found = acme.get(f"/api/knowledge-items/{farm}/chunks")
    assert (
        found["total"]
        == len(found["chunks"])
        == acme.get(f"/knowledge-items/{farm}")["chunk_count"]
    )
    assert any("windrow" in one["content"] for one in found["chunks"])

    second = acme.get(f"/knowledge-items/{farm}/chunks", limit=1, offset=1)
    assert (second["chunks"], second["has_more"]) == ([found["chunks"][1]], found["total"] > 2)
    other = acme.get(f"/knowledge-items/{farm}/chunks", domain_filter="other.test")
    assert (other["total"], other["chunks"]) == (0, [])
    acme.get(f"/knowledge-items/{farm}/chunks", 400, limit=101)


def test_code_is_listed_and_found(acme: Asking, farm: str) -> None:
    listed = acme.get(f"/api/knowledge-items/{farm}/code-examples")
    [example] = listed["code_examples"]
    assert (listed["total"], example["content"]) == (1, CODE)

    found = acme.post("/rag/code-examples", {"query": "turn a field", "source_id": farm})
    assert (found["success"], [one["code"] for one in found["results"]]) == (True, [CODE])


def test_questions_are_answered_with_chunks_or_pages(acme: Asking, farm: str) -> None:
    asked = {"query": "long row of cut hay", "source": farm, "match_count": 2}
    found = acme.post("/api/rag/query", asked)
    assert (found["search_mode"], found["return_mode"]) == ("hybrid", "chunks")
    first = found["results"][0]
    assert "windrow" in first["content"]
    assert (first["metadata"]["title"], first["metadata"]["source_id"]) == ("Hay", farm)
    assert found["total_found"] == len(found["results"]) <= 2

    pages = acme.post("/rag/query", {**asked, "return_mode": "pages"})["results"]
    assert (pages[0]["section_title"], pages[0]["page_id"]) == ("Hay", first["metadata"]["page_id"])
    by_title = acme.post("/rag/query", {"query": "hay", "source": "The farm"})
    assert {one["metadata"]["source_id"] for one in by_title["results"]} == {farm}
    assert acme.post("/rag/query", {"query": "hay", "source": "unknown"})["results"] == []
    for wrong in (
        {"query": "  "},
        {},
        {"query": "x", "match_count": 0},
        {"query": "x", "mode": "y"},
    ):
        acme.post("/rag/query", wrong, 422)
    assert farm in [one["source_id"] for one in acme.get("/rag/sources")["sources"]]


def test_another_tenant_finds_and_reads_nothing_of_it(
    acme: Asking, other: Asking, farm: str
) -> None:
    [page, *_] = acme.get("/pages", source_id=farm)["pages"]

    other.get(f"/pages/{page['id']}", 404)
    other.get("/pages/by-url", 404, url=page["url"])
    other.get("/pages", 404, source_id=farm)
    other.get(f"/knowledge-items/{farm}/chunks", 404)
    other.get(f"/knowledge-items/{farm}/code-examples", 404)
    for asked in ({"query": "windrow"}, {"query": "windrow", "source": farm}):
        assert other.post("/rag/query", asked)["results"] == []
    assert other.post("/api/search", {"query": "windrow"})["results"] == []
    assert farm not in [one["source_id"] for one in other.get("/rag/sources")["sources"]]
