"""Somebody adds something and waits until it can be found."""

from __future__ import annotations

import pytest

from tests.knowledge.desk import COLLECTION, Desk
from windrow.queue.queue import Queue
from windrow.services import knowledge_runs
from windrow.services.attending import Attendance
from windrow.services.knowledge import AddOptions, SourceInfo, add_text, get_info


async def test_what_was_put_during_a_look_is_waited_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(queue: Queue, tenant: str | None, id: str) -> SourceInfo:
        """The job ends right behind the counts."""
        info = await get_info(queue, tenant, id)
        await desk.work(with_index=False)
        return info

    monkeypatch.setattr(knowledge_runs, "get_info", look)
    added = await add_text(desk.queue, "Hay.", AddOptions(collection=COLLECTION))
    shown: list[SourceInfo] = []

    attendance = Attendance(desk.queue)
    await knowledge_runs._see_through(attendance, added, shown.append, waits=True)

    assert [(info.documents, info.pending) for info in shown] == [(0, 0), (1, 1)]
