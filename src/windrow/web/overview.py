"""The first page: health in words, totals, the last hour, queues, workers, limits."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from windrow.queue.job import JobState
from windrow.services.examination import Examination
from windrow.services.health import judge, judge_own, look_own
from windrow.services.health import look as look_at_health
from windrow.services.pacing import Pace, PaceKeeper
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
MOST_HELD: Final = 5_000  # held jobs are counted by key if there are no more
MOST_OF_TENANT: Final = 2_000  # jobs that are counted: each lies among those of others


async def show(look: Look) -> Response:
    keeper: PaceKeeper = look.request.app.state.pace
    pace = await keeper.look(look.viewer.tenant)
    seen = await _see(look, pace)
    totals = [(state, seen.count(state)) for state in SHOWN]
    counted = dict(totals)
    return look.render(
        "overview.html",
        findings=judge(seen) if look.viewer.tenant is None else judge_own(seen),
        totals=totals,
        most_counted=_most_counted(look, seen),
        states=SHOWN,
        running=counted[JobState.ACTIVE],
        waiting=counted[JobState.READY] + counted[JobState.SCHEDULED],
        queues=sorted(seen.queues, key=lambda info: info.name),
        workers=seen.workers,
        limits=[one for one in seen.limits if one.taken],
        pace=pace,
    )


async def _see(look: Look, pace: Pace) -> Examination:
    """All that is judged is shown, too: it is read once."""
    if look.viewer.tenant is not None:
        return await look_own(look.jobs, failed=sum(pace.failed), most=MOST_OF_TENANT)
    settings = look.request.app.state.settings
    failed = sum(pace.failed) if pace.is_counted else None
    return await look_at_health(look.queue, settings, failed=failed, most_held=MOST_HELD)


def _most_counted(look: Look, seen: Examination) -> int | None:
    """Of how many jobs, the newest, the totals are, if there may be more."""
    counted = sum(sum(info.counts.values()) for info in seen.queues)
    is_cut_short = look.viewer.tenant is not None and counted >= MOST_OF_TENANT
    return MOST_OF_TENANT if is_cut_short else None


async def change_queue(look: Look) -> Response:
    form = await look.form("admin")
    name = str(form.get("queue", ""))
    if form.get("do") == "pause":
        await look.jobs.pause(name)
        return look.back("/", f"The queue {name} is paused")
    await look.jobs.resume(name)
    return look.back("/", f"The queue {name} goes on")
