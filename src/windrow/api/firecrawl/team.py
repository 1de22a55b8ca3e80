"""What a team has in the queue and may use. A team without a quota may use what it likes."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.callers import Caller, Reader
from windrow.api.quick import Quick
from windrow.services.quotas import MOST, get_queue_use, read_usage

router = APIRouter(tags=["team"], route_class=Quick)

UNLIMITED: Final = MOST


@router.get("/v2/team/queue-status")
async def get_queue_status(caller: Reader) -> Response:
    """How many pages wait and run, and how many may at once."""
    use = await get_queue_use(caller.queue, caller.tenant)
    return answer(
        {
            "success": True,
            "jobsInQueue": use.active + use.waiting,
            "activeJobsInQueue": use.active,
            "waitingJobsInQueue": use.waiting,
            "maxConcurrency": use.max_concurrency,
            "mostRecentSuccess": use.last_success_at,
        }
    )


@router.get("/v2/concurrency-check")
async def get_concurrency(caller: Reader) -> Response:
    """How many pages run, and how many may at once."""
    use = await get_queue_use(caller.queue, caller.tenant)
    body = {"concurrency": use.active, "maxConcurrency": use.max_concurrency}
    return answer({"success": True, **body})


@router.get("/v2/team/credit-usage")
async def get_credit_usage(caller: Reader) -> Response:
    """What is left of the tenant's quota; without one it never runs out."""
    return await _answer_usage(caller, "Credits")


@router.get("/v2/team/token-usage")
async def get_token_usage(caller: Reader) -> Response:
    """The same, in the words of a client that counts tokens."""
    return await _answer_usage(caller, "Tokens")


@router.get("/v2/team/credit-usage/historical")
@router.get("/v2/team/token-usage/historical")
async def get_historical_usage(caller: Reader) -> Response:
    """Earlier periods: none are kept, so it is always empty."""
    return answer({"success": True, "periods": []})


async def _answer_usage(caller: Caller, what: str) -> Response:
    usage = None if caller.quota is None else await read_usage(caller.queue, caller.quota)
    data = {
        f"remaining{what}": UNLIMITED if usage is None else usage.left,
        f"plan{what}": UNLIMITED if usage is None else usage.credits,
        "billingPeriodStart": None if usage is None else usage.start,
        "billingPeriodEnd": None if usage is None else usage.end,
    }
    return answer({"success": True, "data": data})
