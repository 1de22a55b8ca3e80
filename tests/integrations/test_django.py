"""The Django project of examples/django_shop, run by its own commands on both stores."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from windrow import Queue
from windrow.errors import ConfigError
from windrow.integrations.django.queue import url_of

SHOP = Path(__file__).parents[2] / "examples" / "django_shop"

PLACE_AN_ORDER = """
from django.test import Client
print(Client().post("/orders/", {"customer": "Ada", "cents": 1200}).json()["job"])
"""


def command(*arguments: str) -> list[str | Path]:
    return [sys.executable, "-W", "error", SHOP / "manage.py", *arguments]


def environment(url: str) -> dict[str, str]:
    return {**os.environ, "SHOP_DATABASE_URL": url}


def manage(url: str, *arguments: str) -> str:
    ended = subprocess.run(
        command(*arguments),
        env=environment(url),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout + ended.stderr


def test_the_tests_of_a_project_pass_on_a_database_of_their_own(store_url: str) -> None:
    said = manage(store_url, "test", "shop", "--noinput")
    assert "Ran 5 tests" in said
    assert "Exception ignored" not in said
    with Queue.sync(store_url) as queue:
        assert sum(queue.counts().values()) == 0


def test_migrate_makes_the_tables_of_the_queue(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/with a space.db"
    assert "the tables of the queue are up to date" in manage(url, "migrate")
    with Queue.sync(url, migrate=False) as queue:
        assert queue.queues() == []


def test_the_worker_runs_what_a_view_enqueued_and_stops_when_told(store_url: str) -> None:
    manage(store_url, "migrate", "--verbosity=0")
    job_id = manage(store_url, "shell", "--verbosity=0", "-c", PLACE_AN_ORDER).strip()
    worker = subprocess.Popen(
        command("windrow_worker", "--concurrency=2", "--queues=default"),
        env=environment(store_url),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        with Queue.sync(store_url) as queue:
            job: Any = queue.wait(job_id, timeout=60)
        worker.send_signal(signal.SIGTERM)
        said, _ = worker.communicate(timeout=60)
    finally:
        worker.kill()
        worker.wait()
    assert (job.state, job.result) == ("completed", "Ada owes 12.00")
    assert worker.returncode == 0
    assert "takes invoice, thank" in said


def test_a_failed_run_is_a_line_even_if_nothing_is_configured(store_url: str) -> None:
    manage(store_url, "migrate", "--verbosity=0")
    with Queue.sync(store_url) as queue:
        job = queue.enqueue("invoice", {"no order": 1}, max_attempts=1)
    said = manage(store_url, "windrow_worker", "--until-idle")
    assert f" ERROR job {job.id} invoice failed, attempt 1 of 1: PayloadMismatch: " in said
    assert re.search(r" INFO worker \S+ started: database ", said)
    assert " INFO handlers: invoice (shop.jobs.invoice), thank (shop.jobs.thank)" in said


def test_the_queue_is_where_django_is() -> None:
    postgres = {"ENGINE": "django.db.backends.postgresql", "NAME": "shop"}
    assert url_of(postgres) == "postgresql:///shop"
    assert (
        url_of({**postgres, "USER": "me@x", "PASSWORD": "a/b", "HOST": "db", "PORT": "5433"})
        == "postgresql://me%40x:a%2Fb@db:5433/shop"
    )
    assert (
        url_of({**postgres, "USER": "me", "HOST": "/run/postgresql"})
        == "postgresql://me@/shop?host=%2Frun%2Fpostgresql"
    )
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": Path("/srv/a b.db")}
    assert url_of(sqlite) == "sqlite:////srv/a%20b.db"


@pytest.mark.parametrize(
    ("database", "complaint"),
    [
        ({"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}, "a queue must be durable"),
        (
            {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": "file:memorydb_default?mode=memory&cache=shared",
            },
            "a queue must be durable",
        ),
        ({"ENGINE": "django.db.backends.mysql", "NAME": "shop"}, "cannot be in a database of"),
    ],
)
def test_a_database_that_cannot_hold_a_queue_is_refused(
    database: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        url_of(database)
