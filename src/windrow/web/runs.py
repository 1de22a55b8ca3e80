"""Crawls, batches and other groups: how far they are, and what can be done with them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final

from starlette.responses import Response

from windrow.errors import InvalidJob, JobNotFound
from windrow.queue.job import JobState
from windrow.queue.records import Group
from windrow.services.web.crawls import Crawl, CrawlErrors, get_crawl, get_errors, retry_failed
from windrow.services.web.pages import list_pages
from windrow.web.pages import Look

PAGE: Final = 50
TREE_PAGES: Final = 1000  # from which the tree by path is made


async def show_list(look: Look) -> Response:
    query = look.query
    groups = await look.jobs.groups(state=query.get("state"), after=query.get("after"), limit=PAGE)
    roots = await look.queue.get_many([group.root for group in groups if group.root])
    runs = [(group, roots.get(group.root or "")) for group in groups]
    return look.render("runs.html", runs=runs, next=groups[-1].id if len(groups) == PAGE else None)


async def show_one(look: Look) -> Response:
    id = look.request.path_params["id"]
    group = await look.jobs.group(id)
    crawl, errors = await _crawl(look, id)
    pages = await list_pages(look.queue, id, limit=TREE_PAGES) if crawl else []
    return look.render(
        "run.html",
        group=group,
        crawl=crawl,
        errors=errors,
        pages=pages[-PAGE:],
        tree=_tree([str(page.payload.get("url", "")) for page in pages]),
        members=await look.jobs.list(group=id, limit=PAGE) if not crawl else [],
        progress=_progress(group),
    )


async def change_one(look: Look) -> Response:
    form = await look.form("write")
    id = look.request.path_params["id"]
    here = f"/ui/runs/{id}"
    match form.get("do"):
        case "pause":
            await look.jobs.pause_group(id)
            return look.back(here, "it is paused")
        case "resume":
            await look.jobs.resume_group(id)
            return look.back(here, "it goes on")
        case "cancel":
            await look.jobs.cancel_group(id, "cancelled on the dashboard")
            return look.back(here, "it is cancelled")
        case "retry":
            await look.jobs.group(id)
            count = await retry_failed(look.queue, id)
            return look.back(here, f"{count} pages are tried again")
    raise InvalidJob("there is no such thing to do with a group")


async def _crawl(look: Look, id: str) -> tuple[Crawl | None, CrawlErrors | None]:
    """As a crawl or batch, if it is one."""
    tenant = look.viewer.tenant
    try:
        crawl = await get_crawl(look.queue, id, tenant=tenant)
    except JobNotFound:
        return None, None
    return crawl, await get_errors(look.queue, id, limit=100, tenant=tenant)


def _progress(group: Group) -> dict[str, Any]:
    """Per cent, jobs per second so far, and when it would be done if it goes on like this."""
    done = sum(group.counts.get(state, 0) for state in (JobState.COMPLETED, JobState.FAILED))
    total = done + group.pending
    seconds = ((group.ended_at or datetime.now(UTC)) - group.created_at).total_seconds()
    rate = done / seconds if seconds > 0 else 0.0
    return {
        "done": done,
        "total": total,
        "percent": round(100 * done / total) if total else 100,
        "rate": rate,
        "left": group.pending / rate if rate and group.ended_at is None else None,
    }


def _tree(urls: list[str]) -> list[tuple[str, int]]:
    """How many pages are under each first part of a path."""
    parts: Counter[str] = Counter()
    for url in urls:
        # By hand: whoever enqueues a page by itself may have written anything there.
        place, _, path = url.partition("://")[2].partition("/")
        parts[f"{place}/{path.partition('/')[0]}"] += 1
    return parts.most_common(30)
