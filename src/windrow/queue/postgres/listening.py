"""Wake-ups on Postgres: one connection that listens, and a note in the database of who sleeps.

Who sleeps is written down and committed before it looks, so that those who commit know whom to
tell, and tell nobody when nobody sleeps. The triggers that do it are in schema.sql, under wake-ups.

LISTEN belongs to a session and a pooler gives sessions away, so the connection must lead past it.
Without one, or while it is lost, everybody polls: bells stay silent and sleeps time out.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

import asyncpg

from windrow.db.postgres.connections import Connections, parse_url
from windrow.db.postgres.failures import wrapped_errors
from windrow.errors import StoreUnavailable, WindrowError
from windrow.ids import is_id, new_id
from windrow.queue.bells import Belfry, Bell, Wish, any_event, end_of, work_in
from windrow.queue.postgres.rows import sql
from windrow.queue.postgres.verbs import Verbs

logger = logging.getLogger(__name__)

# The channels, whose full names are secret: windrow.channel().
WORK: Final = "work"
END: Final = "end"
EVENT: Final = "event"
TEST: Final = "windrow_test"
NAME: Final = "windrow-listener"  # in pg_stat_activity

CONNECT_SECONDS: Final = 5.0
TEST_SECONDS: Final = 5.0  # for a notification to ourselves to arrive
FIRST_BACKOFF: Final = 0.1
LONGEST_BACKOFF: Final = 30.0
# A sleeper that nobody has heard of for so long is taken for dead, and nothing is sent for it.
NOTE_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 10.0
# A commit under way has come through by then, or is found by polling.
COMMIT_SECONDS: Final = 0.1

NO_ADDRESS: Final = (
    "LISTEN does not work through a pooler: set WINDROW_DATABASE_DIRECT_URL to the server itself"
)
NOTHING_HEARD: Final = (
    "LISTEN works but nothing is heard: the database URL leads through a pooler in transaction "
    "mode, or the direct URL to another database. Set WINDROW_DATABASE_DIRECT_URL to the server "
    "itself"
)

Note = Callable[[float], Awaitable[None]]


def listening_address(url: str, direct_url: str | None) -> str | None:
    """Where to listen: past the pooler if there is one; None if no way past it was given."""
    if direct_url:
        return parse_url(direct_url)[0]
    address, options = parse_url(url)
    return None if options.is_behind_pooler else address


class Listener:
    """The connection that listens, made when it is first needed and made anew when it is lost."""

    def __init__(self, database: Connections, address: str | None) -> None:
        self.belfry = Belfry()
        self.connections = 0  # that were made and heard something
        self.problem: str | None = None if address else NO_ADDRESS
        self._database = database
        self._address = address
        self._task: asyncio.Task[None] | None = None
        self._has_tried = asyncio.Event()

    @property
    def is_listening(self) -> bool:
        return self.problem is None and self.connections > 0

    async def start(self) -> bool:
        """Begin to listen; whether we do."""
        if self._address is None:
            if not self._has_tried.is_set():
                self._has_tried.set()
                logger.info("new work is found by polling: %s", self.problem)
            return False
        if self._task is None:
            self._task = asyncio.create_task(self._run(self._address), name="windrow-listener")
        await self._has_tried.wait()
        return self.is_listening

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, address: str) -> None:
        backoff = FIRST_BACKOFF
        while True:
            try:
                with wrapped_errors():
                    if not await self._listen(address):
                        return
                backoff = FIRST_BACKOFF
                self.problem = "the connection that listens was lost and is made anew"
            except (WindrowError, ValueError) as error:
                self.problem = f"the connection that listens cannot be made: {error}"
                logger.warning("not listening for new work, polling instead: %s", error)
            finally:
                self._has_tried.set()
            wait = random.uniform(backoff / 2, backoff)  # noqa: S311 - spreads waits
            await asyncio.sleep(wait)
            backoff = min(LONGEST_BACKOFF, backoff * 2)

    async def _listen(self, address: str) -> bool:
        """Listen until the connection is lost; false at once if nothing can be heard on it."""
        connection: Any = await asyncpg.connect(
            address, timeout=CONNECT_SECONDS, server_settings={"application_name": NAME}
        )
        try:
            is_lost = asyncio.Event()
            connection.add_termination_listener(lambda *_: is_lost.set())
            hearers = {WORK: self._hear_work, END: self._hear_end, EVENT: self._hear_event}
            for what, hear in hearers.items():
                [channel] = await self._database.fetch(sql("find_channel"), {"what": what})
                await connection.add_listener(channel["name"], hear)
            if not await self._test(connection):
                self.problem = NOTHING_HEARD
                logger.warning("new work is found by polling: %s", self.problem)
                return False
            self.problem = None
            self.connections += 1
            self._has_tried.set()
            self.belfry.ring_all()  # for what was sent while nobody listened
            await is_lost.wait()
            return True
        finally:
            connection.terminate()

    async def _test(self, connection: Any) -> bool:
        """Send something to ourselves, through a connection like all those that send."""
        token = new_id()
        heard = asyncio.Event()

        def hear(_connection: Any, _pid: int, _channel: str, payload: str) -> None:
            if payload == token:
                heard.set()

        await connection.add_listener(TEST, hear)
        await self._database.fetch(sql("send_notice"), {"channel": TEST, "payload": token})
        try:
            async with asyncio.timeout(TEST_SECONDS):
                await heard.wait()
        except TimeoutError:
            return False
        await connection.remove_listener(TEST, hear)
        return True

    def _hear_work(self, _connection: Any, _pid: int, _channel: str, queue: str) -> None:
        if queue:
            self.belfry.ring([queue])
        else:
            self.belfry.ring_workers()

    def _hear_end(self, _connection: Any, _pid: int, _channel: str, job_id: str) -> None:
        self.belfry.ring(job_ids=[job_id])

    def _hear_event(self, _connection: Any, _pid: int, _channel: str, _payload: str) -> None:
        self.belfry.ring_readers()


class NotedBell(Bell):
    """A bell of somebody whose sleep is written down, anew when it lasts longer and when the
    listening connection was lost: a server that crashed has forgotten who slept."""

    def __init__(self, listener: Listener, note: Note) -> None:
        super().__init__()
        self._listener = listener
        self._note = note
        self._noted_until = 0.0
        self._noted_on = 0  # which connection of the listener

    @property
    def is_noted(self) -> bool:
        return self._noted_on > 0

    async def note(self, seconds: float = NOTE_SECONDS) -> bool:
        """Write it down. False in an outage, of which the sleeper's next look will tell."""
        connection = self._listener.connections
        try:
            await self._note(seconds)
        except StoreUnavailable:
            return False
        self._noted_until = time.monotonic() + seconds
        self._noted_on = connection
        return True

    async def wait(self, timeout: float) -> bool:
        now = time.monotonic()
        was_noted = self._noted_until > now and self._noted_on == self._listener.connections
        lasts = self._noted_until >= now + timeout + GRACE_SECONDS
        if self._listener.is_listening and not (was_noted and lasts):
            is_noted = await self.note(max(NOTE_SECONDS, timeout + 2 * GRACE_SECONDS))
            if is_noted and not was_noted:
                self.ring()  # nobody knew of this sleeper for a while: look
        return await super().wait(timeout)


