"""Enqueueing from views and models: in Django's own transaction, or after it."""

from __future__ import annotations

from typing import Any, TypeVar, Unpack, overload

from django.db import connections, transaction

from windrow.errors import ConfigError
from windrow.integrations.django.opening import database_alias, get_queue, shares_database
from windrow.queue.job import EnqueueOptions, Job
from windrow.queue.kinds import HandlerLike
from windrow.queue.typed_kind import TypedKind

P = TypeVar("P")
R = TypeVar("R")


@overload
def enqueue(kind: str, payload: Any = None, **options: Unpack[EnqueueOptions]) -> Job: ...
@overload
def enqueue(
    kind: HandlerLike[None, R], payload: None = None, **options: Unpack[EnqueueOptions]
) -> Job[R]: ...
@overload
def enqueue(kind: HandlerLike[P, R], payload: P, **options: Unpack[EnqueueOptions]) -> Job[R]: ...
def enqueue(
    kind: str | HandlerLike[Any, Any], payload: Any = None, **options: Unpack[EnqueueOptions]
) -> Job[Any]:
    """Enqueue a job, as `Queue.enqueue` does. Inside `transaction.atomic()` it is
    stored by that transaction: committed with it, or rolled back; outside, on return."""
    if not shares_database():
        if transaction.get_connection().in_atomic_block:
            raise ConfigError(
                'the queue is in a database of its own (WINDROW["URL"]), so it cannot share this '
                "transaction: use enqueue_on_commit"
            )
        return get_queue().enqueue(kind, payload, **options)
    connection = connections[database_alias()]
    if connection.in_atomic_block:
        connection.ensure_connection()
        options["tx"] = connection.connection
    return get_queue().enqueue(kind, payload, **options)


@overload
def enqueue_on_commit(
    kind: str, payload: Any = None, *, using: str | None = None, **options: Unpack[EnqueueOptions]
) -> None: ...
@overload
def enqueue_on_commit(
    kind: HandlerLike[None, Any],
    payload: None = None,
    *,
    using: str | None = None,
    **options: Unpack[EnqueueOptions],
) -> None: ...
@overload
def enqueue_on_commit(
    kind: HandlerLike[P, Any],
    payload: P,
    *,
    using: str | None = None,
    **options: Unpack[EnqueueOptions],
) -> None: ...
def enqueue_on_commit(
    kind: str | HandlerLike[Any, Any],
    payload: Any = None,
    *,
    using: str | None = None,
    **options: Unpack[EnqueueOptions],
) -> None:
    """Enqueue a job as soon as the transaction is committed; if it is rolled back, never. For a
    queue in another database: a crash right after the commit may lose the job, so where both are in
    the same database `enqueue` is better."""
    if isinstance(kind, TypedKind):
        kind.check_payload(payload)  # after the commit it would be too late

    def after_commit() -> None:
        get_queue().enqueue(kind, payload, **options)

    transaction.on_commit(after_commit, using=using)
