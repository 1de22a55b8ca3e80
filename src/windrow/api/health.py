"""GET /health and GET /ready, for monitors and load balancers; GET /metrics, for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.callers import Admin
from windrow.api.quick import Quick
from windrow.errors import NotPermitted
from windrow.services.examination import find_obstacle, find_trouble, render_metrics

router = APIRouter(tags=["operating"], route_class=Quick)


@router.get("/health")
async def get_health(request: Request) -> Response:
    """Whether jobs run; 503 and the cause if they do not. Needs no key, and tells nothing else."""
    trouble = await find_trouble(request.app.state.queue)
    if trouble is None:
        return answer({"status": "ok"})
    return answer({"status": "red", "cause": trouble}, 503)


@router.get("/ready")
async def get_ready(request: Request) -> Response:
    """Whether this server can answer: its database does. For load balancers and probes; needs no
    key. 503 and the cause if not, also while the server stops."""
    cause = await find_obstacle(request.app.state.queue)
    if request.app.state.is_stopping:
        cause = "the server stops"
    if cause is None:
        return answer({"status": "ready"})
    return answer({"status": "unready", "cause": cause}, 503)


@router.get("/metrics")
async def get_metrics(caller: Admin) -> Response:
    """What the worker of this process does, and how full all queues are. For a key of all."""
    if caller.tenant is not None:
        raise NotPermitted("metrics are of all tenants, and take a key of all of them")
    text, media_type = await render_metrics()
    return Response(text, media_type=media_type)
