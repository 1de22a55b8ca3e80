"""Actors that are moved one step at a time, by whoever decides the order.

An actor is a coroutine on a store of its own (`Stepped`), which stops before every verb and again
before its reply: there it can be left standing for as long as one likes, or killed. Nothing runs by
itself, so the one who steps decides everything. On a store that needs no event loop there is none.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

# Every attribute of the wrapped store is there, which types cannot say of a proxy.
_AnyStore: Any = object


@dataclass(frozen=True, slots=True)
class Gate:
    """A place where an actor stands until it is stepped."""

    place: str

    def __await__(self) -> Generator[Any, None, None]:
        yield self


async def stand(seconds: float) -> None:
    """In the place of sleeping: others go first, and time passes if somebody lets it."""
    await Gate(f"sleep {seconds:g} s")


class Stepped(_AnyStore):  # type: ignore[misc]
    """A store as one actor sees it."""

    def __init__(self, store: Any, say: Callable[[str, Any], None]) -> None:
        self._store = store
        self._say = say
        self.begun: list[Any] = []  # transactions, which end with whoever began them

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found
        verb = self.__dict__[name] = self._stepped(name, found)  # found at once the next time
        return verb

    def _stepped(
        self, verb: str, carry_out: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            await Gate(f"before {verb}")
            try:
                answer = await carry_out(*args, **kwargs)
            except Exception as error:
                self._say(verb, error)
                raise
            if verb == "begin":
                self.begun.append(answer)
            self._say(verb, answer)
            await Gate(f"after {verb}")
            return answer

        return call


@dataclass(slots=True)
class Actor:
    name: str
    role: str
    store: Stepped
    coroutine: Coroutine[Any, Any, None]
    gate: Gate = field(default_factory=lambda: Gate("the beginning"))
    is_over: bool = False

    async def step(self) -> None:
        """Let it go on to the next place where it stands, or to its end."""
        gate = await _Step(self.coroutine)
        if gate is None:
            self.is_over = True
        else:
            self.gate = gate

    async def kill(self) -> None:
        """It does nothing any more, not even what it would do on its way out; what it began in the
        database is rolled back there, as the database does with a connection that is gone."""
        self.is_over = True
        for transaction in self.store.begun:
            await transaction.rollback()

    def bury(self) -> None:
        with suppress(RuntimeError):  # it wanted to wait for something on its way out
            self.coroutine.close()


async def step_to_end(coroutine: Coroutine[Any, Any, None]) -> None:
    """Let one go on all alone."""
    while await _Step(coroutine) is not None:
        pass


class _Step:
    """Awaits a coroutine until it stands at a gate; what it waits for otherwise is passed on to the
    event loop, if there is one."""

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Gate | None]:
        while True:
            try:
                waits_for = self._coroutine.send(None)
            except StopIteration:
                return None
            if isinstance(waits_for, Gate):
                return waits_for
            yield waits_for
