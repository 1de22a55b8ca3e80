"""What `pip install windrow` and each of its extras gives: size, commands, and what they name."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Callable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.conftest import MakeDatabase
from tests.packaging.environments import Environment, build, install, link
from tests.web.site import SiteServer
from windrow.extras import list_extras

MEBIBYTE = 1024 * 1024
# Of a bare installation, itself and what was in the environment before left out.
MAX_PACKAGES = 20
MAX_DIRECT = 8
MAX_BYTES = 40 * MEBIBYTE
BEFORE = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence.pth")
# Newer Pythons of this machine: in the path, or where pyenv has them.
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
PYTHONS = [
    found
    for version in ("3.12", "3.13")
    for found in [
        *map(str, PYENV.glob(f"{version}*/bin/python{version}")),
        shutil.which(f"python{version}"),
    ][:1]
    if found
]

HANDLERS = """
from windrow import Job, handler


@handler("greet")
async def greet(job: Job, payload: dict) -> str:
    return f"Hello, {payload['name']}!"
"""
# Commands that need an extra, and which one.
NEEDING = {
    "scrape http://127.0.0.1:1/": "web",
    "crawl http://127.0.0.1:1/": "web",
    "serve": "server",
    "keys list": "server",
    "search words": "knowledge",
    "add .": "knowledge",
    "mcp": "knowledge",
    "queues list -d postgresql://127.0.0.1:1/none": "postgres",
    "worker web": "web",
    "worker knowledge": "knowledge",
}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture
def linked(built: tuple[Path, Path], tmp_path: Path) -> Callable[[str], Environment]:
    return lambda extra: link(tmp_path, built[0], extra)


@pytest.fixture
def site() -> Iterator[str]:
    with SiteServer() as server:
        site = server.site()
        site.page("/", text="A windrow is a long row of cut hay.")
        site.pdf("/hay.pdf", "The baler picks up the hay.")
        yield site.url


def runs_jobs(environment: Environment, *database: str) -> None:
    """The queue, its worker and its commands."""
    (environment.home / "hello.py").write_text(HANDLERS)
    if database:
        environment.windrow("db", "migrate", *database)
    id = environment.windrow("jobs", "add", "greet", "--payload", '{"name": "Ada"}', *database)
    environment.windrow("worker", "hello", "--until-idle", *database)
    shown = json.loads(environment.windrow("jobs", "show", id.strip(), "--json", *database))
    assert shown["result"] == "Hello, Ada!"


def answers(environment: Environment) -> None:
    """Every other command of the queue."""
    for words in (
        "jobs list",
        "queues list",
        "groups list",
        "schedules list",
        "limits list",
        "db status",
        "top --json",
        "events",
        "doctor",
    ):
        environment.windrow(*words.split())


def names_missing_extras(environment: Environment) -> None:
    for words, extra in NEEDING.items():
        said = environment.windrow(*words.split(), code=2)
        assert f"pip install 'windrow[{extra}]'" in said, words
        assert len(said.splitlines()) == 1, said
    assert "scrape" in environment.windrow("--help")
    assert re.search(r"not installed: .*knowledge.*web", environment.windrow("doctor"), re.DOTALL)


def test_a_bare_installation_is_small_and_runs_jobs(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    bare = install(tmp_path, built[0])
    listed = json.loads(bare.run("-m", "pip", "list", "--format", "json").stdout)
    names = {one["name"].lower() for one in listed} - {"pip", "setuptools", "windrow"}
    assert len(names) <= MAX_PACKAGES, names
    assert size_of(bare) <= MAX_BYTES
    runs_jobs(bare)
    answers(bare)
    names_missing_extras(bare)


@pytest.mark.chaos
@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: Path(path).name)
def test_a_bare_installation_runs_jobs_on_newer_pythons(
    built: tuple[Path, Path], tmp_path: Path, python: str
) -> None:
    bare = install(tmp_path, built[0], python=python)
    runs_jobs(bare)
    names_missing_extras(bare)


def size_of(environment: Environment) -> int:
    """The space that the installed files take on the disk."""
    files = (
        path
        for top in environment.packages.iterdir()
        if not top.name.startswith(BEFORE)
        for path in ([top] if top.is_file() else top.rglob("*"))
        if path.is_file()
    )
    return sum(512 * path.stat().st_blocks for path in files)


def test_few_packages_are_required_directly(built: tuple[Path, Path], tmp_path: Path) -> None:
    shown = link(tmp_path, built[0]).run(
        "-c",
        "from importlib.metadata import requires\n"
        "print(sum('extra ==' not in line for line in requires('windrow')))",
    )
    assert int(shown.stdout) <= MAX_DIRECT


def serves(environment: Environment, *words: str) -> str:
    """The dashboard, the API and metrics; what the server logs."""
    log = environment.home / "log"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [environment.python, "-m", "windrow", "serve", "--port", "0", *words],
            cwd=environment.home,
            env=environment.variables(),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as server,
    ):
        try:
            assert server.stdout is not None
            line = next(line for line in server.stdout if "served at" in line)
            url = line.split()[-1].rstrip("/")
            for path in ("/ready", "/", "/ui/jobs", "/ui/search?q=hay", "/metrics", "/queue/jobs"):
                with urllib.request.urlopen(url + path) as answer:
                    assert answer.status == 200, path
        finally:
            server.terminate()
    return log.read_text()


def scrapes(environment: Environment, site: str) -> None:
    assert "long row of cut hay" in environment.windrow("scrape", site)
    environment.windrow("crawl", site, "--limit", "1", "--out", "pages")
    assert list((environment.home / "pages").iterdir())


def searches(environment: Environment, site: str) -> None:
    notes = environment.home / "notes"
    notes.mkdir()
    (notes / "hay.md").write_text("# Hay\n\nIt is dried grass.\n")
    (notes / "bale.py").write_text("def bale(hay):\n    return [hay]\n")
    environment.windrow("add", "notes")
    found = json.loads(environment.windrow("search", "what is hay", "--json"))
    assert found["results"][0]["uri"] == "hay.md"
    assert "picks up the hay" in environment.windrow("scrape", f"{site}/hay.pdf")
    environment.run("-c", "import windrow.mcp.server")


def test_the_extra_postgres_runs_jobs_there(
    linked: Callable[[str], Environment], make_database: MakeDatabase
) -> None:
    runs_jobs(linked("postgres"), "--database", make_database(None))


def test_the_extra_server_serves(linked: Callable[[str], Environment]) -> None:
    environment = linked("server")
    for workers in ("1", "2"):
        log = serves(environment, "--workers", workers)
        assert log.count("no worker runs here") == 1
        assert "pip install 'windrow[knowledge,web]'" in log
        assert "died" not in log


def test_the_extra_web_scrapes_and_crawls(linked: Callable[[str], Environment], site: str) -> None:
    environment = linked("web")
    scrapes(environment, site)
    said = environment.windrow("scrape", f"{site}/hay.pdf", code=1)
    assert "pip install 'windrow[knowledge]'" in said


def test_the_extra_knowledge_finds_what_was_added(
    linked: Callable[[str], Environment], site: str
) -> None:
    environment = linked("knowledge")
    scrapes(environment, site)
    searches(environment, site)


IMPORTS = {
    "audio": "import windrow.ingest.audio as a; assert a.find_ffmpeg()",
    "browser": "import playwright.async_api, windrow.ingest.browser.browser",
    "otel": "import windrow.queue.tracing, windrow.worker.tracing",
    "rabbitmq": "import windrow.queue.rabbitmq.link",
    "s3": "import boto3, windrow.ingest.artifacts.bucket",
}


@pytest.mark.parametrize("extra", IMPORTS)
def test_the_extra_has_what_its_part_imports(
    linked: Callable[[str], Environment], extra: str
) -> None:
    environment = linked(extra)
    environment.run("-c", IMPORTS[extra])


def test_the_extra_bullmq_runs_jobs_on_redis(
    linked: Callable[[str], Environment], redis_url: str
) -> None:
    environment = linked("bullmq")
    (environment.home / "hello.py").write_text(HANDLERS)
    database = ("--database", f"bullmq+{redis_url}?prefix=packaging")
    id = environment.windrow("jobs", "add", "greet", "--payload", '{"name": "Ada"}', *database)
    environment.windrow("worker", "hello", "--until-idle", *database)
    assert "completed" in environment.windrow("jobs", "show", id.strip(), *database)


@pytest.mark.chaos
@pytest.mark.parametrize("extra", [*sorted(list_extras())])
def test_an_extra_installs_by_itself(
    built: tuple[Path, Path], tmp_path: Path, extra: str, site: str
) -> None:
    environment = install(tmp_path, built[0], extra)
    runs_jobs(environment)
    if extra in IMPORTS:
        environment.run("-c", IMPORTS[extra])
    if extra in ("server", "all"):
        serves(environment)
    if extra in ("web", "knowledge", "browser", "all"):
        scrapes(environment, site)
    if extra in ("knowledge", "audio", "all"):
        searches(environment, site)


@pytest.mark.parametrize(
    "words", ["jobs list", "worker --help", "queues list", "db status", "top --json", "doctor"]
)
def test_commands_of_the_queue_import_no_extra(tmp_path: Path, words: str) -> None:
    script = (
        "import json, sys\n"
        "from windrow.cli.main import main\n"
        f"sys.argv[1:] = {words.split()!r}\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code, ended\n"
        "sys.stderr.write(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    migrate = [sys.executable, "-m", "windrow", "db", "migrate"]
    subprocess.run(migrate, cwd=tmp_path, env=environment, check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    bare = {"markdown-it-py"}  # rich has it in any case
    extras = frozenset[str]().union(*list_extras().values()) - bare
    distributions = packages_distributions()
    met = {
        module
        for module in loaded
        for name in distributions.get(module, ())
        if name.lower().replace("_", "-") in extras
    }
    assert met == set()


def test_the_tests_of_the_source_distribution_run(built: tuple[Path, Path], tmp_path: Path) -> None:
    with tarfile.open(built[1]) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
            *("tests/test_layers.py", "tests/test_public_api.py", "tests/unit/test_settings.py"),
        ],
        cwd=unpacked,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(unpacked / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
