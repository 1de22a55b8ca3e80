"""A6: every endpoint of the API × no key, a wrong key, a key that only reads, another tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.reference.http import routes_of
from tests.trust.scorecard import record_input
from windrow import Queue
from windrow.accounts import Accounts
from windrow.accounts.api_keys import ApiKeyRow
from windrow.api.app import PREFIX, create_app
from windrow.api.callers import check_is_local
from windrow.api.errors import ApiError
from windrow.api.firecrawl import parse as parsing
from windrow.api.limits import KEPT, WRONG_KEYS_PER_MINUTE, Guesses, RateLimit
from windrow.catalog import Catalog
from windrow.catalog.contents import ContentRow, Written
from windrow.catalog.documents import DocumentRow
from windrow.catalog.sources import SourceRow
from windrow.errors import ConfigError
from windrow.ids import new_id
from windrow.mcp.http import create_app as create_mcp_app
from windrow.services import keys
from windrow.services.keys import Identity, hash_key, make_key, parse_keys
from windrow.services.knowledge import AddOptions, add
from windrow.services.web import start_batch, start_crawl, start_scrape
from windrow.services.web.models import start_extract
from windrow.settings import Settings
from windrow.web.site import create_site

SITE = "http://example.org/"
KEYS = "writer=acme:write reader=acme:read stranger=globex:write chief=acme:admin root"
OPEN = {"/health", "/ready"}
ADMIN = {"/metrics", "/queue/queues/{name}/pause", "/queue/queues/{name}/resume"}
# They change nothing.
ASKED_BY_POST = {"/v2/search", "/api/search", "/rag/query", "/rag/code-examples"}
SIGNED = {"/api/webhook/firecrawl"}  # ask for a signature, whatever the key
BODIES = {
    "/v2/batch/scrape": {"urls": ["http://example.org"], "colour": 1},
    "/queue/jobs/{job_id}": {"payload": 1},
    "/queue/jobs/{job_id}/complete": {"lease": "stale"},
    "/queue/jobs/{job_id}/fail": {"lease": "stale"},
    "/queue/jobs/{job_id}/progress": {"lease": "stale"},
    "/queue/jobs/{job_id}/release": {"lease": "stale"},
    "/queue/jobs/{job_id}/snooze": {"lease": "stale", "seconds": 1},
    "/queue/jobs/{job_id}/cancel": {},
    "/queue/jobs/{job_id}/retry": {},
    "/queue/groups/{group_id}/cancel": {},
    "/knowledge-items/{source_id}": {"title": "Example"},
    "": {"url": "http://example.org", "colour": 1},
}


class Api:
    """The application and what the tenant acme has in it."""

    def __init__(self, queue: Queue, ids: dict[str, str]) -> None:
        app = self.app = create_app(queue, Settings(api_keys=KEYS))
        app.state.broadcast.close()  # or GET /events would be answered for ever
        self.ids = ids
        self.queue = queue
        self.source = SourceRow("acme", ids["source_id"], "default", "site", SITE)
        self.endpoints = sorted(
            (method.upper(), path)
            for path, methods in app.openapi()["paths"].items()
            for method in methods
        )
        self.routes = [
            (method, path)
            for route in app.routes
            for name, _ in routes_of(route)
            for method, path in [name.split(" ", 1)]
        ]
        self._transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))

    async def ask(self, method: str, path: str, key: str | None) -> httpx.Response:
        body = BODIES.get(path.removeprefix(PREFIX), BODIES[""])
        given: dict[str, Any] = {"json": body} if method in ("POST", "PATCH", "PUT") else {}
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(transport=self._transport, base_url="http://a.test") as client:
            return await client.request(method, path.format(**self.ids), headers=headers, **given)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        page = await start_scrape(queue, "http://example.org", tenant="acme")
        batch = await start_batch(queue, ["http://example.org"], tenant="acme")
        model = Settings(llm_url="http://127.0.0.1:1")
        extract_id, _ = await start_extract(
            queue, model, ["http://example.org"], prompt="all", tenant="acme"
        )
        added = await add(queue, SITE, AddOptions(tenant="acme"))
        page_id = await keep_page(queue, added.source)
        ids = {
            "page_id": page_id,
            "progress_id": added.job_id,
            "session_id": added.job_id,
            "source_id": added.source.id,
            "scrape_id": page.id,
            "crawl_id": await start_crawl(queue, "http://example.org", tenant="acme"),
            "batch_id": batch.id,
            "extract_id": extract_id,
            "job_id": page.id,
            "group_id": (await queue.create_group(tenant="acme", hold=True)).id,
            "name": "web",
        }
        yield Api(queue, ids)


async def keep_page(queue: Queue, source: SourceRow) -> str:
    """A page of a source that can be found; its id."""
    page = DocumentRow(
        new_id(), source.tenant, source.collection, source.id, SITE, pending=new_id()
    )
    text = ContentRow(page.pending or "", source.tenant, source.collection, "text")
    catalog = Catalog(queue.database)
    await catalog.documents.put([page], [text])
    await catalog.contents.switch([Written(text.id, 1, "space")])
    return page.id


async def test_a6_every_endpoint_asks_for_a_key(api: Api) -> None:
    assert len(api.endpoints) >= 20
    for method, path in api.endpoints:
        for key in (None, "wrong", ""):
            answer = await api.ask(method, path, key)
            expected = {200, 503} if path in OPEN else {401}
            assert answer.status_code in expected, (method, path, key)
    record_input(
        "endpoints asked without a key, or with a wrong one",
        given=3 * (len(api.endpoints) - len(OPEN)),
        store="sqlite",
        note=f"{len(api.endpoints)} endpoints",
    )


async def test_a6_a_key_that_reads_changes_nothing(api: Api) -> None:
    for method, path in api.endpoints:
        answer = await api.ask(method, path, "reader")
        plain = path if path in ASKED_BY_POST else path.removeprefix(PREFIX)
        is_refused = path in ADMIN or (method != "GET" and plain not in ASKED_BY_POST)
        expected = 401 if path in SIGNED else 403
        assert (answer.status_code == expected) is is_refused, (method, path, answer.text)


async def test_a6_what_another_tenant_has_is_not_there(api: Api) -> None:
    asked = [one for one in api.endpoints if "{" in one[1] and one[1] not in ADMIN]
    assert len(asked) >= 50
    for method, path in asked:
        assert (await api.ask(method, path, "stranger")).status_code == 404, (method, path)
    for method, path in sorted(asked, key=lambda one: one[0] == "DELETE"):
        # What runs by no lease, or has ended, cannot be ended; but it is there.
        fitting = (200, 202) if path.startswith("/v2") else (200, 202, 409)
        if "{source_id}" in path:
            await Catalog(api.queue.database).sources.put(
                [api.source]
            )  # which another way may have removed
        answer = await api.ask(method, path, "writer")
        assert answer.status_code in fitting or "made by Windrow" in answer.text, (method, path)


async def test_a6_the_queue_of_another_tenant_is_not_counted(api: Api) -> None:
    own = (await api.ask("GET", "/v2/team/queue-status", "writer")).json()
    others = (await api.ask("GET", "/v2/team/queue-status", "stranger")).json()
    all_ = (await api.ask("GET", "/v2/team/queue-status", "root")).json()

    assert (own["jobsInQueue"], others["jobsInQueue"], all_["jobsInQueue"]) == (5, 0, 5)


async def test_a6_what_is_of_all_tenants_takes_a_key_of_all(api: Api) -> None:
    for method, path in api.endpoints:
        if path in ADMIN:
            answers = [await api.ask(method, path, key) for key in ("chief", "root")]
            assert [one.status_code for one in answers] == [403, 200], (method, path)
            assert answers[0].json()["code"] == "FORBIDDEN"


async def test_a6_sockets_ask_for_a_key_too(api: Api) -> None:
    client = TestClient(api.app)
    sockets = [path for method, path in api.routes if method == "WS"]
    assert len(sockets) >= 2
    for path in sockets:
        with client.websocket_connect(path.format(**api.ids)) as socket:
            said = socket.receive_json()
            with pytest.raises(WebSocketDisconnect) as closed:
                socket.receive_json()
        assert said == {"type": "error", "error": "Unauthorized: Invalid token"}
        assert closed.value.code == 3000


async def test_a6_no_endpoint_is_left_out_here(api: Api) -> None:
    """Whatever is served is asked for above, but for the description of the API itself."""
    documents = {"/docs", "/openapi.json", "/docs/oauth2-redirect"}
    served = {one for one in api.routes if one[0] != "WS" and one[1] not in documents}

    assert served == {*api.endpoints}


@pytest.mark.parametrize(("origins", "is_allowed"), [("", False), ("https://app.test", True)])
async def test_a6_pages_of_other_sites_are_let_in_by_a_setting_only(
    api: Api, origins: str, is_allowed: bool
) -> None:
    settings = Settings(api_keys=KEYS, api_cors_origins=origins)
    transport = httpx.ASGITransport(create_app(api.app.state.queue, settings))
    headers = {"Origin": "https://app.test", "Access-Control-Request-Method": "POST"}
    async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as client:
        asked = await client.options("/v2/crawl", headers=headers)
        other = await client.options("/v2/crawl", headers={**headers, "Origin": "https://b.test"})

    assert (asked.headers.get("access-control-allow-origin") == "https://app.test") is is_allowed
    assert "access-control-allow-origin" not in other.headers


async def test_a_key_that_is_made_and_revoked_counts_in_between(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "KEPT_SECONDS", -1.0)
    store = api.app.state.queue.store

    before = await api.ask("GET", "/v2/crawl/active", "made")
    accounts = Accounts(store.database)
    await accounts.api_keys.insert(ApiKeyRow("robot", hash_key("made"), "acme", "read"))
    during = await api.ask("GET", "/v2/crawl/active", "made")
    await accounts.api_keys.delete("robot")
    after = await api.ask("GET", "/v2/crawl/active", "made")

    assert [one.status_code for one in (before, during, after)] == [401, 200, 401]


async def test_keys_are_read_once_for_all_who_ask_at_the_same_moment(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "KEPT_SECONDS", 3600.0)
    database = api.app.state.queue.database
    rows, asked = database.rows, 0

    async def counted(statement: str, **values: Any) -> Any:
        nonlocal asked
        asked += statement == "list_api_keys"
        return await rows(statement, **values)

    monkeypatch.setattr(database, "rows", counted)
    answers = await asyncio.gather(
        *(api.ask("GET", "/v2/crawl/active", "writer") for _ in range(10))
    )

    assert {one.status_code for one in answers} == {200}
    assert asked == 1


async def test_a_key_that_asks_too_often_is_told_when_to_come_again(api: Api) -> None:
    api.app.state.rates = RateLimit(3)

    answers = [await api.ask("GET", "/v2/crawl/active", "writer") for _ in range(4)]
    other = await api.ask("GET", "/v2/crawl/active", "reader")

    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    assert answers[-1].json()["code"] == "RATE_LIMITED"
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 21
    assert other.status_code == 200


@pytest.mark.parametrize(
    "headers", [{"Host": "[::1"}, {"Host": "localhost", "Origin": "http://["}, {"Host": ""}]
)
async def test_a6_headers_that_name_no_host_are_refused(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        app = create_app(queue, Settings())
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as client:
            answer = await client.get("/v2/crawl/active", headers=headers)
    assert answer.status_code == 403


async def test_jobs_that_wait_for_a_worker_make_the_health_red(api: Api) -> None:
    answer = await api.ask("GET", "/health", None)

    assert answer.status_code == 503
    assert "no worker is alive" in answer.json()["cause"]


def test_keys_name_a_tenant_and_a_role() -> None:
    assert parse_keys("a=acme:read, b=acme c") == {
        hash_key("a"): Identity("acme", "read"),
        hash_key("b"): Identity("acme", "write"),
        hash_key("c"): Identity(None, "admin"),
    }


@pytest.mark.parametrize("text", ["very-secret=acme:owner", "very-secret=", "=acme"])
def test_a_key_that_is_not_understood_is_not_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="number 1") as refused:
        parse_keys(text)

    assert "very-secret" not in str(refused.value)


async def test_a6_a_tenant_that_has_used_its_quota_is_answered_with_402(tmp_path: Path) -> None:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        settings = Settings(api_keys="a=acme z=zeta", api_quotas="acme=1/day")
        transport = httpx.ASGITransport(create_app(queue, settings), client=("192.0.2.1", 1))

        async def ask(key: str, method: str, path: str, **given: Any) -> httpx.Response:
            headers = {"Authorization": f"Bearer {key}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as client:
                return await client.request(method, path, headers=headers, **given)

        file = {"file": ("a.txt", b"text", "text/plain")}
        for key, expected in (("a", 200), ("a", 402), ("z", 200), ("z", 200)):
            parsed = await ask(key, "POST", "/v2/parse", files=file)
            assert parsed.status_code == expected, parsed.text
        refused = await ask("a", "POST", "/v2/crawl", json={"url": "http://example.org"})
        batch = await ask("a", "POST", "/v2/batch/scrape", json={"urls": ["http://example.org"]})
        own = (await ask("a", "GET", "/v2/team/credit-usage")).json()["data"]
        others = (await ask("z", "GET", "/v2/team/token-usage")).json()["data"]
        assert await queue.list() == []

    assert (refused.status_code, batch.status_code) == (402, 402)
    assert refused.json()["code"] == "INSUFFICIENT_CREDITS"
    assert refused.json()["error"].startswith("Insufficient credits to perform this request")
    assert (own["remainingCredits"], own["planCredits"]) == (0, 1)
    assert own["billingPeriodStart"] < own["billingPeriodEnd"]
    assert (others["remainingTokens"], others["billingPeriodStart"]) == (2**31 - 1, None)


async def test_n10_a_file_whose_reader_dies_is_not_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was answered, so nothing is counted: neither where the request ends at once, as in a
    server that stops, nor where the conversion fails."""
    began = asyncio.Event()

    async def stuck(*_: Any) -> None:
        began.set()
        await asyncio.sleep(60)

    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        settings = Settings(api_keys="a=acme", api_quotas="acme=5/day")
        transport = httpx.ASGITransport(create_app(queue, settings))
        headers = {"Authorization": "Bearer a"}
        file = {"file": ("a.txt", b"text", "text/plain")}
        broken = {"file": ("a.pdf", b"%PDF-1.4 and nothing more", "application/pdf")}
        async with httpx.AsyncClient(
            transport=transport, base_url="http://a.test", headers=headers
        ) as client:
            with monkeypatch.context() as patched:
                patched.setattr(parsing, "parse_file", stuck)
                asked = asyncio.create_task(client.post("/v2/parse", files=file))
                await began.wait()
                asked.cancel()
                await asyncio.wait([asked])
            failed = await client.post("/v2/parse", files=broken)
            before = (await client.get("/v2/team/credit-usage")).json()["data"]
            parsed = await client.post("/v2/parse", files=file)
            after = (await client.get("/v2/team/credit-usage")).json()["data"]

    assert (asked.cancelled(), failed.status_code, parsed.status_code) == (True, 500, 200)
    assert (before["remainingCredits"], after["remainingCredits"]) == (5, 4)


