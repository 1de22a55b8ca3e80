"""What a team has in the queue and may use. Nothing is billed here: credits do not run out."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.callers import Reader
from windrow.services.team import get_queue_use

router = APIRouter(tags=["team"])

# Clients want an integer.
UNLIMITED: Final = 2**31 - 1


@router.get("/v2/team/queue-status")
async def get_queue_status(caller: Reader) -> Response:
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
    use = await get_queue_use(caller.queue, caller.tenant)
    body = {"concurrency": use.active, "maxConcurrency": use.max_concurrency}
    return answer({"success": True, **body})


@router.get("/v2/team/credit-usage")
async def get_credit_usage(caller: Reader) -> Response:
    return _answer_usage("Credits")


@router.get("/v2/team/token-usage")
async def get_token_usage(caller: Reader) -> Response:
    return _answer_usage("Tokens")


@router.get("/v2/team/credit-usage/historical")
@router.get("/v2/team/token-usage/historical")
async def get_historical_usage(caller: Reader) -> Response:
    return answer({"success": True, "periods": []})


def _answer_usage(what: str) -> Response:
    data = {
        f"remaining{what}": UNLIMITED,
        f"plan{what}": UNLIMITED,
        "billingPeriodStart": None,
        "billingPeriodEnd": None,
    }
    return answer({"success": True, "data": data})
