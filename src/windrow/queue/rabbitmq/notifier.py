"""Wake-ups through RabbitMQ: who commits publishes, who sleeps has a queue of its own.

The connection is made when it is first needed and made anew, with back-off, when it is lost. In
the meantime everybody polls; afterwards everybody looks once, for what was told to nobody.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from windrow.errors import ConfigError
from windrow.ids import new_id
from windrow.queue.bells import Bell, Wish
from windrow.queue.notifying import Notifier
from windrow.queue.rabbitmq.link import LOST, Link
from windrow.queue.rabbitmq.news import Letter, News, keys_of

logger = logging.getLogger(__name__)

EXCHANGE: Final = "windrow"
FIRST_BACKOFF: Final = 0.1
LONGEST_BACKOFF: Final = 30.0
# So long what nobody waits for any more stays bound: most sleepers come back.
LINGER_SECONDS: Final = 5.0
# So long a queue that is closed waits for its last words to go out.
CLOSE_SECONDS: Final = 2.0


def parse_address(url: str) -> tuple[str, str]:
    """The broker's address without what is ours in it, and the exchange."""
    try:
        parts = urlsplit(url)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number, or the host no address
        is_complete = False
    if not is_complete:
        raise ConfigError("not the address of a broker: use amqp://user:password@host:5672/vhost")
    options = dict(parse_qsl(parts.query))
    exchange = options.pop("exchange", EXCHANGE)
    return parts._replace(query=urlencode(options)).geturl(), exchange


class RabbitMq(Notifier):
    def __init__(self, url: str) -> None:
        super().__init__()
        self._address, self._exchange = parse_address(url)
        self._name = new_id()
        self._loop = asyncio.get_running_loop()
        self._news = News()
        self._has_news = asyncio.Event()
        self._is_told = asyncio.Event()
        self._is_told.set()
        self._wanted: Counter[str] = Counter()  # keys, by how many bells want them
        self._link: Link | None = None
        self._has_tried = asyncio.Event()
        self._backoff = FIRST_BACKOFF
        self._problem: str | None = None  # with the broker, if there is one
        self._task: asyncio.Task[None] | None = None
        self._is_closing = False
        self._binding: set[asyncio.Task[None]] = set()
        self._tidying: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def listen(self, wish: Wish) -> AsyncIterator[Bell]:
        keys = keys_of(wish)
        self._wanted.update(keys)
        try:
            await self._bind(keys)
            async with super().listen(wish) as bell:
                yield bell
        finally:
            self._wanted.subtract(keys)
            self._tidy_later()

    def tell(self, queues: Iterable[str], job_ids: Iterable[str]) -> None:
        told = tuple(queues), tuple(job_ids)
        super().tell(*told)
        if any(told):
            # A closed loop: whoever would publish is gone, and the others poll.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._note, *told)

    async def check(self) -> str | None:
        self._start()
        await self._has_tried.wait()
        return self._problem

    async def close(self) -> None:
        await asyncio.sleep(0)  # for what was told just now, and is yet to be noted
        if self._link is not None or not self._has_tried.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._is_told.wait()
        if self._tidying is not None:
            self._tidying.cancel()
        self._is_closing = True
        tasks = [*self._binding, *([self._task] if self._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _note(self, queues: tuple[str, ...], job_ids: tuple[str, ...]) -> None:
        self._news.add(queues, job_ids)
        self._is_told.clear()
        self._has_news.set()
        self._start()

    def _start(self) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._run(), name="windrow-rabbitmq")

    async def _bind(self, keys: Iterable[str]) -> None:
        """Have these keys bound before anybody looks; without a broker there is nothing to do."""
        self._start()
        await self._has_tried.wait()
        if (link := self._link) is None:
            return
        # A call to the broker that is given up half-way costs the whole channel, so who is
        # cancelled here leaves the call to end by itself.
        task = self._loop.create_task(self._bind_on(link, frozenset(keys)))
        self._binding.add(task)
        task.add_done_callback(self._binding.discard)
        await asyncio.shield(task)

    async def _bind_on(self, link: Link, keys: frozenset[str]) -> None:
        try:
            await link.bind(keys)
        except LOST:
            link.drop()  # the next one binds all that is wanted

    async def _run(self) -> None:
        while True:
            try:
                async with Link.open(self._address, self._exchange, self._hear) as link:
                    await self._serve(link)
                    raise ConnectionError("the connection was lost")
            except LOST as error:
                why = str(error) or type(error).__name__
                if self._problem is None:  # said once, however often it is tried
                    logger.warning("no word from RabbitMQ, polling instead: %s", why)
                self._problem = f"RabbitMQ cannot be reached: {why}"
            finally:
                self._link = None
                self._has_tried.set()
            # Python 3.11 may lose a cancellation that meets the answer to a call with a time-out,
            # as connecting is: then this is what ends the loop.
            if self._is_closing:
                return
            wait = random.uniform(self._backoff / 2, self._backoff)  # noqa: S311 - spreads waits
            await asyncio.sleep(wait)
            self._backoff = min(LONGEST_BACKOFF, self._backoff * 2)

    async def _serve(self, link: Link) -> None:
        """Listen and tell until the connection is lost."""
        link.on_lost(self._has_news.set)
        self._link = link  # who comes from here on binds by itself
        await link.bind(frozenset(+self._wanted))
        self._problem, self._backoff = None, FIRST_BACKOFF
        self._has_tried.set()
        self.belfry.ring_all()  # for what was told while nobody listened
        while link.is_open:
            self._has_news.clear()
            for letter in self._news.take(self._name):
                await link.publish(letter)
            if not self._news:
                self._is_told.set()
            await self._has_news.wait()

    def _hear(self, body: bytes) -> None:
        try:
            letter = msgspec.json.decode(body, type=Letter)
        except msgspec.MsgspecError:
            logger.warning("not understood, on the exchange %s: %r", self._exchange, body[:100])
            return
        if letter.sender != self._name:  # our own bells have rung
            self.belfry.ring(letter.queues, letter.job_ids)

    def _tidy_later(self) -> None:
        if self._tidying is None:
            self._tidying = self._loop.call_later(LINGER_SECONDS, self._tidy)

    def _tidy(self) -> None:
        """Unbind what nobody has wanted for a while."""
        self._tidying = None
        self._wanted = +self._wanted
        if (link := self._link) is not None and link.bound - set(self._wanted):
            task = self._loop.create_task(self._unbind_on(link))
            self._binding.add(task)
            task.add_done_callback(self._binding.discard)

    async def _unbind_on(self, link: Link) -> None:
        try:
            await link.keep_only(lambda: frozenset(+self._wanted))
        except LOST:
            link.drop()
