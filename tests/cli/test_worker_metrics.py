"""`windrow worker --metrics-port`: scraped while it works."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from windrow import Queue

HANDLERS = """
from windrow import Job, handler


@handler("work")
async def work(job: Job) -> None: ...
"""


def test_a_worker_serves_its_metrics_and_those_of_the_queues(
    store_url: str, tmp_path: Path
) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    worker = subprocess.Popen(
        [sys.executable, "-m", "windrow", "worker", "handlers", "--metrics-port", "0"],
        cwd=tmp_path,
        env={**os.environ, "WINDROW_DATABASE_URL": store_url},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert worker.stderr is not None
        address = next(
            found[0] for line in worker.stderr if (found := re.search(r"http://\S+/metrics", line))
        )
        with Queue.sync(store_url) as queue:
            queue.wait(queue.enqueue("work").id, timeout=60)
        with urllib.request.urlopen(address, timeout=30) as answer:
            text = answer.read().decode()
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=60)
    finally:
        worker.kill()
        worker.wait()
    assert worker.returncode == 0
    assert 'windrow_jobs_claimed_total{kind="work",queue="default"} 1.0' in text
    assert 'windrow_queue_jobs{queue="default",state="completed"} 1.0' in text
    assert "windrow_store_up 1.0" in text
