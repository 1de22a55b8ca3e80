"""Requests that are made up by the OpenAPI document, and by breaking it, are never an error of the
server's own (N10). `make chaos` makes up many more."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
import uvicorn
from fastapi import FastAPI
from hypothesis import HealthCheck
from schemathesis.core.result import Ok

from tests.trust.scorecard import record_input
from windrow import Queue
from windrow.api.app import PREFIX, create_app
from windrow.api.firecrawl import crawl, scrape
from windrow.api.queue import jobs, runs
from windrow.settings import Settings

FEW, MANY = 4, 250
STREAMS = {"/events"}  # they do not end
PROBES = {"/health", "/ready"}  # 503 is an answer of theirs
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


class Live:
    """The application on a port of its own, in a thread; without a worker, nothing waited for."""

    def __init__(self, folder: Path) -> None:
        self._database = f"sqlite:///{folder / 'jobs.db'}"
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.app: FastAPI
        self.url = ""

    def __enter__(self) -> Live:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(60)

    async def _serve(self) -> None:
        async with Queue.open(self._database) as queue:
            self.app = create_app(queue, Settings())
            self.app.state.is_stopping = True  # so that those who wait are answered at once
            with socket.create_server(("127.0.0.1", 0)) as listener:
                self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                config = uvicorn.Config(self.app, lifespan="off", log_config=None, access_log=False)
                self._server = uvicorn.Server(config)
                self._started.set()
                await self._server.serve(sockets=[listener])


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    for module, name in (
        (scrape, "WAIT_SECONDS"),
        (crawl, "WAIT_SECONDS"),
        (jobs, "LOOK_SECONDS"),
        (runs, "LOOK_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 0.01)
    with Live(tmp_path) as live:
        yield live


def test_n10_no_request_is_an_error_of_the_servers_own(live: Live) -> None:
    assert len(ask_everything(live, FEW)) >= 60


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_n10_no_request_of_very_many_is_an_error_of_the_servers_own(live: Live) -> None:
    answers = ask_everything(live, MANY)
    assert len(answers) >= 60
    statuses = sum(answers.values(), Counter())
    record_input(
        "requests made up by the OpenAPI document, and by breaking it",
        given=statuses.total(),
        taken=sum(count for status, count in statuses.items() if status < 400),
        store="sqlite",
        note=f"{len(answers)} endpoints; answers by status: {dict(sorted(statuses.items()))}",
    )


def ask_everything(live: Live, examples: int) -> dict[str, Counter[int]]:
    """Ask each endpoint so many things; the answers of each, by status."""
    schema = schemathesis.openapi.from_dict(live.app.openapi())
    found = list(schema.get_all_operations())
    operations = [one.ok() for one in found if isinstance(one, Ok)]
    assert len(operations) == len(found), "a part of the document is wrong"
    paths = {one.path for one in operations}
    asked = [
        one
        for one in operations
        if one.path not in STREAMS
        and not (one.path.startswith(PREFIX) and one.path.removeprefix(PREFIX) in paths)
    ]
    return {operation.label: ask(live, operation, examples) for operation in asked}


def ask(live: Live, operation: Any, examples: int) -> Counter[int]:
    statuses: Counter[int] = Counter()
    strategies = [operation.as_strategy(generation_mode=mode) for mode in MODES]

    @hypothesis.given(case=hypothesis.strategies.one_of(strategies))
    @hypothesis.settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Any) -> None:
        answer = case.call(base_url=live.url, timeout=30)
        statuses[answer.status_code] += 1
        if answer.status_code < 500 or operation.path in PROBES:
            return
        code = answer.json()["code"]
        assert code.startswith("SCRAPE_"), f"{case.as_curl_command()}: {answer.text}"

    check()
    return statuses
