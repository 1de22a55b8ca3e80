"""Fixtures and hooks shared by all tests.

One Postgres serves a whole run. Under xdist the controlling process starts it and hands its URL
to the workers, so it lives exactly as long as the run, whatever happens to a worker. Without
xdist it starts when the first test asks for it.

A test that asks for `store` (or `store_url`) runs once for each store named by `--store`, every
time on a database of its own, copied from one that was migrated once. `pgbouncer` is the Postgres
store behind a pooler in transaction mode; unless told otherwise, the conformance tests run there
too, apart from the long ones. `prepared` is the same with prepared statements, for a pgbouncer that
can keep them (1.21 or newer), and only where `--store` asks for it.

`bullmq` is the store on a private Redis, one for all; every test has a prefix of its own there.
Tests of what that store does not declare are left out: a test says what it needs by `requires`, and
one that asks for `clock` needs a store whose time can be set. `beside` is the same with a database
of SQLite beside it; what is marked by `also_on("beside")` runs there, and all where `--store` says.

A broker takes long to start, so it is only started for tests that have `rabbitmq` in their id.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import secrets
import shutil
import signal
import tempfile
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, Protocol

import hypothesis
import pytest

from tests import pgbouncer, rabbitmq, redis_server
from tests.callers import CALLERS
from tests.databases import Databases
from tests.pgbouncer import Bouncer, find_pgbouncer
from tests.postgres_server import (
    URL_VARIABLE,
    Server,
    choose_server,
    create_database,
    database_name,
    drop_database,
    memory_folder,
)
from tests.rabbitmq import Broker, find_rabbitmq
from tests.redis_server import RedisServer
from windrow.clock import Clock, FakeClock
from windrow.queue.bullmq.store import BullmqStore, capabilities_with
from windrow.queue.opening import open_store
from windrow.queue.sqlite.store import SqliteStore
from windrow.queue.store import Capabilities, Store

STORES = ("sqlite", "postgres", "pgbouncer", "prepared", "bullmq", "beside")
EVERYWHERE = ("sqlite", "postgres")
POOLED = ("pgbouncer", "prepared")
ON_REDIS = {
    "bullmq": BullmqStore.capabilities,
    "beside": capabilities_with(SqliteStore.capabilities),
}
BEHIND_POOLER = 10  # one in so many tests
ON_BULLMQ = 3  # the same; `--store=bullmq` runs all of them, and `make chaos` does
CONFORMANCE = Path(__file__).parent / "conformance"
REFUSALS = CONFORMANCE / "test_refusals.py"
SERVER = pytest.StashKey[Server]()
BOUNCER = pytest.StashKey[Bouncer]()
BROKER = pytest.StashKey[Broker]()
REDIS = pytest.StashKey[RedisServer]()
DATA = pytest.StashKey[tempfile.TemporaryDirectory[str]]()

# "ci" draws the same examples every time; WINDROW_HYPOTHESIS=explore looks for new ones.
hypothesis.settings.register_profile("ci", derandomize=True, print_blob=True, deadline=None)
hypothesis.settings.register_profile("explore", print_blob=True, deadline=None)
hypothesis.settings.load_profile(os.environ.get("WINDROW_HYPOTHESIS", "ci"))


class MakeDatabase(Protocol):
    def __call__(self, template: str | None = None) -> str: ...


CopyDatabase = Callable[[str], str]
OpenAnother = Callable[..., Awaitable[Store]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store",
        help=f"which of the stores {', '.join(STORES)} to test, with commas between (default: "
        f"{','.join(EVERYWHERE)}, and pgbouncer and bullmq in the conformance tests)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "requires(capability): run only on stores that declare this capability"
    )
    config.addinivalue_line("markers", "also_on(store): run on this store as well")
    config.addinivalue_line("markers", "only_on(store): run on this store, and on no other")
    config.addinivalue_line("markers", "chaos: takes long; run by `make chaos`, not by `make test`")
    config.addinivalue_line("markers", "long: run behind pgbouncer only if --store asks for it")
    _heed_interrupts()
    if URL_VARIABLE not in os.environ:
        # Our own server speaks no TLS; to make ready for it was a third of asyncpg's connecting.
        os.environ.setdefault("PGSSLMODE", "disable")
    # Where `tmp_path` is: a database or an index waits for its disk many times in each test. What
    # is written down of figures is measured on a disk.
    memory = None if "WINDROW_SCORECARD" in os.environ else memory_folder()
    if memory is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    # What is no job (an index, its lock) is kept apart from that of whoever runs the tests.
    folder = tempfile.TemporaryDirectory(
        prefix="windrow-tests-", dir=memory, ignore_cleanup_errors=True
    )
    config.stash[DATA] = folder
    os.environ["WINDROW_DATA_DIR"] = folder.name


def _heed_interrupts() -> None:
    """A script's command in the background ignores SIGINT, and so would the programs it starts, of
    which some tests ask what an interrupt does to them."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays until the end: the collector need not look at it again
    and again, neither while it grows nor while the tests run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    only = [name for mark in metafunc.definition.iter_markers("only_on") for name in mark.args]
    chosen = _chosen_stores(metafunc.config)
    stores = only or chosen or _usual_stores(metafunc.definition)
    if "caller_kind" in metafunc.fixturenames:
        pairs = [(store, kind) for store in stores for kind in CALLERS[store]]
        metafunc.parametrize(("tested_store", "caller_kind"), pairs)
    elif "tested_store" in metafunc.fixturenames:
        metafunc.parametrize("tested_store", stores)


