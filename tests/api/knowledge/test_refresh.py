"""Sources that are looked at again by themselves, every so many days."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.api.knowledge.asking import SECONDS, Asking
from tests.api.server import Server
from tests.web.site import Site
from windrow import Queue
from windrow.queue.records import Schedule


async def schedule_of(server: Server, source: str, every: float | None = None) -> Schedule | None:
    """The schedule of a source of acme's; with `every` it fires after so many seconds."""
    async with Queue.open(server.database) as queue:
        for one in await queue.schedules():
            if one.name == f"refresh:acme:{source}":
                if every is None:
                    return one
                job = one.job
                return await queue.schedule(
                    one.name,
                    job.kind,
                    {"source": source},
                    every=every,
                    queue=job.queue,
                    tenant=job.tenant,
                    unique=job.unique,
                )
    return None


def wait_for_look(acme: Asking, source: str, before: dict[str, Any]) -> dict[str, Any]:
    give_up_at = time.monotonic() + SECONDS
    while time.monotonic() < give_up_at:
        item: dict[str, Any] = acme.get(f"/knowledge-items/{source}")
        if item["updated_at"] > before["updated_at"] and not item["pending_count"]:
            return item
        time.sleep(0.05)
    raise AssertionError("it was not looked at again")


def test_source_is_looked_at_again_with_conditional_requests(
    server: Server, acme: Asking, site: Site
) -> None:
    site.page("/", ["/same", "/new"], title="Farm", text="The farm.", headers={"ETag": '"1"'})
    site.page("/same", title="Same", text="This stays as it is.", headers={"ETag": '"2"'})
    site.page("/new", title="New", text="The old words about ricks.", headers={"ETag": '"3"'})
    source = acme.add(f"{site.url}/", update_frequency=2)
    before = acme.get(f"/knowledge-items/{source}")
    [written] = [p for p in acme.get("/pages", source_id=source)["pages"] if p["title"] == "Same"]
    planned = asyncio.run(schedule_of(server, source))
    assert planned is not None
    assert planned.every_seconds == 2 * 86_400
    site.page("/new", title="New", text="The new words about stooks.", headers={"ETag": '"4"'})
    site.forget()

    asyncio.run(schedule_of(server, source, every=1))  # instead of two days
    wait_for_look(acme, source, before)
    acme.put(f"/knowledge-items/{source}", {"update_frequency": 0})

    assert asyncio.run(schedule_of(server, source)) is None, "never again"
    assert site.headers["/same"]["If-None-Match"] == '"2"'
    assert site.hits["/same"] >= 1
    pages = {page["title"]: page for page in acme.get("/pages", source_id=source)["pages"]}
    assert pages.keys() == {"Farm", "Same", "New"}
    assert pages["Same"]["id"] == written["id"]
    found = acme.post("/rag/query", {"query": "stooks", "source": source, "mode": "keyword"})
    assert "new words" in found["results"][0]["content"]
