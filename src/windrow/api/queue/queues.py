"""/queue/queues: how full queues are, and to let them stand still for a while."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.callers import Admin, Reader
from windrow.api.queue.views import show_queue
from windrow.api.quick import Quick
from windrow.services.overview import OwnPlace

router = APIRouter(tags=["queue"], route_class=Quick)

Name = Annotated[str, Path(max_length=255)]


@router.get("/queue/queues")
async def list_queues(caller: Reader) -> Response:
    """Every queue, with the number of its jobs in each state; of a tenant those its own jobs are
    in, and only its own are counted."""
    infos = await caller.jobs.list_queues()
    return answer({"success": True, "queues": [show_queue(info) for info in infos]})


@router.get("/queue/overview")
async def show_overview(caller: Reader) -> Response:
    """Queues, workers, what runs and the limits in use: what `windrow top` shows. A tenant sees its
    own jobs and limit, and no workers."""
    seen = await OwnPlace(caller.queue, caller.tenant).glance()
    return answer({"success": True, **msgspec.to_builtins(seen)})


@router.post("/queue/queues/{name}/pause")
async def pause_queue(name: Name, caller: Admin) -> Response:
    """Stop claims from a queue; running jobs go on. For a key of all tenants."""
    await caller.jobs.pause(name)
    return answer({"success": True, "name": name, "is_paused": True})


@router.post("/queue/queues/{name}/resume")
async def resume_queue(name: Name, caller: Admin) -> Response:
    """Go on with a paused queue. For a key of all tenants."""
    await caller.jobs.resume(name)
    return answer({"success": True, "name": name, "is_paused": False})
