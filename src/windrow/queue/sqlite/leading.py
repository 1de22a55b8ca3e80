"""Leaders: who does what only one may do, until when."""

from __future__ import annotations

from windrow.queue.sqlite.work import Work


def elect_leader(work: Work, role: str, holder: str, seconds: float) -> bool:
    values = {"role": role, "holder": holder, "seconds": seconds, "now": work.now}
    return bool(work.rows("elect_leader", values))


def resign_leader(work: Work, role: str, holder: str) -> bool:
    return bool(work.rows("resign_leader", {"role": role, "holder": holder}))
