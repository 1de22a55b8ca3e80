"""`windrow bench`: rates of a database, which is left as it was."""

from __future__ import annotations

from tests.cli.conftest import Read, Windrow
from windrow import Queue


def test_rates_are_measured_and_nothing_is_left(read: Read, store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        mine = queue.enqueue("work")
        measured = read("bench", "--jobs", "1500")
        assert measured["jobs"] == 1500
        assert measured["enqueued"] > 0
        assert measured["run"] > 0
        assert [job.id for job in queue.list()] == [mine.id]
        assert {one.name: one.counts for one in queue.queues()} == {"default": {"ready": 1}}


def test_a_number_of_jobs_that_is_out_of_range_is_refused(windrow: Windrow) -> None:
    for number in ("0", "-5", "1000001"):
        refused = windrow("bench", "--jobs", number)
        assert refused.returncode == 2
        assert "from 1 to 1000000" in refused.stderr
