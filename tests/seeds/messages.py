"""Messages as the tests of PGMQ send and read them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any


async def create(db: Any, *names: str) -> None:
    for name in names:
        await db.execute("SELECT pgmq.create($1)", name)


async def send(db: Any, queue: str, message: Any = None, **headers: Any) -> int:
    return int(
        await db.fetchval(
            "SELECT * FROM pgmq.send($1, $2::jsonb, $3::jsonb)",
            *(queue, json.dumps(message), json.dumps(headers or None)),
        )
    )


async def read(db: Any, queue: str, vt: int = 120, qty: int = 1) -> list[Any]:
    found: list[Any] = await db.fetch("SELECT * FROM pgmq.read($1, $2, $3)", queue, vt, qty)
    return found


async def let_it_run_out(db: Any, msg_id: int) -> None:
    """As if the vt of a message that is read had passed."""
    await db.execute(
        "UPDATE windrow.lease SET expires_at = now() - interval '1 second' "
        "WHERE token = (SELECT lease FROM windrow.job_live WHERE number = $1)",
        msg_id,
    )


async def rows_touched(db: Any) -> Counter[str]:
    """Rows of Windrow's tables that this transaction read, by any way."""
    found = await db.fetch(
        "SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS n "
        "FROM pg_stat_xact_user_tables WHERE schemaname = 'windrow'"
    )
    return Counter({row["relname"]: row["n"] for row in found})
