"""The MCP server with its tools, free of any transport."""

from __future__ import annotations

import inspect
from typing import Any, Final

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

from windrow import __version__
from windrow.mcp.tools import TOOLS, Identify, Tools
from windrow.queue.queue import Queue
from windrow.services.searching import Searching

INSTRUCTIONS: Final = (
    "Windrow keeps sites, folders, code and notes searchable. Search first; read_document gives "
    "more of what was found. What is not there can be added with add_source: it is ingested in "
    "the background, and job_status says how far it is."
)


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
