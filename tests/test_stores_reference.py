"""docs/reference/stores.md says what each store declares. To write it anew:
`python -m tests.test_stores_reference`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from windrow.queue.bullmq.refusing import REFUSED
from windrow.queue.bullmq.store import BullmqStore, capabilities_with
from windrow.queue.postgres.store import PostgresStore
from windrow.queue.sqlite.store import SqliteStore
from windrow.queue.store import Capabilities

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "stores.md"
STORES = {
    "SQLite": SqliteStore.capabilities,
    "Postgres": PostgresStore.capabilities,
    "BullMQ": BullmqStore.capabilities,
    "BullMQ with rows": capabilities_with(PostgresStore.capabilities),
}
HEAD = """\
# What each store can do

The queue is the same on all three; what differs is declared by each store
(`queue.store.capabilities`), and this page is made from that. What a store does not declare it
refuses with `Unsupported`, whose text says what to do instead.

| URL | for |
|---|---|
| `sqlite:///jobs.db` | one machine, nothing to install |
| `postgresql://user@host/database` | many machines, tenants kept apart, everything |
| `bullmq+redis://host:6379/0` | where BullMQ is in use: [the guide](../guides/bullmq.md) |
| `bullmq+redis://host:6379/0?rows=…` | the same, with a database of SQL beside it |

In the last column the database beside it is a Postgres; with SQLite the rows are on one machine,
and `job.tx` only writes.

"""


def render() -> str:
    lines = [
        f"| capability | what it means | {' | '.join(STORES)} |",
        "|---" * (2 + len(STORES)) + "|",
    ]
    for field in fields(Capabilities):
        told = [_tell(getattr(one, field.name)) for one in STORES.values()]
        lines.append(f"| `{field.name}` | {field.metadata['means']} | {' | '.join(told)} |")
    refusals = [f"- `{name}`: {why}." for name, (why, _) in sorted(REFUSED.items())]
    tail = ["", "What BullMQ says where it has to refuse:", "", *refusals, ""]
    return HEAD + "\n".join([*lines, *tail])


def _tell(value: bool | str) -> str:
    if isinstance(value, str):
        return f"`{value}`" if value else "–"
    return "yes" if value else "–"


def test_the_page_says_what_the_stores_declare() -> None:
    assert PAGE.read_text("utf-8") == render()


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
