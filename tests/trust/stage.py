"""One simulated run: the actors, the order in which they go, the clock, and the judgement."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from tests.faults import FaultyStore
from tests.trust.actors import Keeper, Meddler, Producer
from tests.trust.bookkeeping import audit, audit_events
from tests.trust.checker import Violation, check
from tests.trust.history import Entry, slots
from tests.trust.stepping import Actor, Stepped, stand, step_to_end
from tests.trust.tracing import Told, Trace
from tests.trust.workers import Worker, settle
from tests.trust.world import BOUNDED, LEASE_SECONDS, LIMITS, ROWS, Part, World
from windrow.queue.job import Job
from windrow.queue.queue import Queue

MOST_STEPS: Final = 5000  # that actors take to end what they have in hand
AUDITED: Final = 40  # every so many
# Not `begin`: whoever loses its reply has lost the connection, and with it what was begun.
FAULTY: Final = (
    "insert_jobs",
    "claim_jobs",
    "finish_jobs",
    "extend_leases",
    "save_step",
    "get_steps",
    "get_states",
    "stage_jobs",
    "rescue_jobs",
    "promote_jobs",
    "expire_jobs",
    "fire_schedules",
    "prune_jobs",
    "elect_leader",
    "create_group",
    "close_group",
    "pause_group",
    "resume_group",
    "cancel_group",
    "cancel_jobs",
    "pause_jobs",
    "resume_jobs",
    "retry_jobs",
    "delete_jobs",
    "edit_job",
    "pause_queue",
    "resume_queue",
    "set_limit",
    "park_key",
)
EVERY: Final = {"each": 600.0, "last": 120.0}  # schedules, by name
ROLES: Final[dict[str, type[Part]]] = {
    "producer": Producer,
    "worker": Worker,
    "keeper": Keeper,
    "meddler": Meddler,
}
Wrap = Callable[[Any], Any]  # a store, changed


@dataclass(slots=True)
class Report:
    seed: int
    violations: list[Violation]
    entries: list[Entry]
    trace: list[str]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def words(self) -> str:
        return "\n".join(map(str, self.violations))


@dataclass(frozen=True, slots=True)
class Weather:
    """How rough a run is: drawn too, since what hides in a storm shows in a drizzle."""

    cast: tuple[tuple[str, int], ...]
    steps: int
    faults: float  # of calls
    crashes: float  # of steps
    stalls: float  # of steps
    jumps: float  # of steps

    @classmethod
    def draw(cls, chance: random.Random) -> Weather:
        cast = (
            ("producer", chance.randint(1, 3)),
            ("worker", chance.randint(1, 4)),
            ("keeper", chance.randint(1, 2)),
            ("meddler", chance.choice((0, 1, 1, 2))),
        )
        return cls(
            cast,
            steps=chance.choice((80, 160, 240)),
            faults=chance.choice((0.0, 0.03, 0.06, 0.15)),
            crashes=chance.choice((0.0, 0.02, 0.05)),
            stalls=chance.choice((0.0, 0.02, 0.04)),
            jumps=chance.choice((0.02, 0.05, 0.1)),
        )


class Simulation:
    """One run. `wrap` may put something between the queue and the store, to break it."""

    def __init__(self, store: Any, seed: int, *, wrap: Wrap | None = None, trace: bool) -> None:
        self.seed = seed
        self.clock = store.clock  # a FakeClock
        self.store = wrap(store) if wrap else store
        self.faulty = FaultyStore(self.store)
        self.trace = Trace(self.clock, is_kept=trace)
        self.world = World(random.Random(seed), self.clock, Told(self.trace))
        self.weather = Weather.draw(self.world.chance)
        self.trace.say("the weather", str(self.weather))
        self.counts: Counter[str] = Counter()
        self._actors: list[Actor] = []
        self._dead: list[Actor] = []
        self._born: Counter[str] = Counter()
        self._stalled: dict[str, int] = {}  # until which step
        self._off: list[Violation] = []  # the first that an audit found

    async def run(self) -> Report:
        with _no_waiting(self.seed):
            first_slots = await self._prepare()
            for role, number in self.weather.cast:
                for _ in range(number):
                    self._begin(role)
            await self._live()
            await self._close()
            await step_to_end(settle(self.world, self.store))
            jobs = await self._write_finals(first_slots)
            self.counts["jobs"] = len(jobs)
            await self._audit()
            self._off += await audit_events(Queue(self.store), jobs)
        for actor in (*self._dead, *self._actors):
            actor.bury()
        violations = check(self.world.entries, limits=LIMITS)
        violations += [Violation("steps_kept", "", words) for words in self.world.wrong]
        return Report(
            self.seed, violations + self._off, self.world.entries, self.trace, self.counts
        )

    async def _prepare(self) -> dict[str, datetime]:
        queue = Queue(self.store)
        for key, most in LIMITS.items():
            await queue.set_limit(key, active=most)
        await queue.set_queue(BOUNDED, max_depth=2, on_full=self._draw("reject", "drop_oldest"))
        each = await queue.schedule("each", "work", every=EVERY["each"], catch_up="all")
        last = await queue.schedule("last", "work", every=EVERY["last"], catch_up="one")
        self.faulty.at_random(self.seed, self.weather.faults, verbs=FAULTY)
        return {"each": each.next_at, "last": last.next_at}

    def _draw(self, *choices: Any) -> Any:
        return self.world.chance.choice(choices)

    def _begin(self, role: str) -> None:
        self._born[role] += 1
        name = f"{role}-{self._born[role]}"
        store = Stepped(self.faulty, partial(self.trace.say, name))
        acting: Any = ROLES[role](self.world, name, store)
        self._actors.append(Actor(name, role, store, acting.run()))

    async def _live(self) -> None:
        for number in range(self.weather.steps):
            if number % AUDITED == 0:
                await self._audit()
            self._move_clock()
            actor = self._draw(*self._awake(number))
            if self.world.happens(self.weather.crashes):
                await self._kill(actor)
            elif self.world.happens(self.weather.stalls):
                self._stall(actor, number)
            else:
                await actor.step()
                self.counts[actor.gate.place] += 1
            if actor.is_over:
                self._actors.remove(actor)
                if actor.role != "producer" or self.world.happens(0.3):
                    self._begin(actor.role)

    def _awake(self, number: int) -> list[Actor]:
        awake = [actor for actor in self._actors if self._stalled.get(actor.name, 0) <= number]
        return awake or self._actors

    def _stall(self, actor: Actor, number: int) -> None:
        """It is stopped for longer than a lease, while the others go on."""
        self.trace.say(actor.name, f"is stopped at {actor.gate.place}")
        self.counts["stalls"] += 1
        self._stalled[actor.name] = number + self.world.chance.randint(20, 60)
        self._jump(LEASE_SECONDS + self.world.chance.uniform(0, 5))

    async def _audit(self) -> None:
        self._off = self._off or await audit(Queue(self.store))

    async def _kill(self, actor: Actor) -> None:
        self.trace.say(actor.name, f"is killed at {actor.gate.place}")
        self.counts[f"killed {actor.gate.place}"] += 1
        self._dead.append(actor)
        await actor.kill()

    def _move_clock(self) -> None:
        if self.world.happens(self.weather.jumps):
            draw = self.world.chance.random()
            if draw < 0.6:
                self._jump(self.world.chance.uniform(5, 15))  # about a lease
            elif draw < 0.7:
                self._jump(self.world.chance.uniform(60, 3600))
            else:
                self._jump(-self.world.chance.uniform(0, 3))
        elif self.world.happens(0.4):
            self.clock.advance(self.world.chance.uniform(0, 1))

    def _jump(self, seconds: float) -> None:
        self.trace.say("the clock", f"jumps by {seconds:+.1f} s")
        self.counts["jumps"] += 1
        self.clock.advance(seconds)

    async def _close(self) -> None:
        """No more faults; those who live end what they have in hand, late as it may be."""
        self.faulty.heal()
        self.counts["faults"] = sum(call.fault is not None for call in self.faulty.history)
        self.world.is_closing = True
        for _ in range(MOST_STEPS):
            if not self._actors:
                return
            actor = self._draw(*self._actors)
            await actor.step()
            if actor.is_over:
                self._actors.remove(actor)
        raise AssertionError(f"seed {self.seed}: some actors did not come to an end")

    async def _write_finals(self, first_slots: dict[str, datetime]) -> list[Job]:
        history, queue = self.world.history("judge"), Queue(self.store)
        rows = {
            found["job"]: found["n"]
            for found in await self.store.fetch_rows(
                f"SELECT job, count(*) AS n FROM {ROWS} GROUP BY job"
            )
        }
        finishers: Counter[str] = Counter()
        jobs = await queue.list(limit=10_000)
        for job in jobs:
            note = None if job.root_of is None else "root"
            history.final(job, rows=rows.get(job.id, 0), note=note)
            if job.kind == "finish":
                finishers[(await queue.get(job.id)).payload["group"]] += 1
            if "slot" in job.headers:
                name, slot = job.headers["schedule"], job.headers["slot"]
                history.write("fired", job.id, key=name, slot=slot)
        for group in await queue.groups(limit=1000):
            results = finishers[group.id] if self.world.groups.get(group.id) else None
            history.write("final", group=group.id, state=group.state, results=results)
        [each] = [one for one in await queue.schedules() if one.name == "each"]
        for slot in slots(first_slots["each"], each.last_at, EVERY["each"]):
            history.write("due", key="each", slot=slot)
        return jobs


@contextmanager
def _no_waiting(seed: int) -> Iterator[None]:
    """Whoever sleeps lets the others go first; chance in the queue itself goes by the seed."""
    before = random.getstate()
    random.seed(seed)
    with ExitStack() as stack:
        stack.enter_context(patch("windrow.queue.queue.pause", stand))
        sleeping = SimpleNamespace(sleep=stand)
        stack.enter_context(patch("windrow.queue.insisting.asyncio", sleeping))
        # Leases that run out together are looked at in the order of their tokens.
        tokens = SimpleNamespace(token_urlsafe=partial(_next_token, count()))
        stack.enter_context(patch("windrow.queue.sqlite.claiming.secrets", tokens))
        try:
            yield
        finally:
            random.setstate(before)


def _next_token(numbers: Iterator[int], size: int) -> str:
    return f"token-{next(numbers):016d}"
