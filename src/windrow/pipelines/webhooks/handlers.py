"""The handler of deliveries, bound to one queue and one fetcher."""

from __future__ import annotations

from windrow.ingest.fetch.fetcher import Fetcher
from windrow.pipelines.webhooks.deliveries import ATTEMPTS, KIND, QUEUE, WAITS, Delivery
from windrow.pipelines.webhooks.sending import Sender
from windrow.queue.job import Job
from windrow.queue.outcome import Done, Snooze
from windrow.queue.queue import Queue
from windrow.worker.registry import Handler, handler


def make_handlers(queue: Queue, fetcher: Fetcher, secret: str = "") -> list[Handler]:
    sender = Sender(queue, fetcher, secret)

    @handler(KIND, queue=QUEUE, max_attempts=ATTEMPTS, backoff=WAITS)
    async def deliver(job: Job, delivery: Delivery) -> Done | Snooze:
        return await sender.deliver(job, delivery)

    return [deliver]
