"""Webhooks: signed as the guide says, and a delivery that is sent again changes nothing."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.trust.scorecard import record_input
from tests.web.receiver import is_ours
from windrow import Queue
from windrow.api.app import create_app
from windrow.catalog import Catalog
from windrow.pipelines.webhooks.sending import sign
from windrow.services.handing_in import is_signed
from windrow.settings import Settings

SECRET = "a long secret"
BODY = b'{"type":"crawl.page","data":[]}'
GOOD = sign(BODY, SECRET.encode())
# fmt: off
BAD = [
    None, "", "sha256=", GOOD.upper(), GOOD.removeprefix("sha256="), GOOD[:-1], GOOD + "0",
    GOOD.replace("sha256", "sha1"), f"{GOOD},{GOOD}", "sha256=" + "0" * 64, "ä" * 71, "sha256=\x00",
    sign(BODY + b" ", SECRET.encode()), sign(BODY, b"another"), sign(BODY, b""), sign(b"", b"a"),
]
# fmt: on


def test_a_signature_is_checked_alike_by_us_and_by_the_guide() -> None:
    for check in (is_signed, is_ours):
        assert check(BODY, GOOD, SECRET)
        for signature in BAD:
            assert not check(BODY, signature, SECRET), signature
    assert not is_signed(BODY, sign(BODY, b""), ""), "without a secret nobody has one"


def event(text: str, **more: Any) -> dict[str, Any]:
    page = {"markdown": text, "metadata": {"sourceURL": "https://e.example/", "statusCode": 200}}
    delivery = {"webhookId": str(uuid.uuid4()), "id": "1", "success": True}
    return {"type": "crawl.page", **delivery, "data": [page], **more}


class Sender:
    def __init__(self, queue: Queue) -> None:
        settings = Settings(webhook_secret=SECRET, api_keys="a=acme z=zeta")
        self._transport = httpx.ASGITransport(create_app(queue, settings))
        self.queue = queue

    async def send(self, body: bytes, signature: str | None, **headers: str) -> httpx.Response:
        signed = {} if signature is None else {b"X-Firecrawl-Signature": signature.encode()}
        given = {name.encode(): value.encode() for name, value in headers.items()}
        async with httpx.AsyncClient(transport=self._transport, base_url="http://a.test") as client:
            return await client.post(
                "/api/webhook/firecrawl", content=body, headers={**signed, **given}
            )

    async def tell(self, told: dict[str, Any], key: str = "a") -> dict[str, Any]:
        body = msgspec.json.encode(told)
        answer = await self.send(body, sign(body, SECRET.encode()), Authorization=f"Bearer {key}")
        assert answer.status_code == 200, answer.text
        said: dict[str, Any] = answer.json()
        return said

    async def jobs(self) -> int:
        return len(await self.queue.list(limit=100))


@pytest.fixture
async def sender(tmp_path: Path) -> AsyncIterator[Sender]:
    async with Queue.open(f"sqlite:///{tmp_path / 'jobs.db'}") as queue:
        yield Sender(queue)


async def test_what_is_not_signed_writes_nothing(sender: Sender) -> None:
    for signature in BAD:
        answer = await sender.send(BODY, signature)
        assert answer.status_code == 401, signature
        assert SECRET not in answer.text
        assert GOOD.removeprefix("sha256=") not in answer.text
    assert await sender.jobs() == 0
    assert await Catalog(sender.queue.database).sources.page() == []
    record_input("webhooks with a wrong signature", given=len(BAD), store="sqlite")


async def test_a_delivery_that_is_sent_again_changes_nothing(sender: Sender) -> None:
    first = event("the words of the first")
    said = await sender.tell(first)
    assert said["queued"] == 1
    jobs = await sender.jobs()

    again = await sender.tell(first)
    forged = await sender.tell({**first, "data": event("other words")["data"]})
    after_restart = await Sender(sender.queue).tell(first)

    for answer in (again, forged, after_restart):
        assert (answer["job_id"], answer["queued"]) == (said["job_id"], 0)
    assert await sender.jobs() == jobs
    catalog = Catalog(sender.queue.database)
    [kept] = await catalog.documents.page("acme", "default", await source_of(sender))
    texts = await catalog.contents.get([kept.content or kept.pending or ""])
    assert "the words of the first" in str(texts)
    record_input(
        "a signed webhook sent again, by others too", given=3, store="sqlite", note="replay"
    )


async def source_of(sender: Sender) -> str:
    [source] = await Catalog(sender.queue.database).sources.page("acme")
    return source.id


async def test_a_delivery_to_one_tenant_is_none_to_another(sender: Sender) -> None:
    told = event("words")
    own, others = await sender.tell(told, "a"), await sender.tell(told, "z")

    assert own["queued"] == others["queued"] == 1
    assert own["job_id"] != others["job_id"]


async def test_without_an_id_the_bytes_are_what_is_remembered(sender: Sender) -> None:
    told = event("words")
    del told["webhookId"]
    assert [(await sender.tell(told))["queued"] for _ in range(3)] == [1, 0, 0]
    assert (await sender.tell({**told, "id": "2"}))["queued"] == 1
