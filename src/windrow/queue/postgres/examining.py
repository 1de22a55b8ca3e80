"""How the database itself is: what its statistics and its list of sessions tell."""

from __future__ import annotations

from windrow.queue.postgres.rows import Row
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.records import OpenTransaction, Vitals


class Examining(Verbs):
    async def check_health(self) -> Vitals:
        [row] = await self._run("check_health")
        return Vitals(
            now=row["now"],
            oldest_transaction=_to_transaction(row),
            live_rows=row["live_rows"],
            dead_rows=row["dead_rows"],
            connections=row["connections"],
            max_connections=row["max_connections"],
        )


def _to_transaction(row: Row) -> OpenTransaction | None:
    if row["name"] is None:
        return None
    return OpenTransaction(
        name=row["name"],
        is_prepared=row["is_prepared"],
        user=row["user_name"] or "",
        application=row["application"] or "",
        state=row["session_state"] or "",
        seconds=row["seconds"],
        statement=row["statement"] or "",
    )
