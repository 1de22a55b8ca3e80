"""Real processes make events and a reader of them is killed again and again: it sees every one, in
order, and none twice."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.integration.test_race import (  # noqa: F401
    PATIENCE,
    Racer,
    Start,
    real,
    start,
)
from windrow.queue.store import Store

PRODUCERS = 3
JOBS = 300  # by each of them
KILLS = 4


def read_log(log: Path) -> list[list[str]]:
    """The lines that were written whole; the end of one that was not is cut off."""
    text = log.read_text() if log.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        log.write_text(whole)
    return [line.split() for line in whole.splitlines()]


def wait_for_lines(log: Path, count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not log.exists() or log.read_text().count("\n") < count:
        assert time.monotonic() < deadline, "the reader does not get on"
        time.sleep(0.01)


async def test_a_killed_reader_goes_on_where_it_was(
    real: Store,  # noqa: F811
    start: Start,  # noqa: F811
    tmp_path: Path,
) -> None:
    log, total = tmp_path / "events", PRODUCERS * JOBS
    producers = start(PRODUCERS, "produce", seed=lambda n: n, jobs=JOBS)
    for racer in producers:
        racer.go()
    workers = start(2, "drain", log=lambda n: str(tmp_path / f"{n}.log"), seed=lambda n: n)
    [reader] = start(1, "follow", log=str(log), ends=total)
    for racer in (*workers, reader):
        racer.go()
    for n in range(1, KILLS + 1):
        wait_for_lines(log, n * total // 4)
        reader.kill()
        read_log(log)
        [reader] = start(1, "follow", log=str(log), ends=total)
        reader.go()
    assert [racer.end() for racer in producers] == [0] * PRODUCERS
    # The workers may have found nothing to do for a moment, and gone.
    [last] = start(1, "drain", log=str(tmp_path / "last.log"), seed=9)
    last.go()
    assert [racer.end() for racer in (*workers, last, reader)] == [0] * 4

    events = read_log(log)
    cursors = [cursor for cursor, *_ in events]
    assert len(set(cursors)) == len(cursors)
    lives: defaultdict[str, list[str]] = defaultdict(list)
    for _, kind, job_id, _ in events:
        lives[job_id].append(kind)
    of_groups = lives.pop("None")
    assert len(lives) == total
    for life in lives.values():
        assert (life[0], life[-1]) == ("job.created", "job.finished")
        assert set(life[1:-1]) == {"job.started"}
    assert Counter(of_groups)["group.progress"] > 0
