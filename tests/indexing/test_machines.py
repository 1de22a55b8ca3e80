"""Machines that share a database and have no index that they share: one folder holds it, and the
others say so. A machine here is a data folder with a host name."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.indexing.helpers import Library
from tests.processes import Command
from windrow.errors import ConfigError, IndexElsewhere, IndexLost
from windrow.ids import new_id
from windrow.queue.queue import Queue
from windrow.queue.records import WorkerRow
from windrow.search.request import SearchRequest
from windrow.services import index_folder as index_folder_service
from windrow.services import indexing
from windrow.services.attending import TAKEN
from windrow.services.health import diagnose
from windrow.services.index_folder import find_elsewhere, move_here, show_place
from windrow.services.indexing import index_folder, owning
from windrow.services.owning import open_index_handlers
from windrow.services.searching import search
from windrow.services.working import open_own_handlers, run_worker
from windrow.settings import Settings
from windrow.web.site import create_site
from windrow.worker.worker import Worker


@dataclass
class Machine:
    queue: Queue
    settings: Settings
    host: str
    monkeypatch: pytest.MonkeyPatch
    machine_id: str = ""  # else that of this machine

    def enter(self) -> None:
        self.monkeypatch.setattr(socket, "gethostname", lambda: self.host)
        if self.machine_id:
            id_file = Path(self.settings.data_dir).with_name(f"machine-id-{self.machine_id}")
            id_file.write_text(f"{self.machine_id}\n")
            self.monkeypatch.setattr(index_folder_service, "MACHINE_ID", id_file)

    async def index(self) -> None:
        self.enter()
        async with open_index_handlers(self.settings, self.queue) as handlers:
            await Worker(self.queue, handlers, maintain=False).run(until_idle=True)

    async def found(self, query: str) -> list[str]:
        self.enter()
        answer = await search(self.settings, SearchRequest(query=query))
        return [one.uri for one in answer.results]

    async def errors(self) -> list[str]:
        self.enter()
        found = await diagnose(self.settings)
        return [one.what for one in found if one.level == "error"]


@dataclass
class Office:
    queue: Queue
    url: str
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def machine(self, host: str, data: str | None = None) -> Machine:
        settings = Settings(database_url=self.url, data_dir=str(self.folder / (data or host)))
        return Machine(self.queue, settings, host, self.monkeypatch)

    async def put(self, uri: str, text: str) -> None:
        await Library(self.queue, None).put(uri, text)  # type: ignore[arg-type]


@pytest.fixture
async def office(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Office]:
    async def has_no_vector(settings: Settings) -> bool:
        return False

    monkeypatch.setattr(indexing, "_has_vector", has_no_vector)
    async with Queue.open(store_url) as queue:
        yield Office(queue, store_url, tmp_path, monkeypatch)


@pytest.mark.only_on("postgres")
async def test_second_machine_is_told_where_the_index_is_and_what_helps(office: Office) -> None:
    first, second = office.machine("alpha"), office.machine("beta")
    await office.put("hay.md", "A row of cut hay.")
    await first.index()
    assert await first.found("hay") == ["hay.md"]

    with pytest.raises(IndexElsewhere, match="on alpha") as told:
        await second.found("hay")
    for way_out in ("pgvector", "WINDROW_QDRANT_URL", "that machine alone"):
        assert way_out in str(told.value)
    with pytest.raises(IndexElsewhere):
        await second.index()
    with pytest.raises(IndexElsewhere):
        await run_worker(second.settings, [], until_idle=True)
    assert "the index is in a folder of another machine" in await second.errors()
    assert "the index is in a folder of another machine" not in await first.errors()
    assert await first.found("hay") == ["hay.md"]


@pytest.mark.only_on("postgres")
async def test_searches_over_http_and_in_the_dashboard_name_the_ways_out(office: Office) -> None:
    await office.machine("alpha").index()
    second = office.machine("beta")
    second.enter()
    app = create_site(office.queue, second.settings)
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        answer = await client.post("/v2/search", json={"query": "hay"})
        assert (answer.status_code, answer.json()["code"]) == (503, "INDEX_UNAVAILABLE")
        assert "WINDROW_QDRANT_URL" in answer.json()["error"]
        page = await client.get("/ui/search", params={"q": "hay"})
        assert "WINDROW_QDRANT_URL" in page.text


@pytest.mark.only_on("postgres")
async def test_second_machine_does_other_work_without_the_index(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    await office.machine("alpha").index()
    second = office.machine("beta")
    second.enter()
    async with open_own_handlers(second.settings, office.queue) as handlers:
        kinds = {one.kind for one in handlers}
    assert "web.scrape" in kinds
    assert "index.write" not in kinds
    assert "on alpha" in caplog.text
    assert await run_worker(second.settings, ["web"], until_idle=True) == 0


@pytest.mark.only_on("postgres")
async def test_machines_of_one_image_are_told_apart_although_their_names_and_paths_are_alike(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = office.machine("localhost", "data")
    first.machine_id = "1"
    await office.put("hay.md", "A row of cut hay.")
    await first.index()
    kept = Path(first.settings.data_dir).rename(office.folder / "of the first")

    second = office.machine("localhost", "data")
    second.machine_id = "2"
    with pytest.raises(IndexElsewhere, match="on localhost"):
        await second.found("hay")
    with pytest.raises(IndexElsewhere):
        await second.index()
    assert "the index is in a folder of another machine" in await second.errors()

    shutil.rmtree(second.settings.data_dir)
    kept.rename(first.settings.data_dir)
    assert await first.found("hay") == ["hay.md"]


@pytest.mark.only_on("postgres")
async def test_search_before_anything_is_indexed_claims_nothing(office: Office) -> None:
    first, second = office.machine("alpha"), office.machine("beta")
    assert await second.found("hay") == []
    await office.put("hay.md", "A row of cut hay.")
    await first.index()
    assert await first.found("hay") == ["hay.md"]


async def test_host_with_another_name_and_the_same_folder_goes_on(office: Office) -> None:
    await office.put("hay.md", "A row of cut hay.")
    await office.machine("pod-1", "volume").index()
    renamed = office.machine("pod-2", "volume")
    assert await renamed.found("hay") == ["hay.md"]
    await renamed.index()
    assert await renamed.errors() == []


async def test_deleted_folder_is_made_again_at_its_place(office: Office) -> None:
    machine = office.machine("alpha")
    await office.put("hay.md", "A row of cut hay.")
    await machine.index()
    shutil.rmtree(index_folder(machine.settings))

    with pytest.raises(IndexLost):
        await machine.found("hay")
    assert "the index does not answer" in await machine.errors()
    await machine.index()

    assert await machine.found("hay") == ["hay.md"]
    assert await machine.errors() == []


async def test_file_of_a_folder_that_was_left_empty_is_made_again(office: Office) -> None:
    machine = office.machine("alpha")
    await office.put("hay.md", "A row of cut hay.")
    await machine.index()
    (index_folder(machine.settings) / index_folder_service.NAME).write_text("")

    await machine.index()

    assert await machine.found("hay") == ["hay.md"]


async def test_two_folders_of_one_machine_are_told_apart(office: Office) -> None:
    one, two = office.machine("alpha", "one"), office.machine("alpha", "two")
    await one.index()
    with pytest.raises(IndexElsewhere, match="one") as told:
        await two.index()
    assert f"WINDROW_DATA_DIR={one.settings.data_dir}," in told.value.hint
    assert await two.errors() == ["the index is in another folder of this machine"]


@pytest.mark.only_on("sqlite")
async def test_file_that_was_moved_to_another_machine_is_indexed_there(office: Office) -> None:
    await office.put("hay.md", "A row of cut hay.")
    await office.machine("alpha").index()
    moved = office.machine("beta")
    with pytest.raises(IndexLost, match="alpha"):
        await moved.found("hay")
    await moved.index()
    assert await moved.found("hay") == ["hay.md"]


@pytest.mark.only_on("sqlite")
async def test_file_that_two_machines_have_is_indexed_by_the_first(office: Office) -> None:
    await office.machine("alpha").index()
    row = WorkerRow(new_id(), "alpha:1", "alpha", 1, None, ("index.write",), 1)
    await office.queue.store.register_worker(row, 30)
    with pytest.raises(IndexElsewhere, match="on alpha"):
        await office.machine("beta").index()
    await office.queue.store.drop_worker(row.id)
    await office.machine("beta").index()


@pytest.mark.only_on("postgres")
async def test_index_is_moved_on_purpose_and_built_again(office: Office) -> None:
    first, second = office.machine("alpha"), office.machine("beta")
    await office.put("hay.md", "A row of cut hay.")
    await first.index()
    await office.put("cat.md", "Cats sleep most of the day.")

    second.enter()
    row = WorkerRow(new_id(), "alpha:1", "alpha", 1, None, ("index.write",), 1)
    await office.queue.store.register_worker(row, 30)
    with pytest.raises(ConfigError, match="alpha:1 still writes"):
        await move_here(second.settings)
    await office.queue.store.drop_worker(row.id)
    await move_here(second.settings)

    place = await show_place(second.settings)
    assert place.is_here
    assert place.recorded is not None
    assert place.recorded.host == "beta"
    await second.index()
    assert (await second.found("cut hay"))[0] == "hay.md"
    assert (await second.found("sleeping cats"))[0] == "cat.md"
    first.enter()
    assert isinstance(await find_elsewhere(first.settings, office.queue.store), IndexElsewhere)
    await move_here(first.settings)
    await first.index()
    assert sorted(await first.found("hay cats")) == ["cat.md", "hay.md"]


@pytest.mark.only_on("sqlite")
async def test_server_with_worker_processes_leaves_the_index_out(
    office: Office, tmp_path: Path
) -> None:
    await office.machine(socket.gethostname(), "one").index()
    environment = os.environ | {
        "WINDROW_DATABASE_URL": office.url,
        "WINDROW_DATA_DIR": str(tmp_path / "two"),
    }
    log = tmp_path / "serve.log"
    words = ("serve", "--port", "0", "--workers", "2")
    server = Command(*words, cwd=tmp_path, environment=environment, log=log)
    try:
        async with asyncio.timeout(60):
            while len(workers := await office.queue.workers()) < 2:
                await asyncio.sleep(0.1)
        assert all(one.takes(*TAKEN["web"]) for one in workers)
        assert not any(one.takes(*TAKEN["index"]) for one in workers)
    finally:
        server.send_signal(signal.SIGTERM)
        await asyncio.to_thread(server.wait, 60)
    assert log.read_text().count("nothing is indexed by this process") == 1


@pytest.mark.only_on("sqlite")
async def test_process_that_waits_for_the_index_goes_on_when_it_was_moved_away(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    host = socket.gethostname()
    one, two = office.machine(host, "one"), office.machine(host, "two")
    async with AsyncExitStack() as stack:
        with owning(index_folder(one.settings)):
            waiting = open_index_handlers(one.settings, office.queue)
            assert await stack.enter_async_context(waiting) == []
            await two.index()
        async with asyncio.timeout(30):
            while "the index is not owned" not in caplog.text:
                await asyncio.sleep(0.05)
