"""N10: what the API does with a language model, and what it says without one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from firecrawl import AsyncFirecrawl, Firecrawl
from firecrawl.v2.utils.error_handler import BadRequestError

from tests.api.server import Server
from tests.ingest.enrich.chat import KEY, as_json, open_chat, page_of
from tests.web.site import Site

pytestmark = pytest.mark.filterwarnings("ignore:The extract endpoint:DeprecationWarning")
SCHEMA = {"type": "object", "properties": {"crop": {"type": "string"}}, "required": ["crop"]}


def reply(asked: dict[str, Any]) -> str:
    """Options for who asks for options, else what a page says."""
    if "options of that crawl" in asked["messages"][0]["content"]:
        return json.dumps({"excludePaths": ["^/blog"], "limit": 7, "sitemap": None})
    return as_json(crop="hay" if "Hay" in page_of(asked) else "none")


async def test_n10_a_model_extracts_from_pages_and_chooses_options(
    tmp_path: Path, site: Site
) -> None:
    site.page("/", links=["/blog", "/a"], text="Hay lies in rows.")
    site.page("/a")
    site.page("/blog")
    async with open_chat() as chat:
        chat.otherwise = reply
        variables = {"URL": chat.url, "KEY": KEY, "MODEL": "small"}
        with Server(tmp_path, **{f"WINDROW_LLM_{n}": v for n, v in variables.items()}) as server:
            client = AsyncFirecrawl(api_url=server.url)
            blocking = Firecrawl(api_url=server.url)
            urls = [site.url, "http://[broken"]
            options: dict[str, Any] = {"schema": SCHEMA, "prompt": "The crop", "poll_interval": 1}
            found = await client.extract(urls, timeout=60, **options)
            also = await asyncio.to_thread(blocking.extract, urls, timeout=60, **options)
            preview = await client.crawl_params_preview(site.url, "not the blog")
            crawl = await client.crawl(
                url=site.url, prompt="not the blog", poll_interval=1, timeout=60
            )
            with pytest.raises(BadRequestError, match="schema"):
                await asyncio.to_thread(blocking.start_extract, [site.url], schema={"type": "x"})

    assert (found.status, found.data) == ("completed", {"crop": "hay"})
    assert also.data == {"crop": "hay"}
    assert preview.exclude_paths == ["^/blog"]
    paths = {one.metadata.source_url.removeprefix(site.url) for one in crawl.data}
    assert paths == {"/", "/a"}


def test_n10_without_a_model_that_is_what_is_said(server: Server, site: Site) -> None:
    client = Firecrawl(api_url=server.url)

    for ask in (
        lambda: client.start_extract([site.url], prompt="The crop"),
        lambda: client.crawl_params_preview(site.url, "all of it"),
        lambda: client.start_crawl(site.url, prompt="all of it"),
    ):
        with pytest.raises(BadRequestError, match="no language model is set"):
            ask()
