"""`FaultyStore`: any store, behind a network that fails at the worst moment.

    faulty = FaultyStore(store)
    faulty.fail_before("insert_jobs", call=2)   # raises; nothing happened
    faulty.lose_reply("finish_jobs")            # happens and commits; raises all the same
    faulty.delay("claim_jobs", until=event)     # happens after the event (or after seconds)
    faulty.at_random(seed=7, rate=0.1)          # any verb, any call; the same every time

Calls are counted by verb, from 1. `history` tells what was called and what became of it.

A statement of the store's database is a verb by its name ("touch_page"); a transaction of the
catalog or the accounts by module and function ("documents.put").
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from windrow.db.database import Database, Transaction
from windrow.db.typed import PACKAGES, find_statements
from windrow.errors import StoreUnavailable
from windrow.queue.store import Store

FaultKind = Literal["before", "lost_reply", "delay"]
Wait = asyncio.Event | float

# Calls of the test about the store rather than of the queue to it.
NEVER_FAULTY = frozenset({"close"})


@dataclass(frozen=True, slots=True)
class Fault:
    kind: FaultKind
    until: Wait = 0.0


@dataclass(slots=True)
class Call:
    verb: str
    number: int
    fault: FaultKind | None
    outcome: str = "under way"  # then "returned", or the name of the error raised


@dataclass(frozen=True, slots=True)
class RandomFaults:
    """Each call's fate hangs on the seed, its verb and its number, not on what ran before it."""

    seed: int
    rate: float
    kinds: tuple[FaultKind, ...]
    verbs: frozenset[str] | None

    def choose(self, verb: str, number: int) -> Fault | None:
        if self.verbs is not None and verb not in self.verbs:
            return None
        fate = random.Random(f"{self.seed}:{verb}:{number}")
        if fate.random() >= self.rate:
            return None
        return Fault(fate.choice(self.kinds), until=fate.random() / 100)


# Every attribute of the wrapped store is there, which types cannot say of a proxy.
_AnyStore: Any = object


class FaultyStore(_AnyStore):  # type: ignore[misc]
    def __init__(self, store: Store) -> None:
        self.store = store
        self.history: list[Call] = []
        self._plan: dict[tuple[str, int], Fault] = {}
        self._random: RandomFaults | None = None
        self._calls: Counter[str] = Counter()

    def fail_before(self, verb: str, call: int = 1) -> None:
        """The call raises StoreUnavailable and reaches nothing."""
        self._set(verb, call, Fault("before"))

    def lose_reply(self, verb: str, call: int = 1) -> None:
        """The call is carried out and commits; its answer is lost."""
        self._set(verb, call, Fault("lost_reply"))

    def delay(self, verb: str, call: int = 1, *, until: Wait) -> None:
        """The call waits for an event, or for seconds, before it is carried out."""
        self._set(verb, call, Fault("delay", until))

    def at_random(
        self,
        seed: int,
        rate: float,
        *,
        kinds: Sequence[FaultKind] = ("before", "lost_reply"),
        verbs: Sequence[str] | None = None,
    ) -> None:
        """Let a share of the calls without a planned fault fail."""
        chosen = None if verbs is None else frozenset(map(self._verb, verbs))
        self._random = RandomFaults(seed, rate, tuple(kinds), chosen)

    def heal(self) -> None:
        """No more faults."""
        self._plan.clear()
        self._random = None

    def calls(self, verb: str) -> int:
        """How often a verb has been called."""
        return self._calls[verb]

    @property
    def database(self) -> FaultyDatabase:
        return FaultyDatabase(self.store.database, self)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name in NEVER_FAULTY or not inspect.iscoroutinefunction(found):
            return found
        return self.guarded(name, found)

    def guarded(
        self, verb: str, carry_out: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self._calls[verb] += 1
            fault = self._fault(verb, self._calls[verb])
            noted = Call(verb, self._calls[verb], None if fault is None else fault.kind)
            self.history.append(noted)
            try:
                answer = await _suffer(fault, noted, lambda: carry_out(*args, **kwargs))
            except BaseException as error:
                noted.outcome = type(error).__name__
                raise
            noted.outcome = "returned"
            return answer

        return call

    def _fault(self, verb: str, number: int) -> Fault | None:
        planned = self._plan.pop((verb, number), None)
        if planned or self._random is None:
            return planned
        return self._random.choose(verb, number)

    def _set(self, verb: str, call: int, fault: Fault) -> None:
        if call <= self._calls[verb]:
            raise ValueError(f"call {call} of {verb} has been made already")
        self._plan[self._verb(verb), call] = fault

    def _verb(self, name: str) -> str:
        """The name, which must be a verb's: a fault that is misspelt would never happen."""
        if not inspect.iscoroutinefunction(getattr(self.store, name, None)) and not (
            name in find_statements() or _is_transaction(name)
        ):
            raise ValueError(f"the store has no verb named {name!r}")
        return name


class FaultyDatabase:
    """The database of a faulty store: its statements and transactions fail as planned there."""

    def __init__(self, database: Database, store: FaultyStore) -> None:
        self._database = database
        self._store = store

    async def rows(self, statement: str, /, **values: Any) -> Any:
        return await self._store.guarded(statement, self._database.rows)(statement, **values)

    async def rows_each(self, statement: str, each: Any, /, **values: Any) -> Any:
        run = self._store.guarded(statement, self._database.rows_each)
        return await run(statement, each, **values)

    async def run(self, statement: str, /, **values: Any) -> None:
        await self._store.guarded(statement, self._database.run)(statement, **values)

    async def transact(self, verb: Any, /, *args: Any, **kwargs: Any) -> Any:
        name = f"{verb.__module__.rpartition('.')[2]}.{verb.__name__.removeprefix('_')}"
        return await self._store.guarded(name, self._database.transact)(verb, *args, **kwargs)

    def joined(self, tx: Any) -> Any:
        return _FaultyJoined(self._database.joined(tx), self._store)


class _FaultyJoined:
    """A job's transaction, whose statements fail by their names."""

    def __init__(self, tx: Transaction, store: FaultyStore) -> None:
        self._tx = tx
        self._store = store

    async def rows(self, statement: str, /, **values: Any) -> Any:
        return await self._store.guarded(statement, self._tx.rows)(statement, **values)

    async def run(self, statement: str, /, **values: Any) -> None:
        await self._store.guarded(statement, self._tx.run)(statement, **values)


def _is_transaction(name: str) -> bool:
    module, _, verb = name.partition(".")
    return any(
        hasattr(importlib.import_module(f"{package}.{module}"), f"_{verb}")
        for package in PACKAGES
        if importlib.util.find_spec(f"{package}.{module}") is not None
    )


async def _suffer(fault: Fault | None, call: Call, carry_out: Callable[[], Awaitable[Any]]) -> Any:
    match fault:
        case None:
            return await carry_out()
        case Fault("before"):
            raise StoreUnavailable(f"injected before call {call.number} of {call.verb}")
        case Fault("lost_reply"):
            await carry_out()
            raise StoreUnavailable(f"injected after call {call.number} of {call.verb}")
        case Fault("delay", asyncio.Event() as event):
            await event.wait()
        case Fault("delay", float() | int() as seconds):
            await asyncio.sleep(seconds)
    return await carry_out()
