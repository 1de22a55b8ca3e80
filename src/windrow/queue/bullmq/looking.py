"""Looking at jobs and queues. BullMQ has no index but its lists by state: whoever lists jobs reads
the ids of the queues and states that are asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio.client import Pipeline

from windrow.queue.bullmq import ended, rows
from windrow.queue.bullmq.connection import Links, now_ms
from windrow.queue.job import FINAL, Job, JobState, Step
from windrow.queue.records import ErrorCount, JobFilter, QueueInfo, ReadyKind

READ_AT_ONCE: Final = 500
# Where BullMQ keeps the ids of jobs in each of our states.
LISTS: Final = ("wait", "paused", "active")
SETS: Final = ("prioritized", "delayed", "waiting-children", "completed", "failed")
_PLACES: Final[dict[JobState, tuple[str, ...]]] = {
    JobState.READY: ("wait", "paused", "prioritized", "delayed"),
    JobState.SCHEDULED: ("delayed",),
    JobState.ACTIVE: ("active",),
    JobState.WAITING: ("waiting-children",),
    JobState.COMPLETED: ("completed",),
    JobState.FAILED: ("failed",),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A job where it is: in BullMQ with the fields of its hash, or kept by us after its end."""

    queue: str
    bullmq_id: str
    job: Job
    fields: dict[str, str] | None = None
    kept: ended.Kept | None = None

    @property
    def steps(self) -> list[Step]:
        if self.kept is not None:
            return list(self.kept.job.steps)
        return rows.steps_of(self.fields or {})


async def find_jobs(links: Links, ids: Iterable[str]) -> dict[str, Found]:
    """Jobs by our ids, in whichever queue they are."""
    queues = await links.queues()
    places = [
        (job_id, queue, their_id)
        for job_id in dict.fromkeys(ids)
        for named, their_id in [rows.their_id(job_id)]
        for queue in ([named] if named is not None else queues)
    ]
    found: dict[str, Found] = {}
    for start in range(0, len(places), READ_AT_ONCE):
        page = places[start : start + READ_AT_ONCE]
        for one in await read_places(links, [(queue, their) for _, queue, their in page]):
            found.setdefault(one.job.id, one)
    return found


async def read_places(links: Links, places: Sequence[tuple[str, str]]) -> list[Found]:
    """The jobs that are at these places, queue and BullMQ's id; those that are not are left out."""

    async def fill(pipe: Pipeline) -> None:
        for queue, job_id in places:
            scripts = links.scripts(queue)
            pipe.hgetall(scripts.toKey(job_id))
            names = "completed failed delayed active wait paused waiting-children prioritized"
            keys = scripts.getKeys(names.split())
            await scripts.run(pipe, "getStateV2", keys, [job_id, scripts.toKey(job_id)])
            pipe.zscore(scripts.keys["delayed"], job_id)
            pipe.pttl(links.lock_key(queue, job_id))
            pipe.get(links.lock_key(queue, job_id))
            ended.ask_for(pipe, links, queue, job_id)

    # In one transaction: a job that moves meanwhile would be in two states, or in none.
    answers = await links.together(fill) if places else []
    step = 5 + len(ended.ENDS)
    found = []
    for number, (queue, job_id) in enumerate(places):
        fields, state, score, ttl, token, *kept = answers[number * step : (number + 1) * step]
        if fields and state in rows.States:
            due = None if score is None else int(score) >> 12
            known = rows.States[state]
            job = rows.to_job(queue, job_id, fields, known, due=due, locked_ms=ttl, token=token)
            found.append(Found(queue, job_id, job, fields))
        elif one := ended.found(kept):
            found.append(Found(queue, job_id, ended.to_job(one), kept=one))
    return found


async def list_jobs(
    links: Links, wanted: JobFilter, after: str | None, limit: int, *, is_full: bool = False
) -> list[Job]:
    """Newest first by id."""
    if wanted.group is not None:
        return []
    queues = await links.all_queues() if wanted.queue is None else [wanted.queue]
    states = tuple(JobState) if wanted.states is None else wanted.states
    places = [place for queue in queues for place in await _list_places(links, queue, states)]
    places.sort(key=lambda place: rows.our_id(*place), reverse=True)
    if after is not None:
        places = [place for place in places if rows.our_id(*place) < after]
    jobs: list[Job] = []
    for page in _pages(places):
        for one in await read_places(links, page):
            if one.job.state in states and _is_wanted(one.job, wanted):
                jobs.append(one.job if is_full else _without_details(one.job))
                if len(jobs) == limit:
                    return jobs
    return jobs


async def _list_places(
    links: Links, queue: str, states: Sequence[JobState]
) -> list[tuple[str, str]]:
    names = sorted({name for state in states for name in _PLACES.get(state, ())})
    ends = [state for state in states if state in FINAL]
    keys = links.scripts(queue).keys

    async def fill(pipe: Pipeline) -> None:
        for name in names:
            if name in LISTS:
                pipe.lrange(keys[name], 0, -1)
            else:
                pipe.zrange(keys[name], 0, -1)
        for state in ends:
            pipe.hkeys(links.key("ended", state.value, queue))

    answers = await links.together(fill)
    # One that was cancelled and is put in anew is in two places for a moment.
    return [(queue, job_id) for job_id in dict.fromkeys(one for ids in answers for one in ids)]


