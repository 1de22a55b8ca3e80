"""P1: PGMQ's own client for Python, unmodified, with psycopg, asyncpg and SQLAlchemy."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pgmq
import pytest
from pgmq.notify_listener import SyncNotificationListener

from windrow.queue.store import Store

DIALECT = "pgmq"
CLIENTS = {
    "psycopg": pgmq.PGMQueue,
    "asyncpg": pgmq.AsyncPGMQueue,
    "sqlalchemy": pgmq.SQLAlchemyPGMQueue,
    "sqlalchemy_async": pgmq.SQLAlchemyAsyncPGMQueue,
}

pytestmark = pytest.mark.filterwarnings("ignore:list_queues:UserWarning")


class Client:
    """The methods of a client, those that block in a thread."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if inspect.iscoroutinefunction(method):
            return method

        async def call(*args: Any, **named: Any) -> Any:
            found = await asyncio.to_thread(method, *args, **named)
            return await found if inspect.isawaitable(found) else found

        return call


@pytest.fixture(params=CLIENTS)
async def client(
    request: pytest.FixtureRequest, dialect_url: str, store: Store
) -> AsyncIterator[Client]:
    made: Any = CLIENTS[request.param](conn_string=dialect_url, init_extension=False)
    if hasattr(made, "init"):
        await made.init()
    client = Client(made)
    await client.create_queue("mail")
    yield client
    if hasattr(made, "close"):
        await client.close()
    elif hasattr(made, "engine"):
        made.engine.dispose()
    else:
        made.pool.close()


async def test_a_message_is_sent_read_and_archived(client: Client, store: Store) -> None:
    sent = await client.send("mail", {"to": "ada"}, headers={"trace": "1"})
    message = await client.read("mail", vt=30)
    assert (message.msg_id, message.message, message.headers) == (
        sent,
        {"to": "ada"},
        {"trace": "1"},
    )
    assert message.read_ct == 1
    assert await client.read("mail", vt=30) is None
    assert await client.archive("mail", sent) is True
    assert await client.archive("mail", sent) is False


async def test_batches_keep_their_order(client: Client, store: Store) -> None:
    sent = await client.send_batch("mail", [{"n": 1}, {"n": 2}, {"n": 3}])
    assert sent == sorted(sent)
    read = await client.read_batch("mail", vt=30, batch_size=10)
    assert [message.message["n"] for message in read] == [1, 2, 3]
    assert sorted(await client.archive_batch("mail", sent[:2])) == sent[:2]
    assert await client.delete_batch("mail", sent) == sent[2:]


async def test_a_delayed_message_is_polled_for(client: Client, store: Store) -> None:
    sent = await client.send("mail", {"n": 1}, delay=1)
    assert await client.read("mail", vt=30) is None
    read = await client.read_with_poll(
        "mail", vt=30, qty=1, max_poll_seconds=20, poll_interval_ms=20
    )
    assert [message.msg_id for message in read] == [sent]


async def test_the_visibility_of_messages_is_set(client: Client, store: Store) -> None:
    first, second = await client.send_batch("mail", [{"n": 1}, {"n": 2}])
    await client.read_batch("mail", vt=600, batch_size=2)
    shown = await client.set_vt("mail", first, 0)
    assert shown.read_ct == 1
    assert (await client.read("mail", vt=600)).read_ct == 2
    later = datetime.now(UTC) + timedelta(hours=1)
    moved = await client.set_vt("mail", [first, second], later)
    assert [message.vt for message in moved] == [later, later]
    assert await client.read("mail", vt=600) is None


async def test_a_popped_message_is_gone(client: Client, store: Store) -> None:
    sent = await client.send("mail", {"n": 1})
    assert (await client.pop("mail")).msg_id == sent
    assert await client.pop("mail") is None
    assert (await client.metrics("mail")).total_messages == 1


async def test_metrics_count_what_is_there_and_what_was(client: Client, store: Store) -> None:
    await client.send_batch("mail", [{"n": 1}, {"n": 2}, {"n": 3}])
    await client.send("mail", {"n": 4}, delay=600)
    await client.read("mail", vt=600)
    await client.delete("mail", (await client.read("mail", vt=600)).msg_id)
    told = await client.metrics("mail")
    assert (told.queue_length, told.queue_visible_length, told.total_messages) == (3, 1, 4)
    assert [one.queue_name for one in await client.metrics_all()] == ["mail"]
    assert await client.purge("mail") == 3
    assert (await client.metrics("mail")).newest_msg_age_sec is None


