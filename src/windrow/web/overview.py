"""The first page: health in words, totals, the last hour, queues, workers, limits."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from windrow.queue.job import JobState
from windrow.services.health import judge, judge_own
from windrow.services.overview import OwnPlace
from windrow.services.pacing import PaceKeeper
from windrow.web.pages import Look

SHOWN: Final = (
    JobState.READY,
    JobState.ACTIVE,
    JobState.SCHEDULED,
    JobState.HELD,
    JobState.PAUSED,
    JobState.WAITING,
    JobState.FAILED,
    JobState.COMPLETED,
)


async def show(look: Look) -> Response:
    glance = await OwnPlace(look.queue, look.viewer.tenant).glance()
    keeper: PaceKeeper = look.request.app.state.pace
    totals = [(state, sum(one.counts.get(state, 0) for one in glance.queues)) for state in SHOWN]
    counted = dict(totals)
    settings = look.request.app.state.settings
    pace = await keeper.look(look.viewer.tenant)
    failed = sum(pace.failed)
    if look.viewer.tenant is None:
        findings = await judge(look.queue, settings, failed=failed if pace.is_counted else None)
    else:
        findings = judge_own(glance.queues, failed, glance.at)
    return look.render(
        "overview.html",
        findings=findings,
        totals=totals,
        states=SHOWN,
        running=counted[JobState.ACTIVE],
        waiting=counted[JobState.READY] + counted[JobState.SCHEDULED],
        queues=sorted(glance.queues, key=lambda info: info.name),
        workers=glance.workers,
        limits=glance.limits,
        pace=pace,
    )


async def change_queue(look: Look) -> Response:
    form = await look.form("admin")
    name = str(form.get("queue", ""))
    if form.get("do") == "pause":
        await look.jobs.pause(name)
        return look.back("/", f"The queue {name} is paused")
    await look.jobs.resume(name)
    return look.back("/", f"The queue {name} goes on")
