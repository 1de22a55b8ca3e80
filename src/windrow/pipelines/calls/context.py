"""What the stages of calls share: where files are kept, who transcribes, who analyses."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from windrow.ingest.artifacts import Artifacts
from windrow.ingest.enrich.llm import Model
from windrow.ingest.transcribe import Quota, Transcriber
from windrow.queue.queue import Queue

# Of a quota for an hour, how much may be used at once; the rest comes evenly.
BURST_PART: Final = 0.1


class Calls:
    """Who transcribes is opened when the first job needs it: a worker that has no such job needs no
    extra for it."""

    def __init__(
        self,
        queue: Queue,
        artifacts: Callable[[], Artifacts],
        transcriber: Callable[[], Transcriber],
        *,
        model: Model | None = None,
        quotas: tuple[Quota, ...] = (),
        folder: Path | None = None,
    ) -> None:
        self.queue = queue
        self.model = model
        self.quotas = quotas  # for starts and for polls, if who transcribes has any
        self._open_artifacts = artifacts
        self._open_transcriber = transcriber
        self._artifacts: Artifacts | None = None
        self._transcriber: Transcriber | None = None
        self._folder = folder

    @property
    def artifacts(self) -> Artifacts:
        if self._artifacts is None:
            self._artifacts = self._open_artifacts()
        return self._artifacts

    @property
    def transcriber(self) -> Transcriber:
        if self._transcriber is None:
            self._transcriber = self._open_transcriber()
        return self._transcriber

    def limits(self, place: int) -> tuple[str, ...]:
        """The limit keys of the stage that uses a quota, where the queue has limits. Where it has
        none the provider says when it is too much."""
        is_kept = bool(self.quotas) and self.queue.store.capabilities.limits
        return (self.quotas[place].key,) if is_kept else ()

    async def close(self) -> None:
        for one in (self._artifacts, self._transcriber):
            if one is not None:
                await one.close()

    @asynccontextmanager
    async def working_folder(self) -> AsyncIterator[Path]:
        """A folder for the files of one run."""
        made = await asyncio.to_thread(tempfile.mkdtemp, prefix="windrow-call-", dir=self._folder)
        try:
            yield Path(made)
        finally:
            await asyncio.to_thread(shutil.rmtree, made, ignore_errors=True)


async def keep_quotas(queue: Queue, quotas: tuple[Quota, ...]) -> None:
    """Have the queue keep to what a provider allows, unless somebody has set those limits."""
    if not quotas or not queue.store.capabilities.limits:
        return
    known = {one.key for one in await queue.limits() if _is_set(one)}
    for quota in quotas:
        if quota.key not in known:
            # In any hour at most the burst and what comes in an hour: together the quota.
            burst = max(1, int(quota.per_hour * BURST_PART))
            rate = (quota.per_hour - burst) / 3600
            await queue.set_limit(quota.key, per_second=rate, burst=burst)


def _is_set(limit: object) -> bool:
    named = ("active", "per_second")
    return any(getattr(limit, name, None) is not None for name in named)
