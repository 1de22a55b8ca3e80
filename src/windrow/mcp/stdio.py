"""The MCP server over stdin and stdout, for one client that started it.

Only messages go to stdout. It ends when stdin does, or at a signal: the SDK reads in a thread that
cannot be interrupted, so what it reads is a pipe of ours, which can be ended.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import Final

from windrow.mcp.server import make_server
from windrow.queue.queue import Queue
from windrow.services.keys import Identity
from windrow.services.searching import Searching

AT_ONCE: Final = 65_536


async def serve_stdio(
    queue: Queue, searching: Searching, identity: Identity, interrupted: asyncio.Event
) -> None:
    """Answer until stdin ends or the event is set."""
    server = make_server(queue, searching, lambda ctx: identity)
    end = _divert_stdin()

    async def heed() -> None:
        await interrupted.wait()
        _replace(end)

    heeding = asyncio.create_task(heed())
    try:
        await server.run_stdio_async()
    finally:
        heeding.cancel()


def _divert_stdin() -> int:
    """Have `sys.stdin` read a pipe that is fed with what is sent to us; the end to write to.
    Whatever else reads the descriptor 0, a child perhaps, finds nothing."""
    sent = os.dup(0)
    _replace(0)
    reading, writing = os.pipe()
    sys.stdin = os.fdopen(reading, encoding="utf-8")
    # Nobody waits for this thread: it may stay in its read for ever.
    threading.Thread(target=_copy, args=(sent, writing), name="stdin", daemon=True).start()
    return writing


def _copy(source: int, target: int) -> None:
    try:
        while some := os.read(source, AT_ONCE):
            while some:
                some = some[os.write(target, some) :]
    except OSError:
        pass  # whoever wrote, or the one who read, is gone
    _replace(target)


def _replace(descriptor: int) -> None:
    """End what a descriptor led to. The number stays taken, so a thread that still uses it gets at
    nothing else."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=descriptor <= 2)
    os.close(nothing)
