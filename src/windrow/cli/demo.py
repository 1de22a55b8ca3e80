"""`windrow demo`: see the queue at work in a second."""

from __future__ import annotations

import tempfile
from pathlib import Path

from windrow.cli.output import DatabaseOption, JsonOption, job_fields, print_json, print_table, run
from windrow.services.demo import demo_database


def demo(database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Enqueue, claim, retry and finish a few jobs (in a temporary database unless one is named)."""
    with tempfile.TemporaryDirectory(prefix="windrow-demo-") as folder:
        url = database or f"sqlite:///{Path(folder) / 'demo.db'}"
        done = run(demo_database(url))
    if as_json:
        print_json([job_fields(job) for job in done])
        return
    print_table(
        ["#", "kind", "url", "prio#", "state", "runs#", "result or error"],
        [
            [
                number,
                job.kind,
                (job.payload or {}).get("url", "").removeprefix("https://"),
                job.priority,
                job.state,
                job.runs,
                job.error or job.result,
            ]
            for number, job in enumerate(done, 1)
        ],
    )
    print(f"\n{len(done)} jobs, each a row in {url.partition(':')[0]}; the failed one says why.")
