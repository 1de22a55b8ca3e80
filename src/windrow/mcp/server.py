"""The MCP server with its tools, and its way over stdin and stdout.

Over these it has one client, the one that started it. Only messages go to stdout. It ends when
stdin does, or at a signal: the SDK reads in a thread that cannot be interrupted, so what it reads
is a pipe of ours, which can be ended.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from windrow import __version__
from windrow.mcp.tools import TOOLS, Identify, Tools
from windrow.queue.queue import Queue
from windrow.services.keys import Identity
from windrow.services.searching import Searching

INSTRUCTIONS: Final = (
    "Windrow keeps sites, folders, code and notes searchable. Search first; read_document gives "
    "more of what was found. What is not there can be added with add_source: it is ingested in "
    "the background, and job_status says how far it is."
)

AT_ONCE: Final = 65_536


def make_server(queue: Queue, searching: Searching, identify: Identify) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer(
        "windrow",
        title="Windrow",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",  # what tools are called with is nobody's business but the caller's
    )
    tools = Tools(queue, searching, identify)
    for name, does in TOOLS.items():
        function = getattr(tools, name)
        server.add_tool(
            function,
            name=name,
            title=name.replace("_", " ").capitalize(),
            description=" ".join((inspect.getdoc(function) or "").split()),
            annotations=ToolAnnotations(
                read_only_hint=does == "reads",
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=does == "adds",
            ),
            structured_output=True,
        )
    return server


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
