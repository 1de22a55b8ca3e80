"""What is secret is nowhere to be read: not in what is logged, listed, shown or told of an error.

Every secret here begins alike, so one word is looked for everywhere.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from typer.testing import CliRunner

from tests.trust.scorecard import record_input
from tests.web.crawling import work
from tests.web.site import Site, SiteServer
from windrow import Queue, Worker, handler
from windrow.cli.main import app
from windrow.errors import EmbedderUnavailable, EnrichError, ProviderError
from windrow.index.embed.endpoint import EndpointEmbedder
from windrow.ingest.enrich.llm import Model
from windrow.ingest.providers import Provider
from windrow.logging import configure_logging
from windrow.services.web import start_crawl, start_scrape
from windrow.settings import Settings
from windrow.web.site import ROUTES, create_site

WORD = "s3cr3t"
KEY = f"{WORD}-api-key-0123456789"
HEADERS = {"Authorization": f"Bearer {WORD}-bearer", "Cookie": f"sid={WORD}-cookie"}
HOOK = {"headers": {"X-Mine": f"{WORD}-header"}, "events": ["completed"]}
SECRETS = {
    "llm_key": f"{WORD}-llm",
    "embed_key": f"{WORD}-embed",
    "webhook_secret": f"{WORD}-webhook",
    "secret_key": f"{WORD}-sealing",
    "qdrant_key": f"{WORD}-qdrant",
    "s3_secret": f"{WORD}-bucket",
    "scrapecreators_key": f"{WORD}-creators",
    "speechkit_key": f"{WORD}-speech",
    "server_key": f"{WORD}-server",
    "notifier": f"amqp://ann:{WORD}-amqp@127.0.0.1:1/",
    "api_keys": KEY,
}


@handler("careless", max_attempts=1)
async def careless(job: object, payload: dict[str, Any]) -> None:
    """Tells in its error what it should not."""
    logging.getLogger("careless").warning("cannot open %s", payload["database"])
    raise ValueError(f"{payload['database']} said no to Bearer {WORD}-in-the-error")


@pytest.fixture(scope="module")
def site() -> Any:
    with SiteServer() as server:
        yield server.site()


@pytest.fixture
async def filled(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[tuple[Queue, dict[str, str]]]:
    """A crawl with secrets that was run, one that waits, and a job that failed."""
    site.page("/", links=["/a"], text="welcome " * 50)
    site.page("/a", text="another " * 50)
    options = {"headers": HEADERS, "formats": ["markdown", "links"]}
    hook = {**HOOK, "url": f"{site.url}/hooks/{WORD}-path"}
    with caplog.at_level(logging.DEBUG):
        async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
            crawl = await start_crawl(queue, site.url, scrape_options=options, webhook=hook)
            await work(queue)
            again = await start_crawl(queue, site.url, scrape_options=options, webhook=hook)
            scrape = await start_scrape(queue, f"{site.url}/a", {"headers": HEADERS})
            failed = await queue.enqueue(
                "careless",
                {"database": f"postgresql://ann:{WORD}-pg@db/jobs", "api_key": f"{WORD}-payload"},
                headers={"x-api-key": f"{WORD}-of-the-job"},
            )
            await Worker(queue, [careless], queues=["default"]).run(until_idle=True)
            await queue.schedule("daily", "careless", {"token": f"{WORD}-daily"}, every=86_400)
            yield queue, {"crawl": crawl, "waits": again, "scrape": scrape.id, "failed": failed.id}


async def test_no_page_no_answer_and_no_log_has_a_secret(
    filled: tuple[Queue, dict[str, str]], site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    queue, ids = filled
    assert site.headers["/a"]["Authorization"] == HEADERS["Authorization"], "it was sent"
    settings = Settings(database_url=f"postgresql://ann:{WORD}-db@db/x", **SECRETS)  # type: ignore[arg-type]
    site_app = create_site(queue, settings)
    site_app.state.broadcast.close()
    transport = httpx.ASGITransport(site_app)
    answers: dict[str, str] = {}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://a.test", follow_redirects=True
    ) as client:
        await client.post("/ui/login", data={"key": KEY})
        for path in paths_of(site_app, ids):
            asked = await client.get(path, headers={"Authorization": f"Bearer {KEY}"})
            answers[path] = asked.text + str(asked.headers)
            assert asked.status_code < 500 or path == "/health", (path, asked.text)
    told = {path: text for path, text in answers.items() if WORD in text}
    assert told == {}
    assert len(answers) >= 60
    assert any("***" in text for text in answers.values()), "there was something to hide"
    log = [record.getMessage() for record in caplog.records]
    assert [line for line in log if WORD in line and "cannot open" not in line] == []
    record_input(
        "secrets in settings and headers, more in payloads and errors",
        given=len(SECRETS) + len(HEADERS),
        store="sqlite",
        note=f"none of them in {len(answers)} answers and {len(log):,} lines of the log",
    )


def paths_of(site_app: Any, ids: dict[str, str]) -> list[str]:
    """All that can be asked for by GET, with each of the ids."""
    found = {"/ui/settings", "/ui/jobs", "/queue/jobs?limit=100"}
    routes = [path for path, methods in site_app.openapi()["paths"].items() if "get" in methods]
    routes += [route.path for route in ROUTES if "GET" in (route.methods or ())]
    for path in routes:
        if path in ("/events", "/ui/events", "/openapi.json"):
            continue
        name = path.partition("{")[2].partition("}")[0]
        found |= {path.replace(f"{{{name}}}", one) for one in ids.values()} if name else {path}
    return sorted(found)


async def test_the_commands_print_none(
    filled: tuple[Queue, dict[str, str]], tmp_path: Path
) -> None:
    _, ids = filled
    environment = {f"WINDROW_{name.upper()}": value for name, value in SECRETS.items()}
    del environment["WINDROW_NOTIFIER"]
    environment["WINDROW_DATABASE_URL"] = f"sqlite:///{tmp_path / 'jobs.db'}"
    shown = []
    commands = [
        *(["jobs", "show", id] for id in ids.values()),
        *(["jobs", "show", id, "--json"] for id in ids.values()),
        ["jobs", "list", "--json"],
        ["jobs", "list", "--by-error"],
        ["schedules", "show", "daily", "--json"],
        ["groups", "show", ids["crawl"], "--json"],
        ["queues", "list", "--json"],
        ["keys", "list"],
        ["events", "--json"],
        ["doctor", "--json"],
        ["db", "status"],
        ["top", "--json"],
    ]
    for words in commands:
        printed = await asyncio.to_thread(CliRunner().invoke, app, words, env=environment)
        assert printed.stdout, (words, printed.stderr, printed.exception)
        shown.append(printed.stdout)
        assert WORD not in printed.output, words
    assert json.loads(shown[len(ids)])["payload"]["scrapeOptions"]["headers"] == {
        "Authorization": "***",
        "Cookie": "***",
    }


async def test_what_is_hidden_is_kept_when_the_rest_is_edited(
    filled: tuple[Queue, dict[str, str]], tmp_path: Path
) -> None:
    queue, ids = filled
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1])\n"
        f"assert {WORD!r} not in path.read_text()\n"
        "path.write_text(path.read_text().replace('/a\"', '/b\"'))\n"
    )
    printed = await asyncio.to_thread(
        CliRunner().invoke,
        app,
        ["jobs", "edit", ids["scrape"]],
        env={
            "WINDROW_DATABASE_URL": f"sqlite:///{tmp_path / 'jobs.db'}",
            "EDITOR": f"{sys.executable} {editor}",
        },
    )
    assert printed.exit_code == 0, printed.output
    payload = (await queue.get(ids["scrape"])).payload
    assert payload["url"].endswith("/b")
    assert payload["scrapeOptions"]["headers"] == HEADERS


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{WORD}-pg@127.0.0.1:1/x",
        f"postgresql://127.0.0.1:1/x?user=ann&password={WORD}-query",
        f"postgresql://ann:{WORD}#bad@127.0.0.1:port/x",
        f"bullmq+redis://ann:{WORD}-redis@127.0.0.1:1/0",
        f"mysql://ann:{WORD}-other@127.0.0.1/x",
    ],
)
@pytest.mark.parametrize("words", [["db", "status"], ["jobs", "list"]])
def test_an_address_that_does_not_work_is_told_without_its_password(
    url: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from windrow.cli.main import main

    monkeypatch.setenv("WINDROW_DATABASE_URL", url)
    for debug in ([], ["--debug"]):
        monkeypatch.setattr(sys, "argv", ["windrow", *debug, *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = "".join(capsys.readouterr())
        # Python itself prints what a process ends with, if it is a text.
        said += ended.value.code if isinstance(ended.value.code, str) else ""
        assert said
        assert WORD not in said, debug


def test_what_a_command_logs_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.NOTSET)
    told = io.StringIO()
    monkeypatch.setattr(logging, "captureWarnings", lambda capture: None)
    configure_logging(stream=told)
    try:
        raise ValueError(f"no way to redis://:{WORD}@h/0")
    except ValueError:
        logging.getLogger("mine").exception("at %s", f"amqp://a:{WORD}@h/")

    assert "at amqp://a:***@h/" in told.getvalue()
    assert "ValueError: no way to redis://:***@h/0" in told.getvalue()
    assert WORD not in told.getvalue()


def test_settings_that_are_printed_have_no_secrets() -> None:
    settings = Settings(database_url=f"postgresql://ann:{WORD}@db/x", **SECRETS)  # type: ignore[arg-type]
    assert WORD not in repr(settings)


@pytest.fixture
async def echo() -> AsyncIterator[str]:
    """A service that repeats in its refusal what it was sent, as some do."""

    async def refuse(request: web.Request) -> web.Response:
        sent = f"{request.headers.get('Authorization')} {request.headers.get('x-api-key')}"
        return web.json_response({"error": {"message": f"Incorrect key: {sent}"}}, status=401)

    served = web.Application()
    served.router.add_route("*", "/{any:.*}", refuse)
    async with TestServer(served) as server:
        yield f"http://127.0.0.1:{server.port}"


async def test_a_key_that_a_service_repeats_is_not_told(echo: str) -> None:
    """A short one too, that looks like any word."""
    key = "sesame"
    async with Model(echo, "qwen", key) as model:
        with pytest.raises(EnrichError, match=r"Incorrect key: Bearer \*\*\*"):
            await model.fill("text", {"type": "object"}, "all")
    embedder = EndpointEmbedder(echo, "minilm", key)
    with pytest.raises(EmbedderUnavailable, match=r"Incorrect key: Bearer \*\*\*"):
        await embedder.embed(["text"])
    await embedder.close()
    async with Provider("barn", limit_key="api:barn", seconds=5) as provider:
        for headers in ({"x-api-key": key}, {"Authorization": f"Api-Key {key}"}):
            with pytest.raises(ProviderError, match=r"\*\*\*") as refused:
                await provider.ask("GET", echo, headers=headers)
            assert key not in str(refused.value)
