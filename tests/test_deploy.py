"""The files for deployment: each command, option and setting that they name is there, manifests
keep to their schemas, and what they start runs in a sandbox like the one that they declare."""

from __future__ import annotations

import asyncio
import configparser
import contextlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import pytest
import yaml

from tests import sandbox
from tests.conftest import CopyDatabase, MakeDatabase
from tests.faults import FaultyStore
from windrow import Queue
from windrow.api.app import create_app
from windrow.cli.lazy import load
from windrow.cli.main import COMMANDS
from windrow.extras import list_extras
from windrow.services import examination
from windrow.settings import Settings

ROOT = Path(__file__).parent.parent
UNITS = sorted((ROOT / "deploy").glob("*.service"))
FILES = [ROOT / "Dockerfile", ROOT / "compose.yaml", ROOT / "deploy/kubernetes.yaml", *UNITS]


def commands_of(path: Path) -> Iterator[list[str]]:
    """What is run, word by word, without the program."""
    if path.suffix == ".service":
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read(path)
        yield shlex.split(parser["Service"]["ExecStart"])[1:]
    elif path.suffix == ".yaml":
        for document in yaml.safe_load_all(path.read_text()):
            yield from _in_yaml(document)
    else:
        for words in re.findall(r"^CMD (\[.*\])$", path.read_text(), re.MULTILINE):
            yield yaml.safe_load(words)[1:]


def _in_yaml(node: Any) -> Iterator[list[str]]:
    if isinstance(node, dict):
        command = node.get("command")
        if isinstance(command, list) and command[0] == "windrow":
            yield command[1:]
        for value in node.values():
            yield from _in_yaml(value)
    elif isinstance(node, list):
        for value in node:
            yield from _in_yaml(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_commands_are_windrows_own_with_options_that_there_are(path: Path) -> None:
    found = list(commands_of(path))
    assert found
    for words in found:
        command: Any = load(words[0], COMMANDS[words[0]])
        words = words[1:]
        while words and words[0] in getattr(command, "commands", {}):
            command, words = command.commands[words[0]], words[1:]
        assert not hasattr(command, "commands"), f"{words} is no command"
        context = command.make_context("windrow", [re.sub(r"%\w", "x", word) for word in words])
        assert context.args == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_has_nothing_to_say_against_a_unit(path: Path, tmp_path: Path) -> None:
    """But for the program, which is installed where the unit runs."""
    unit = tmp_path / path.name
    unit.write_text(path.read_text().replace("/opt/windrow/bin/windrow", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_settings_are_windrows_own(path: Path) -> None:
    known = {f"WINDROW_{item.name.upper()}" for item in fields(Settings)}
    assert set(re.findall(r"\bWINDROW_[A-Z_]+\b", path.read_text())) <= known


def test_parts_of_the_composition_name_each_other() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert {"api", "worker", "postgres", "qdrant"} <= services.keys()
    for service in services.values():
        assert set(service.get("depends_on", {})) <= services.keys()


def test_selectors_of_the_cluster_find_their_pods() -> None:
    documents = list(yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text()))
    pods = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in documents
        if one["kind"] == "Deployment"
    ]
    for one in documents:
        selector = one["spec"]["selector"]
        wanted = selector.get("matchLabels", selector)
        assert any(wanted.items() <= labels.items() for labels in pods)


# What each way of deployment runs, in a sandbox like the one it declares.


@dataclass(frozen=True)
class Deployed:
    """A command of a deployment file, with all that the file says about it."""

    name: str
    command: list[str]
    environment: dict[str, str]
    writable: list[str]
    work: str = "/"


def of_units() -> Iterator[Deployed]:
    for path in UNITS:
        lines = [line.split("=", 1) for line in path.read_text().splitlines() if "=" in line]
        said = {name: value for name, value in lines if name[:1].isalpha()}
        assert said["ProtectSystem"] == "strict"
        assert said["DynamicUser"] == "yes"
        words = said["ExecStart"].replace("%H", "host").replace("%i", "1").split()
        yield Deployed(
            path.name,
            words[1:],
            dict(value.split("=", 1) for name, value in lines if name == "Environment"),
            [f"/var/lib/{said['StateDirectory']}", *(["/tmp"] if "PrivateTmp" in said else [])],
            said["WorkingDirectory"],
        )


def of_cluster() -> Iterator[Deployed]:
    for document in yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text()):
        if document["kind"] != "Deployment":
            continue
        pod = document["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            yield Deployed(
                f"{document['metadata']['name']}-{container['name']}",
                container["command"][1:],
                {**of_image()[0], **SECRETS},
                [mount["mountPath"] for mount in container["volumeMounts"]],
                "/data",
            )


