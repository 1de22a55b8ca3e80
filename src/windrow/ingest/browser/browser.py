"""`Browser`: a page as it is when its scripts have run, and what was done on it.

One Chromium for all, started when the first page asks for it and again after it has crashed. Each
page has a context of its own, which knows nothing of the others. What takes too long is ended: the
page, and the whole process if that does not help.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from yarl import URL

from windrow.errors import BrowserCrashed, FetchError, FetchTimeout, IngestError
from windrow.ingest.browser.actions import act, is_crash, take_screenshot
from windrow.ingest.browser.chromium import Chromium
from windrow.ingest.browser.rendered_page import NotAPage, check_answer, read_page
from windrow.ingest.browser.traffic import block_ads, send_headers
from windrow.ingest.document import ActionResults, Resource
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.credentials import Credentials
from windrow.ingest.fetch.fetcher import MOBILE_USER_AGENT
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.fetch.limits import FetchLimits
from windrow.ingest.options import ScrapeOptions

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page, Response


EXECUTABLE: Final = "/usr/bin/chromium"
PAGES_AT_ONCE: Final = 4
LOAD_SECONDS: Final = 10.0  # for pictures and the like, after the page itself has come
CLOSE_SECONDS: Final = 3.0
VIEWPORT: Final = (1280, 800)
MOBILE_VIEWPORT: Final = (390, 844)
DOWNLOAD: Final = ("Download is starting", "net::ERR_ABORTED")
NO_TUNNEL: Final = ("ERR_TUNNEL_CONNECTION_FAILED", "ERR_PROXY")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rendered:
    resource: Resource
    screenshot: str | None = None
    actions: ActionResults | None = None


class Browser:
    """async with Browser(guard) as browser: await browser.render(url, options)"""

    def __init__(
        self,
        guard: Guard | None = None,
        *,
        executable: str = EXECUTABLE,
        limits: FetchLimits | None = None,
    ) -> None:
        self._guard = guard or Guard()
        self._executable = executable
        self._limits = limits or FetchLimits()
        self._chromium: Chromium | None = None
        self._starting = asyncio.Lock()
        self._places = asyncio.Semaphore(PAGES_AT_ONCE)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return None if self._chromium is None else self._chromium.pid

    async def close(self) -> None:
        chromium, self._chromium = self._chromium, None
        if chromium is not None:
            await chromium.close()

    async def render(
        self, url: str, options: ScrapeOptions, *, credentials: Credentials | None = None
    ) -> Rendered:
        """A page and what was asked of it. Raises NotAPage for files, IngestError and RateLimited
        for what goes wrong."""
        self._guard.check_url(url)
        async with self._places:
            chromium = await self._running(why_browser(options))
            with _failures(url):
                async with (
                    asyncio.timeout(self._seconds(options)),
                    self._context(chromium, url, options, credentials) as context,
                ):
                    return await self._render(context, url, options, credentials)

    async def _running(self, why: str) -> Chromium:
        async with self._starting:
            if self._chromium is not None and not self._chromium.is_running:
                log.warning("the browser, process %d, has ended; starting another", self.pid)
                await self.close()
            if self._chromium is None:
                self._chromium = await Chromium.start(self._executable, self._guard, why)
            return self._chromium

    @asynccontextmanager
    async def _context(
        self,
        chromium: Chromium,
        url: str,
        options: ScrapeOptions,
        credentials: Credentials | None,
    ) -> AsyncIterator[BrowserContext]:
        """A context of its own. One that cannot be closed takes the browser with it."""
        from playwright.async_api import Error

        settings = _settings(chromium, options)
        if credentials and credentials.headers_for(URL(url)):
            settings["ignore_https_errors"] = False  # stored secrets go to nobody who hides
        context = await chromium.connection.new_context(**settings)
        try:
            yield context
        finally:
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await context.close()
            except TimeoutError:
                log.warning("the browser, process %d, hangs and is killed", chromium.pid)
                chromium.kill()
            except Error as error:
                log.debug("the browser ended before the page was closed: %s", error)

    async def _render(
        self,
        context: BrowserContext,
        url: str,
        options: ScrapeOptions,
        credentials: Credentials | None,
    ) -> Rendered:
        page = await context.new_page()
        seconds = self._seconds(options)
        deadline = asyncio.get_running_loop().time() + seconds
        page.set_default_timeout(seconds * 1000)
        if options.block_ads:
            await block_ads(context, page, url)
        await send_headers(context, page, url, options.headers, credentials)
        response = await self._open(page, url, options)
        acted = await act(page, options.actions, deadline)
        page.set_default_timeout(seconds * 1000)
        wanted = options.format("screenshot")
        picture = None if wanted is None else await take_screenshot(page, wanted)
        resource = await read_page(page, response, url, self._limits.max_bytes)
        return Rendered(resource, picture, acted)

    async def _open(self, page: Page, url: str, options: ScrapeOptions) -> Response:
        """Go there, and wait until everything has come, or long enough."""
        from playwright.async_api import TimeoutError as TooLate

        response = await page.goto(url, wait_until="domcontentloaded")
        if response is None:
            raise FetchError(codes.BAD_RESPONSE, url, "the browser got no answer")
        await check_answer(response, url)
        try:
            await page.wait_for_load_state("load", timeout=LOAD_SECONDS * 1000)
        except TooLate:
            log.debug("%s goes on loading", url)
        if options.wait_for:
            await page.wait_for_timeout(options.wait_for)
        return response

    def _seconds(self, options: ScrapeOptions) -> float:
        if options.timeout is not None:
            return options.timeout / 1000
        waits = options.wait_for + sum(action.wait_ms for action in options.actions)
        return self._limits.total_seconds + waits / 1000


def _settings(chromium: Chromium, options: ScrapeOptions) -> dict[str, Any]:
    width, height = MOBILE_VIEWPORT if options.mobile else VIEWPORT
    version = chromium.connection.version
    languages = (options.location and options.location.languages) or []
    return {
        "viewport": {"width": width, "height": height},
        "user_agent": MOBILE_USER_AGENT
        if options.mobile
        else f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/{version} Safari/537.36 (compatible; windrow)",
        "is_mobile": options.mobile,
        "has_touch": options.mobile,
        "device_scale_factor": 2 if options.mobile else 1,
        "locale": languages[0] if languages else "en-US",
        "ignore_https_errors": not options.verifies_tls,
        "accept_downloads": False,
        "service_workers": "block",  # their requests would go past what adds headers
    }


@contextmanager
def _failures(url: str) -> Iterator[None]:
    """What goes wrong in the browser, as errors of ours."""
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as TooLate

    try:
        yield
    except (TimeoutError, TooLate) as error:
        raise FetchTimeout(url, "not there in time in the browser") from error
    except Error as error:
        raise _to_ingest_error(error.message, url) from error


def _to_ingest_error(message: str, url: str) -> Exception:
    first = message.partition("\n")[0].removeprefix("Page.goto: ")
    if any(words in message for words in DOWNLOAD):
        return NotAPage(first)
    if is_crash(message):
        return BrowserCrashed(f"{url}: {first}")
    if "ERR_CERT" in message or "ERR_SSL" in message:
        return FetchError(codes.TLS, url, first)
    if "net::" in message:
        why = "no connection" if any(words in message for words in NO_TUNNEL) else first
        return FetchError(codes.UNREACHABLE, url, why, transient=True)
    return IngestError(f"{url}: {first}")


def needs_browser(options: ScrapeOptions) -> bool:
    return bool(why_browser(options))


def why_browser(options: ScrapeOptions) -> str:
    """What it is that needs one, in the words of the options; empty if nothing does."""
    if options.wants("screenshot"):
        return "format 'screenshot'"
    if options.actions:
        return "actions"
    if options.wait_for:
        return "waitFor"
    return "mobile" if options.mobile else ""