FROM_PROXIES = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Host": "jobs.example.org",
    "X-Forwarded-Proto": "https",
    "X-Real-IP": "203.0.113.9",
    "Forwarded": "for=203.0.113.9",
    "Via": "1.1 proxy.example.org",
    "CF-Connecting-IP": "203.0.113.9",
    "True-Client-IP": "203.0.113.9",
    "X-Client-IP": "203.0.113.9",
    "X-Original-Host": "jobs.example.org",
    "CDN-Loop": "example",
    "X-Amzn-Trace-Id": "Root=1-67891233",
    "X-ProxyUser-Ip": "203.0.113.9",
    "Front-End-Https": "on",
    "WL-Proxy-Client-IP": "203.0.113.9",
    "Tailscale-User-Login": "a@example.org",
}


@pytest.mark.parametrize("header", FROM_PROXIES)
async def test_without_keys_what_a_proxy_passes_on_is_not_from_this_machine(
    tmp_path: Path, header: str
) -> None:
    given = {header: FROM_PROXIES[header]}
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        settings = Settings()
        api, mcp = create_site(queue, settings), create_mcp_app(queue, settings)
        for app, path in ((api, "/queue/jobs"), (api, "/"), (mcp, "/mcp")):
            transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1"
            ) as client:
                assert (await client.get(path, headers=given)).status_code == 403, path
        local = TestClient(api, base_url="http://127.0.0.1", client=("127.0.0.1", 1))
        with local.websocket_connect(f"/v2/crawl/{new_id()}", headers=given) as socket:
            assert "only this machine" in socket.receive_json()["error"]
            with pytest.raises(WebSocketDisconnect) as closed:
                socket.receive_json()
            assert closed.value.code == 3003
        assert local.get("/queue/jobs").status_code == 200


