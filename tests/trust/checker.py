"""Judges a history: what was promised and did not hold, in words.

    violations = check(read(path), limits={"host:example": 2})
    assert violations == [], "\\n".join(map(str, violations))

It concludes only what the order of entries proves, so that a violation is one whatever the timing
was: a reply that came late, or never, excuses. A run is known to have held its job from `claimed`
to `ended` if the finish sent after that was accepted. Claims of a job are ordered by `attempt`, the
number that the store gives each run, since a worker can be stopped between its claim and its entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.trust.history import Entry
from tests.trust.ordering import order_kept
from tests.trust.past import Finding, Life, Past, Run
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
            yield from _heard_when_stale(run, claims)
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


def _heard_when_stale(run: Run, claims: Mapping[int, int]) -> Iterator[Finding]:
    words = {"renewed": "extended its lease", "kept": "kept a step"}
    for asked, entry in run.said:
        for number, claimed in claims.items():
            if number > run.number and claimed < asked:
                stale = f"after run {number} had claimed it: its token was stale"
                what = f"run {run.number} of job {run.job} {words[entry.what]} by {run.by}"
                yield run.job, f"{what} {stale}"
                break


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