class Listening(Verbs):
    _listener: Listener

    def listen_for_work(self, queues: Sequence[str] | None) -> AbstractAsyncContextManager[Bell]:
        given = None if queues is None else list(queues)
        return self._listen(work_in(queues), "add_sleeper", queues=given)

    def listen_for_ends(self, job_ids: Sequence[str]) -> AbstractAsyncContextManager[Bell]:
        known = [job_id.lower() for job_id in job_ids if is_id(job_id)]
        return self._listen(end_of(known), "add_waiters", job_ids=known)

    async def check_wake_ups(self) -> str | None:
        if self._notifier is not None:
            return await self._notifier.check()
        await self._listener.start()
        return self._listener.problem

    def _listen(
        self, wish: Wish, statement: str, **values: Any
    ) -> AbstractAsyncContextManager[Bell]:
        if self._notifier is not None:
            return self._notifier.listen(wish)
        return self._listen_here(wish, statement, values)

    def listen_for_events(self) -> AbstractAsyncContextManager[Bell]:
        return self._listen(any_event(), "add_reader")

    @asynccontextmanager
    async def _listen_here(
        self, wish: Wish, statement: str, values: dict[str, Any]
    ) -> AsyncIterator[Bell]:
        is_listening = await self._listener.start()
        sleeper = new_id()

        async def note(seconds: float) -> None:
            await self._run(statement, id=sleeper, seconds=seconds, **values)
            await self._pass_commits(bell)

        bell = NotedBell(self._listener, note)
        self._listener.belfry.hang(bell, wish)
        try:
            if is_listening:
                await bell.note()
            yield bell
        finally:
            self._listener.belfry.take_down(bell)
            if bell.is_noted:
                # A note that stays behind is harmless: it ends by itself.
                with suppress(StoreUnavailable):
                    await self._run("remove_sleeper", id=sleeper)

    async def _pass_commits(self, bell: Bell) -> None:
        """Those who commit just now may not have seen our note: look again when they have."""
        [found] = await self._run("pass_commits")
        if not found["is_quiet"]:
            asyncio.get_running_loop().call_later(COMMIT_SECONDS, bell.ring)
