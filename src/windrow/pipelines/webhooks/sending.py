"""`webhook.deliver`: tell a webhook something, until it has taken it.

Every try sends the same bytes with the same `webhookId`, so that whoever gets them twice can tell.
Neither what is sent nor where to is written down: a path can be as secret as a header.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from typing import Any, Final

import msgspec

from windrow.errors import DeliveryFailed, FetchError, GroupNotFound
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.target import parse_url
from windrow.pipelines.web.failures import why_failed
from windrow.pipelines.webhooks.deliveries import (
    ATTEMPTS,
    KIND,
    QUEUE,
    WAITS,
    Delivery,
    deliveries_id,
    limit_key,
)
from windrow.pipelines.webhooks.webhook import SIGNATURE, EventName, Webhook
from windrow.queue.job import Job, JobState
from windrow.queue.outcome import Done, Snooze
from windrow.queue.queue import Queue
from windrow.worker.registry import Handler, handler

SECONDS: Final = 10.0  # for an answer
LOOK_SECONDS: Final = 2.0  # until it is looked again whether a run has ended
KEPT_RUNS: Final = 256
# Refusals that may be over later; other ones of the kind 4xx say that it is our fault.
PASSING: Final = frozenset({408, 425, 429})
USER_AGENT: Final = "windrow-webhook"
PREFIXES: Final = {"web.crawl": "crawl", "web.batch": "batch_scrape"}
ENDS: Final[dict[JobState, EventName]] = {
    JobState.COMPLETED: "completed",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
}


def make_handlers(queue: Queue, fetcher: Fetcher, secret: str = "") -> list[Handler]:
    """The handler of deliveries, bound to one queue and one fetcher."""
    sender = Sender(queue, fetcher, secret)

    @handler(KIND, queue=QUEUE, max_attempts=ATTEMPTS, backoff=WAITS)
    async def deliver(job: Job, delivery: Delivery) -> Done | Snooze:
        return await sender.deliver(job, delivery)

    return [deliver]


class Sender:
    def __init__(self, queue: Queue, fetcher: Fetcher, secret: str = "") -> None:
        self._queue = queue
        self._fetcher = fetcher
        self._secret = secret.encode()
        self._webhooks: OrderedDict[str, tuple[Webhook, str]] = OrderedDict()

    async def deliver(self, job: Job, delivery: Delivery) -> Done | Snooze:
        webhook, kind = await self._webhook_of(delivery.run_id)
        match delivery.what:
            case "started":
                content = _content("started")
            case "page":
                page = await self._queue.get(delivery.page_id or "")
                if not page.is_finished:
                    return Done("the page is tried again, so there is nothing to tell yet")
                content = _page(page)
            case "end":
                if not await self._is_told(delivery.run_id):
                    return Snooze(LOOK_SECONDS)
                root = await self._queue.get(delivery.run_id)
                if not root.is_finished:
                    return Snooze(LOOK_SECONDS)
                content = _end(root)
                await self._queue.remove_limit(limit_key(delivery.run_id))
        event: EventName = content.pop("event")
        if not webhook.wants(event):
            return Done("not wanted")
        body = {"type": f"{kind}.{event}", "id": delivery.run_id, "webhookId": job.id, **content}
        if webhook.metadata:
            body["metadata"] = webhook.metadata
        return Done({"status": await self._send(webhook, msgspec.json.encode(body))})

    async def _is_told(self, run_id: str) -> bool:
        """Whether all that was to be told of a run's pages has been, or was given up."""
        try:
            group = await self._queue.close_group(deliveries_id(run_id))
        except GroupNotFound:
            return True  # the run ended before it began
        return not group.pending

    async def _webhook_of(self, run_id: str) -> tuple[Webhook, str]:
        """Where to, and as what, the deliveries of a run go."""
        found = self._webhooks.get(run_id)
        if found is None:
            root = await self._queue.get(run_id)
            found = msgspec.convert(root.payload["webhook"], Webhook), PREFIXES[root.kind]
            self._webhooks[run_id] = found
            if len(self._webhooks) > KEPT_RUNS:
                self._webhooks.popitem(last=False)
        return found

    async def _send(self, webhook: Webhook, body: bytes) -> int:
        """The status of the answer. Raises DeliveryFailed."""
        headers = {
            "User-Agent": USER_AGENT,
            **webhook.headers,
            "Content-Type": "application/json",
        }
        if self._secret:
            headers[SIGNATURE] = sign(body, self._secret)
        origin = str(parse_url(webhook.url).origin())
        try:
            answer = await self._fetcher.post(webhook.url, body, headers=headers, timeout=SECONDS)
        except FetchError as error:
            why = str(error).removeprefix(f"{error.url}: ")
            # Without its cause, which names the address.
            raise DeliveryFailed(origin, why, transient=error.transient) from None
        if 200 <= answer.status < 300:
            return answer.status
        raise DeliveryFailed(
            origin,
            f"answered {answer.status}",
            transient=answer.status >= 500 or answer.status in PASSING,
            retry_after=answer.retry_after,
        )


def sign(body: bytes, secret: bytes) -> str:
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"


def _content(event: EventName, **more: Any) -> dict[str, Any]:
    return {"event": event, "success": True, "data": [], **more}


def _page(page: Job) -> dict[str, Any]:
    if page.state is JobState.COMPLETED and page.result_json:
        return _content("page", data=[msgspec.Raw(_bytes(page.result_json))])
    metadata = {"sourceURL": page.payload.get("url"), "scrapeId": page.id}
    _, error = why_failed(page)
    return _content("page", success=False, error=error, data=[{"metadata": metadata}])


def _end(root: Job) -> dict[str, Any]:
    event = ENDS[root.state]
    if event == "completed":
        return _content(event)
    return _content(event, success=False, error=why_failed(root)[1] or event)


def _bytes(stored: str | bytes) -> bytes:
    return stored.encode() if isinstance(stored, str) else stored