def _chosen_stores(config: pytest.Config) -> list[str]:
    """The stores named by `--store`; none if it was not given."""
    given: str = config.getoption("--store") or ""
    chosen = [name.strip() for name in given.split(",") if name.strip()]
    if unknown := set(chosen) - set(STORES):
        raise pytest.UsageError(f"--store: no store named {', '.join(sorted(unknown))}")
    return chosen


def _usual_stores(test: pytest.Item) -> tuple[str, ...]:
    """What a pooler changes shows in any test of a verb: one in ten, chosen by its name, runs
    behind it each time, and all of them by `make chaos`. Those of very many calls do not."""
    is_long = test.get_closest_marker("long") is not None
    is_short = test.path.is_relative_to(CONFORMANCE) and not is_long
    is_chosen = zlib.crc32(test.nodeid.encode()) % BEHIND_POOLER == 0
    pooled = ("pgbouncer",) if is_short and is_chosen else ()
    is_in_turn = zlib.crc32(test.nodeid.encode()) % ON_BULLMQ == 0 or test.path == REFUSALS
    others = [name for mark in test.iter_markers("also_on") for name in mark.args]
    on_bullmq = ("bullmq",) if is_in_turn and _is_for_bullmq(test) else ()
    return (*EVERYWHERE, *pooled, *on_bullmq, *others)


def _is_for_bullmq(test: pytest.Item) -> bool:
    """A test of a verb, unless it needs what that store does not declare."""
    return test.path.is_relative_to(CONFORMANCE) and not _missing_in(test, BullmqStore.capabilities)


def _missing_in(test: pytest.Item, capabilities: Capabilities) -> list[str]:
    """What a test needs and a store does not declare."""
    needed = {name for mark in test.iter_markers("requires") for name in mark.args}
    if "clock" in inspect.signature(test.function).parameters:  # type: ignore[attr-defined]
        needed.add("settable_clock")
    return sorted(one for one in needed if not getattr(capabilities, one))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that open their stores by themselves are left out here, the others by `store`."""
    chosen = getattr(item, "callspec", None)
    declared = ON_REDIS.get(chosen.params.get("tested_store", "")) if chosen else None
    for capability in _missing_in(item, declared) if declared else ():
        pytest.skip(f"this store does not declare {capability}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Runs in the xdist controller, once for each worker."""
    node.workerinput["postgres_url"] = _running_server(node.config).url()
    bouncer = _running_bouncer(node.config)
    node.workerinput["pgbouncer_url"] = bouncer.url(pgbouncer.CONSOLE) if bouncer else None
    broker = _broker(node.config)
    node.workerinput["rabbitmq_url"] = broker.url if broker else None
    node.workerinput["redis_url"] = _running_redis(node.config).url


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """Runs in the xdist controller, before the first test does."""
    broker = _broker(node.config)
    if broker and any("rabbitmq" in test_id for test_id in ids):
        broker.launch()


def pytest_unconfigure(config: pytest.Config) -> None:
    with ExitStack() as stack:  # whatever happens to one, the others are stopped
        stack.callback(config.stash[DATA].cleanup)
        if server := config.stash.get(SERVER, None):
            stack.callback(server.stop)
        if bouncer := config.stash.get(BOUNCER, None):
            stack.callback(bouncer.stop)
        if broker := config.stash.get(BROKER, None):
            stack.callback(broker.stop)
        if redis := config.stash.get(REDIS, None):
            stack.callback(redis.stop)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for each program that is missing: what was not tested is not to be overlooked."""
    skipped = Counter(
        str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ())
    )
    for reason, count in skipped.items():
        if "is not installed" in reason or "are not there" in reason:
            terminalreporter.write_line(f"{count} tests SKIPPED: {reason}", yellow=True, bold=True)
    for line in _statements_of_seeds(terminalreporter):
        terminalreporter.write_line(line)


def _statements_of_seeds(terminalreporter: Any) -> list[str]:
    """How many of the documents' own statements were run; tests/seeds/documents.py counts them."""
    # Written when the test has ended; what went well then is in no category.
    ended = [one for kind in ("", "error") for one in terminalreporter.stats.get(kind, ())]
    found = sorted(
        value
        for report in ended
        if getattr(report, "when", None) == "teardown"
        for name, value in report.user_properties
        if name == "seed"
    )
    return [
        f"seed {seed}: {ran} of its {total} statements were run, {compared} compared"
        for seed, ran, compared, total in found
    ]


