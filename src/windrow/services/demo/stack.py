"""The processes of the demo: a site on loopback, a server, workers. Each ends with its block."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from windrow.errors import WindrowError
from windrow.settings import PREFIX, Settings

HERE: Final = Path(__file__).parent
SITE: Final = HERE / "site"
HANDBOOK: Final = HERE / "handbook"
SERVED: Final = "Windrow is served at "
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 15.0
LOG_LINES: Final = 5


class DemoFailed(WindrowError):
    """The demo could not be shown."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads who asked for which page."""


@contextmanager
def serving_site() -> Iterator[str]:
    """The address of the demo's own site."""
    handler = functools.partial(_Quiet, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="demo site", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@dataclass(frozen=True, slots=True)
class Stack:
    """Where the processes of one demo keep what they have."""

    settings: Settings
    folder: Path

    @asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[str]:
        """`windrow serve`, with a worker in it; its address."""
        async with self._running("serve", "--port", str(port)) as process:
            yield await self._address(process)

    @asynccontextmanager
    async def working(self, name: str, *arguments: str) -> AsyncIterator[Process]:
        """`windrow worker` of that name."""
        async with self._running("worker", *arguments, "--name", name) as process:
            yield process

    @asynccontextmanager
    async def _running(self, *arguments: str) -> AsyncIterator[Process]:
        with self._log(arguments[0]).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "windrow", *arguments),
                cwd=self.folder,  # a windrow.toml of the person's own is not for the demo
                env=environment(self.settings),
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # a Ctrl-C comes once, from here
            )
        try:
            yield process
        finally:
            await _end(process)

    async def _address(self, process: Process) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while process.stdout is not None and (line := await process.stdout.readline()):
                    if line.startswith(SERVED.encode()):
                        return line.decode().removeprefix(SERVED).strip()
        said = self._log("serve").read_text("utf-8", "replace").splitlines()[-LOG_LINES:]
        raise DemoFailed("the server did not begin: " + " / ".join(said or ["it said nothing"]))

    def _log(self, command: str) -> Path:
        return self.folder / f"{command}.log"


Process = asyncio.subprocess.Process


def environment(settings: Settings) -> Mapping[str, str]:
    """That of the demo's processes: nothing of what the person's own Windrow is set to."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return kept | {
        "WINDROW_DATABASE_URL": settings.database_url,
        "WINDROW_DATA_DIR": settings.data_dir,
        "WINDROW_ALLOW_HOSTS": settings.allow_hosts,
    }


async def _end(process: Process) -> None:
    """Ask it to end; one that does not is killed."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.communicate()
    except TimeoutError:
        process.kill()
        await process.communicate()
