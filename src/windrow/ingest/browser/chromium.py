"""One Chromium: started with the guard's proxy as its only way out, and ended by its process id.

It listens on a pipe, not on a port, so nobody else on this machine can use it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from windrow.errors import BrowserCrashed, BrowserMissing
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.fetch.proxy import GuardProxy

if TYPE_CHECKING:
    from playwright.async_api import Browser as Connection

START_SECONDS: Final = 60.0
END_SECONDS: Final = 5.0
ARGUMENTS: Final = (
    "--disable-gpu",
    "--disable-dev-shm-usage",  # in containers that is often too small for a page
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--mute-audio",
)

log = logging.getLogger(__name__)


class Chromium:
    """A browser that runs. `connection` is how to talk to it, `pid` how to end it."""

    def __init__(self, connection: Connection, pid: int, stack: AsyncExitStack) -> None:
        self.connection = connection
        self.pid = pid
        self._stack = stack
        self._is_killed = False

    @classmethod
    async def start(cls, executable: str, guard: Guard, why: str) -> Chromium:
        """Raises BrowserMissing if the extra or the program is not there; `why` says who asks."""
        _check_installed(executable, why)
        from playwright.async_api import Error, async_playwright

        async with AsyncExitStack() as stack:
            proxy = await stack.enter_async_context(GuardProxy(guard))
            driver = await async_playwright().start()
            stack.push_async_callback(_in_time, driver.stop, "the driver of the browser")
            try:
                connection = await driver.chromium.launch(
                    executable_path=executable,
                    headless=True,
                    args=[*_arguments(), *proxy.chromium_arguments()],
                    timeout=START_SECONDS * 1000,
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
                pid = await _find_pid(connection)
            except Error as error:
                raise BrowserCrashed(f"{executable} does not start: {error.message}") from error
            return cls(connection, pid, stack.pop_all())
        raise AssertionError("unreachable: the stack hides no error")

    @property
    def is_running(self) -> bool:
        # That it is gone is only heard of a moment later.
        return not self._is_killed and self.connection.is_connected()

    async def close(self) -> None:
        """End it; by force if it does not end by itself."""
        if self.is_running and not await _in_time(self.connection.close, "the browser"):
            self.kill()
        await self._stack.aclose()

    def kill(self) -> None:
        """End its process now, and with it all that it has started."""
        self._is_killed = True
        try:
            # It was started as the first of a group of its own; only then is the group all its own.
            if os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, signal.SIGKILL)
            else:
                os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            log.debug("the browser, process %d, had ended before", self.pid)


def _check_installed(executable: str, why: str) -> None:
    if find_spec("playwright") is None:
        raise BrowserMissing(why, "the extra is not installed")
    if not Path(executable).is_file():
        raise BrowserMissing(why, f"there is no Chromium at {executable}")


def _arguments() -> list[str]:
    # Chromium's own sandbox refuses to work for root, who is who there is in most containers.
    return [*ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


async def _find_pid(connection: Connection) -> int:
    session = await connection.new_browser_cdp_session()
    found = await session.send("SystemInfo.getProcessInfo")
    await session.detach()
    return next(int(one["id"]) for one in found["processInfo"] if one["type"] == "browser")


async def _in_time(end: Callable[[], Awaitable[None]], what: str) -> bool:
    """End something that may hang; whether it did end."""
    try:
        async with asyncio.timeout(END_SECONDS):
            await end()
    except TimeoutError:
        log.warning("%s did not end in %g s", what, END_SECONDS)
        return False
    return True
