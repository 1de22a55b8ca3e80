"""Leaders: who does what only one may do, until when. No session is needed, so a pooler may be
between; the database's clock decides, whatever the holders' clocks say."""

from __future__ import annotations

from windrow.queue.postgres.verbs import Verbs


class Leading(Verbs):
    async def elect_leader(self, role: str, holder: str, seconds: float) -> bool:
        return bool(await self._run("elect_leader", role=role, holder=holder, seconds=seconds))

    async def resign_leader(self, role: str, holder: str) -> bool:
        return bool(await self._run("resign_leader", role=role, holder=holder))
