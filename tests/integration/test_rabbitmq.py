"""N8: a RabbitMQ notifier with a real broker: what is sent, and what happens when it is away."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aio_pika
import msgspec
import pytest
from aio_pika.exceptions import AMQPError, ChannelNotFoundEntity

from tests.builders import add, add_and_claim, add_many, claim, complete
from tests.conftest import OpenAnother
from tests.pgbouncer import through
from tests.rabbitmq import MISSING, Broker, find_rabbitmq
from windrow import Job, Queue, Worker, handler
from windrow.errors import ConfigError, MissingExtra
from windrow.queue.bells import work_in
from windrow.queue.notifying import open_notifier
from windrow.queue.opening import open_store
from windrow.queue.rabbitmq import notifier as rabbitmq
from windrow.queue.rabbitmq.link import Link
from windrow.queue.rabbitmq.news import ANY_END, ANY_WORK, Letter
from windrow.queue.rabbitmq.notifier import RabbitMq
from windrow.queue.store import Store
from windrow.worker import claimer

LONG = 20.0  # seconds; only a failing test waits for it
SHORT = 0.05
ROOT = Path(__file__).parents[2]


@pytest.fixture
def notifier(rabbitmq_notifier: str) -> str:
    return rabbitmq_notifier


class Overheard:
    """All that is sent through the exchange."""

    def __init__(self, channel: Any, target: Any) -> None:
        self._channel = channel
        self._target = target
        self._letters: asyncio.Queue[Letter] = asyncio.Queue()

    @classmethod
    async def begin(cls, connection: Any, exchange: str) -> Overheard:
        channel = await connection.channel()
        target = await channel.declare_exchange(exchange, "direct", durable=True)
        overheard = cls(channel, target)
        queue = await channel.declare_queue(exclusive=True)
        for key in (ANY_WORK, ANY_END, "test"):
            await queue.bind(target, key)
        await queue.consume(overheard._hear, no_ack=True)
        return overheard

    async def _hear(self, message: Any) -> None:
        self._letters.put_nowait(msgspec.json.decode(message.body, type=Letter))

    async def publish(self, body: bytes, key: str) -> None:
        await self._target.publish(aio_pika.Message(body), key)

    async def next(self) -> Letter:
        async with asyncio.timeout(LONG):
            return await self._letters.get()


@pytest.fixture
async def overheard(rabbitmq_url: str, exchange: str) -> AsyncIterator[Overheard]:
    async with await aio_pika.connect(rabbitmq_url) as connection:
        yield await Overheard.begin(connection, exchange)


class Wire:
    """The way to the broker, which can be cut."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()
        self.port = 0

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server is not None
        self._server.close()
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)
        await self._server.wait_closed()

    async def _pass_on(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, out = await asyncio.open_connection(self._target.hostname, self._target.port)
        for reader, writer in ((near, out), (far, back)):
            pipe = asyncio.create_task(_pipe(reader, writer))
            self._pipes.add(pipe)
            pipe.add_done_callback(self._pipes.discard)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


@pytest.fixture
async def wire(rabbitmq_url: str) -> AsyncIterator[Wire]:
    wire = Wire(rabbitmq_url)
    await wire.mend()
    yield wire
    await wire.cut()


@pytest.fixture
def over_wire(wire: Wire, exchange: str) -> str:
    return f"amqp://guest:guest@127.0.0.1:{wire.port}/?exchange={exchange}"


async def test_a_thousand_jobs_are_told_in_one_message(store: Store, overheard: Overheard) -> None:
    await add_many(store, 1000)
    letter = await overheard.next()
    assert (letter.queues, letter.job_ids) == (("default",), ())
    job, *_ = await claim(store)
    await complete(store, job)
    assert (await overheard.next()).job_ids == (job.id,), "nothing came in between"


async def test_what_is_told_at_once_goes_in_one_message(store: Store, overheard: Overheard) -> None:
    await add_many(store, 3)
    assert (await overheard.next()).queues == ("default",)
    await asyncio.gather(*(complete(store, job) for job in await claim(store, 3)))
    heard: set[str] = set()
    while len(heard) < 3:
        heard.update((await overheard.next()).job_ids)


async def test_a_process_that_enqueues_and_ends_has_told(
    store_url: str, notifier: str, overheard: Overheard
) -> None:
    async with Queue.open(store_url, notifier=notifier) as queue:
        await queue.enqueue("work", queue="mine")
    assert (await overheard.next()).queues == ("mine",)


async def test_a_listener_has_a_queue_of_its_own_that_goes_with_it(
    open_another: OpenAnother, store: Store, rabbitmq_url: str
) -> None:
    async with store.listen_for_work(None):
        link = _rabbitmq(store)._link
        assert link is not None
        assert link._queue is not None
        name = link._queue.name
        async with await aio_pika.connect(rabbitmq_url) as connection:
            channel = await connection.channel()
            with pytest.raises(AMQPError, match="RESOURCE_LOCKED"):
                await channel.declare_queue(name, passive=True)
    await _rabbitmq(store).close()
    async with await aio_pika.connect(rabbitmq_url) as connection:
        channel = await connection.channel()
        with pytest.raises(ChannelNotFoundEntity):
            await channel.declare_queue(name, passive=True)


async def test_a_listener_is_bound_to_what_is_waited_for_and_not_for_long_after(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rabbitmq, "LINGER_SECONDS", 0.01)
    job_id = await add(store)
    async with store.listen_for_work(["a", "b"]), store.listen_for_ends([job_id]):
        link = _rabbitmq(store)._link
        assert link is not None
        assert link.bound == {"work.a", "work.b", f"end.{job_id}"}
    async with asyncio.timeout(LONG):
        while link.bound:
            await asyncio.sleep(0.01)
    async with store.listen_for_work(["a"]):
        assert link.bound == {"work.a"}


async def test_who_waits_for_many_jobs_is_woken_by_each(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    ids = await add_many(store, 100)
    async with store.listen_for_ends(ids) as bell:
        for job in await claim(other, 3):
            await complete(other, job)
            assert await bell.wait(LONG)


async def test_who_reads_events_is_woken_by_new_work_and_by_ends(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    async with store.listen_for_events() as bell:
        job = await add_and_claim(other)
        assert await bell.wait(LONG)
        await complete(other, job)
        assert await bell.wait(LONG)


async def test_a_broker_that_is_away_fails_nothing_and_is_complained_of_once(
    store_url: str, caplog: pytest.LogCaptureFixture, unused_tcp_port: int
) -> None:
    """Polling brings what nobody was told of."""
    nowhere = f"amqp://guest:secret@127.0.0.1:{unused_tcp_port}/"
    async with (
        Queue.open(store_url, notifier=nowhere) as queue,
        Queue.open(store_url, notifier=nowhere) as other,
    ):
        with caplog.at_level(logging.WARNING):
            claiming = asyncio.create_task(queue.claim(wait=LONG))
            made = await other.enqueue("work")
            lease = await claiming
            assert [job.id for job in lease.jobs] == [made.id]
            waiting = asyncio.create_task(other.wait(made.id, timeout=LONG))
            await lease.complete(lease.jobs[0], 7)
            assert (await waiting).result == 7
            await asyncio.sleep(0.5)  # several attempts to connect
            assert "cannot be reached" in str(await queue.store.check_wake_ups())
    told = [record.getMessage() for record in caplog.records if record.name == rabbitmq.__name__]
    assert len(told) == 2, "each queue once"
    assert all("polling instead" in message for message in told)
    assert "secret" not in caplog.text


async def test_a_lost_connection_is_made_anew_and_everybody_looks(
    over_wire: str, notifier: str, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    near, other = RabbitMq(over_wire), RabbitMq(notifier)
    async with near.listen(work_in(["default"])) as bell:
        with caplog.at_level(logging.WARNING):
            await wire.cut()
            other.tell(["default"], [])
            assert not await bell.wait(SHORT), "nobody could tell"
            await wire.mend()
            assert await bell.wait(LONG), "woken by the new connection"
        other.tell(["default"], [])
        assert await bell.wait(LONG), "woken by word"
    assert caplog.text.count("polling instead") == 1
    await near.close()
    await other.close()


async def test_a_connection_lost_while_word_goes_out_is_made_anew(
    notifier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, other = RabbitMq(notifier), RabbitMq(notifier)
    publish = Link.publish

    async def publish_and_lose(link: Link, letter: Letter) -> None:
        await publish(link, letter)
        monkeypatch.undo()
        link.drop()

    async with near.listen(work_in(["default"])) as bell:
        monkeypatch.setattr(Link, "publish", publish_and_lose)
        near.tell(["elsewhere"], [])
        assert await bell.wait(LONG), "woken by the new connection"
        other.tell(["default"], [])
        assert await bell.wait(LONG), "woken by word"
    await near.close()
    await other.close()


async def test_who_comes_while_the_connection_is_made_anew_hears_as_well(
    over_wire: str, notifier: str, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, other = RabbitMq(over_wire), RabbitMq(notifier)
    is_binding, may_bind = asyncio.Event(), asyncio.Event()
    bind = Link.bind

    async def bind_late(link: Link, keys: frozenset[str]) -> None:
        if "work.late" not in keys:
            is_binding.set()
            await may_bind.wait()
        await bind(link, keys)

    async with near.listen(work_in(["early"])) as early:
        monkeypatch.setattr(Link, "bind", bind_late)
        await wire.cut()
        await wire.mend()
        async with asyncio.timeout(LONG):
            await is_binding.wait()
        async with near.listen(work_in(["late"])) as late:
            may_bind.set()
            assert await early.wait(LONG), "woken by the new connection"
            await late.wait(SHORT)
            other.tell(["late"], [])
            assert await late.wait(LONG), "woken by word"
    await near.close()
    await other.close()


async def test_what_was_told_while_the_broker_was_away_is_told_when_it_is_back(
    over_wire: str, wire: Wire, overheard: Overheard
) -> None:
    near = RabbitMq(over_wire)
    near.tell(["default"], [])
    assert (await overheard.next()).queues == ("default",)
    await wire.cut()
    async with asyncio.timeout(LONG):
        while near._link is not None:
            await asyncio.sleep(0.01)
    near.tell(["later"], [])
    await wire.mend()
    assert (await overheard.next()).queues == ("later",)
    await near.close()


async def test_a_broker_that_lets_nobody_in_says_why(
    rabbitmq_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = RabbitMq(rabbitmq_url.replace("guest:guest", "guest:secret"))
    problem = await notifier.check()
    await notifier.close()
    assert "ACCESS_REFUSED" in str(problem)
    assert "polling instead" in caplog.text
    assert "secret" not in caplog.text + str(problem)


async def test_who_sleeps_in_the_same_process_is_woken_even_without_a_broker(
    unused_tcp_port: int,
) -> None:
    alone = RabbitMq(f"amqp://127.0.0.1:{unused_tcp_port}/")
    async with alone.listen(work_in(["default"])) as bell:
        alone.tell(["default"], [])
        assert await bell.wait(LONG)
    await alone.close()


async def test_a_crash_between_commit_and_message_loses_the_wake_up_alone(
    store_url: str, notifier: str
) -> None:
    code = f"""
import asyncio, os, signal
from windrow import Queue
from windrow.queue.rabbitmq.notifier import RabbitMq

def die(self, queues, job_ids):
    if set(queues):
        os.kill(os.getpid(), signal.SIGKILL)

RabbitMq.tell = die

async def main():
    async with Queue.open({store_url!r}, notifier={notifier!r}) as queue:
        await queue.enqueue("work", queue="crash")

asyncio.run(main())
"""
    async with Queue.open(store_url, notifier=notifier) as queue:
        claiming = asyncio.create_task(queue.claim("crash", wait=2 * LONG))
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        assert await process.wait() == -9
        assert [job.kind for job in (await claiming).jobs] == ["work"]


async def test_a_worker_is_woken_by_another_process_and_wakes_who_waits_for_the_job(
    store_url: str, notifier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claimer, "POLL_SECONDS", 10 * LONG)  # so that nothing is found by looking
    code = f"""
import asyncio
from windrow import Queue
from windrow.queue import waiting

waiting.FIRST_WAIT = {10 * LONG}

async def main():
    async with Queue.open({store_url!r}, notifier={notifier!r}) as queue:
        job = await queue.enqueue("double", 21)
        print((await queue.wait(job.id, timeout={LONG})).result)

asyncio.run(main())
"""

    @handler("double")
    async def double(job: Job, payload: int) -> int:
        return 2 * payload

    async with Queue.open(store_url, notifier=notifier) as queue:
        worker = Worker(queue, [double])
        working = asyncio.create_task(worker.run())
        async with asyncio.timeout(LONG):
            while not ((link := _rabbitmq(queue.store)._link) and link.bound):
                await asyncio.sleep(0.01)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        assert printed == b"42\n"
        worker.stop()
        await working


async def test_what_is_not_ours_on_the_exchange_is_reported_and_passed_over(
    store: Store,
    open_another: OpenAnother,
    overheard: Overheard,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with store.listen_for_work(["default"]) as bell:
        with caplog.at_level(logging.WARNING):
            await overheard.publish(b"not a letter", "work.default")
            await add(await open_another())
            assert await bell.wait(LONG)
    assert "not understood" in caplog.text


async def test_a_name_longer_than_a_routing_key_wakes(
    store: Store, open_another: OpenAnother
) -> None:
    name = "日" * 255
    async with store.listen_for_work([name]) as bell:
        await add(await open_another(), queue=name)
        assert await bell.wait(LONG)


async def test_workers_behind_a_pooler_are_woken_without_a_way_past_it(
    pgbouncer_url: str, postgres_template: str, make_database: Any, notifier: str
) -> None:
    url = through(pgbouncer_url, make_database(postgres_template))
    store = await open_store(url, notifier=notifier)
    other = await open_store(url, notifier=notifier)
    async with store.listen_for_work(["default"]) as bell:
        job = await add_and_claim(other)
        assert await bell.wait(LONG)
    async with store.listen_for_ends([job.id]) as bell:
        await complete(other, job)
        assert await bell.wait(LONG)
    await store.close()
    await other.close()


def _rabbitmq(store: Any) -> RabbitMq:
    assert isinstance(store._notifier, RabbitMq)
    return store._notifier


@pytest.mark.parametrize(
    ("name", "scheme", "complaint"),
    [
        ("redis://localhost", "postgresql", "no notifier 'redis:'"),
        ("postgres", "sqlite", "SQLite has no NOTIFY"),
        ("amqp://", "postgresql", "not the address of a broker"),
        ("amqp://host:many/", "sqlite", "not the address of a broker"),
        ("amqp://[::1/", "sqlite", "not the address of a broker"),
    ],
)
async def test_a_notifier_that_cannot_be_is_explained(
    name: str, scheme: str, complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        open_notifier(name, scheme)


def test_a_broker_stopped_while_it_starts_leaves_nothing_behind() -> None:
    broker = Broker(find_rabbitmq() or pytest.skip(MISSING))
    broker.launch()
    processes, folder = list(broker._processes), broker.folder
    assert folder is not None
    while not (folder / "log").exists():  # it is on its way
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    broker.stop()
    assert not folder.exists()
    assert all(process.poll() is not None for process in processes)


def test_tests_that_find_no_broker_are_skipped_and_say_so() -> None:
    code = """
import sys, pytest
from tests import rabbitmq
rabbitmq.find_rabbitmq = lambda: None
chosen = ["-k", "test_a_lost_connection_is_made_anew_and_everybody_looks"]
sys.exit(pytest.main(["tests/integration/test_rabbitmq.py", *chosen, "-p", "no:cacheprovider"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout
    assert "1 tests SKIPPED: Skipped: rabbitmq-server is not installed" in done.stdout


async def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("windrow.queue.rabbitmq")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "aio_pika", None)
    with pytest.raises(MissingExtra, match=r"windrow\[rabbitmq\]"):
        open_notifier("amqp://localhost/", "postgresql")
