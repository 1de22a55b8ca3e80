"""The drills of docs/operations/drills.md, each carried out by the very commands that are printed
there, with workers at work. What had been acknowledged before is judged by the checker."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import CopyDatabase
from tests.indexing.helpers import Library
from tests.postgres_server import drop_database, find_postgres_binaries, with_database
from tests.trust import scorecard
from tests.trust.checker import check
from tests.trust.history import Entry, History
from windrow import Job, NewJob, Queue, Worker, handler
from windrow.errors import SchemaTooNew
from windrow.queue.job import FINAL

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/operations/drills.md"
PATIENCE = 240.0  # a command may have to wait for a busy machine
LEASE = 1.0
RESTORED = "windrow_restored"  # as the page says


def blocks(heading: str) -> list[str]:
    """The commands of a drill."""
    [section] = re.findall(
        rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S
    )
    return re.findall(r"```sh\n(.*?)```", section, re.S)


async def carry_out(commands: str, folder: Path, **variables: str) -> str:
    """Run commands as a person would, one after the other; each must end well. What they print."""
    programs = [Path(sys.executable).parent, find_postgres_binaries().folder, os.environ["PATH"]]
    process = await asyncio.create_subprocess_exec(
        *("sh", "-e", "-u", "-c", commands),
        cwd=folder,
        env={
            **os.environ,
            "PATH": os.pathsep.join(map(str, programs)),
            "WINDROW_DATABASE_URL": "sqlite:///windrow.db",
            "WINDROW_DATA_DIR": str(folder / "data"),
            "BACKUPS": str(folder / "backups"),
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode == 0, f"{commands}\n{out.decode()}\n{err.decode()}"
    return out.decode()


class Traffic:
    """Somebody who enqueues and somebody who works, on one database, as long as this lasts."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.entries: list[Entry] = []  # what was acknowledged
        self.ran = 0

    async def until(self, acknowledged: int, ran: int) -> None:
        """Until so many more were acknowledged, and so many more ran."""
        acknowledged, ran = len(self.entries) + acknowledged, self.ran + ran
        async with asyncio.timeout(PATIENCE):
            while len(self.entries) < acknowledged or self.ran < ran:
                await asyncio.sleep(0.005)

    async def produce(self) -> None:
        history = History(self.entries, "producer")
        while True:
            made = await self.queue.enqueue_many([NewJob("work", {"n": n}) for n in range(3)])
            for one in made:
                history.write("enqueued", one.id)
            await asyncio.sleep(0.005)

    def worker(self) -> Worker:
        @handler("work")
        async def work(job: Job) -> int:
            self.ran += 1
            return self.ran

        return Worker(self.queue, [work], concurrency=5, lease=LEASE)


@asynccontextmanager
async def traffic(url: str, *, is_producing: bool = True) -> AsyncIterator[Traffic]:
    async with Queue.open(url) as queue:
        made = Traffic(queue)
        worker = made.worker()
        working = asyncio.create_task(worker.run())
        producing = asyncio.create_task(made.produce()) if is_producing else None
        try:
            yield made
        finally:
            if producing is not None:
                producing.cancel()
                with suppress(asyncio.CancelledError):
                    await producing
            worker.stop()
            await working


async def judge(url: str, acknowledged: list[Entry]) -> tuple[int, float]:
    """Let a worker finish what is there. How many of the acknowledged jobs are lost, and how many
    seconds it took until the last of them had ended."""
    began = time.monotonic()
    ids = [entry.job for entry in acknowledged]
    async with traffic(url, is_producing=False) as rest:
        found = await until_ended(rest.queue, ids)
    entries = list(acknowledged)
    history = History(entries, "store")
    for job in found:
        history.final(job)
    violations = check(entries, promises=["nothing_lost", "one_final_state"])
    assert [str(one) for one in violations] == []
    return sum(one.promise == "nothing_lost" for one in violations), time.monotonic() - began


