"""What happens in a simulation, told so that people can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.trust.history import Entry
from windrow.clock import FakeClock
from windrow.queue.job import Job
from windrow.queue.records import Change, Finished, Group, Inserted, Renewal
from windrow.queue.store import JobTransaction


class Trace(list[str]):
    """What is said, with names for ids and tokens, which differ from run to run."""

    def __init__(self, clock: FakeClock, *, is_kept: bool) -> None:
        super().__init__()
        self._clock = clock
        self._began = clock.now()
        self.is_kept = is_kept
        self._names: dict[str, str] = {}

    def say(self, who: str, words: str, about: Any = None) -> None:
        if self.is_kept:
            words += "" if about is None else f" → {_brief(about)}"
            at = (self._clock.now() - self._began).total_seconds()
            text = _TIMES.sub("…", self._named(words))
            self.append(f"{at:+9.1f}  {self._named(who):<11} {text}")

    def _named(self, words: str) -> str:
        return _ID.sub(lambda found: self._name(found.group()), words)

    def _name(self, text: str) -> str:
        return self._names.setdefault(text, f"#{len(self._names) + 1}")


class Told(list[Entry]):
    """A history that is traced, too."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def append(self, entry: Entry) -> None:
        super().append(entry)
        if not self._trace.is_kept:
            return
        shown = {name: value for name, value in _shown(entry) if value not in (None, ())}
        self._trace.say(entry.by, f"* {entry.what} {entry.job} {shown or ''}".rstrip())


# Job ids, and the tokens of leases.
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=token[=:] ')[\w-]{22,}(?=')|(?<=')[\w-]{22}(?=')")
_TIMES = re.compile(r"(?<=created_at=)datetime\.datetime\([^)]*\)\)?|pid=\d+")


def _brief(answer: Any) -> str:
    match answer:
        case Exception():
            return f"raised {type(answer).__name__}: {answer}"
        case Job():
            return f"{answer.id} {answer.kind} run {answer.runs} {answer.state} in {answer.queue}"
        case list():
            return "[" + ", ".join(map(_brief, answer)) + "]"
        case Inserted():
            return f"{answer.id} {answer.outcome}, {answer.state}"
        case Change():
            refused = " (refused)" if answer.is_refused else ""
            return f"{answer.id} {answer.before} to {answer.after}{refused}"
        case dict():
            return _brief(list(answer.values()))
        case JobTransaction():
            return "a transaction"
        case Finished():
            return f"refused {list(answer.lost)}, then {_brief(list(answer.then))}"
        case Renewal():
            return f"held {sorted(answer.held)}, stopping {dict(answer.stopping)}"
        case Group():
            return f"{answer.id} {answer.state}, {answer.pending} of {answer.members} pending"
        case _:
            return str(answer)


def _shown(entry: Entry) -> Iterator[tuple[str, Any]]:
    for name in (
        "attempt",
        "outcome",
        "accepted",
        "key",
        "group",
        "queue",
        "state",
        "rows",
        "note",
    ):
        yield name, getattr(entry, name)