async def test_a_read_may_be_conditional(client: Client, store: Store) -> None:
    await client.send_batch("mail", [{"kind": "skip"}, {"kind": "take"}])
    message = await client.read("mail", vt=30, conditional={"kind": "take"})
    assert message.message == {"kind": "take"}
    assert await client.read("mail", vt=30, conditional={"kind": "take"}) is None


async def test_groups_are_read_in_their_order(client: Client, store: Store) -> None:
    """The cases that were tried on PGMQ itself: a1, a2, a3, b1."""
    for name in ("a1", "a2", "a3", "b1"):
        await client.send("mail", {"name": name}, headers={"x-pgmq-group": name[0]})

    def names(messages: list[Any]) -> list[str]:
        return [message.message["name"] for message in messages]

    batch = await client.read_grouped("mail", vt=600, qty=2)
    assert names(batch) == ["a1", "a2"]
    assert names(await client.read_grouped("mail", vt=600, qty=5)) == ["b1"]
    ids = [message.msg_id for message in await client.set_vt("mail", list(range(1, 5)), 0)]
    turns = await client.read_grouped_rr_with_poll("mail", vt=600, qty=3, max_poll_seconds=1)
    assert names(turns) == ["a1", "b1", "a2"]
    await client.set_vt("mail", ids, 0)
    polled = await client.read_grouped_with_poll("mail", vt=600, qty=9, max_poll_seconds=1)
    assert names(polled) == ["a1", "a2", "a3", "b1"]


async def test_topics_reach_every_bound_queue_once(client: Client, store: Store) -> None:
    await client.create_queue("audit")
    await client.bind_topic("logs.#", "audit")
    await client.bind_topic("logs.*", "audit")
    await client.bind_topic("logs.error", "mail")
    routes = await client.test_routing("logs.error")
    assert sorted({route.queue_name for route in routes}) == ["audit", "mail"]
    assert await client.send_topic("logs.error", {"n": 1}) == 2
    assert await client.send_topic("logs.error", {"n": 2}, headers={"h": 1}) == 2
    assert await client.send_topic("logs", {"n": 3}) == 0
    sent = await client.send_batch_topic("logs.info.now", [{"n": 4}, {"n": 5}])
    assert {one.queue_name for one in sent} == {"audit"}
    assert await client.unbind_topic("logs.#", "audit") is True
    assert len(await client.list_topic_bindings()) == 2
    assert (await client.metrics("audit")).queue_length == 4


async def test_queues_are_made_listed_and_dropped(client: Client, store: Store) -> None:
    await client.create_queue("fast", unlogged=True)
    await client.create_partitioned_queue("large", "1 day", "7 days")
    listed = {one.queue_name: one for one in await client.list_queues()}
    assert set(listed) == {"mail", "fast", "large"}
    assert listed["fast"].is_unlogged
    assert listed["large"].is_partitioned
    assert await client.drop_queue("fast") is True
    assert await client.drop_queue("fast") is False
    await client.validate_queue_name("a" * 47)
    with pytest.raises(Exception, match="queue name is too long"):
        await client.validate_queue_name("a" * 48)


async def test_a_listener_hears_of_a_message(dialect_url: str, store: Store) -> None:
    client: Any = pgmq.PGMQueue(conn_string=dialect_url, init_extension=False)
    listener = SyncNotificationListener(client)
    heard = threading.Event()
    try:
        client.create_queue("mail")
        client.enable_notify("mail", 0)
        [throttle] = client.list_notify_throttles()
        assert throttle.queue_name == "mail"

        def listen() -> None:
            listener.listen("mail", lambda _: heard.set(), timeout=30)

        thread = threading.Thread(target=listen)
        thread.start()
        while not heard.is_set() and thread.is_alive():
            client.send("mail", {"n": 1})
            heard.wait(0.2)
        listener.stop()
        client.send("mail", {"n": 2})
        thread.join(30)
        assert heard.is_set()
    finally:
        client.pool.close()