def test_without_keys_requests_of_http_1_0_are_a_proxys() -> None:
    """nginx passes them on so, with its own name for this machine as their Host."""
    local = {"type": "http", "client": ("127.0.0.1", 1), "headers": [(b"host", b"127.0.0.1:3002")]}
    check_is_local(HTTPConnection({**local, "http_version": "1.1"}))
    with pytest.raises(ApiError) as refused:
        check_is_local(HTTPConnection({**local, "http_version": "1.0"}))
    assert refused.value.status == 403


async def test_many_wrong_keys_from_one_address_have_to_wait(api: Api) -> None:
    async def ask(key: str) -> httpx.Response:
        return await api.ask("GET", "/queue/queues", key)

    assert (await ask("reader")).status_code == 200
    for n in range(WRONG_KEYS_PER_MINUTE):
        assert (await ask(f"guess-{n}")).status_code == 401
    refused = await ask("another guess")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 4
    assert refused.json()["code"] == "RATE_LIMITED"
    assert (await ask("writer")).status_code == 429  # right, but it may be the next guess
    assert (await ask("reader")).status_code == 200  # was right from there before


async def test_wrong_keys_do_not_lock_out_keys_that_nobody_can_guess(tmp_path: Path) -> None:
    """Of others behind the same proxy, who have not asked this server before."""
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        made = await make_key(queue, "made", tenant="acme", role="read")
        configured = "0123456789abcdef" * 2
        app = create_site(queue, Settings(api_keys=configured, data_dir=str(tmp_path)))
        transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as client:

            async def ask(key: str) -> int:
                headers = {"Authorization": f"Bearer {key}"}
                return (await client.get("/queue/jobs", headers=headers)).status_code

            guesses = [f"{n:032}" for n in range(WRONG_KEYS_PER_MINUTE + 1)]
            assert {await ask(key) for key in guesses} == {401, 429}
            assert [await ask(made), await ask(configured)] == [200, 200]
            assert await ask("1" * 32) == 429
            login = await client.post("/ui/login", data={"key": f" {made} "})
            assert login.status_code == 303


