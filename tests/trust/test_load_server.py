"""Load on the real server, `windrow serve` in a process of its own: 5,000 listeners, and 500
clients that ask at the same time. What they cost is reported; that each was served is asserted."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bench.usage import cpu_seconds
from tests.api.server import FreshServer, Server
from tests.trust import scorecard
from windrow import NewJob, Queue
from windrow.ids import new_id

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]

LISTENERS = 5_000
EVENTS = 20
OPENING = 250  # connections on their way at once
WAIT_SECONDS = 300.0

CLIENTS = 500
REQUESTS = 20  # of each client
KINDS = ("enqueue", "job", "queues")
PATIENT = frozenset({429, 503})  # the only refusals, and only with a time to come again


@pytest.fixture
def server(tmp_path: Path, store_url: str) -> Iterator[Server]:
    with ExitStack() as stack:
        with few_open_files():
            started = FreshServer(tmp_path, "--no-worker", WINDROW_DATABASE_URL=store_url)
            stack.enter_context(started)
        yield started


@contextmanager
def few_open_files() -> Iterator[None]:
    """As most systems have it for a new process: a server has to see to its own limit. Afterwards
    ours is as high as it goes."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < 2 * LISTENERS:
        pytest.skip(f"{most} files may be open here, too few for {LISTENERS} listeners")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def test_each_of_5000_listeners_gets_every_event(
    server: Server, store_name: str, store_url: str
) -> None:
    resource_before = memory(server.process.pid)
    opened_at = time.monotonic()
    slots = asyncio.Semaphore(OPENING)
    listeners = await asyncio.gather(*(listen(server, slots) for _ in range(LISTENERS)))
    opening = time.monotonic() - opened_at
    idle = memory(server.process.pid)

    cpu = cpu_seconds(server.process.pid)
    began = time.monotonic()
    heard = [asyncio.create_task(hear(reader, EVENTS)) for reader, _ in listeners]
    async with Queue.open(store_url) as queue:
        wanted = [
            str(one.id)
            for one in await queue.enqueue_many([NewJob("work", queue="q") for _ in range(EVENTS)])
        ]
    async with asyncio.timeout(WAIT_SECONDS):
        got = await asyncio.gather(*heard)
    seconds, cpu = time.monotonic() - began, cpu_seconds(server.process.pid) - cpu
    for _, writer in listeners:
        writer.close()

    lost = sum(len(set(wanted) - set(one)) for one in got)
    doubled = sum(len(one) - len(set(one)) for one in got)
    scorecard.record(
        "steady",
        f"{LISTENERS:,} listeners of /events",
        store=store_name,
        jobs=EVENTS,
        faults=0,
        lost=lost,
        doubled=doubled,
        note=f"{LISTENERS * EVENTS:,} events told within {seconds:.1f} s, {cpu:.1f} CPU s of the "
        f"server; its memory {resource_before} MiB, with all listeners {idle} MiB, after the "
        f"events {memory(server.process.pid)} MiB; opened in {opening:.1f} s",
    )
    assert (lost, doubled) == (0, 0)


async def listen(
    server: Server, slots: asyncio.Semaphore
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A listener that was told where it begins."""
    async with slots:
        reader, writer = await connect(server)
        writer.write(request("GET", "/events?queue=q"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await reader.readuntil(b"\n\n")
        return reader, writer


async def hear(reader: asyncio.StreamReader, events: int) -> list[str]:
    """The jobs of the next events."""
    jobs: list[str] = []
    while len(jobs) < events:
        line = await reader.readline()
        if line.startswith(b"data: "):
            jobs.append(json.loads(line[6:])["job"])
        assert line, "the stream ended"
    return jobs


@dataclass(frozen=True)
class Answer:
    name: str
    status: int
    seconds: float
    headers: bytes

    @property
    def is_refusal(self) -> bool:
        return self.status >= 400

    @property
    def is_bad(self) -> bool:
        """An error that does not say when to come again."""
        return self.is_refusal and not (self.status in PATIENT and b"retry-after:" in self.headers)


async def test_500_clients_at_once_are_answered_or_told_when_to_come_again(
    server: Server, store_name: str, store_url: str
) -> None:
    async with Queue.open(store_url) as queue:
        known = [one.id for one in await queue.enqueue_many([NewJob("work") for _ in range(100)])]
    cpu = cpu_seconds(server.process.pid)
    answers = await ask_all(server, known)
    cpu = cpu_seconds(server.process.pid) - cpu
    async with Queue.open(store_url) as queue:
        stored = sum((await queue.counts()).values()) - len(known)

    statuses = Counter(one.status for one in answers)
    taken = sum(one.name == "enqueue" and not one.is_refusal for one in answers)
    marks = statistics.quantiles([one.seconds for one in answers], n=100)
    scorecard.record(
        "steady",
        f"{CLIENTS} clients of the HTTP API at once",
        store=store_name,
        jobs=taken,
        faults=0,
        lost=taken - stored,
        doubled=0,
        note=f"{len(answers):,} requests, a third of them enqueues: p50 {marks[49] * 1000:.0f} ms, "
        f"p99 {marks[98] * 1000:.0f} ms, {len(answers) / cpu:,.0f} requests a CPU second of the "
        f"server; answers by status: {dict(sorted(statuses.items()))}",
    )
    assert [one for one in answers if one.is_bad] == []
    assert len(answers) == CLIENTS * REQUESTS
    assert stored == taken


async def test_clients_past_their_rate_are_told_when_to_come_again(tmp_path: Path) -> None:
    limited = {"WINDROW_API_KEYS": "key", "WINDROW_API_REQUESTS_PER_MINUTE": "600"}
    with FreshServer(tmp_path, "--no-worker", **limited) as server:
        answers = await ask_all(server, [new_id()], requests=6, kinds=("enqueue",))
        async with Queue.open(server.database) as queue:
            stored = sum((await queue.counts()).values())

    assert [one for one in answers if one.is_bad] == []
    refused = sum(one.is_refusal for one in answers)
    assert refused
    assert stored == len(answers) - refused >= 600


async def ask_all(
    server: Server, known: list[str], requests: int = REQUESTS, kinds: Sequence[str] = KINDS
) -> list[Answer]:
    """What many clients are answered who all ask at the same time, each one thing after another."""
    answers: list[Answer] = []

    async def client(number: int) -> None:
        dice = random.Random(number)
        reader, writer = await connect(server)
        for _ in range(requests):
            name, sent = choose(dice, known, kinds)
            began = time.perf_counter()
            writer.write(sent)
            status, headers = await read_answer(reader)
            answers.append(Answer(name, status, time.perf_counter() - began, headers))
        writer.close()

    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return answers


def choose(dice: random.Random, known: list[str], kinds: Sequence[str]) -> tuple[str, bytes]:
    name = dice.choice(kinds)
    match name:
        case "enqueue":
            return name, request("POST", "/queue/jobs", {"kind": "work", "payload": {"n": 1}})
        case "job":
            return name, request("GET", f"/queue/jobs/{dice.choice(known)}")
        case _:
            return name, request("GET", "/queue/queues")


async def connect(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(server.url)
    return await asyncio.open_connection(parts.hostname, parts.port)


def request(method: str, path: str, body: Any = None) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += "Authorization: Bearer key\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    headers = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(headers.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return int(headers.split(b" ")[1]), headers


def memory(pid: int) -> int:
    """MiB that the process holds now."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS:"))
