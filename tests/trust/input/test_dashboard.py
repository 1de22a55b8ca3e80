"""The dashboard: every page and form × who asks, and what strangers wrote shown as text.

A route without an entry in MATRIX fails: whoever adds a page says who may see it.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from html.parser import HTMLParser
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx
import pytest

from tests.trust.scorecard import record_input
from windrow import Queue
from windrow.accounts import Accounts
from windrow.catalog import Catalog
from windrow.catalog.contents import ContentRow, Written
from windrow.catalog.documents import DocumentRow
from windrow.catalog.sources import SourceRow
from windrow.ids import new_id
from windrow.queue.job import JobState
from windrow.services.web import start_crawl
from windrow.settings import Settings
from windrow.web.markdown import render_markdown
from windrow.web.sessions import COOKIE
from windrow.web.site import create_site

KEYS = "boss reader=acme:read writer=acme:write chief=acme:admin stranger=globex:write"


class Rule(NamedTuple):
    role: str  # the least that may
    of: str = ""  # what {id} names; of another tenant it is not there
    form: Mapping[str, str] = MappingProxyType({})


# fmt: off
MATRIX = {
    "GET /": Rule("read"),
    "GET /ui/jobs": Rule("read"),
    "GET /ui/jobs/{id}": Rule("read", "job"),
    "GET /ui/failed": Rule("read"),
    "GET /ui/runs": Rule("read"),
    "GET /ui/runs/{id}": Rule("read", "run"),
    "GET /ui/add": Rule("write"),
    "GET /ui/search": Rule("read"),
    "GET /ui/sources": Rule("read"),
    "GET /ui/sources/{id}": Rule("read", "source"),
    "GET /ui/documents/{id}": Rule("read", "document"),
    "GET /ui/pipelines": Rule("read"),
    "GET /ui/schedules": Rule("read"),
    "GET /ui/settings": Rule("read"),
    "GET /ui/events": Rule("read"),
    "POST /ui/queues": Rule("all", form={"queue": "web", "do": "pause"}),
    "POST /ui/jobs/{id}": Rule("write", "job", {"do": "pause"}),
    "POST /ui/failed": Rule("write", form={"pattern": "x"}),
    "POST /ui/runs/{id}": Rule("write", "run", {"do": "pause"}),
    "POST /ui/add": Rule("write", form={"do": "note", "text": "a note"}),
    "POST /ui/sources/{id}": Rule("write", "source", {"do": "refresh"}),
    "POST /ui/documents/{id}": Rule("write", "document", {"do": "remove"}),
    "POST /ui/schedules": Rule("all", form={"name": "nightly", "do": "pause"}),
    "POST /ui/settings": Rule("all", form={"name": "robot", "role": "admin"}),
    "POST /ui/logout": Rule("read"),
}
# fmt: on
OPEN = {"GET /ui/login", "POST /ui/login"}
MAY = {
    "reader": {"read"},
    "stranger": {"read", "write"},
    "writer": {"read", "write"},
    "chief": {"read", "write", "admin"},
    "boss": {"read", "write", "admin", "all"},
}
TOKEN = re.compile(r'name="token" value="([^"]+)"')


class Site:
    """The application, and what acme has in it."""

    def __init__(self, queue: Queue, folder: Path, ids: dict[str, str]) -> None:
        settings = Settings(api_keys=KEYS, data_dir=str(folder))
        self.app = create_site(queue, settings)
        self.app.state.broadcast.close()  # or /ui/events would be answered for ever
        self.queue = queue
        self.ids = ids
        self.transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)

    def client(self, cookie: str | None = None) -> httpx.AsyncClient:
        cookies = {} if cookie is None else {COOKIE: cookie}
        return httpx.AsyncClient(
            transport=self.transport, base_url="http://a.test", cookies=cookies
        )

    async def log_in(self, key: str) -> tuple[httpx.AsyncClient, str]:
        """A session, and the token of its forms."""
        cookie = await self.app.state.sessions.begin(key)
        client = self.client(cookie)
        found = TOKEN.search((await client.get("/")).text)
        assert found is not None
        return client, found[1]

    async def ask(
        self, client: httpx.AsyncClient, name: str, token: str | None = None
    ) -> httpx.Response:
        method, path = name.split(" ")
        rule = MATRIX[name]
        path = path.replace("{id}", self.ids.get(rule.of, ""))
        form = {**rule.form, **({} if token is None else {"token": token})}
        return await client.request(method, path, data=form if method == "POST" else None)

    async def facts(self) -> Any:
        """What forms could have changed."""
        store = self.queue.store
        catalog = Catalog(store.database)
        return (
            (await self.queue.get(self.ids["job"])).state,
            (await self.queue.group(self.ids["run"])).is_paused,
            [(one.name, one.is_paused) for one in await self.queue.queues()],
            [(one.name, one.is_paused) for one in await self.queue.schedules()],
            [one.name for one in await Accounts(store.database).api_keys.all()],
            len(await catalog.sources.page("acme")),
            len(await catalog.documents.page("acme", "default", "hay")),
            len(await self.queue.list(limit=100)),
        )


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        job = await queue.enqueue("mine", {"n": 1}, tenant="acme", delay=3600)
        await queue.schedule("nightly", "mine", {}, cron="0 3 * * *")
        source = SourceRow("acme", "hay", "default", "site", "https://example.org/", "Hay")
        await Catalog(queue.database).sources.put([source])
        ids = {
            "job": job.id,
            "run": await start_crawl(queue, "http://example.org", tenant="acme"),
            "source": source.id,
            "document": await keep(queue, source, "https://example.org/a", "# A page"),
        }
        await queue.create_group(id=ids["run"], tenant="acme", hold=True)
        yield Site(queue, tmp_path / "data", ids)


async def keep(queue: Queue, source: SourceRow, uri: str, text: str, **more: Any) -> str:
    row = DocumentRow(
        new_id(), source.tenant, source.collection, source.id, uri, pending=new_id(), **more
    )
    content = ContentRow(row.pending or "", source.tenant, source.collection, text)
    catalog = Catalog(queue.database)
    await catalog.documents.put([row], [content])
    await catalog.contents.switch([Written(content.id, 1, "space")])
    return row.id


async def test_every_page_and_form_has_its_entry(site: Site) -> None:
    api = set(site.app.openapi()["paths"])
    served = {
        f"{method} {path}"
        for route in site.app.routes
        for path in [getattr(route, "path", "")]
        for method in getattr(route, "methods", None) or ()
        if method not in ("HEAD", "OPTIONS")
        and path not in api  # tests/api/test_auth.py asks for those
        and path not in ("/docs", "/openapi.json", "/docs/oauth2-redirect")
    }
    assert served == {*MATRIX, *OPEN}


async def test_nobody_gets_anywhere_without_a_session_of_ours(site: Site) -> None:
    begin = site.app.state.sessions
    good = await begin.begin("boss")
    hashed, _, rest = good.partition(".")
    expired = begin._sealed(f"{hashed}.{int(time.time()) - 1}.0")
    gone = begin._sealed(f"{'0' * 64}.{int(time.time()) + 60}.0")
    before = await site.facts()
    forged = good[:-1] + ("B" if good.endswith("A") else "A")
    cookies = (None, "", "boss", forged, f"{hashed}.{rest}x", expired, gone, "a.b.c")
    for cookie in cookies:
        async with site.client(cookie) as client:
            for name in MATRIX:
                answer = await site.ask(client, name, "guess")
                where = answer.headers.get("location", "").partition("?")[0]
                assert (answer.status_code, where) == (303, "/ui/login"), (name, cookie)
    async with site.client() as client:
        odd = {b"Cookie": f"{COOKIE}=äöü.ß".encode()}
        assert (await client.get("/", headers=odd)).status_code == 303
        for key in ("", "wrong", "böse", "\x00", "boss\n\nx" * 1000):
            assert (await client.post("/ui/login", data={"key": key})).status_code == 401
    assert await site.facts() == before
    record_input(
        "pages and forms of the dashboard without a session, or with a forged one",
        given=len(cookies) * len(MATRIX),
        store="sqlite",
    )


async def test_a_role_that_may_not_changes_nothing(site: Site) -> None:
    for key in ("reader", "writer", "chief"):
        client, token = await site.log_in(key)
        async with aclosing(client):
            for name, rule in MATRIX.items():
                if rule.role not in MAY[key]:
                    before = await site.facts()
                    answer = await site.ask(client, name, token)
                    assert answer.status_code in (400, 403, 404), (key, name)
                    assert await site.facts() == before, (key, name)


async def test_a_form_without_its_token_changes_nothing(site: Site) -> None:
    client, _ = await site.log_in("boss")
    before = await site.facts()
    async with aclosing(client):
        for name in MATRIX:
            if name.startswith("POST"):
                for token in (None, "", "guess", "ä", "\x00"):
                    assert (await site.ask(client, name, token)).status_code == 403, (name, token)
    assert await site.facts() == before


async def test_what_another_tenant_has_is_not_there(site: Site) -> None:
    client, token = await site.log_in("stranger")
    own, own_token = await site.log_in("writer")
    async with aclosing(client), aclosing(own):
        before = await site.facts()
        for name, rule in MATRIX.items():
            if rule.of:
                answer = await site.ask(client, name, token)
                assert answer.status_code == 404, name
                assert await site.facts() == before, name
                assert (await site.ask(own, name, own_token)).status_code in (200, 303), name
                before = await site.facts()
        for name in MATRIX:
            if name.startswith("GET") and not MATRIX[name].of and name != "GET /ui/events":
                text = (await site.ask(client, name)).text
                shown = [id for id in site.ids.values() if id in text.replace("/ui/sources", "")]
                assert shown == [], name


async def test_boss_may_do_it_all(site: Site) -> None:
    """So that the refusals above are of the role, and not of something else."""
    client, token = await site.log_in("boss")
    async with aclosing(client):
        for name in MATRIX:
            answer = await site.ask(client, name, token)
            assert answer.status_code in (200, 303), (name, answer.text)
            assert answer.headers.get("location") != "/ui/login" or name == "POST /ui/logout"


# What pages, titles, addresses and errors of strangers could say.
# fmt: off
HOSTILE = [
    "<script>alert(1)</script>", "<ScRiPt src=//evil.example/x></sCrIpT>",
    "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", "<svg><animate onbegin=alert(1)>",
    "\"><script>alert(1)</script>", "'><img src=x onerror='alert(1)'>", "\" onmouseover=\"alert(1)",
    "' autofocus onfocus='alert(1)", "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>", "</pre><iframe src=javascript:alert(1)>",
    "<!--<img src=\"--><img src=x onerror=alert(1)//\">", "<a href=javascript:alert(1)>x</a>",
    "<base href=//evil.example/>", "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<form action=//evil.example><button>x</button></form>",
    "<style>@import'//evil.example'</style>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "{{ 7*7 }}{% for x in y %}", "${alert(1)}", "<\x00script>alert(1)</script>",
    "\u202e<script>alert(1)</script>", "＜script＞alert(1)＜/script＞",
    "<details open ontoggle=alert(1)>",
]
MARKDOWN = [
    "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))", "[x](\x01javascript:alert(1))", "[x](data:text/html,<script>)",
    "[x](vbscript:x)", "<javascript:alert(1)>", "![x](javascript:alert(1))",
    "![x](//evil.example/a)",
    "[x]: javascript:alert(1)\n\n[x]", "[a](https://e.example \"t' onmouseover=alert(1) \")",
    "```<script>\nalert(1)\n```", "`<script>`", "<div onclick=alert(1)>x</div>", "&lt;script&gt;",
    "[x](https://e.example/\" onmouseover=\"alert(1))",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "# <img src=x onerror=alert(1)>", "[<script>](https://e.example)", "![<b onclick=x>](a)",
]
# fmt: on
TAGS = frozenset({"script", "iframe", "object", "embed", "base", "img", "svg", "math", "style"})


class Looked(HTMLParser):
    """What a browser would make of a page: what could run, or load something from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        is_ours = tag == "script" and given.get("src", "").startswith("/ui/static/")
        is_drawing = tag == "svg" and given.get("class") is not None
        if tag in TAGS and not is_ours and not is_drawing:
            self.bad.append(f"<{tag}>")
        for name, value in given.items():
            is_link = name in ("href", "src", "action", "formaction", "srcset")
            plain = re.sub(r"[\x00-\x20]", "", html.unescape(value)).lower()
            if name.startswith("on") or name == "style":
                self.bad.append(f"{tag} {name}")
            elif is_link and plain.startswith(("javascript:", "data:", "vbscript:")):
                self.bad.append(f"{tag} {name}={value}")

    handle_startendtag = handle_starttag


