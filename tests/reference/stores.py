"""docs/reference/stores.md: what each store declares."""

from __future__ import annotations

from dataclasses import fields

from tests.reference.markdown import page, table
from windrow.queue.bullmq.refusing import REFUSED
from windrow.queue.bullmq.store import BullmqStore, capabilities_with
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.sqlite.store import SqliteStore
from windrow.queue.store import Capabilities

STORES = {
    "SQLite": SqliteStore.capabilities,
    "Postgres": PostgresStore.capabilities,
    "BullMQ": BullmqStore.capabilities,
    "BullMQ with rows": capabilities_with(PostgresStore.capabilities),
}
HEAD = """\
The queue is the same on all three; what differs is declared by each store
(`queue.store.capabilities`). What a store does not declare it refuses with `Unsupported`, whose
text says what to do instead.

| URL | for |
| --- | --- |
| `sqlite:///jobs.db` | one machine, nothing to install |
| `postgresql://user@host/database` | many machines, tenants kept apart, everything |
| `bullmq+redis://host:6379/0` | where BullMQ is in use: [the guide](../guides/bullmq.md) |
| `bullmq+redis://host:6379/0?rows=…` | the same, with a database of SQL beside it |

In the last column the database beside it is a Postgres; with SQLite the rows are on one machine,
and `job.tx` only writes."""


def render() -> str:
    rows = [
        [
            f"`{one.name}`",
            one.metadata["means"],
            *(_tell(getattr(each, one.name)) for each in STORES.values()),
        ]
        for one in fields(Capabilities)
    ]
    refusals = [f"- `{name}`: {why}." for name, (why, _) in sorted(REFUSED.items())]
    return page(
        "What each store can do",
        HEAD,
        table(["capability", "what it means", *STORES], rows),
        "What BullMQ says where it has to refuse:",
        "\n".join(refusals),
    )


def _tell(value: bool | str) -> str:
    if isinstance(value, str):
        return f"`{value}`" if value else "–"
    return "yes" if value else "–"