def _running_server(config: pytest.Config) -> Server:
    if SERVER not in config.stash:
        server = choose_server()
        server.start()
        config.stash[SERVER] = server
    return config.stash[SERVER]


def _running_bouncer(config: pytest.Config) -> Bouncer | None:
    """The bouncer in front of the server; None where the program is not installed."""
    if BOUNCER not in config.stash and (program := find_pgbouncer()):
        bouncer = Bouncer(_running_server(config).url(), program)
        bouncer.start()
        config.stash[BOUNCER] = bouncer
    return config.stash.get(BOUNCER, None)


def _running_redis(config: pytest.Config) -> RedisServer:
    if REDIS not in config.stash:
        server = RedisServer(redis_server.find_server())
        server.start()
        config.stash[REDIS] = server
    return config.stash[REDIS]


def _broker(config: pytest.Config) -> Broker | None:
    """The broker, launched or not; None where the program is not installed."""
    if BROKER not in config.stash and (program := find_rabbitmq()):
        config.stash[BROKER] = Broker(program)
    return config.stash.get(BROKER, None)


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """The maintenance database, as a superuser: the place to create databases from."""
    handed_down: dict[str, str] | None = getattr(request.config, "workerinput", None)
    return handed_down["postgres_url"] if handed_down else _running_server(request.config).url()


@pytest.fixture(scope="session")
def pgbouncer_url(request: pytest.FixtureRequest) -> str:
    """The console of a pgbouncer in transaction mode, in front of the tests' Postgres."""
    handed_down: dict[str, str | None] | None = getattr(request.config, "workerinput", None)
    if handed_down:
        url = handed_down["pgbouncer_url"]
    else:
        bouncer = _running_bouncer(request.config)
        url = bouncer.url(pgbouncer.CONSOLE) if bouncer else None
    return url or pytest.skip(pgbouncer.MISSING)


@pytest.fixture(scope="session")
def rabbitmq_url(request: pytest.FixtureRequest) -> str:
    """A broker that answers."""
    handed_down: dict[str, str | None] | None = getattr(request.config, "workerinput", None)
    if handed_down:
        url = handed_down["rabbitmq_url"]
    elif broker := _broker(request.config):
        broker.launch()
        url = broker.url
    else:
        url = None
    if url is None:
        pytest.skip(rabbitmq.MISSING)
    rabbitmq.wait_for(url)
    return url


@pytest.fixture(scope="session")
def redis_url(request: pytest.FixtureRequest) -> str:
    """A Redis, or what speaks like one."""
    handed_down: dict[str, str] | None = getattr(request.config, "workerinput", None)
    return handed_down["redis_url"] if handed_down else _running_redis(request.config).url


@pytest.fixture
def make_bullmq_url(redis_url: str) -> Callable[[], str]:
    """Call it for the URL of a queue on BullMQ with nothing in it."""
    return lambda: f"bullmq+{redis_url}?prefix=test-{secrets.token_hex(8)}"


@pytest.fixture
def exchange() -> str:
    """An exchange of the test's own."""
    return f"test-{secrets.token_hex(8)}"


@pytest.fixture
def rabbitmq_notifier(rabbitmq_url: str, exchange: str) -> str:
    return f"{rabbitmq_url}?exchange={exchange}"


@pytest.fixture
def notifier() -> str | None:
    """Who wakes sleepers, if not the database; tests of others have a fixture of their own."""
    return None


@pytest.fixture
def make_database(postgres_url: str) -> Iterator[MakeDatabase]:
    """Call it for the URL of a fresh database, empty or copied from a template."""
    made: list[str] = []

    def make(template: str | None = None) -> str:
        made.append(create_database(postgres_url, template))
        return made[-1]

    yield make
    for url in made:
        drop_database(postgres_url, url)


@pytest.fixture(scope="session")
def databases(postgres_url: str) -> Iterator[Databases]:
    kept = Databases(postgres_url)
    yield kept
    kept.close()


@pytest.fixture
def copy_database(databases: Databases) -> Iterator[CopyDatabase]:
    """Call it for the URL of a copy of a template, which may have served other tests before."""
    taken: list[str] = []

    def copy(template: str) -> str:
        taken.append(databases.take(template))
        return taken[-1]

    yield copy
    for url in taken:
        databases.give_back(url)