def of_composition() -> Iterator[Deployed]:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    for name, service in services.items():
        if service.get("command", [""])[0] == "windrow":
            environment = {
                key: re.sub(r"\$\{(\w+):[?-][^}]*\}", lambda m: SECRETS.get(m[1], ""), value)
                for key, value in service["environment"].items()
            }
            places = [volume.partition(":")[2] for volume in service["volumes"]]
            yield Deployed(
                name,
                service["command"][1:],
                {**of_image()[0], **environment},
                [*places, "/tmp"],  # only the folders of the image are read-only there
                "/data",
            )


def of_image() -> tuple[dict[str, str], list[str]]:
    """The environment and the command of the image."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    said = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    return dict(pair.split("=", 1) for line in said for pair in line.split()), yaml.safe_load(
        command
    )[1:]


KEY = "deployment-key"
SECRETS = {
    "WINDROW_API_KEYS": KEY,
    "WINDROW_SECRET_KEY": "0123456789abcdef" * 4,
    "WINDROW_ARTIFACTS_URL": "s3://bucket/windrow",
    "WINDROW_S3_ENDPOINT": "http://127.0.0.1:1",
    "WINDROW_S3_KEY": "id",
    "WINDROW_S3_SECRET": "secret",
}
needs_sandbox = pytest.mark.skipif(bool(sandbox.why_not()), reason=sandbox.why_not() or "none")


@needs_sandbox
async def test_units_run_in_the_sandbox_that_they_declare(
    tmp_path: Path, copy_database: CopyDatabase, postgres_template: str
) -> None:
    server, worker = sorted(of_units(), key=lambda one: one.name, reverse=True)
    assert (server.name, worker.name) == ("windrow.service", "windrow-worker@.service")
    await serve_ready(server, tmp_path)
    await work_until_stopped(worker, tmp_path, copy_database(postgres_template))


@needs_sandbox
@pytest.mark.parametrize("parts", [of_cluster, of_composition])
async def test_parts_run_as_an_unprivileged_user_on_a_read_only_root(
    parts: Callable[[], Iterator[Deployed]],
    tmp_path: Path,
    make_database: MakeDatabase,
) -> None:
    url = make_database()
    found = list(parts())
    assert [one.command[0] for one in found] == ["db", "serve", "worker"]
    # Qdrant is a service of the composition, and there is none here.
    migrate, server, worker = (
        replace(one, environment=one.environment | {"WINDROW_QDRANT_URL": ""}) for one in found
    )
    log = tmp_path / "migrate.log"
    assert begin(migrate, tmp_path, log, WINDROW_DATABASE_URL=url).wait(120) == 0, log.read_text()
    await serve_ready(server, tmp_path, WINDROW_DATABASE_URL=url)
    await work_until_stopped(worker, tmp_path, url)


@needs_sandbox
async def test_the_image_serves_by_itself_on_a_read_only_root(tmp_path: Path) -> None:
    environment, command = of_image()
    image = Deployed(
        "image", command, {**environment, "WINDROW_API_KEYS": KEY}, ["/data", "/tmp"], "/data"
    )
    await serve_ready(image, tmp_path)


def begin(
    part: Deployed, folder: Path, log: Path, *more: str, **environment: str
) -> subprocess.Popen[bytes]:
    return sandbox.start(
        [*part.command, *more],
        {**part.environment, **environment},
        part.writable,
        folder,
        work=part.work,
        log=log,
    )


async def serve_ready(part: Deployed, folder: Path, **environment: str) -> None:
    """It says that it is ready, takes a job, and stops with code 0."""
    log = folder / f"{part.name}.log"
    port = free_port()
    process = begin(part, folder, log, "--port", str(port), **environment)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            async with asyncio.timeout(60):
                while not await answers(client):
                    assert process.poll() is None, log.read_text()
                    await asyncio.sleep(0.1)
            job = {"kind": "thumbnail", "payload": {"n": 1}}
            headers = {"Authorization": f"Bearer {KEY}"}
            added = await client.post("/queue/jobs", json=job, headers=headers)
            assert added.status_code in (200, 201), added.text
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


async def answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/ready")).json() == {"status": "ready"}
    except httpx.TransportError:
        return False


async def work_until_stopped(part: Deployed, folder: Path, url: str) -> None:
    """The worker is seen in the database, and stops with code 0."""
    log = folder / f"{part.name}.log"
    process = begin(part, folder, log, WINDROW_DATABASE_URL=url)
    try:
        async with Queue.open(url) as queue, asyncio.timeout(60):
            while not await queue.workers():
                assert process.poll() is None, log.read_text()
                await asyncio.sleep(0.1)
        process.terminate()
        assert process.wait(60) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def test_manifests_keep_to_their_schemas() -> None:
    for document in yaml.safe_load_all((ROOT / "deploy/kubernetes.yaml").read_text()):
        kubernetes_validate.validate(document, "1.34", strict=True)


def test_every_pod_has_what_all_must_have_alike() -> None:
    needed = {"WINDROW_DATABASE_URL", "WINDROW_SECRET_KEY", "WINDROW_ARTIFACTS_URL"}
    text = (ROOT / "deploy/kubernetes.yaml").read_text()
    for document in yaml.safe_load_all(text):
        if document["kind"] == "Deployment":
            for container in document["spec"]["template"]["spec"]["containers"]:
                keys = [one["valueFrom"]["secretKeyRef"] for one in container["env"]]
                assert {one["key"] for one in keys} == needed
                assert not any(one.get("optional") for one in keys)
    made = set(re.findall(r"--from-literal=(\w+)=", text))
    assert made == SECRETS.keys() | {"WINDROW_DATABASE_URL"}
    assert "CREATE EXTENSION vector" in text


def test_the_image_has_what_its_files_need() -> None:
    text = (ROOT / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    copied = set(re.findall(r"^COPY ((?:\S+ )+)\./$", text, re.MULTILINE)[0].split())
    assert {"pyproject.toml", "constraints.txt", *project["license-files"]} <= copied
    assert all((ROOT / name).exists() for name in copied)
    assert "127.0.0.1:3002/ready" in text


@pytest.mark.parametrize("path", [ROOT / "Dockerfile", *UNITS], ids=lambda path: path.name)
def test_what_is_installed_has_the_extras_of_its_parts(path: Path) -> None:
    """The database of several machines, the API, the workers with all that the image has programs
    for, and their bucket."""
    text = path.read_text()
    (named,) = re.findall(r"pip install .*(?:windrow|\.)\[([\w,]+)\]", text)
    extras = list_extras()
    installed = frozenset().union(*(extras[name] for name in named.split(",")))
    for name in ("postgres", "server", "web", "knowledge", "audio", "browser", "s3"):
        assert extras[name] <= installed, name


@pytest.mark.parametrize(
    "before",
    ["", "WINDROW_WEBHOOK_SECRET=hush", "WINDROW_API_KEYS=\n"],
    ids=["none", "cut", "empty"],
)
def test_the_command_that_makes_a_key_keeps_the_rest_of_an_env_file(
    tmp_path: Path, before: str
) -> None:
    text = (ROOT / "compose.yaml").read_text()
    (line,) = re.findall(r"^#   (.*\.env)$", text, re.MULTILINE)
    kept = tmp_path / ".env"
    if before:
        kept.write_text(before)
    for _ in range(2):
        subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)
    *rest, key = filter(None, kept.read_text().splitlines())
    assert rest == before.splitlines()
    assert re.fullmatch("WINDROW_API_KEYS=[0-9a-f]{32}", key)


async def test_a_server_that_stops_or_has_no_database_is_not_ready(tmp_path: Path) -> None:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        app = create_app(queue, Settings())
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as client:
            good = await client.get("/ready")
            assert (good.status_code, good.json()) == (200, {"status": "ready"})
            app.state.is_stopping = True
            assert (await client.get("/ready")).json()["cause"] == "the server stops"
            app.state.is_stopping = False
            assert len(good.content) < 100
            faulty = FaultyStore(queue.store)
            faulty.fail_before("schema_version", call=1)
            app.state.queue = Queue(faulty)
            away = await client.get("/ready")
            assert (away.status_code, away.json()["cause"]) == (
                503,
                "the database does not answer",
            )


async def test_a_server_whose_database_hangs_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = asyncio.Event()

    async def hang() -> int:
        while not goes_on.is_set():  # as asyncpg does, which tells the server that it is cancelled
            with contextlib.suppress(asyncio.CancelledError):
                await goes_on.wait()
        return 1

    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        monkeypatch.setattr(examination, "READY_SECONDS", 0.01)
        monkeypatch.setattr(queue.store, "schema_version", hang)
        transport = httpx.ASGITransport(create_app(queue, Settings()), client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as client:
            asking = asyncio.create_task(client.get("/ready"))
            done, _ = await asyncio.wait([asking], timeout=30)
            goes_on.set()
            assert (await asking).status_code == 503
            assert done