def test_the_look_finds_what_is_bad() -> None:
    assert Looked("<p onclick=x><script>x</script><a href='java\nscript:x'>").bad == [
        "p onclick",
        "<script>",
        "a href=java\nscript:x",
    ]


def test_markdown_of_strangers_does_nothing() -> None:
    for text in [*HOSTILE, *MARKDOWN]:
        shown = str(render_markdown(text))
        assert Looked(shown).bad == [], (text, shown)


async def test_what_strangers_wrote_is_shown_as_text_on_every_page(site: Site) -> None:
    queue = site.queue
    source = SourceRow("acme", "hostile", "default", "site", "https://e.example/", HOSTILE[0])
    await Catalog(queue.database).sources.put([source])
    paths = ["/", "/ui/jobs", "/ui/failed", "/ui/schedules", "/ui/sources", "/ui/pipelines"]
    for number, text in enumerate([*HOSTILE, *MARKDOWN]):
        plain = text.replace("\x00", "")
        uri = f"https://e.example/{number}?{plain}"
        paths.append(f"/ui/documents/{await keep(queue, source, uri, plain, title=plain)}")
        job = await queue.enqueue(
            plain[:100],
            {"url": uri, "text": text, text: text},
            queue=plain[:100],
            tags=[plain[:100]],
            unique=plain[:200],
            tenant="acme",
        )
        lease = await queue.claim([plain[:100]])
        await lease.progress(lease.jobs[0], 50, text)
        if number % 2:
            await lease.fail(lease.jobs[0], ValueError(text), retry=False)
        else:
            await lease.complete(lease.jobs[0], {"markdown": text, "title": text})
        paths.append(f"/ui/jobs/{job.id}")
        assert (await queue.get(job.id)).state in (JobState.FAILED, JobState.COMPLETED)
    await queue.schedule(HOSTILE[0], HOSTILE[5], {"x": HOSTILE[9]}, every=3600, queue=HOSTILE[7])
    client, _ = await site.log_in("boss")
    paths += ["/ui/sources/hostile", f"/ui/jobs?queue={HOSTILE[5]}", f"/ui/login?next={HOSTILE[5]}"]
    paths += [f"/ui/jobs?{name}={HOSTILE[5]}" for name in ("said", "text", "error", "tag", "state")]
    async with aclosing(client):
        for path in paths:
            answer = await client.get(path)
            assert Looked(answer.text).bad == [], path
            assert "script-src 'self'" in answer.headers.get(
                "content-security-policy", "script-src 'self'"
            )
    record_input(
        "text of strangers that would run in a browser",
        given=len(HOSTILE) + len(MARKDOWN),
        taken=len(HOSTILE) + len(MARKDOWN),
        store="sqlite",
        note=f"shown as text on {len(paths)} pages of the dashboard",
    )
