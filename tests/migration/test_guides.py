"""The guides for those who come from other queues: their programs run as printed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.test_docs import fenced
from windrow import Queue

GUIDES = Path(__file__).parent.parent.parent / "docs/guides"


@pytest.mark.parametrize(
    ("system", "queue", "payload", "printed"),
    [
        (
            "celery",
            "celery",
            {"args": [7], "kwargs": {"to": "Zoë"}},
            "mail order 7 to Zoë\nmail order 8 to Ann\n",
        ),
        ("rq", "mail", {"args": [7], "kwargs": {}}, "mail order 7\nmail order 8\n"),
        ("procrastinate", "mail", {"to": "Zoë"}, "mail Zoë\nmail Ann\n"),
    ],
)
async def test_the_handler_takes_what_was_moved_and_what_is_new(
    store_url: str, system: str, queue: str, payload: dict[str, object], printed: str
) -> None:
    [program] = fenced(GUIDES / f"coming-from-{system}.md", "python")
    async with Queue.open(store_url) as opened:
        moved = await opened.enqueue("shop.mail", payload, queue=queue)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program),
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"WINDROW_DATABASE_URL": store_url},
        )
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        assert sorted(out.decode().splitlines()) == sorted(printed.splitlines())
        assert (await opened.get(moved.id)).state == "completed"
