"""Pictures and prints of a page, as data URLs."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from windrow.ingest.options import Action, Format

if TYPE_CHECKING:
    from playwright.async_api import Page


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