@pytest.fixture(scope="session")
def postgres_template(postgres_url: str) -> Iterator[str]:
    """The name of a migrated database to copy."""
    url = create_database(postgres_url)
    try:
        _migrate(url)
        yield database_name(url)
    finally:
        drop_database(postgres_url, url)


@pytest.fixture(scope="session")
def dialect_template(postgres_url: str, postgres_template: str) -> Iterator[Callable[[str], str]]:
    """Call it for the name of a migrated database to copy, with a dialect installed."""
    made: dict[str, str] = {}

    def make(name: str) -> str:
        if name not in made:
            made[name] = create_database(postgres_url, postgres_template)
            _on_store(made[name], lambda store: store.install_dialect(name))
        return database_name(made[name])

    yield make
    for url in made.values():
        drop_database(postgres_url, url)


@pytest.fixture
def dialect_database(
    copy_database: CopyDatabase, dialect_template: Callable[[str], str]
) -> Callable[[str], str]:
    """Call it for the URL of a Postgres database with a dialect installed."""
    return lambda name: copy_database(dialect_template(name))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database file to copy."""
    path = tmp_path_factory.mktemp("template") / "jobs.db"
    _migrate(f"sqlite:///{path}")
    return path


def _migrate(url: str) -> None:
    _on_store(url, lambda store: store.migrate())


def _on_store(url: str, do: Callable[[Store], Awaitable[Any]]) -> None:
    async def work() -> None:
        store = await open_store(url)
        try:
            await do(store)
        finally:
            await store.close()

    # In a thread of its own: a fixture may be asked for from inside a running loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work()).result()


@pytest.fixture
def store_name(tested_store: str) -> str:
    """The store whose code is tested: behind a pooler it is the Postgres one."""
    if tested_store == "beside":
        return "bullmq"
    return "postgres" if tested_store in POOLED else tested_store


@pytest.fixture
def way_in(tested_store: str, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Call it with the URL of a database for the one that the store under test is to use."""
    if tested_store not in POOLED:
        return lambda url: url
    bouncer_url: str = request.getfixturevalue("pgbouncer_url")
    if tested_store == "prepared":
        pgbouncer.require_prepared(bouncer_url)
        return lambda url: f"{pgbouncer.through(bouncer_url, url)}&prepared=true"
    return lambda url: pgbouncer.through(bouncer_url, url)


@pytest.fixture
def empty_url(
    store_name: str, way_in: Callable[[str], str], request: pytest.FixtureRequest, tmp_path: Path
) -> str:
    """A database with nothing in it."""
    if store_name == "postgres":
        return way_in(request.getfixturevalue("make_database")())
    if store_name == "bullmq":
        pytest.skip("BullMQ has no tables to be made")
    return f"sqlite:///{tmp_path / 'empty.db'}"


@pytest.fixture
def make_store_url(
    tested_store: str,
    store_name: str,
    way_in: Callable[[str], str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> Callable[[], str]:
    """Call it for the URL of another fresh, migrated database of the store under test."""
    if store_name == "postgres":
        template: str = request.getfixturevalue("postgres_template")
        # A pooler stays connected when the test is over: then a database of the test's own.
        fixture = "make_database" if tested_store in POOLED else "copy_database"
        make: CopyDatabase = request.getfixturevalue(fixture)
        return lambda: way_in(make(template))

    if store_name == "bullmq":
        make_url: Callable[[], str] = request.getfixturevalue("make_bullmq_url")
        if tested_store == "bullmq":
            return make_url

    source: Path = request.getfixturevalue("sqlite_template")
    numbers = iter(range(1_000_000))

    def copy() -> str:
        path = tmp_path / f"jobs-{next(numbers)}.db"
        shutil.copyfile(source, path)
        return f"sqlite:///{path}"

    if tested_store == "beside":
        return lambda: f"{make_url()}&rows={copy()}"
    return copy


@pytest.fixture
def store_url(make_store_url: Callable[[], str]) -> str:
    return make_store_url()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def direct_url(tested_store: str) -> str | None:
    """The way past a pooler, for LISTEN. A test that is about wake-ups overrides it."""
    return None


@pytest.fixture
async def open_another(
    store_url: str, direct_url: str | None, clock: FakeClock, notifier: str | None
) -> AsyncIterator[OpenAnother]:
    """Call it for one more store, with connections of its own, on the test's database."""
    async with AsyncExitStack() as stack:

        async def open_it(with_clock: Clock | None = None) -> Store:
            opened = await open_store(
                store_url,
                clock=with_clock or clock,
                direct_url=direct_url,
                notifier=notifier,
            )
            stack.push_async_callback(opened.close)
            return opened

        yield open_it


@pytest.fixture
async def store(request: pytest.FixtureRequest, open_another: OpenAnother) -> Store:
    opened = await open_another()
    for capability in _missing_in(request.node, opened.capabilities):
        pytest.skip(f"this store does not declare {capability}")
    return opened
