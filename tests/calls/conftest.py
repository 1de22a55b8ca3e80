"""A queue on each store, a bucket, a stand-in for SpeechKit, and a clock that is moved on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests import recordings
from tests.buckets import bucket_settings, run_s3, sign
from tests.calls.desk import Desk
from tests.calls.speechkit_server import KEY, SpeechKitServer, open_speechkit
from tests.conformance.conftest import run_sql
from windrow import Queue
from windrow.ingest.artifacts import open_artifacts
from windrow.ingest.transcribe.speechkit import ApiKey, SpeechKit
from windrow.pipelines.calls.context import Calls
from windrow.queue import kinds
from windrow.queue.store import Store
from windrow.settings import Settings
from windrow.worker import worker

__all__ = ["run_sql"]

ANSWER_SECONDS = 30.0


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    with run_s3() as url:
        yield url


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Something that is no speech: the stand-in says what was said."""
    return recordings.tone(tmp_path_factory.mktemp("recordings"), "call.mp3", 6)


@pytest.fixture
async def speechkit() -> AsyncIterator[SpeechKitServer]:
    async with open_speechkit() as server:
        server.signed = sign
        yield server


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue(store)


@pytest.fixture
def settings(endpoint: str, speechkit: SpeechKitServer) -> Settings:
    return replace(
        bucket_settings(endpoint),
        speechkit_key=KEY,
        speechkit_url=speechkit.url,
        speechkit_operations_url=speechkit.url,
    )


@pytest.fixture
async def desk(
    queue: Queue, settings: Settings, speechkit: SpeechKitServer, tmp_path: Path
) -> AsyncIterator[Desk]:
    """Calls that SpeechKit transcribes."""
    work = tmp_path / "work"
    work.mkdir()
    transcriber = SpeechKit(
        ApiKey(KEY), url=speechkit.url, operations_url=speechkit.url, answer_seconds=ANSWER_SECONDS
    )
    calls = Calls(
        queue,
        lambda: open_artifacts(settings),
        lambda: transcriber,
        quotas=SpeechKit.quotas,
        folder=work,
    )
    yield Desk(queue, calls, work)
    await calls.close()


@pytest.fixture(autouse=True)
def own_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the handlers of one test declare is not there in the next."""
    monkeypatch.setattr(kinds, "_declared", {})


@pytest.fixture(autouse=True)
def held_jobs_are_left_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a worker that runs until it is idle: nobody here lets go of what they wait for."""
    monkeypatch.setattr(worker, "HELD_SECONDS", 0.2)
