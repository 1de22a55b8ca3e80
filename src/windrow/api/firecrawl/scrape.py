"""POST /v2/scrape: one page, waited for; GET /v2/scrape/{id}: the same page later."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import TAKES_URL, read_body, take_url
from windrow.api.callers import Reader, Writer
from windrow.api.errors import ApiError, scrape_error
from windrow.api.firecrawl.progress import IdempotencyKey
from windrow.api.quick import Quick
from windrow.errors import WaitTimeout
from windrow.queue.job import Job, JobState
from windrow.services.web import get_scrape, start_scrape, wait_or_cancel, why_failed

router = APIRouter(tags=["scrape"], route_class=Quick)

# How long a request waits that names no `timeout`.
WAIT_SECONDS: Final = 300.0


@router.post("/v2/scrape", openapi_extra=TAKES_URL)
async def scrape(
    request: Request, caller: Writer, x_idempotency_key: IdempotencyKey = None
) -> Response:
    """One page as a document. With the key of an earlier request it is what came of that one."""
    options = await read_body(request)
    job = await start_scrape(
        caller.queue,
        take_url(options),
        options,
        tenant=caller.tenant,
        quota=caller.quota,
        idempotency_key=x_idempotency_key,
    )
    seconds = options["timeout"] / 1000 if "timeout" in options else WAIT_SECONDS
    try:
        return _answer_page(await wait_or_cancel(caller.queue, job.id, timeout=seconds))
    except WaitTimeout as error:
        said = f"Scrape timed out: the page was not there after {seconds:g} s"
        raise ApiError(408, "SCRAPE_TIMEOUT", said) from error


@router.get("/v2/scrape/{scrape_id}")
async def get(scrape_id: UUID, caller: Reader) -> Response:
    """A page that was asked for before, alone, by a crawl or by a batch."""
    return _answer_page(await get_scrape(caller.queue, str(scrape_id), tenant=caller.tenant))


def _answer_page(job: Job) -> Response:
    match job.state:
        case JobState.COMPLETED:
            return answer({"success": True, "data": job.result})
        case JobState.FAILED:
            raise scrape_error(*why_failed(job))
        case JobState.CANCELLED:
            raise scrape_error("SCRAPE_JOB_CANCELLED", "The scrape was cancelled")
        case _:
            said = "The page has not been scraped yet"
            body = {"success": False, "code": "SCRAPE_PENDING", "error": said, "status": "scraping"}
            return answer(body, 202)
