"""Whether jobs were claimed in the order that is promised: the judge of `order_kept`."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tests.trust.past import Finding, Life, Past, Run


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
