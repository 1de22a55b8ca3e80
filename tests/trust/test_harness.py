"""The harness sees what is done to a database: one that could not say so would prove nothing."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from tests.trust.harness import DOUBLES, LOSSES, Crew, connect
from windrow import Queue


async def test_a_job_that_is_taken_away_is_lost_and_a_row_too_many_is_doubled(
    sqlite_template: Path, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.db"
    shutil.copyfile(sqlite_template, path)
    with Crew(f"sqlite:///{path}", tmp_path) as crew:
        crew.make_rows()
        crew.start()
        await crew.enqueue(30, ("work", "write"))
        await crew.until_drained()
        await crew.stop()
        clean = await crew.conclude()
        assert clean.violations == []
        assert (clean.jobs, clean.states()["completed"], crew.done) == (30, 30, 30)

        stolen, doubled = sorted(crew.finished)[:2]
        async with Queue.open(crew.url) as queue:
            await queue.delete(stolen)
        with closing(connect(crew.url)) as connection:
            connection.execute("INSERT INTO trust_rows VALUES (?, 'again')", [doubled])
            connection.commit()
        verdict = await crew.conclude()

    assert verdict.count(LOSSES) == 1
    assert verdict.count(DOUBLES) == 1
    assert {one.job for one in verdict.violations} == {stolen, doubled}
