"""A6: the queue over HTTP, by requests alone, on every store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request

from windrow import Queue
from windrow.api.app import create_app
from windrow.api.queue import jobs, runs
from windrow.clock import FakeClock
from windrow.queue.store import Store
from windrow.settings import Settings

KEYS = "acme=acme:write reader=acme:read globex=globex:write boss=acme:admin root"
NOBODY = "01999999-0000-7000-8000-000000000000"


class Client:
    """Somebody with a key."""

    def __init__(self, http: httpx.AsyncClient, key: str, app: FastAPI) -> None:
        self._http = http
        self.app = app
        self._headers = {"Authorization": f"Bearer {key}"}

    def using(self, key: str) -> Client:
        return Client(self._http, key, self.app)

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        content = None if body is None else json.dumps(body)  # what is not ASCII is escaped
        return await self._http.request(method, path, content=content, headers=self._headers)

    async def post(self, path: str, body: Any = None) -> Any:
        """What is answered to a request that must succeed."""
        answer = await self.ask("POST", path, {} if body is None else body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def get(self, path: str) -> Any:
        answer = await self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def enqueue(self, kind: str = "mail", **options: Any) -> str:
        return str((await self.post("/queue/jobs", {"kind": kind, **options}))["job"]["id"])

    async def claim(self, queue: str = "default", **options: Any) -> list[Any]:
        jobs: list[Any] = (await self.post("/queue/claim", {"queues": [queue], **options}))["jobs"]
        return jobs

    async def job(self, job_id: str) -> Any:
        return (await self.get(f"/queue/jobs/{job_id}"))["job"]


@pytest.fixture
async def client(store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """Of the tenant acme."""
    app = create_app(Queue(store), Settings(api_keys=KEYS))
    transport = httpx.ASGITransport(app, client=("192.0.2.1", 1))
    monkeypatch.setattr(runs, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.05)
    async with httpx.AsyncClient(transport=transport, base_url="http://a.test") as http:
        yield Client(http, "acme", app)


async def test_a_job_is_enqueued_claimed_and_completed_with_what_follows(client: Client) -> None:
    job_id = await client.enqueue(payload={"to": "ada"}, priority=8, tags=["first"])
    [job] = await client.claim(worker="elsewhere")
    done = {"lease": job["lease"], "result": {"sent": True}, "then": [{"kind": "log"}]}
    await client.post(f"/queue/jobs/{job_id}/complete", done)

    ended = await client.job(job_id)
    assert (job["id"], job["payload"], job["worker"]) == (job_id, {"to": "ada"}, "elsewhere")
    assert (ended["state"], ended["result"], ended["tags"]) == (
        "completed",
        {"sent": True},
        ["first"],
    )
    assert "lease" not in ended
    [follower] = await client.claim()
    assert (follower["kind"], follower["tenant"]) == ("log", "acme")


async def test_many_are_enqueued_in_one_transaction_or_none(client: Client) -> None:
    answer = await client.post("/queue/jobs", {"jobs": [{"kind": "a"}, {"kind": "b"}]})
    refused = await client.ask("POST", "/queue/jobs", {"jobs": [{"kind": "c"}, {"kind": ""}]})

    assert [one["outcome"] for one in answer["jobs"]] == ["inserted", "inserted"]
    assert refused.status_code == 400
    listed = (await client.get("/queue/jobs"))["jobs"]
    assert [one["kind"] for one in listed] == ["b", "a"]


async def test_a_stale_lease_is_refused_and_changes_nothing(
    client: Client, clock: FakeClock
) -> None:
    job_id = await client.enqueue()
    [stale] = await client.claim(seconds=5)
    clock.advance(6)
    [fresh] = await client.claim()
    body = {"lease": stale["lease"]}

    ends: dict[str, dict[str, Any]] = {
        "complete": {"result": 1},
        "fail": {"error": "late"},
        "snooze": {"seconds": 5},
        "release": {},
        "progress": {"percent": 50},
    }
    for verb, more in ends.items():
        answer = await client.ask("POST", f"/queue/jobs/{job_id}/{verb}", {**body, **more})
        said = answer.json()
        assert (answer.status_code, said["code"]) == (409, "LEASE_LOST"), verb
        assert said["lost"] == [job_id]
    renewed = await client.ask("POST", "/queue/renew", {"runs": [{"id": job_id, **body}]})
    assert (renewed.status_code, renewed.json()["lost"]) == (409, [job_id])
    nonsense = await client.ask("POST", f"/queue/jobs/{job_id}/complete", {"lease": "nonsense"})
    assert nonsense.json()["code"] == "LEASE_LOST"

    job = await client.job(job_id)
    assert (job["state"], job["progress"], job["result"]) == ("active", None, None)
    await client.post(f"/queue/jobs/{job_id}/complete", {"lease": fresh["lease"]})


async def test_many_runs_end_in_one_transaction_and_the_lost_are_named(
    client: Client, clock: FakeClock
) -> None:
    ids = [await client.enqueue() for _ in range(6)]
    [lost] = await client.claim(seconds=5)
    clock.advance(6)
    held = await client.claim(limit=6)
    lease = {job["id"]: job["lease"] for job in held}
    outcomes: list[dict[str, Any]] = [
        {"outcome": "complete", "result": 1},
        {"outcome": "fail", "error": "no luck", "retry": False},
        {"outcome": "fail", "error": "again", "retry_in": 60},
        {"outcome": "snooze", "seconds": 60},
        {"outcome": "cancel", "reason": "not wanted"},
    ]
    rest = [job_id for job_id in ids if job_id != lost["id"]]
    ends = [
        {"id": job_id, "lease": lease[job_id], **outcome}
        for job_id, outcome in zip(rest, outcomes, strict=True)
    ]

    answer = await client.ask(
        "POST",
        "/queue/finish",
        {"runs": [{"id": lost["id"], "lease": lost["lease"], "outcome": "release"}, *ends]},
    )

    assert (answer.status_code, answer.json()["lost"]) == (409, [lost["id"]])
    states = [(await client.job(job_id))["state"] for job_id in rest]
    assert states == ["completed", "failed", "scheduled", "scheduled", "cancelled"]
    failed = await client.job(rest[1])
    assert failed["errors"][0]["message"] == "no luck"
    assert (await client.job(rest[2]))["attempts"] == 1


async def test_leases_are_renewed_and_say_who_is_to_stop(client: Client, clock: FakeClock) -> None:
    first, second = [await client.enqueue() for _ in range(2)]
    jobs = await client.claim(limit=2, seconds=10)
    held = [{"id": job["id"], "lease": job["lease"]} for job in jobs]
    await client.post(f"/queue/jobs/{first}/cancel", {"reason": "changed our minds"})

    clock.advance(8)
    renewed = await client.post("/queue/renew", {"runs": held, "seconds": 20})
    clock.advance(15)
    lease = held[0]["lease"]
    await client.post(
        f"/queue/jobs/{second}/progress",
        {"lease": lease, "percent": 40, "message": "half", "counters": {"pages": 3}},
    )
    await client.post(f"/queue/jobs/{first}/release", {"lease": lease})

    assert renewed["stopping"] == {first: "cancelled"}
    assert (await client.job(first))["state"] == "cancelled"
    progress = (await client.job(second))["progress"]
    assert (progress["percent"], progress["message"], progress["counters"]) == (
        40,
        "half",
        {"pages": 3},
    )


async def test_a_job_is_changed_while_it_waits_and_after_it_failed(client: Client) -> None:
    job_id = await client.enqueue(payload=1, delay=60)
    edited = await client.ask("PATCH", f"/queue/jobs/{job_id}", {"payload": 2, "priority": 9})
    await client.post(f"/queue/jobs/{job_id}/retry")
    [job] = await client.claim()
    running = await client.ask("PATCH", f"/queue/jobs/{job_id}", {"payload": 3})
    end = {"lease": job["lease"], "error": "broken", "retry": False}
    await client.post(f"/queue/jobs/{job_id}/fail", end)
    again = await client.post(f"/queue/jobs/{job_id}/retry", {"from_start": True})
    paused = await client.post(f"/queue/jobs/{job_id}/pause")
    nothing = await client.claim()
    await client.post(f"/queue/jobs/{job_id}/resume")
    gone = await client.ask("DELETE", f"/queue/jobs/{job_id}")

    assert (edited.json()["job"]["payload"], job["payload"], job["priority"]) == (2, 2, 9)
    assert (running.status_code, running.json()["state"]) == (409, "active")
    assert (again["before"], paused["state"], nothing) == ("failed", "paused", [])
    assert gone.status_code == 200
    assert (await client.ask("GET", f"/queue/jobs/{job_id}")).status_code == 404


async def test_a_group_is_counted_paused_and_cancelled(client: Client) -> None:
    made = await client.post("/queue/groups", {"then": {"kind": "after"}, "hold": True})
    group = made["group"]["id"]
    for _ in range(2):
        await client.enqueue(group=group)
    await client.post(f"/queue/groups/{group}/pause")
    paused = await client.claim()
    await client.post(f"/queue/groups/{group}/resume")
    [job] = await client.claim()
    await client.post(f"/queue/jobs/{job['id']}/complete", {"lease": job["lease"]})

    told = (await client.get(f"/queue/groups/{group}"))["group"]
    listed = (await client.get("/queue/groups"))["groups"]
    cancelled = (await client.post(f"/queue/groups/{group}/cancel"))["group"]
    ended = await client.ask("POST", "/queue/jobs", {"kind": "late", "group": group})

    assert paused == []
    assert (told["counts"]["completed"], told["pending"], told["members"]) == (1, 1, 2)
    assert [one["id"] for one in listed] == [group]
    assert cancelled["state"] in ("active", "cancelled")
    assert (ended.status_code, ended.json()["code"]) == (409, "CONFLICT")


async def test_a_queue_is_paused_for_all_by_those_who_see_all(client: Client) -> None:
    root = client.using("root")
    await client.enqueue(queue="letters")

    by_tenant = await client.using("boss").ask("POST", "/queue/queues/letters/pause")
    await root.post("/queue/queues/letters/pause")
    while_paused = await client.claim("letters")
    [info] = (await client.get("/queue/queues"))["queues"]
    await root.post("/queue/queues/letters/resume")

    assert (by_tenant.status_code, by_tenant.json()["code"]) == (403, "FORBIDDEN")
    assert while_paused == []
    assert (info["name"], info["is_paused"], info["counts"]["ready"]) == ("letters", True, 1)
    assert len(await client.claim("letters")) == 1


async def test_a6_what_another_tenant_has_is_not_there(client: Client) -> None:
    job_id = await client.enqueue()
    group = (await client.post("/queue/groups", {"hold": True}))["group"]["id"]
    stranger = client.using("globex")

    assert (await stranger.get("/queue/jobs"))["jobs"] == []
    assert (await stranger.get("/queue/groups"))["groups"] == []
    assert (await stranger.get("/queue/queues"))["queues"] == []
    assert await stranger.claim() == []
    [job] = await client.claim()
    lease = job["lease"]
    for answer in (
        await stranger.ask("GET", f"/queue/jobs/{job_id}"),
        await stranger.ask("DELETE", f"/queue/jobs/{job_id}"),
        await stranger.ask("PATCH", f"/queue/jobs/{job_id}", {"payload": 1}),
        await stranger.ask("POST", f"/queue/jobs/{job_id}/cancel"),
        await stranger.ask("POST", f"/queue/jobs/{job_id}/complete", {"lease": lease}),
        await stranger.ask("POST", "/queue/renew", {"runs": [{"id": job_id, "lease": lease}]}),
        await stranger.ask("GET", f"/queue/groups/{group}"),
        await stranger.ask("POST", f"/queue/groups/{group}/cancel"),
        await stranger.ask("POST", "/queue/jobs", {"kind": "mail", "group": group}),
        await stranger.ask("POST", "/queue/groups", {"root": job_id}),
    ):
        assert answer.status_code == 404, answer.text
    for body, status in (
        ({"kind": "mail", "tenant": "acme"}, 403),
        ({"kind": "mail", "limits": ["tenant:acme"]}, 403),
        ({"kind": "mail", "id": job_id}, 409),
        ({"kind": "web.scrape"}, 400),
        ({"kind": "folder.scan", "payload": {"folder_path": "/etc"}}, 400),
        ({"kind": "index.tidy"}, 400),
    ):
        assert (await stranger.ask("POST", "/queue/jobs", body)).status_code == status, body
    listed = await stranger.ask("GET", "/queue/jobs?tenant=acme")
    claimed = await stranger.ask("POST", "/queue/claim", {"queues": ["a"], "tenants": ["acme"]})
    assert (listed.status_code, claimed.status_code) == (403, 403)


async def test_a_tenant_holds_on_to_no_lease_but_its_own(client: Client, clock: FakeClock) -> None:
    await client.enqueue()
    [job] = await client.claim(seconds=10)
    stranger = client.using("globex")
    own = await stranger.enqueue()
    await stranger.claim(seconds=10)

    clock.advance(8)
    body = {"runs": [{"id": own, "lease": job["lease"]}], "seconds": 60}
    renewed = await stranger.ask("POST", "/queue/renew", body)
    clock.advance(4)

    assert (renewed.status_code, renewed.json()["lost"]) == (409, [own])
    assert len(await client.claim()) == 1, "the lease of the other tenant has run out all the same"


async def test_those_who_see_all_claim_for_all_tenants(client: Client) -> None:
    await client.enqueue()
    await client.using("globex").enqueue()
    root = client.using("root")
    await root.enqueue(tenant="initech")

    some = await root.claim(limit=10, tenants=["globex", "initech"])

    assert {job["tenant"] for job in some} == {"globex", "initech"}
    assert [job["tenant"] for job in await root.claim(limit=10)] == ["acme"]


async def test_what_a_tenant_enqueues_counts_under_its_own_limit(client: Client) -> None:
    job_id = await client.enqueue(limits=["printer"])

    assert (await client.job(job_id))["limits"] == ["tenant:acme", "printer"]


async def test_a_claim_waits_until_there_is_something(client: Client) -> None:
    waiting = asyncio.create_task(client.claim(wait=30))
    while not waiting.done():
        await asyncio.sleep(0.01)
        if not (await client.get("/queue/jobs"))["jobs"]:
            await client.enqueue()

    [job] = await waiting
    looking = asyncio.create_task(client.get(f"/queue/jobs/{job['id']}?wait=30"))
    await client.post(f"/queue/jobs/{job['id']}/complete", {"lease": job["lease"], "result": 7})
    assert (await looking)["job"]["result"] == 7


async def test_who_waits_is_answered_when_the_server_stops(client: Client) -> None:
    job_id = await client.enqueue(queue="letters")
    claiming = asyncio.create_task(client.claim(wait=60))
    looking = asyncio.create_task(client.get(f"/queue/jobs/{job_id}?wait=60"))

    client.app.state.is_stopping = True

    assert await claiming == []
    assert (await looking)["job"]["state"] == "ready"


async def test_what_is_claimed_for_somebody_who_left_goes_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def left(request: Any) -> bool:
        return True

    job_id = await client.enqueue()
    with monkeypatch.context() as patch:
        patch.setattr(Request, "is_disconnected", left)
        await client.ask("POST", "/queue/claim", {"queues": ["default"]})

    job = await client.job(job_id)
    assert (job["runs"], job["attempts"]) == (1, 0)
    assert [one["id"] for one in await client.claim()] == [job_id]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/queue/jobs", {}, "kind"),
        ("/queue/jobs", {"kind": "a", "colour": 1}, "Unrecognized key in body: `colour`"),
        ("/queue/jobs", {"kind": "a", "priority": "high"}, "priority"),
        ("/queue/jobs", {"kind": "a", "delay": -1}, "delay"),
        ("/queue/jobs", {"kind": "a", "run_at": "2026-01-01T00:00:00"}, "run_at"),
        ("/queue/jobs", {"jobs": [{"kind": "a", "id": "x"}]}, "UUID"),
        ("/queue/claim", {"queues": []}, "queues"),
        ("/queue/claim", {"queues": ["a"], "limit": 0}, "limit"),
        ("/queue/claim", {"queues": ["a"], "wait": 61}, "wait"),
        ("/queue/claim", {"queues": ["a"], "seconds": 0}, "lease"),
        ("/queue/finish", {"runs": []}, "runs"),
        (
            "/queue/finish",
            {"runs": [{"id": NOBODY, "lease": "x", "outcome": "explode"}]},
            "outcome",
        ),
        (f"/queue/jobs/{NOBODY}/complete", {}, "lease"),
        ("/queue/groups", {"max_jobs": 0}, "max_jobs"),
    ],
)
async def test_a_bad_body_is_told_what_is_wrong(
    client: Client, path: str, body: Any, said: str
) -> None:
    answer = await client.ask("POST", path, body)

    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")
    assert said in answer.json()["error"]


async def test_a_taken_key_and_a_full_queue_are_told(client: Client, store: Store) -> None:
    first = await client.enqueue(unique="once")
    taken = {"kind": "mail", "unique": "once", "on_conflict": "reject"}
    duplicate = await client.ask("POST", "/queue/jobs", taken)
    again = await client.enqueue(unique="once")
    await Queue(store).set_queue("small", max_depth=1)
    await client.enqueue(queue="small")
    full = await client.ask("POST", "/queue/jobs", {"kind": "mail", "queue": "small"})

    assert (duplicate.status_code, duplicate.json()["existing"]) == (409, first)
    assert again == first
    assert (full.status_code, full.json()["code"]) == (429, "QUEUE_FULL")


async def test_lists_are_read_page_by_page(client: Client) -> None:
    ids = [await client.enqueue(queue="letters") for _ in range(5)]

    first = await client.get("/queue/jobs?queue=letters&state=ready&state=held&limit=3")
    second = await client.get(f"/queue/jobs?queue=letters&limit=3&after={first['next']}")

    assert [job["id"] for job in first["jobs"] + second["jobs"]] == ids[::-1]
    assert "next" not in second


ODD_JOBS: list[dict[str, Any]] = [
    {"run_at": "9999-12-31T23:59:59-23:59"},
    {"run_at": "0001-01-01T00:00:00+23:59"},
    {"priority": 2**31},
    {"priority": 2**70},
    {"payload": "\x00 and \ud800"},
    {"payload": 10**400},
    {"headers": {"\x00": "\ud800"}},
    {"unique": "\x00"},
    {"group_key": "a"},
    {"delay": 1e308},
    {"delay": 100 * 366 * 86_400},
    {"retention": 1e308},
    {"tags": ["\ud800"]},
    {"limits": [""] * 9},
    {"id": "{01999999-0000-7000-8000-000000000000}"},
    {"queue": "a" * 256},
]


@pytest.mark.parametrize("odd", ODD_JOBS, ids=lambda odd: "-".join(odd))
async def test_odd_values_are_taken_or_refused_and_nothing_breaks(client: Client, odd: Any) -> None:
    answer = await client.ask("POST", "/queue/jobs", {"kind": "odd", **odd})

    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        await client.get("/queue/jobs")
        assert (await client.job(answer.json()["job"]["id"]))["kind"] == "odd"


async def test_odd_reports_are_taken_or_refused_and_nothing_breaks(client: Client) -> None:
    job_id = await client.enqueue()
    [job] = await client.claim()
    path, lease = f"/queue/jobs/{job_id}", job["lease"]
    reports: list[tuple[str, dict[str, Any]]] = [
        ("progress", {"percent": 1e308, "message": "\x00\ud800"}),
        ("progress", {"percent": -5, "counters": {"a": 2**62, "\x00": -1}}),
        ("progress", {"counters": {"a": 2**63}}),
        ("snooze", {"seconds": -1}),
        ("snooze", {"seconds": 1e308}),
        ("fail", {"error": "\x00\ud800", "retry_in": -1}),
        ("complete", {"then": [{"kind": ""}]}),
        ("complete", {"result": "\ud800"}),
        ("complete", {"result": "\x00"}),
    ]
    for verb, report in reports:
        answer = await client.ask("POST", f"{path}/{verb}", {"lease": lease, **report})
        assert answer.status_code in (200, 400), (verb, report, answer.text)
    assert (await client.job(job_id))["state"] == "completed"
