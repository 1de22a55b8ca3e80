"""What really happened to the runs of simulated workers, and what of it must not happen.

A run is known from the moment the store gave it out, whether or not the worker heard of it. A fault
excuses only the worker that it hit, and only for the runs it had then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.trust.checker import Violation
from tests.trust.history import Entry, History
from tests.trust.simulated_loop import SimulatedLoop
from windrow.queue.job import Job, JobState
from windrow.queue.records import Finish

# That a place may stay free while a job waits for it: 5 s until it is taken from a job that cannot
# use it, and a second each for the promoter, the claimer and this look.
IDLE_SECONDS: Final = 8.0
SETTLE_SECONDS: Final = 6.0  # after a fault: a new leader is elected, a claim is tried again
TOLD_SECONDS: Final = 3.0  # beyond the pause between two renewals
WRITE_SECONDS: Final = 10.0  # beyond its lease, for the end of a run to be written
MOST_RUNS: Final = 60
RENEWALS: Final = 4  # in the length of a lease, as the heartbeat does
OUTCOMES: Final[Mapping[JobState, str]] = {
    JobState.COMPLETED: "done",
    JobState.FAILED: "fail",
    JobState.CANCELLED: "cancel",
}


@dataclass(slots=True)
class Host:
    """A simulated process, as far as the ledger has to know it."""

    name: str
    kinds: Collection[str] = ()
    queues: Collection[str] | None = None
    concurrency: int = 0
    lease: int = 0
    began_at: float = 0.0
    full_at: float = float("-inf")  # when it last had no free place
    trouble_at: float = float("-inf")  # when a fault last hit it, or the end of one that goes on
    is_dead: bool = False
    is_leaving: bool = False

    def takes(self, job: Job) -> bool:
        return job.kind in self.kinds and (self.queues is None or job.queue in self.queues)


@dataclass(slots=True, eq=False)
class Run:
    job: Job  # as it was claimed
    host: Host
    lease: int
    claimed_at: float
    started_at: float | None = None
    told_at: float | None = None  # that it shall stop
    left_at: float | None = None  # the handler has returned
    ended_at: float | None = None  # and its end was accepted
    lost_at: float | None = None  # another run has the job

    @property
    def is_in_handler(self) -> bool:
        return self.started_at is not None and self.left_at is None and not self.host.is_dead

    @property
    def is_open(self) -> bool:
        return self.ended_at is None and self.lost_at is None

    @property
    def is_suspect(self) -> bool:
        """Whether the worker may run it alone."""
        return 0 < self.job.crashes >= self.job.max_crashes - 2


class Ledger:
    def __init__(
        self, loop: SimulatedLoop, entries: list[Entry], leases: Mapping[str, int]
    ) -> None:
        self._loop = loop
        self._entries = entries
        self._leases = leases  # of kinds
        self.wrong: list[Violation] = []
        self.runs: dict[tuple[str, int], Run] = {}  # by job and number
        self.latest: dict[str, Run] = {}
        self.stopped: dict[str, float] = {}  # jobs whose cancel or pause was answered, and when
        self.paused: set[str] = set()  # queues whose pause was answered
        self.unsure: set[str] = set()  # queues somebody tried to pause or to resume, unanswered
        self.limits: dict[str, int] = {}  # as they are now; those that are unsure are left out
        self.parked: defaultdict[str, float] = defaultdict(float)  # keys, until when
        self.trouble_at = float("-inf")  # of anybody
        self._since: dict[str, float] = {}  # what has been wrong since when
        self._full_at: dict[str, float] = {}  # limits, when all their places were last taken

    @property
    def now(self) -> float:
        return self._loop.time()

    def trouble(self, host: Host, seconds: float = 0.0) -> None:
        """A fault has hit a host, and does for so long."""
        host.trouble_at = max(host.trouble_at, self.now + seconds)
        self.trouble_at = max(self.trouble_at, host.trouble_at)

    def write(self, run: Run, what: Any, **fields: Any) -> None:
        by = f"{run.host.name} {run.job.payload}.{run.job.runs}"
        History(self._entries, by, self._loop.time).of(run.job, what, **fields)

    def run_of(self, job: Job) -> Run:
        return self.runs[job.id, job.runs]

    # What the store says

    def claimed(self, host: Host, jobs: Sequence[Job]) -> None:
        for job in jobs:
            own = job.lease_seconds
            lease = self._leases.get(job.kind, host.lease) if own is None else own
            run = Run(job, host, lease, self.now)
            self._check_lease(run)
            self._check_former(run)
            self._check_is_wanted(run)
            self.runs[job.id, job.runs] = run
            self.latest[job.id] = run
            self.write(run, "claimed")
        self._note_full({key for job in jobs for key in job.limits})
        self._note_room(host)

    def _note_full(self, keys: Collection[str]) -> None:
        """Between two looks a place may be taken and given back many times."""
        active = [run.job for run in self.latest.values() if run.is_open]
        for key in keys:
            if _carrying(active, key) >= self.limits.get(key, 0):
                self._full_at[key] = self.now

    def finished(self, host: Host, finishes: Sequence[Finish], lost: Collection[str]) -> None:
        self._note_room(host)
        for finish in finishes:
            run = self._run_under(finish.id, finish.token)
            if run is None:
                continue
            is_accepted = finish.id not in lost
            back = "retry" if finish.uses_attempt else "snooze"
            outcome = OUTCOMES.get(finish.state, back)
            self.write(run, "finished", outcome=outcome, accepted=is_accepted)
            if is_accepted and run.ended_at is None:
                run.ended_at = self.now
                for row in finish.then:
                    self._write("enqueued", row.id)

    def _run_under(self, job_id: str, token: str) -> Run | None:
        numbers = range(self.latest[job_id].job.runs, 0, -1) if job_id in self.latest else ()
        found = (self.runs.get((job_id, number)) for number in numbers)
        return next((run for run in found if run and run.job.lease_token == token), None)

    def _check_lease(self, run: Run) -> None:
        if run.job.lease_expires_at is None:
            self._say("lease_length", run, "was claimed without a lease")
            return
        seconds = (run.job.lease_expires_at - self._loop.clock.now()).total_seconds()
        if abs(seconds - run.lease) > 0.01:
            self._say("lease_length", run, f"has {seconds:g} s instead of {run.lease} s")

    def _check_former(self, run: Run) -> None:
        former = self.latest.get(run.job.id)
        if former is None:
            return
        if former.ended_at is None:
            former.lost_at = self.now
            is_excused = former.host.is_dead or former.host.trouble_at >= former.claimed_at
            if not is_excused:
                self._say("no_run_twice", run, f"followed one of {former.host.name} without fault")
        elif former.is_in_handler:
            self._say("no_run_twice", run, f"began while {former.host.name} was still at it")

    def _check_is_wanted(self, run: Run) -> None:
        if run.job.id in self.stopped:
            self._say("cancel_holds", run, "was claimed after its cancel or pause was answered")
        if run.job.queue in self.paused:
            self._say("cancel_holds", run, f"was claimed from {run.job.queue}, which is paused")
        if run.job.runs > MOST_RUNS:
            self._say("runs_end", run, f"is one of more than {MOST_RUNS}")

    def _note_room(self, host: Host) -> None:
        mine = [run for run in self.runs.values() if run.host is host and run.is_open]
        if len(mine) >= host.concurrency or any(run.is_suspect for run in mine):
            host.full_at = self.now

    # What can be seen from time to time

    def look(self, hosts: Sequence[Host], jobs: Sequence[Job]) -> None:
        """Judge how things are now; `jobs` are those that have not ended."""
        for host in hosts:
            self._note_room(host)
        active = [job for job in jobs if job.state is JobState.ACTIVE]
        for job in active:
            self._check_goes_on(self.run_of(job))
        for run in self.runs.values():
            self._check_told(run)
        self._check_nobody_waits(hosts, jobs, active)

    def _check_goes_on(self, run: Run) -> None:
        """A run that has left its handler is written, or its lease runs out."""
        if run.left_at is None or run.host.is_dead:
            return
        since = max(run.left_at, run.host.trouble_at)
        if self.now - since > run.lease + WRITE_SECONDS:
            self._say("runs_end", run, f"left its handler {self.now - since:.0f} s ago, and lives")

    def _check_told(self, run: Run) -> None:
        """A handler is told that its job was cancelled, or is another's."""
        asked_at = self.stopped.get(run.job.id) if run.lost_at is None else run.lost_at
        if asked_at is None or run.told_at is not None or not run.is_in_handler:
            return
        if run.job.kind.endswith("batch"):
            return  # the others of a batch go on, so it is not stopped
        since = max(asked_at, run.started_at or 0.0, run.host.trouble_at)
        if self.now - since > run.lease / RENEWALS + TOLD_SECONDS:
            why = "its job was cancelled or paused" if run.lost_at is None else "it lost its job"
            self._say("cancel_holds", run, f"was not told in {self.now - since:.0f} s that {why}")

    def _check_nobody_waits(
        self, hosts: Sequence[Host], jobs: Sequence[Job], active: Sequence[Job]
    ) -> None:
        """No place stays free while a job could have it."""
        idle = dict(self._idle(hosts, jobs, active))
        self._since = {
            what: max(self._since.get(what, self.now), full_at)
            for what, full_at in sorted(idle.items())
        }
        for what, since in self._since.items():
            seconds = self.now - max(since, self.trouble_at + SETTLE_SECONDS)
            if seconds > IDLE_SECONDS:
                words = f"at +{self.now:.1f} {what}, for {seconds:.0f} s"
                self.wrong.append(Violation("no_idle_place", "", words))

    def _idle(
        self, hosts: Sequence[Host], jobs: Sequence[Job], active: Sequence[Job]
    ) -> Iterator[tuple[str, float]]:
        """What is wrong now, and when it was certainly not."""
        free = [host for host in hosts if self._has_room(host)]
        room = {key: most - _carrying(active, key) for key, most in self.limits.items()}
        for key, until in self.parked.items():
            if until > self.now:
                room[key] = 0
        for job in jobs:
            if not self._is_runnable(job) or not any(host.takes(job) for host in free):
                continue
            if not job.limits:
                what = f"job {job.id} of {job.kind} is {job.state} and workers have room"
                yield what, float("-inf")
            elif all(room.get(key, 0) > 0 for key in job.limits):
                full_at = max(self._full_at.get(key, float("-inf")) for key in job.limits)
                yield f"{' and '.join(job.limits)} have room, and jobs wait", full_at

    def _has_room(self, host: Host) -> bool:
        last = max(host.full_at, host.trouble_at, host.began_at)
        return not (host.is_dead or host.is_leaving) and self.now - last > SETTLE_SECONDS

    def _is_runnable(self, job: Job) -> bool:
        if job.state not in (JobState.READY, JobState.HELD, JobState.SCHEDULED):
            return False
        is_due = job.state is JobState.READY or job.run_at <= self._loop.clock.now()
        return is_due and job.queue not in self.paused | self.unsure

    def _say(self, promise: str, run: Run, words: str) -> None:
        which = f"run {run.job.runs} of {run.job.kind} {run.job.id} by {run.host.name}"
        text = f"at +{self.now:.1f} {which} {words}"
        self.wrong.append(Violation(promise, run.job.id, text))

    def _write(self, what: Any, job: str, **fields: Any) -> None:
        self._entries.append(Entry(self.now, f"ledger {job}", what, job, **fields))


def _carrying(jobs: Sequence[Job], key: str) -> int:
    return sum(key in job.limits for job in jobs)
