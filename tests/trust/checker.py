"""Judges a history: what was promised and did not hold, in words.

    violations = check(read(path), limits={"host:example": 2})
    assert violations == [], "\\n".join(map(str, violations))

It concludes only what the order of entries proves, so that a violation is one whatever the timing
was: a reply that came late, or never, excuses. A run is known to have held its job from `claimed`
to `ended` if the finish sent after that was accepted. Claims of a job are ordered by `attempt`, the
number that the store gives each run, since a worker can be stopped between its claim and its entry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from tests.trust.history import Entry
from tests.trust.past import Life, Past, Run
from windrow.queue.job import FINAL

ENDS: Final = frozenset({"done", "fail", "cancel"})  # outcomes after which nothing runs again
USES_ATTEMPT: Final = frozenset({"retry", "fail"})


@dataclass(frozen=True, slots=True)
class Violation:
    promise: str
    job: str
    words: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.words}"


Finding = tuple[str, str]  # a job, and what is wrong with it
Judge = Callable[[Past], Iterator[Finding]]


def check(
    entries: Sequence[Entry],
    *,
    promises: Collection[str] | None = None,
    limits: Mapping[str, int] | None = None,
) -> list[Violation]:
    """Everything that contradicts these promises (None: all). `limits`: how many jobs of a key may
    run at once."""
    chosen = ALL if promises is None else tuple(promises)
    if unknown := sorted(set(chosen) - set(ALL)):
        raise ValueError(f"no such promise: {', '.join(unknown)}")
    past = Past(entries, limits or {})
    return [Violation(name, job, words) for name in chosen for job, words in JUDGES[name](past)]


def nothing_lost(past: Past) -> Iterator[Finding]:
    """What was acknowledged is there at the end."""
    for life in past.lives.values():
        if life.is_stored and not life.is_removed and not life.finals:
            yield life.id, f"job {life.id} was acknowledged, and at the end it is not there"


def one_final_state(past: Past) -> Iterator[Finding]:
    """Every job ends, in one state, and does not run again."""
    for life in past.lives.values():
        states = sorted({entry.state or "no state" for entry in life.finals})
        if len(states) > 1:
            yield life.id, f"job {life.id} is both {' and '.join(states)}"
        elif states and states[0] not in FINAL:
            yield life.id, f"job {life.id} is {states[0]} at the end, which is no end"
        if not life.is_retried and not life.is_root:
            yield from _ran_on(life, states)


def _ran_on(life: Life, states: Sequence[str]) -> Iterator[Finding]:
    by_outcome = {"done": "completed", "fail": "failed", "cancel": "cancelled"}
    for run, later in pairwise(run for run in life.runs if run.claimed is not None):
        if run.accepted in ENDS:
            words = (
                f"job {life.id} was {by_outcome[run.accepted]} in run {run.number}, and claimed "
                f"again as run {later.number}"
            )
            yield life.id, words
    for run in life.runs:
        if run.accepted in ENDS and states and by_outcome[run.accepted] not in states:
            words = (
                f"run {run.number} of job {life.id} was accepted as {run.accepted}, "
                f"but it is {states[0]} at the end"
            )
            yield life.id, words


def one_accepted_completion(past: Past) -> Iterator[Finding]:
    """A job is completed once, by a run."""
    for life in past.lives.values():
        done = [run for run in life.runs if run.accepted == "done"]
        if len(done) > 1 and not life.is_root:
            runs = " and ".join(str(run.number) for run in done)
            yield life.id, f"the completion of job {life.id} was accepted of runs {runs}"
        final = life.final
        if final is None:
            continue
        if final.state == "completed" and not any(run.may_be_done for run in life.runs):
            yield life.id, f"job {life.id} is completed, and no run completed it"
        if final.results is not None and final.results > 1:
            yield life.id, f"job {life.id} has {final.results} results"


def stale_token_refused(past: Past) -> Iterator[Finding]:
    """Whoever lost a job to another run changes nothing."""
    for life in past.lives.values():
        claims = {run.number: run.claimed for run in life.runs if run.claimed is not None}
        for run in life.runs:
            if run.accepted is None:
                continue
            if run.claimed is None and claims:
                yield (
                    life.id,
                    f"a finish of job {life.id} was accepted under a token nobody claimed",
                )
            overtaken = [
                number
                for number, place in claims.items()
                if number > run.number and run.ended is not None and place < run.ended
            ]
            if overtaken:
                words = (
                    f"run {run.number} of job {life.id} was accepted as {run.accepted} by {run.by} "
                    f"after run {overtaken[0]} had claimed it: its token was stale"
                )
                yield life.id, words


def bounded_attempts(past: Past) -> Iterator[Finding]:
    """Attempts and crashes stay within what the job allows, and are counted."""
    for life in past.lives.values():
        final = life.final
        if final is None:
            continue
        for word in ("attempts", "crashes"):
            used, most = getattr(final, word), getattr(final, f"max_{word}")
            if used is not None and most is not None and used > most:
                yield life.id, f"job {life.id} used {used} {word} of at most {most}"
        if life.is_retried or life.key in past.replaced or final.attempts is None:
            continue
        failed = sum(run.accepted in USES_ATTEMPT for run in life.runs)
        if failed > final.attempts:
            words = f"{failed} failed runs of job {life.id} were accepted, {final.attempts} counted"
            yield life.id, words
        yield from _too_many_runs(life, final)


def _too_many_runs(life: Life, final: Entry) -> Iterator[Finding]:
    if final.max_attempts is None or final.max_crashes is None:
        return
    # Each run that was not put off uses an attempt or is a crash; the last of either ends it.
    begun = [run for run in life.runs if run.started is not None]
    counted = sum(not _is_put_off(run) for run in begun)
    most = final.max_attempts + final.max_crashes - 1
    if counted > most:
        yield life.id, f"job {life.id} ran {counted} times, where {most} are all it may"


def _is_put_off(run: Run) -> bool:
    """Whether it ended as a snooze, or might have."""
    outcomes = {reply.outcome for reply in run.replies if reply.accepted is not False}
    return "snooze" in outcomes or (run.ended is not None and not run.replies)


def limits_hold(past: Past) -> Iterator[Finding]:
    """No more runs of a key at once than its limit."""
    turns: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for life in past.lives.values():
        for run in life.runs:
            if run.span is None:
                continue
            for key in set(run.limits) & past.limits.keys():
                began, ended = run.span
                turns[key] += [(began, 1, life.id), (ended, -1, life.id)]
    for key, changes in turns.items():
        running = 0
        for place, change, job in sorted(changes):
            running += change
            if change > 0 and running > past.limits[key]:
                words = (
                    f"{running} jobs of {key} ran at once from entry {place} (job {job}), where "
                    f"{past.limits[key]} may"
                )
                yield job, words


def order_kept(past: Past) -> Iterator[Finding]:
    """Of jobs that were ready the better is claimed first: by priority, then first come."""
    firsts = [(life, run) for life in past.lives.values() if (run := _first_in_line(life))]
    queues: dict[str | None, dict[int, list[InLine]]] = defaultdict(lambda: defaultdict(list))
    for life, run in firsts:
        place = InLine(life.enqueued or 0, past.before[run.claimed or 0], life)
        queues[life.queue][life.priority or 0].append(place)
    lines = {
        queue: {priority: Line(places) for priority, places in by_priority.items()}
        for queue, by_priority in queues.items()
    }
    for life, run in firsts:
        yield from _overtook(past, lines[life.queue], life, run)
    yield from _mixed_up(past, firsts)


@dataclass(frozen=True, slots=True)
class InLine:
    enqueued: int
    after: int  # it was claimed after this place: its claimer wrote that before it asked
    life: Life


class Line:
    """Jobs of one queue and priority. `last` tells who of the first was claimed last."""

    def __init__(self, places: Sequence[InLine]) -> None:
        in_order = sorted(places, key=lambda place: place.enqueued)
        self._enqueued = [place.enqueued for place in in_order]
        self._last = list(accumulate(in_order, _later))

    def last(self, until: int) -> InLine | None:
        """Of those that were enqueued before a place."""
        count = bisect_left(self._enqueued, until)
        return self._last[count - 1] if count else None


def _later(one: InLine, other: InLine) -> InLine:
    return one if one.after >= other.after else other


def _first_in_line(life: Life) -> Run | None:
    """The first claim of a job whose place in the line is known."""
    if life.priority is None or life.enqueued is None or life.is_retried or not life.tokens:
        return None
    first = life.runs[0]
    return first if first.number == 1 and first.claimed is not None else None


def _overtook(past: Past, lines: Mapping[int, Line], life: Life, run: Run) -> Iterator[Finding]:
    claimed, own = run.claimed or 0, life.priority or 0
    for priority, line in lines.items():
        ready = past.before[claimed]
        if priority == own:
            ready = min(ready, -1 if life.offered is None else life.offered)
        other = line.last(ready) if priority >= own else None
        if other is not None and other.after >= claimed:
            why = "a higher priority" if priority > own else "come first"
            words = (
                f"job {life.id} was claimed before {other.life.id}, which was ready and had {why}"
            )
            yield life.id, words
            return


def _mixed_up(past: Past, firsts: Sequence[tuple[Life, Run]]) -> Iterator[Finding]:
    """Jobs that one claim gave in the wrong order."""
    in_order = sorted(firsts, key=lambda one: one[1].claimed or 0)
    for (life, run), (other, later) in pairwise(in_order):
        asked = past.before[run.claimed or 0]
        is_one_claim = run.by == later.by and asked == past.before[later.claimed or 0]
        if not is_one_claim or life.queue != other.queue or (other.enqueued or 0) > asked:
            continue
        came_first = life.offered is not None and (other.enqueued or 0) < life.offered
        own, others = life.priority or 0, other.priority or 0
        if others > own or (others == own and came_first):
            yield life.id, f"one claim gave job {life.id} before {other.id}, which was the better"


def unique_holds(past: Past) -> Iterator[Finding]:
    """One live job of a unique key, and at most one that follows it."""
    keys: dict[str, list[Life]] = defaultdict(list)
    for life in past.lives.values():
        if life.key is not None:
            keys[life.key].append(life)
    for key, lives in keys.items():
        spans = [(run.span, life) for life in lives for run in life.runs if run.span]
        spans.sort(key=lambda one: one[0])
        latest: tuple[int, Life] | None = None
        for (began, ended), life in spans:
            if latest and began < latest[0] and latest[1] is not life:
                yield life.id, f"jobs {latest[1].id} and {life.id} ran at once, both of key {key!r}"
            if latest is None or ended > latest[0]:
                latest = ended, life
        yield from _lived_at_once(key, lives)
        alive = [life.id for life in lives if life.final and life.final.state not in FINAL]
        if len(alive) > 2:
            yield alive[-1], f"{len(alive)} jobs of key {key!r} are live at the end"


def _lived_at_once(key: str, lives: Sequence[Life]) -> Iterator[Finding]:
    changes: list[tuple[int, int, Life]] = []
    for life in lives:
        end = max((run.span[1] for run in life.runs if run.span), default=-1)
        if life.is_retried or life.follows or life.enqueued is None or end < life.enqueued:
            continue  # it was over before its producer heard of it
        changes += [(life.enqueued, 1, life), (end, -1, life)]
    alive: list[Life] = []
    for _, change, life in sorted(changes, key=lambda one: one[0]):
        if change < 0:
            alive.remove(life)
            continue
        alive.append(life)
        if len(alive) > 1:
            yield (
                life.id,
                f"job {life.id} was enqueued while {alive[0].id} lived, both of key {key!r}",
            )


def groups_finish_once(past: Past) -> Iterator[Finding]:
    """A group has one finish job, which runs when all members have ended."""
    finishers: dict[str, set[str]] = defaultdict(set)
    for entry in past.of("group_finished"):
        finishers[entry.group or ""].add(entry.job)
    for group, jobs in finishers.items():
        if len(jobs) > 1:
            yield group, f"group {group} finished {len(jobs)} times: {', '.join(sorted(jobs))}"
    for entry in past.of("final"):
        if entry.group is None or entry.job:
            continue
        if entry.state not in FINAL:
            yield entry.group, f"group {entry.group} is {entry.state} at the end, which is no end"
        elif entry.results is not None and entry.results != 1:
            yield entry.group, f"group {entry.group} ended with {entry.results} finish jobs"
    for life in past.lives.values():
        for finisher in finishers.get(life.group or "", ()):
            yield from _ran_after_the_end(life, past.lives.get(finisher))


def _ran_after_the_end(member: Life, finisher: Life | None) -> Iterator[Finding]:
    claims = [run.claimed for run in finisher.runs if run.claimed is not None] if finisher else []
    spans = [run.span for run in member.runs if run.span]
    if finisher is None or not claims or member.is_retried or finisher is member:
        return
    if any(span[1] > min(claims) for span in spans):
        yield (
            member.id,
            f"group {member.group} finished (job {finisher.id}) while its member {member.id} ran",
        )


def schedules_fire_once(past: Past) -> Iterator[Finding]:
    """One job for each slot."""
    fired: dict[tuple[str | None, str | None], set[str]] = defaultdict(set)
    for entry in past.of("fired"):
        fired[entry.key, entry.slot].add(entry.job)
    for (name, slot), jobs in fired.items():
        if len(jobs) > 1:
            words = (
                f"slot {slot} of schedule {name} fired {len(jobs)} times: {', '.join(sorted(jobs))}"
            )
            yield min(jobs), words
    for entry in past.of("due"):
        if (entry.key, entry.slot) not in fired:
            yield "", f"slot {entry.slot} of schedule {entry.key} was due and never fired"


def effects_once(past: Past) -> Iterator[Finding]:
    """What a run wrote through `job.tx` is there if and only if it completed the job."""
    for life in past.lives.values():
        final = life.final
        if final is None or final.rows is None:
            continue
        expected = _rows_expected(life, final)
        if final.rows not in expected:
            wanted = " or ".join(map(str, sorted(expected))) or "none"
            words = (
                f"job {life.id} is {final.state} and left {final.rows} rows through its "
                f"transaction, where {wanted} were to be"
            )
            yield life.id, words


def _rows_expected(life: Life, final: Entry) -> set[int]:
    done = {run.written for run in life.runs if run.accepted == "done"}
    perhaps = {run.written for run in life.runs if run.may_be_done}
    if final.state == "completed":
        return done or perhaps
    if life.is_root:
        return done or perhaps | {0}
    return {0}


def runs_at_least_once(past: Past) -> Iterator[Finding]:
    """What is completed has run."""
    for life in past.lives.values():
        has_run = any(run.started is not None for run in life.runs)
        if life.final is not None and life.final.state == "completed" and not has_run:
            yield life.id, f"job {life.id} is completed and never ran"


JUDGES: Final[Mapping[str, Judge]] = {
    judge.__name__: judge
    for judge in (
        nothing_lost,
        one_final_state,
        one_accepted_completion,
        stale_token_refused,
        bounded_attempts,
        limits_hold,
        order_kept,
        unique_holds,
        groups_finish_once,
        schedules_fire_once,
        effects_once,
        runs_at_least_once,
    )
}
ALL: Final = tuple(JUDGES)
