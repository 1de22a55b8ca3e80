"""Crawls, batches and other groups: how far they are, and what can be done with them.

The pages of a crawl are drawn by their paths, as the folders of a site.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from starlette.responses import Response

from windrow.errors import GroupNotFound, InvalidJob, JobNotFound
from windrow.pipelines.web.answers import BadAnswer, list_bad_answers
from windrow.pipelines.web.payloads import SCRAPE
from windrow.queue.job import Job, JobState
from windrow.queue.records import Group, GroupState
from windrow.services.web.crawls import (
    Crawl,
    CrawlErrors,
    cancel_crawl,
    get_crawl,
    get_errors,
    retry_failed,
    robots_warning,
)
from windrow.services.web.starting import fetch_again
from windrow.web.pages import Look

PAGE: Final = 50
TREE_PAGES: Final = 500  # the newest that ended, of which the tree by path is made
MOST_BAD: Final = 1000  # pages with an error for an answer that are counted
SILENT_SECONDS: Final = 30.0  # without an end, after which a group is said to stand still

DEEPEST: Final = 12  # parts of a path; what is below stays together


async def show_list(look: Look) -> Response:
    query = look.query
    groups = await look.jobs.groups(state=query.get("state"), after=query.get("after"), limit=PAGE)
    roots = await look.queue.get_many([group.root for group in groups if group.root])
    runs = [(group, roots.get(group.root or "")) for group in groups]
    return look.render("runs.html", runs=runs, next=groups[-1].id if len(groups) == PAGE else None)


async def show_one(look: Look) -> Response:
    id = look.request.path_params["id"]
    crawl, errors = await _crawl(look, id)
    group = await _group(look, id, crawl)
    finished = [JobState.COMPLETED, JobState.FAILED]
    pages: list[Job] = []
    bad: list[BadAnswer] = []
    if crawl:
        bad = await list_bad_answers(look.queue, id, limit=MOST_BAD + 1)
        # Without their documents, which `list` leaves out: a page may be long, and there are many.
        ended = await _pages(look, id, finished, TREE_PAGES)
        pages = await _pages(look, id, [JobState.COMPLETED], PAGE, after=look.query.get("after"))
    else:
        ended = await look.jobs.list(group=id, state=finished, limit=TREE_PAGES)
    return look.render(
        "run.html",
        group=group,
        crawl=crawl,
        errors=errors,
        warning=robots_warning(crawl, errors.robots_blocked) if crawl and errors else None,
        bad=bad[:MOST_BAD],
        has_more_bad=len(bad) > MOST_BAD,
        can_fetch_again=bool(group.ended_at) and any(one.may_pass for one in bad),
        pages=await _with_errors(look, id, pages),
        next=pages[-1].id if len(pages) == PAGE else None,
        tree=grow(
            (address, page.id, "failed" if page.state is JobState.FAILED else error)
            for page, address, error in await _with_errors(look, id, ended)
        ),
        is_whole=len(ended) < TREE_PAGES,
        tree_pages=TREE_PAGES,
        members=await look.jobs.list(group=id, limit=PAGE) if not crawl else [],
        progress=progress_of(group, _last_end(ended), datetime.now(UTC)),
    )


async def _group(look: Look, id: str, crawl: Crawl | None) -> Group:
    """Of a crawl that waits for its first job to run there is none yet: then as it will be."""
    try:
        return await look.jobs.group(id)
    except GroupNotFound:
        if crawl is None:
            raise
        state: GroupState = "active" if crawl.status == "scraping" else "cancelled"
        return Group(
            id, state, False, True, 1, {}, id, crawl.tenant, crawl.created_at, crawl.ended_at
        )


async def _pages(
    look: Look, id: str, states: Sequence[JobState], limit: int, after: str | None = None
) -> list[Job]:
    """Pages of a crawl, the newest first."""
    return await look.jobs.list(group=id, kind=SCRAPE, state=states, after=after, limit=limit)


async def _with_errors(look: Look, id: str, pages: Sequence[Job]) -> list[tuple[Job, str, str]]:
    """Pages, the newest first, with their addresses and the errors they answered with ("404"),
    which are noted of them in the order of their ids: those of a page of a list stand together."""
    if not pages:
        return []
    noted = await list_bad_answers(look.queue, id, since=pages[-1].id, limit=len(pages))
    errors = {one.job: str(one.status) for one in noted}
    return [(page, _address(page), errors.get(page.id, "")) for page in pages]


async def change_one(look: Look) -> Response:
    form = await look.form("write")
    id = look.request.path_params["id"]
    here = f"/ui/runs/{id}"
    match form.get("do"):
        case "pause":
            await look.jobs.pause_group(id)
            return look.back(here, "The run is paused")
        case "resume":
            await look.jobs.resume_group(id)
            return look.back(here, "The run goes on")
        case "cancel":
            await _cancel(look, id)
            return look.back(here, "The run is cancelled")
        case "retry":
            await look.jobs.group(id)
            count = await retry_failed(look.queue, id)
            return look.back(here, f"{count} pages are tried again")
        case "again":
            identity = look.viewer.identity
            again = await fetch_again(look.queue, id, tenant=identity.tenant, quota=identity.quota)
            return look.back(f"/ui/runs/{again.id}", "The pages are fetched again, as a batch")
    raise InvalidJob("there is no such thing to do with a group")


async def _cancel(look: Look, id: str) -> None:
    """Also a crawl that no worker has begun, which has no group yet."""
    why = "cancelled on the dashboard"
    try:
        await look.jobs.cancel_group(id, why)
    except GroupNotFound:
        await cancel_crawl(look.queue, id, reason=why, tenant=look.viewer.tenant)


async def _crawl(look: Look, id: str) -> tuple[Crawl | None, CrawlErrors | None]:
    """As a crawl or batch, if it is one."""
    tenant = look.viewer.tenant
    try:
        crawl = await get_crawl(look.queue, id, tenant=tenant)
    except JobNotFound:
        return None, None
    return crawl, await get_errors(look.queue, id, limit=100, tenant=tenant)


def _last_end(jobs: Sequence[Job]) -> datetime | None:
    return max((job.finished_at for job in jobs if job.finished_at), default=None)


def progress_of(group: Group, last_end: datetime | None, now: datetime) -> dict[str, Any]:
    """Per cent, jobs per second so far, and an estimate of the time left.

    There is no estimate for a group in which nothing has ended for `SILENT_SECONDS` and for ten
    times the average time between two ends. `silent` is that time in seconds, else None."""
    done = sum(group.counts.get(state, 0) for state in (JobState.COMPLETED, JobState.FAILED))
    total = done + group.pending
    seconds = ((group.ended_at or now) - group.created_at).total_seconds()
    rate = done / seconds if seconds > 0 else 0.0
    silent = (now - (last_end or group.created_at)).total_seconds()
    is_silent = silent >= max(SILENT_SECONDS, 10 / rate if rate else 0.0)
    is_live = group.ended_at is None and not group.is_paused
    return {
        "done": done,
        "total": total,
        "percent": round(100 * done / total) if total else 100,
        "rate": rate,
        "left": group.pending / rate if rate and is_live and not is_silent else None,
        "silent": silent if is_live and is_silent else None,
    }


def _address(page: Job) -> str:
    """Whoever enqueues a page by itself may have written anything there."""
    return str(page.payload.get("url", "")) if isinstance(page.payload, dict) else ""


@dataclass(slots=True)
class Branch:
    """A part of a path. It may be a page itself (`job`) and have others below it."""

    name: str
    path: str
    job: str | None = None
    trouble: str = ""  # "failed", or the error that it answered with ("404")
    pages: int = 0  # with those below it
    troubled: int = 0  # of these
    below: dict[str, Branch] = field(default_factory=dict)

    @property
    def branches(self) -> Sequence[Branch]:
        return sorted(self.below.values(), key=lambda one: one.name)


def grow(pages: Iterable[tuple[str, str, str]]) -> Sequence[Branch]:
    """The sites that addresses are of, with their pages; each comes with its job and its trouble,
    if any. Of a page that was fetched more than once the first counts."""
    root = Branch("", "")
    for url, job, trouble in pages:
        way = [root]
        for name in _parts(url):
            at = way[-1]
            if name not in at.below:
                at.below[name] = Branch(name, at.path + name)
            way.append(at.below[name])
        if way[-1].job is None:
            way[-1].job, way[-1].trouble = job, trouble
            for at in way:
                at.pages += 1
                at.troubled += bool(trouble)
    for one in root.branches:
        _join(one)
    return root.branches


def _parts(url: str) -> Iterator[str]:
    """`example.org`, `/docs`, `/guide`, `/one?page=2`. By hand: it may be no address at all."""
    place, _, rest = url.partition("://")[2].partition("/")
    yield place or "?"
    path, mark, query = rest.partition("?")
    names = [f"/{name}" for name in path.split("/", DEEPEST)] if rest else []
    if names:
        names[-1] += mark + query
    yield from names


def _join(branch: Branch) -> None:
    """A part that is no page and leads to one other only is written with it."""
    for one in branch.below.values():
        _join(one)
    while branch.job is None and len(branch.below) == 1:
        [only] = branch.below.values()
        branch.name += only.name
        branch.path, branch.job, branch.trouble = only.path, only.job, only.trouble
        branch.below = only.below
