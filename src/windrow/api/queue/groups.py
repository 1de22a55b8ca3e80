"""/queue/groups: jobs that end together."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from windrow.api.answers import answer
from windrow.api.bodies import read_as, takes_type
from windrow.api.callers import Reader, Writer
from windrow.api.queue.schemas import GroupBody, ReasonBody
from windrow.api.queue.views import show_group
from windrow.api.quick import Quick
from windrow.queue.records import Group, GroupState

router = APIRouter(tags=["queue"], route_class=Quick)

PAGE: Final = 100
MOST: Final = 1_000


@router.post("/queue/groups", openapi_extra=takes_type(GroupBody, required=False))
async def create_group(request: Request, caller: Writer) -> Response:
    """A group; give its id to jobs as `group`. It ends when its last job has."""
    body = await read_as(request, GroupBody, default=GroupBody())
    group = await caller.jobs.create_group(
        then=None if body.then is None else body.then.to_new(),
        root=body.root,
        hold=body.hold,
        tenant=body.tenant,
        retention=body.retention,
        max_jobs=body.max_jobs,
    )
    return _answer(group)


@router.get("/queue/groups")
async def list_groups(
    caller: Reader,
    state: GroupState | None = None,
    tenant: Annotated[str | None, Query(max_length=255)] = None,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = PAGE,
) -> Response:
    """Groups, newest first; only jobs that have ended are in their counts, `pending` are the
    others."""
    groups = await caller.jobs.groups(
        state=state, tenant=tenant, after=None if after is None else str(after), limit=limit
    )
    body: dict[str, Any] = {"success": True, "groups": [show_group(one) for one in groups]}
    if len(groups) == limit:
        body["next"] = groups[-1].id
    return answer(body)


@router.get("/queue/groups/{group_id}")
async def get_group(group_id: UUID, caller: Reader) -> Response:
    """A group with the number of its jobs in each state."""
    return _answer(await caller.jobs.group(str(group_id)))


@router.post("/queue/groups/{group_id}/close")
async def close_group(group_id: UUID, caller: Writer) -> Response:
    """Hold a group open no longer: it ends when no job of it is left to run."""
    return _answer(await caller.jobs.close_group(str(group_id)))


@router.post("/queue/groups/{group_id}/pause")
async def pause_group(group_id: UUID, caller: Writer) -> Response:
    """Start no more of its jobs; those that run go on."""
    return _answer(await caller.jobs.pause_group(str(group_id)))


@router.post("/queue/groups/{group_id}/resume")
async def resume_group(group_id: UUID, caller: Writer) -> Response:
    """Go on with a paused group."""
    return _answer(await caller.jobs.resume_group(str(group_id)))


@router.post(
    "/queue/groups/{group_id}/cancel", openapi_extra=takes_type(ReasonBody, required=False)
)
async def cancel_group(request: Request, group_id: UUID, caller: Writer) -> Response:
    """Cancel what waits, tell what runs, take no more jobs."""
    body = await read_as(request, ReasonBody, default=ReasonBody())
    return _answer(await caller.jobs.cancel_group(str(group_id), body.reason))


def _answer(group: Group) -> Response:
    return answer({"success": True, "group": show_group(group)})
