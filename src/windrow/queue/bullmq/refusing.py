"""What BullMQ cannot do, by capability: every verb of it is refused with what to do instead."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NoReturn

from windrow.errors import Unsupported
from windrow.queue.bullmq.beside import Beside
from windrow.queue.copying import CopyStore
from windrow.queue.far_runs import FarRunStore
from windrow.queue.importing import ImportStore
from windrow.queue.store import (
    GroupStore,
    LimitStore,
    RowStore,
    ScheduleStore,
)

_ELSEWHERE: Final = "use sqlite:///… or postgresql://…"


def _verbs_of(*protocols: type) -> tuple[str, ...]:
    """The verbs of these; those that there is an answer to are not asked for here."""
    return tuple(
        name for protocol in protocols for name in vars(protocol) if not name.startswith("_")
    )


# Capability: why, and the verbs that need it.
REFUSED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "job_transactions": (
        (
            "BullMQ is not in the database of your rows, so there is no job.tx: name that one in "
            f"the URL (?rows=sqlite:///… or ?rows=postgresql://…), or {_ELSEWHERE}"
        ),
        (*_verbs_of(RowStore, FarRunStore), "begin", "save_work"),
    ),
    "groups": (
        f"BullMQ has no groups, and so no crawls and batches: {_ELSEWHERE}",
        (*_verbs_of(GroupStore), "list_ended", "look_at_group"),
    ),
    "limits": (
        (
            "BullMQ has no limits per key: give such jobs a queue of their own with fewer workers, "
            f"or {_ELSEWHERE}"
        ),
        _verbs_of(LimitStore),
    ),
    "schedules": (
        (
            "Windrow keeps no schedules in BullMQ: enqueue from a cron of your own, with an id "
            f"made of the slot, or {_ELSEWHERE}"
        ),
        _verbs_of(ScheduleStore),
    ),
    "bounds": (f"BullMQ does not bound its queues: {_ELSEWHERE}", ("set_queue",)),
    "edits": (
        (
            "BullMQ cannot edit or pause one job: cancel it and enqueue another, pause all of its "
            f"queue, or {_ELSEWHERE}"
        ),
        ("edit_job", "pause_jobs", "resume_jobs"),
    ),
    "events": (
        (
            "BullMQ keeps events by queue, a few thousand of each, without a common order: read "
            f"them with BullMQ's QueueEvents, or {_ELSEWHERE}"
        ),
        ("read_events", "listen_for_events"),
    ),
    "documents": (
        (
            "pages, documents, calls, credentials, keys and quotas are tables: name a database for "
            f"them in the URL (?rows=sqlite:///… or ?rows=postgresql://…), or {_ELSEWHERE}"
        ),
        (),
    ),
    "dialects": (
        f"dialects are SQL over Windrow's tables: {_ELSEWHERE}",
        ("install_dialect", "remove_dialect"),
    ),
    "transfers": (
        (
            "jobs are not copied or migrated to or from BullMQ: enqueue new work in the other "
            f"store and let the old queue run empty, or {_ELSEWHERE} on both sides"
        ),
        _verbs_of(CopyStore, ImportStore),
    ),
}


# What is in the database beside the queue, if there is one.
BESIDE: Final = ("job_transactions",)


def refuse(capability: str) -> NoReturn:
    raise Unsupported(capability, REFUSED[capability][0])


class Refusing:
    """Answers for the verbs that are not there, or are those of the database beside the queue."""

    _beside: Beside | None = None

    def __getattr__(self, name: str) -> Any:
        for capability, (_, verbs) in REFUSED.items():
            if name not in verbs:
                continue
            if self._beside is not None and capability in BESIDE:
                return getattr(self._beside.store, name)
            return partial(_refuse_verb, capability)
        raise AttributeError(name)


def _refuse_verb(capability: str, *args: Any, **options: Any) -> NoReturn:
    refuse(capability)