async def test_a_wrong_key_that_is_only_repeated_locks_nobody_out(api: Api) -> None:
    for _ in range(5 * WRONG_KEYS_PER_MINUTE):
        assert (await api.ask("GET", "/queue/queues", "old")).status_code == 401
    assert (await api.ask("GET", "/queue/queues", "writer")).status_code == 200


def test_wrong_keys_are_remembered_within_bounds_and_by_network() -> None:
    guesses = Guesses(2)

    def come(host: str, key: str, *, is_right: bool = False) -> None:
        guesses.count(client_at(host), key, hash_key(key), is_right=is_right)

    come("2001:db8::1", "a")
    come("2001:db8::2", "b")
    with pytest.raises(ApiError):
        come("2001:db8::3", "c")
    come("2001:db8:0:1::1", "d")
    come("::ffff:192.0.2.1", "e")
    come("::ffff:192.0.2.1", "f")
    with pytest.raises(ApiError):
        come("192.0.2.1", "g")
    come("::ffff:192.0.2.2", "h")
    come("::1", "i")
    for n in range(KEPT + 10):
        come(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", "key", is_right=n % 2 == 0)
    assert len(guesses._last) <= KEPT
    assert len(guesses._right) <= KEPT
    assert len(guesses._wrong._buckets) <= KEPT


def client_at(host: str) -> HTTPConnection:
    return HTTPConnection({"type": "http", "client": (host, 1), "headers": []})