def _pages(places: Sequence[tuple[str, str]]) -> Iterator[Sequence[tuple[str, str]]]:
    for start in range(0, len(places), READ_AT_ONCE):
        yield places[start : start + READ_AT_ONCE]


def _is_wanted(job: Job, wanted: JobFilter) -> bool:
    return (
        (wanted.kind is None or job.kind == wanted.kind)
        and (wanted.tenant is None or job.tenant == wanted.tenant)
        and (wanted.since is None or job.id >= wanted.since)
        and (wanted.tag is None or wanted.tag in job.tags)
        and (wanted.unique is None or job.unique == wanted.unique)
        and (wanted.error is None or wanted.error.lower() in (job.error or "").lower())
        and (wanted.text is None or wanted.text.lower() in _payload_text(job).lower())
    )


def _payload_text(job: Job) -> str:
    stored = job.payload_json
    return stored if isinstance(stored, str) else stored.decode()


def _without_details(job: Job) -> Job:
    job.errors, job.result_json = [], None
    return job


async def list_queues(links: Links) -> list[QueueInfo]:
    queues = await links.all_queues()
    limit = (now_ms() + 1) * 0x1000 - 1  # as BullMQ tells which delayed jobs are due

    async def fill(pipe: Pipeline) -> None:
        for queue in queues:
            keys = links.scripts(queue).keys
            pipe.hexists(keys["meta"], "paused")
            for name in LISTS:
                pipe.llen(keys[name])
            for name in SETS:
                pipe.zcard(keys[name])
            pipe.zcount(keys["delayed"], 0, limit)
            for state in ended.ENDS:
                pipe.hlen(links.key("ended", state.value, queue))
            pipe.lindex(keys["wait"], -1)
            pipe.zrange(keys["prioritized"], 0, 0)

    answers = await links.together(fill) if queues else []
    step = 1 + len(LISTS) + len(SETS) + 1 + len(ended.ENDS) + 2
    infos = []
    for number, queue in enumerate(queues):
        is_paused, *numbers = answers[number * step : (number + 1) * step]
        counts = _count(numbers)
        first = [numbers[-2], *numbers[-1]]
        if not counts and not is_paused:
            continue
        infos.append(QueueInfo(queue, bool(is_paused), counts, await _oldest(links, queue, first)))
    return infos


def _count(numbers: Sequence[Any]) -> dict[JobState, int]:
    wait, paused, active, prioritized, delayed, children, completed, failed, due, *rest = numbers
    kept = dict(zip(ended.ENDS, rest[: len(ended.ENDS)], strict=True))
    counts = {
        JobState.READY: wait + paused + prioritized + due,
        JobState.SCHEDULED: delayed - due,
        JobState.ACTIVE: active,
        JobState.WAITING: children,
        JobState.COMPLETED: completed + kept[JobState.COMPLETED],
        JobState.FAILED: failed + kept[JobState.FAILED],
        JobState.CANCELLED: kept[JobState.CANCELLED],
    }
    return {state: count for state, count in counts.items() if count}


async def _oldest(links: Links, queue: str, ids: Sequence[str | None]) -> Any:
    found = await read_places(links, [(queue, job_id) for job_id in ids if job_id])
    return min((one.job.run_at for one in found if one.job.state is JobState.READY), default=None)


async def list_ready_kinds(links: Links, limit: int) -> list[ReadyKind]:
    kinds = []
    for queue in await links.queues():
        keys = links.scripts(queue).keys

        async def fill(pipe: Pipeline, keys: dict[str, str] = keys) -> None:
            pipe.lrange(keys["wait"], -limit, -1)
            pipe.lrange(keys["paused"], -limit, -1)
            pipe.zrange(keys["prioritized"], 0, limit - 1)

        first = [job_id for ids in await links.together(fill) for job_id in ids][:limit]
        found = [one.job for one in await read_places(links, [(queue, one) for one in first])]
        counted = Counter(job.kind for job in found)
        examples = {job.kind: job.id for job in reversed(found)}
        kinds += [ReadyKind(queue, kind, counted[kind], examples[kind]) for kind in sorted(counted)]
    return kinds


async def list_errors(
    links: Links, queue: str | None, limit: int, newest: int | None
) -> list[ErrorCount]:
    wanted = JobFilter(queue=queue, states=(JobState.FAILED,))
    by_error: dict[str, list[Job]] = defaultdict(list)
    for job in await list_jobs(links, wanted, None, newest or 2**31):
        by_error[job.error or ""].append(job)
    counts = []
    for error, jobs in by_error.items():
        times = [job.finished_at or job.created_at for job in jobs]
        counts.append(ErrorCount(error, len(jobs), min(times), max(times), jobs[0].id))
    counts.sort(key=lambda one: (-one.count, one.error))
    return counts[:limit]
