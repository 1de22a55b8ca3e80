"""Groups, from their making to their end."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import asdict

from windrow.errors import GroupNotFound, JobNotFound
from windrow.ids import is_id
from windrow.queue.job import JobState
from windrow.queue.postgres.rows import Row, as_json, sql, to_group
from windrow.queue.postgres.verbs import Verbs
from windrow.queue.postgres.work import Work
from windrow.queue.records import Group, GroupFilter, GroupRow


class Grouping(Verbs):
    async def create_group(self, row: GroupRow) -> Group:
        async def do(work: Work) -> str:
            root = None if row.root is None else await _lock_root(work, row.root)
            if root is not None and root["root_of"] is not None:
                return str(root["root_of"])
            await work.run(
                "create_group",
                id=row.id,
                tenant=row.tenant,
                root=row.root,
                is_open=row.is_open,
                retention_seconds=row.retention_seconds,
                max_jobs=row.max_jobs,
                finish_job=None if row.then is None else as_json(row.then),
            )
            if root is not None:
                await work.run("set_root", id=row.root, group_id=row.id)
                if root["stop_as"] == JobState.CANCELLED:
                    work.cancel_group(row.id, root["error"] or "its root job was cancelled")
            return row.id

        group_id = await self._transact(do)
        if row.root is not None:
            self._claimer.bind(row.root)
        return await self._must_get(group_id)

    async def keep_group_keys(
        self, group_id: str, keys: Sequence[str], job_id: str
    ) -> frozenset[str]:
        if not is_id(group_id):
            raise GroupNotFound(group_id)
        found = await self._run(
            "keep_group_keys", group_id=group_id, keys=list(keys), job_id=job_id
        )
        if not found:
            raise GroupNotFound(group_id)
        return frozenset(row["key"] for row in found if row["key"] is not None)

    async def add_group_notes(self, group_id: str, subject: str, texts: Sequence[str]) -> None:
        if not is_id(group_id):
            raise GroupNotFound(group_id)
        values = {"group_id": group_id, "subject": subject, "texts": list(texts)}
        await self._run("add_group_notes", **values)

    async def list_group_notes(
        self, group_id: str, subject: str, *, after: str, limit: int
    ) -> list[str]:
        if not is_id(group_id):
            return []
        values = {"group_id": group_id, "subject": subject, "after": after, "limit": limit}
        return [row["text"] for row in await self._run("list_group_notes", **values)]

    async def get_group(self, group_id: str) -> Group | None:
        if not is_id(group_id):
            return None
        found = await self._run("get_group", id=group_id)
        return to_group(found[0]) if found else None

    async def list_groups(
        self, wanted: GroupFilter, *, after: str | None = None, limit: int = 100
    ) -> list[Group]:
        if after is not None and not is_id(after):
            return []
        values = {**asdict(wanted), "after": after, "limit": limit}
        found = await self._database.fetch_planned(sql("list_groups"), values)
        return [to_group(row) for row in found]

    async def close_group(self, group_id: str) -> Group:
        async def do(work: Work) -> None:
            work.group(group_id).is_closed = True

        await self._must_get(group_id)
        await self._transact(do)
        return await self._must_get(group_id)

    async def end_empty_groups(self, seconds: float, held_seconds: float, limit: int = 1000) -> int:
        async def do(work: Work) -> int:
            found = await work.run(
                "find_empty_groups", seconds=seconds, held_seconds=held_seconds, limit=limit
            )
            for row in found:
                work.group(str(row["id"])).is_closed = True
            return len(found)

        return await self._transact(do)

    async def pause_group(self, group_id: str) -> Group:
        await self._must_get(group_id)
        await self._run("pause_group", id=group_id)
        return await self._must_get(group_id)

    async def resume_group(self, group_id: str) -> Group:
        await self._must_get(group_id)
        await self._run("resume_group", id=group_id)
        # Its jobs may be in any queue, before the place up to which it was claimed.
        self._claimer.floors.drop_all()
        if self._notifier is not None:
            self._tell(row["queue"] for row in await self._run("list_ready_queues"))
        return await self._must_get(group_id)

    async def cancel_group(self, group_id: str, reason: str) -> Group:
        async def do(work: Work) -> None:
            work.cancel_group(group_id, reason)

        await self._must_get(group_id)
        await self._transact(do)
        return await self._must_get(group_id)

    async def _must_get(self, group_id: str) -> Group:
        found = await self.get_group(group_id)
        if found is None:
            raise GroupNotFound(group_id)
        return found


async def _lock_root(work: Work, job_id: str) -> Row:
    """Lock a root. Raises JobNotFound if it is not live."""
    found = await work.run("lock_jobs", ids=[job_id] if is_id(job_id) else [])
    if not found:
        raise JobNotFound(job_id)
    return found[0]
