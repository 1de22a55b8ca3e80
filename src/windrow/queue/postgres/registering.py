"""Which workers are alive, and which one leads until when. Few rows, by the database's clock.

A leader needs no session, so a pooler may be between, and the holders' clocks decide nothing.
"""

from __future__ import annotations

from msgspec.structs import asdict

from windrow.ids import is_id
from windrow.queue.postgres.rows import Row
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.records import WorkerInfo, WorkerRow


class Registering(Verbs):
    async def register_worker(self, row: WorkerRow, seconds: float) -> None:
        await self._run("register_worker", **asdict(row), seconds=seconds)
        await self._run("clear_unserved", queues=row.queues, kinds=row.kinds, tenants=None)

    async def drop_worker(self, worker_id: str) -> bool:
        if not is_id(worker_id):
            return False
        return bool(await self._run("drop_worker", id=worker_id))

    async def list_workers(self) -> list[WorkerInfo]:
        return [_to_worker(row) for row in await self._run("list_workers")]

    async def elect_leader(self, role: str, holder: str, seconds: float) -> bool:
        return bool(await self._run("elect_leader", role=role, holder=holder, seconds=seconds))

    async def resign_leader(self, role: str, holder: str) -> bool:
        return bool(await self._run("resign_leader", role=role, holder=holder))


def _to_worker(row: Row) -> WorkerInfo:
    return WorkerInfo(
        id=str(row["id"]),
        name=row["name"],
        host=row["host"],
        pid=row["pid"],
        queues=None if row["queues"] is None else tuple(row["queues"]),
        kinds=None if row["kinds"] is None else tuple(row["kinds"]),
        concurrency=row["concurrency"],
        running=row["running"],
        version=row["version"],
        trouble=row["trouble"],
        started_at=row["started_at"],
        seen_at=row["seen_at"],
        expires_at=row["expires_at"],
    )
