"""The jobs of the worker that the demo kills."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from windrow.queue.job import Job
from windrow.worker.registry import handler

MODULE: Final = __name__  # for `windrow worker`
QUEUE: Final = "demo"
BALE: Final = "demo.bale"
BALE_SECONDS: Final = 0.3  # long enough to be caught in the middle of


@handler(BALE, queue=QUEUE)
async def bale(job: Job, payload: dict[str, Any]) -> str:
    await asyncio.sleep(BALE_SECONDS)
    return f"bale {payload['number']} is tied"
