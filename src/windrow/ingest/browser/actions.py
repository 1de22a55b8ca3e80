"""Actions: what is done on a page, in order, before it is read; pictures and prints too."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any, Final, assert_never

from windrow.errors import IngestError
from windrow.ingest.document import ActionResults, JavascriptReturn, ScrapedFrame
from windrow.ingest.options import Action, Format

if TYPE_CHECKING:
    from playwright.async_api import Page


ACTION_ERROR: Final = "SCRAPE_ACTION_ERROR"
LONGEST_SECONDS: Final = 30.0  # until what an action is meant for is there
_ENDED: Final = ("has been closed", "Target crashed", "Page crashed", "Connection closed")
# Scripts may be the inside of a function, too.
_INSIDE: Final = ("Illegal return", "await is only valid")

_TYPES: Final = ((bool, "boolean"), (int | float, "number"), (str, "string"), (list, "array"))


async def act(page: Page, actions: list[Action], deadline: float) -> ActionResults | None:
    """Do all of it; what came of it, if there is something. Raises IngestError naming the action
    that could not be done. `deadline` is by the loop's time."""
    from playwright.async_api import Error
    from playwright.async_api import TimeoutError as TooLate

    results = ActionResults()
    for number, action in enumerate(actions, 1):
        # Half of what is left, so that there is time to say which one it was.
        left = max(0.1, deadline - asyncio.get_running_loop().time())
        page.set_default_timeout(min(LONGEST_SECONDS, left / 2) * 1000)
        try:
            await _do(page, action, results)
        except TooLate as error:
            raise _failed(number, action, "what it is meant for is not there in time") from error
        except Error as error:
            if is_crash(error.message):
                raise
            raise _failed(number, action, error.message.partition("\n")[0]) from error
    return results if results != ActionResults() else None


def is_crash(message: str) -> bool:
    """Whether an error says that the page or the browser is no more."""
    return any(words in message for words in _ENDED)


async def _do(page: Page, action: Action, results: ActionResults) -> None:
    match action.type:
        case "wait":
            await _wait(page, action)
        case "click":
            await _click(page, action)
        case "write":
            await page.keyboard.type(action.text or "")
        case "press":
            await page.keyboard.press(action.key or "")
        case "scroll":
            await _scroll(page, action)
        case "screenshot":
            picture = await take_screenshot(page, action)
            results.screenshots = [*(results.screenshots or []), picture]
        case "scrape":
            frame = ScrapedFrame(url=page.url, html=await page.content())
            results.scrapes = [*(results.scrapes or []), frame]
        case "executeJavascript":
            value = await _execute(page, action.script or "")
            answer = JavascriptReturn(type=_type_of(value), value=value)
            results.javascript_returns = [*(results.javascript_returns or []), answer]
        case "pdf":
            results.pdfs = [*(results.pdfs or []), await print_pdf(page, action)]
        case _:
            assert_never(action.type)


async def _wait(page: Page, action: Action) -> None:
    if action.selector is not None:
        await page.wait_for_selector(action.selector)
    else:
        await page.wait_for_timeout(action.milliseconds or 0)


async def _click(page: Page, action: Action) -> None:
    found = page.locator(action.selector or "")
    await found.first.click()
    if action.all:
        for other in (await found.all())[1:]:
            await other.click()


async def _scroll(page: Page, action: Action) -> None:
    """By what can be seen of the page, or of an element of it."""
    sign = -1 if action.direction == "up" else 1
    if action.selector is not None:
        script = "(node, sign) => node.scrollBy(0, sign * node.clientHeight)"
        await page.locator(action.selector).first.evaluate(script, sign)
    else:
        await page.evaluate("sign => window.scrollBy(0, sign * window.innerHeight)", sign)


async def _execute(page: Page, script: str) -> Any:
    from playwright.async_api import Error

    try:
        return await page.evaluate(script)
    except Error as error:
        if not any(words in error.message for words in _INSIDE):
            raise
    return await page.evaluate(f"(async () => {{ {script}\n}})()")


def _type_of(value: Any) -> str:
    if value is None:
        return "undefined"
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "object")


def _failed(number: int, action: Action, why: str) -> IngestError:
    where = f" ({action.selector})" if action.selector else ""
    return IngestError(f"action {number}, {action.type}{where}: {why}", code=ACTION_ERROR)


async def take_screenshot(page: Page, wanted: Format | Action) -> str:
    """With a quality it is a JPEG, else a PNG. A viewport of its own lasts for this picture."""
    before = page.viewport_size
    if wanted.viewport is not None:
        size = wanted.viewport
        await page.set_viewport_size({"width": size.width, "height": size.height})
    is_jpeg = wanted.quality is not None
    picture = await page.screenshot(
        full_page=bool(wanted.full_page),
        type="jpeg" if is_jpeg else "png",
        quality=wanted.quality,
        animations="disabled",
    )
    if wanted.viewport is not None and before is not None:
        await page.set_viewport_size(before)
    return data_url("image/jpeg" if is_jpeg else "image/png", picture)


async def print_pdf(page: Page, wanted: Action) -> str:
    printed = await page.pdf(
        format=wanted.format or "Letter",
        landscape=bool(wanted.landscape),
        scale=wanted.scale if wanted.scale is not None else 1,
    )
    return data_url("application/pdf", printed)


def data_url(content_type: str, body: bytes) -> str:
    return f"data:{content_type};base64,{base64.b64encode(body).decode('ascii')}"