async def until_ended(queue: Queue, ids: list[str]) -> list[Job]:
    """These jobs, as far as they are there, when all of them have ended."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = (await queue.get_many(ids)).values()
            if all(job.state in FINAL for job in found):
                return list(found)
            await asyncio.sleep(0.02)


def record(what: str, store: str, jobs: int, lost: int, recovery: list[float], note: str) -> None:
    scorecard.record(
        "recoverable",
        what,
        store=store,
        jobs=jobs,
        faults=1,
        lost=lost,
        doubled=0,
        recovery=recovery,
        note=note,
    )


@pytest.fixture
def folder(tmp_path: Path, sqlite_template: Path) -> Path:
    """A folder with a database of the default name, and one for backups."""
    shutil.copyfile(sqlite_template, tmp_path / "windrow.db")
    (tmp_path / "backups").mkdir()
    return tmp_path


async def test_sqlite_is_backed_up_under_load_and_restored(folder: Path) -> None:
    backing_up, restoring = blocks("SQLite: back up and restore")
    url = f"sqlite:///{folder / 'windrow.db'}"
    async with traffic(url) as busy:
        await busy.until(acknowledged=60, ran=30)
        acknowledged = list(busy.entries)
        await carry_out(backing_up, folder)
        await busy.until(acknowledged=30, ran=30)

    began = time.monotonic()
    assert "schema version" in await carry_out(restoring, folder)
    seconds = time.monotonic() - began
    lost, _ = await judge(url, acknowledged)
    note = "the commands, until the database could be used"
    record("database lost, restored", "sqlite", len(acknowledged), lost, [seconds], note)


@pytest.mark.chaos
async def test_postgres_is_dumped_under_load_and_restored(
    folder: Path, postgres_url: str, postgres_template: str, copy_database: CopyDatabase
) -> None:
    dumping, restoring = blocks("Postgres: back up and restore")
    url, restored = copy_database(postgres_template), with_database(postgres_url, RESTORED)
    try:
        async with traffic(url) as busy:
            await busy.until(acknowledged=60, ran=30)
            acknowledged = list(busy.entries)
            await carry_out(dumping, folder, WINDROW_DATABASE_URL=url)
            await busy.until(acknowledged=30, ran=30)

        began = time.monotonic()
        said = await carry_out(restoring, folder, SERVER_URL=postgres_url, RESTORED_URL=restored)
        seconds = time.monotonic() - began
        assert "schema version" in said
        lost, _ = await judge(restored, acknowledged)
    finally:
        drop_database(postgres_url, restored)
    note = "the commands, until the database could be used"
    record("database lost, restored", "postgres", len(acknowledged), lost, [seconds], note)


@pytest.mark.chaos
async def test_jobs_move_from_sqlite_to_postgres_while_workers_run(
    folder: Path, postgres_template: str, copy_database: CopyDatabase
) -> None:
    moving, again = blocks("From SQLite to Postgres")
    source, target = f"sqlite:///{folder / 'windrow.db'}", copy_database(postgres_template)
    async with traffic(source) as old:
        await old.until(acknowledged=300, ran=30)
    acknowledged = list(old.entries)
    async with traffic(source, is_producing=False), traffic(target) as new:
        began = time.monotonic()
        await carry_out(moving, folder, TARGET_URL=target)
        seconds = time.monotonic() - began
        await new.until(acknowledged=30, ran=30)
    said = await carry_out(again, folder, TARGET_URL=target)
    assert "schema version" in said
    acknowledged += new.entries
    lost, _ = await judge(target, acknowledged)
    note = "until the last job was in the new database"
    record("moved from SQLite to Postgres", "both", len(acknowledged), lost, [seconds], note)


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """Where a newer Windrow is: this one, with a migration more."""
    package = tmp_path / "newer" / "windrow"
    shutil.copytree(ROOT / "src/windrow", package, ignore=shutil.ignore_patterns("__pycache__"))
    for store, table in (("postgres", "windrow.job_payload"), ("sqlite", "windrow_job_payload")):
        text = f"ALTER TABLE {table} ADD COLUMN later_idea text;\n"
        (package / "queue" / store / "migrations" / "9001_later_idea.sql").write_text(text)
    return package.parent


@pytest.mark.chaos
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_tables_are_upgraded_while_old_workers_run(
    folder: Path, newer: Path, store: str, postgres_template: str, copy_database: CopyDatabase
) -> None:
    [upgrading] = blocks("Upgrade while old workers run")
    url = f"sqlite:///{folder / 'windrow.db'}"
    if store == "postgres":
        url = copy_database(postgres_template)
        upgrading = upgrading.replace("windrow db backup", "true ")
    variables = {"WINDROW_DATABASE_URL": url, "PYTHONPATH": str(newer)}
    async with traffic(url) as old:
        await old.until(acknowledged=30, ran=30)
        said = await carry_out(upgrading, folder, **variables)
        assert "applied 9001_later_idea" in said
        assert "schema version 9001" in said
        await old.until(acknowledged=60, ran=60)
        [later] = await old.queue.enqueue_many([NewJob("later")])
        (folder / "later.py").write_text(
            "from windrow import handler\n\n\n@handler('later')\ndef run(job): return 'new'\n"
        )
        await carry_out("windrow worker later --until-idle", folder, **variables)
        assert (await old.queue.get(later.id)).result == "new"
        ids = [entry.job for entry in old.entries]
        lost = len(ids) - len(await until_ended(old.queue, ids))

    with pytest.raises(SchemaTooNew, match="upgrade Windrow"):
        await Queue.open(url)
    note = "workers of the version before went on; one started afterwards is refused"
    record("upgrade with old workers running", store, len(ids), lost, [], note)
    assert lost == 0


TEXTS = {
    "lease.md": "# Leases\n\nHow long is a lease? Thirty seconds, and it is renewed.\n",
    "hay.md": "# Hay\n\nA windrow is a row of cut hay that waits for the baler.\n",
    "cats.md": "# Cats\n\nCats sleep most of the day.\n",
}


@pytest.fixture
async def ingested(folder: Path) -> Path:
    (folder / "texts").mkdir()
    for name, text in TEXTS.items():
        (folder / "texts" / name).write_text(text)
    await carry_out("windrow add texts --quiet", folder)
    return folder


@pytest.mark.chaos
async def test_lost_index_is_built_again_from_the_documents(ingested: Path) -> None:
    [rebuilding] = blocks("The index is lost")
    *before, search = rebuilding.strip().splitlines()
    queries = [search, "windrow search sleeping cats", "windrow search --mode exact baler"]
    expected = [await carry_out(one, ingested) for one in queries]
    assert "lease.md" in expected[0]
    assert "hay.md" in expected[2]

    began = time.monotonic()
    found = await carry_out(rebuilding, ingested)
    seconds = time.monotonic() - began
    assert found.endswith(expected[0])
    assert [await carry_out(one, ingested) for one in queries] == expected
    note = "the commands, with the start of a worker; the same searches found the same"
    record("index lost, built again", "sqlite", len(TEXTS), 0, [seconds], note)
    assert before[0].startswith("rm -r")


@pytest.fixture
def two_workers(ingested: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The first owns the index."""
    environment: Mapping[str, str] = {
        **os.environ,
        "WINDROW_DATABASE_URL": "sqlite:///windrow.db",
        "WINDROW_DATA_DIR": str(ingested / "data"),
    }
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(2):
            command = [sys.executable, "-m", "windrow", "worker"]
            log = (ingested / "worker.log").open("ab")
            started.append(
                subprocess.Popen(command, cwd=ingested, env=environment, stdout=log, stderr=log)
            )
            log.close()
            wait_for_owner(ingested, started[0])
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def wait_for_owner(folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for lock in folder.glob("data/index/*/owner.lock"):
            if lock.read_text().strip() == str(process.pid):
                return
        time.sleep(0.02)
    pytest.fail(f"{process.pid} does not own the index")


@pytest.mark.chaos
async def test_another_worker_takes_the_place_of_an_owner_that_hangs(
    ingested: Path, two_workers: list[subprocess.Popen[bytes]]
) -> None:
    [taking_over] = blocks("The owner of the index is gone")
    url = f"sqlite:///{ingested / 'windrow.db'}"
    async with Queue.open(url) as queue:
        async with asyncio.timeout(PATIENCE):
            while len(await queue.workers()) < 2:
                await asyncio.sleep(0.02)
        two_workers[0].send_signal(signal.SIGSTOP)
        await Library(queue, None).put("new.md", "A new text, on leases.", collection="default")  # type: ignore[arg-type]
        [job, *_] = await queue.list(kind="index.write")
        assert job.state not in FINAL
        began = time.monotonic()
        said = await carry_out(taking_over, ingested, JOB=job.id)
        seconds = time.monotonic() - began
    assert "lease.md" in said
    wait_for_owner(ingested, two_workers[1])
    note = "from the kill until what waited was indexed and found, commands included"
    record("owner of the index hangs", "sqlite", 1, 0, [seconds], note)


async def test_jobs_that_failed_in_an_outage_are_retried_by_their_error(folder: Path) -> None:
    [retrying] = blocks("Many jobs failed in an outage")
    async with Queue.open(f"sqlite:///{folder / 'windrow.db'}") as queue:
        failed = {"[Errno 111] connection refused: db:5432": 20, "no such customer": 3}
        for error, count in failed.items():
            await queue.enqueue_many([NewJob("work", max_attempts=1) for _ in range(count)])
            lease = await queue.claim(limit=count)
            for job in lease.jobs:
                await lease.fail(job, error)
        began = time.monotonic()
        said = await carry_out(retrying, folder)
        seconds = time.monotonic() - began
        assert {str(state): n for state, n in (await queue.counts()).items() if n} == {
            "ready": 20,
            "failed": 3,
        }
    assert "20 jobs would be" in said
    record("failed in an outage, retried", "sqlite", 23, 0, [seconds], "the commands")
