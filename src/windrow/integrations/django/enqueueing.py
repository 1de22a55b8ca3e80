"""Enqueueing from views and models: in Django's own transaction, or after it."""

from __future__ import annotations

from typing import Any

from django.db import connections, transaction

from windrow.errors import ConfigError
from windrow.integrations.django.opening import database_alias, get_queue, shares_database
from windrow.queue.job import Job


def enqueue(kind: str, payload: Any = None, **options: Any) -> Job:
    """Enqueue a job, with the options of `Queue.enqueue`. Inside `transaction.atomic()` it is
    stored by that transaction: committed with it, or rolled back; outside, on return."""
    if not shares_database():
        if transaction.get_connection().in_atomic_block:
            raise ConfigError(
                'the queue is in a database of its own (WINDROW["URL"]), so it cannot share this '
                "transaction: use enqueue_on_commit"
            )
        return _enqueued(kind, payload, options)
    connection = connections[database_alias()]
    if connection.in_atomic_block:
        connection.ensure_connection()
        return _enqueued(kind, payload, {**options, "tx": connection.connection})
    return _enqueued(kind, payload, options)


def enqueue_on_commit(
    kind: str, payload: Any = None, *, using: str | None = None, **options: Any
) -> None:
    """Enqueue a job as soon as the transaction is committed; if it is rolled back, never. For a
    queue in another database: a crash right after the commit may lose the job, so where both are in
    the same database `enqueue` is better."""

    def after_commit() -> None:
        _enqueued(kind, payload, options)

    transaction.on_commit(after_commit, using=using)


def _enqueued(kind: str, payload: Any, options: dict[str, Any]) -> Job:
    job: Job = get_queue().enqueue(kind, payload, **options)
    return job
