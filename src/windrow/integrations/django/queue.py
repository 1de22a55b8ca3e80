"""The one queue of this process, by Django's settings, and enqueueing in Django's transaction.

    WINDROW = {
        "DATABASE": "default",              # which of DATABASES the queue is in
        "URL": "postgresql://…",            # or another database than Django's
        "OPTIONS": {"max_payload": 65536},  # more for Queue.open
        "HANDLERS": ["shop.mail"],          # modules with handlers, besides the apps' `jobs`
    }

All of it may be left out: then the queue is in the database Django calls `default`. Views and
models enqueue in Django's own transaction, or after it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, Unpack, overload
from urllib.parse import quote

from django.conf import settings
from django.db import connections, transaction

from windrow.errors import ConfigError
from windrow.queue.job import EnqueueOptions, Job
from windrow.queue.kinds import HandlerLike
from windrow.queue.queue import Queue
from windrow.queue.sync_queue import SyncQueue
from windrow.queue.typed_kind import TypedKind

KNOWN: Final = ("DATABASE", "URL", "OPTIONS", "HANDLERS")

_lock: Final = threading.Lock()
_opened: dict[int, SyncQueue] = {}  # by process: its thread does not survive a fork

P = TypeVar("P")
R = TypeVar("R")


def get_queue() -> SyncQueue:
    """The queue of this process, opened when it is first asked for."""
    with _lock:
        queue = _opened.get(os.getpid())
        if queue is None:
            _opened.clear()
            queue = _opened[os.getpid()] = Queue.sync(queue_url(), **queue_options())
        return queue


def close_queue() -> None:
    """Close it; asked for again it is opened anew, by the settings as they are then. At the end of
    the process that is not needed: what was enqueued is stored. At the end of tests it is, on
    Postgres: their database cannot be dropped while it is in use."""
    with _lock:
        queue = _opened.pop(os.getpid(), None)
    if queue is not None:
        queue.close()


def queue_url() -> str:
    chosen = configured("URL", "")
    if chosen:
        return str(chosen)
    return url_of(connections[database_alias()].settings_dict)


def queue_options() -> dict[str, Any]:
    # `manage.py migrate` has made the tables. To look for newer ones here would take SQLite's write
    # lock, which the transaction that enqueues its first job may have itself.
    return {"migrate": False, **configured("OPTIONS", {})}


def database_alias() -> str:
    return str(configured("DATABASE", "default"))


def shares_database() -> bool:
    """Whether the queue is in a database of Django's, so that they can share a transaction."""
    return not configured("URL", "")


def configured(name: str, default: Any) -> Any:
    given: Mapping[str, Any] = getattr(settings, "WINDROW", {})
    if unknown := sorted(set(given) - set(KNOWN)):
        raise ConfigError(
            f"unknown in the setting WINDROW: {', '.join(unknown)}; there are: {', '.join(KNOWN)}"
        )
    return given.get(name, default)


def url_of(database: Mapping[str, Any]) -> str:
    engine = str(database["ENGINE"]).rpartition(".")[2]
    name = str(database["NAME"])
    if engine.endswith("sqlite3"):
        if ":memory:" in name or "mode=memory" in name:
            raise ConfigError(
                "a queue must be durable, and Django's database is in memory: give it a file, in "
                'tests with DATABASES["default"]["TEST"] = {"NAME": "test.sqlite3"}'
            )
        return f"sqlite:///{quote(str(Path(name).absolute()))}"
    if engine.endswith(("postgresql", "postgis")):
        return _postgres_url(database, name)
    raise ConfigError(
        f"Windrow cannot be in a database of {database['ENGINE']}: name one that is on Postgres "
        'or SQLite in WINDROW["DATABASE"], or give WINDROW["URL"]'
    )


def _postgres_url(database: Mapping[str, Any], name: str) -> str:
    user = quote(str(database.get("USER") or ""), safe="")
    password = quote(str(database.get("PASSWORD") or ""), safe="")
    host = str(database.get("HOST") or "")
    port = f":{database['PORT']}" if database.get("PORT") else ""
    login = f"{user}:{password}@" if password else f"{user}@" if user else ""
    if host.startswith("/"):  # the folder of a socket
        return f"postgresql://{login}/{quote(name, safe='')}?host={quote(host, safe='')}"
    return f"postgresql://{login}{host}{port}/{quote(name, safe='')}"


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
