"""`windrow top --server`: the queue at a glance through a live server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.server import Server
from tests.processes import ROOT, run
from windrow import Queue
from windrow.errors import ConfigError, StoreUnavailable
from windrow.ids import new_id
from windrow.services.distant import open_server
from windrow.services.overview import Watch

PATIENCE = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    keys = "root reader=*:read acme=acme:read"
    folder = tmp_path_factory.mktemp("served")
    with Server(folder, "--no-worker", WINDROW_API_KEYS=keys) as server:
        yield server


def top(*arguments: str) -> Any:
    ran = run("top", "--json", *arguments, cwd=ROOT, environment=os.environ, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


async def test_n13_a_server_shows_what_its_database_does(server: Server) -> None:
    async with Queue.open(server.database) as queue:
        await queue.set_limit("tenant:acme", active=5)
        await queue.set_limit("acme", active=5)
        await queue.enqueue("mail", queue="mail", tenant="acme", limits=["tenant:acme"])
        await queue.enqueue("mail", queue="mail", tenant="zeta", limits=["acme"])
        await queue.claim(["mail"], worker="host:1", limit=2)
        await queue.enqueue("fetch", queue="web", tenant="zeta")

    here = await asyncio.to_thread(top, "--database", server.database)
    there = await asyncio.to_thread(top, "--server", server.url, "--api-key", "root")

    assert there.pop("at") >= here.pop("at")
    assert there == here
    assert {one["name"]: one["counts"] for one in there["queues"]} == {
        "mail": {"active": 2},
        "web": {"ready": 1},
    }
    async with open_server(server.url, "acme") as seen_by_tenant:
        seen = await seen_by_tenant.glance()
    assert [(info.name, dict(info.counts)) for info in seen.queues] == [("mail", {"active": 1})]
    assert [job.worker for job in seen.running] == ["host:1"]
    assert [limit.key for limit in seen.limits] == ["tenant:acme"]
    assert not seen.sees_all


async def test_n13_what_happens_is_seen_as_soon_as_it_is_told(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    loud, quiet = new_id(), new_id()
    monkeypatch.setattr("windrow.services.distant.OLD_SECONDS", 2 * PATIENCE)
    async with (
        asyncio.timeout(PATIENCE),
        Queue.open(server.database) as queue,
        open_server(server.url, "root") as place,
    ):
        while not place.is_following:
            await queue.enqueue("news", queue=loud)
            await asyncio.sleep(0.02)
        watch = Watch(place)
        await watch.toggle(loud)
        while not any(one.is_paused for one in (await watch.look()).queues if one.name == loud):
            await asyncio.sleep(0.02)
        await queue.enqueue("late", queue=quiet)
        while quiet not in {info.name for info in (await watch.look()).queues}:
            await asyncio.sleep(0.02)
        # When nothing has happened since it is not asked for again.
        while await place.glance() is not await place.glance():
            await asyncio.sleep(0.02)


async def test_what_is_wrong_with_a_server_is_said(server: Server) -> None:
    for url, key, expected, said in (
        (server.url, "wrong", ConfigError, "does not take the key"),
        ("http://127.0.0.1:1", "", StoreUnavailable, "cannot be reached"),
        (f"{server.url}/docs", "root", StoreUnavailable, "answers 404"),
    ):
        async with open_server(url, key) as place:
            with pytest.raises(expected, match=said):
                await place.glance()
    async with open_server(server.url, "reader") as place:
        with pytest.raises(ConfigError, match="admin"):
            await place.pause("loud")
