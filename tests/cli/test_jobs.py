"""`windrow jobs retry|edit|cancel|wait|list`: run as a person runs them."""

from __future__ import annotations

import inspect
import shlex
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import get_type_hints

import pytest

from tests.builders import UNKNOWN_ID
from tests.cli.conftest import Read, Windrow
from windrow import NewJob, Queue
from windrow.cli.jobs import add, tries
from windrow.queue.job import Job, JobOptions, JobState


@pytest.fixture
def failed(store_url: str) -> list[Job]:
    """Three failed jobs, two by the same error, beside a ready one."""
    with Queue.sync(store_url) as queue:
        for n in range(3):
            queue.enqueue("scrape", {"n": n}, queue="web", max_attempts=1)
        lease = queue.claim(["web"], limit=3)
        for job in lease.jobs:
            lease.fail(job, ValueError("404") if job.payload["n"] else OSError("\x1b[31mdisk full"))
        queue.enqueue("index", queue="index")
        jobs: list[Job] = queue.list(state="failed")
        return jobs


def states(store_url: str, *job_ids: str) -> list[JobState]:
    with Queue.sync(store_url) as queue:
        return [queue.get(job_id).state for job_id in job_ids]


def test_add_enqueues_with_every_option_and_says_what_keeps_the_job_waiting(
    windrow: Windrow, read: Read, store_url: str
) -> None:
    words = (
        "jobs add thumb --delay 90s --queue images --priority 7 --unique k --on-conflict reject "
        "--tenant acme --tag a --tag b --max-attempts 2 --max-crashes 3 --lease 2m --retention 1h "
        "--limit api --max-hold 5m"
    )
    more = ("--payload", '{"n": 1}', "--headers", '{"trace": "1"}')
    added = read(*words.split(), *more)
    with Queue.sync(store_url) as queue:
        job = queue.get(added["id"])
    assert (job.kind, job.queue, job.payload, job.state) == (
        "thumb",
        "images",
        {"n": 1},
        "scheduled",
    )
    assert (job.priority, job.unique, job.tenant, list(job.tags)) == (7, "k", "acme", ["a", "b"])
    assert (job.max_attempts, job.max_crashes, job.headers) == (2, 3, {"trace": "1"})
    assert (job.lease_seconds, job.retention_seconds, job.max_hold_seconds) == (120, 3600, 300)
    assert list(job.limits) == ["api"]

    refused = windrow(*words.split())
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        *(1, f"error: unique key 'k' is held by job {job.id}"),
    )
    said = windrow("jobs", "add", "thumb", "--payload", "-", input='"text"')
    assert said.returncode == 0
    with Queue.sync(store_url) as queue:
        assert queue.get(said.stdout.strip()).payload == "text"
    assert said.stderr.startswith("waiting: no worker takes it:")
    wrong = windrow("jobs", "add", "thumb", "--payload", "{n: 1}")
    assert (wrong.returncode, "is not JSON" in wrong.stderr) == (2, True)


def test_add_takes_a_time_an_id_and_a_key_of_a_group(read: Read, store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        group = queue.create_group(hold=True)
    words = ("jobs", "add", "thumb", "--group", group.id, "--group-key", "a", "--id", UNKNOWN_ID)

    added = read(*words, "--run-at", "2096-01-31T02:30+01:00")

    assert (added["id"], added["group"], added["state"]) == (UNKNOWN_ID, group.id, "scheduled")
    assert datetime.fromisoformat(added["run_at"]) == datetime(2096, 1, 31, 1, 30, tzinfo=UTC)
    assert read("jobs", "add", "thumb", "--group", group.id, "--group-key", "a")["id"] == UNKNOWN_ID


def test_time_that_is_none_is_refused(windrow: Windrow) -> None:
    wrong = windrow("jobs", "add", "thumb", "--run-at", "tomorrow")

    assert (wrong.returncode, "is not a time: write 2026-01-31T02:30" in wrong.stderr) == (2, True)


def test_add_has_an_option_for_every_option_of_a_job() -> None:
    names = {"tags": "tag", "limits": "limit"}
    wanted = {names.get(name, name) for name in get_type_hints(JobOptions)}
    assert wanted <= inspect.signature(add).parameters.keys()


def test_named_jobs_are_retried_at_once(
    windrow: Windrow, read: Read, failed: list[Job], store_url: str
) -> None:
    first, second, third = (job.id for job in failed)
    assert windrow("jobs", "retry", first).stdout == f"{first} was failed, is ready\n"
    assert read("jobs", "retry", second, third) == [
        {"id": second, "before": "failed", "after": "ready"},
        {"id": third, "before": "failed", "after": "ready"},
    ]
    refused = windrow("jobs", "retry", first)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.splitlines()[0] == f"error: job {first} is ready; it cannot be ready"


def test_retry_of_many_shows_what_it_would_do_until_yes(
    windrow: Windrow, read: Read, failed: list[Job], store_url: str
) -> None:
    shown = windrow("jobs", "retry", "--queue", "web", columns=80)
    assert shown.returncode == 0, shown.stderr
    assert "3 jobs would be retried (3 failed): add --yes" in shown.stdout
    assert failed[0].id in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    found = read("jobs", "retry", "--error", "404")
    assert (found["is_done"], found["jobs"], found["states"]) == (False, 2, {"failed": 2})
    assert set(states(store_url, *[job.id for job in failed])) == {JobState.FAILED}

    assert read("jobs", "retry", "--error", "404", "--yes") == {"is_done": True, "jobs": 2}
    assert windrow("jobs", "retry", "--all", "--yes").stdout == "retried 1 jobs\n"
    assert set(states(store_url, *[job.id for job in failed])) == {JobState.READY}


def test_cancel_of_many_shows_what_it_would_do_until_yes(
    windrow: Windrow, read: Read, failed: list[Job], store_url: str
) -> None:
    assert read("jobs", "cancel", "--all")["states"] == {"ready": 1}
    assert "would be cancelled" in windrow("jobs", "cancel", "--kind", "index").stdout
    assert read("jobs", "cancel", "--kind", "index", "--yes", "--reason", "enough")["jobs"] == 1
    [job] = read("jobs", "list", "--state", "cancelled")
    assert job["error"] == "enough"
    assert windrow("jobs", "cancel", "--all").stdout == "0 jobs would be cancelled\n"


def test_running_job_is_told_to_stop(windrow: Windrow, store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        job = queue.enqueue("work")
        queue.claim()
        printed = windrow("jobs", "cancel", job.id)
        assert printed.stdout == f"{job.id} was active, is active (it runs, and is told)\n"
        assert queue.get(job.id).stop_as == JobState.CANCELLED


@pytest.mark.parametrize("command", ["retry", "cancel"])
def test_a_change_of_nothing_in_particular_is_refused(
    windrow: Windrow, failed: list[Job], command: str
) -> None:
    refused = windrow("jobs", command, "--yes")
    assert refused.returncode == 2
    assert "--all" in refused.stderr
    assert windrow("jobs", command, failed[0].id, "--queue", "web", "--yes").returncode == 2


def test_job_is_named_by_the_beginning_of_its_id(
    windrow: Windrow, read: Read, failed: list[Job], store_url: str
) -> None:
    wanted = failed[0].id
    assert read("jobs", "show", wanted[:23])["id"] == wanted
    assert read("jobs", "show", wanted[:-1].upper())["id"] == wanted
    assert read("jobs", "show", wanted.replace("-", ""))["id"] == wanted
    several = windrow("jobs", "show", wanted[:8])
    assert several.returncode == 1
    assert "is the beginning of several ids" in several.stderr
    for unknown in ("ffffffff", "00000000-0000-7", wanted[:7], "nobody", "", UNKNOWN_ID):
        missing = windrow("jobs", "show", unknown)
        assert missing.returncode == 1
        assert missing.stderr.startswith(f"error: no such job: {unknown}\n")


def test_failed_jobs_are_counted_by_their_error(
    windrow: Windrow, read: Read, failed: list[Job]
) -> None:
    found = read("jobs", "list", "--by-error")
    assert (found[0]["count"], found[0]["error"]) == (2, "ValueError: 404")
    assert found[0]["pattern"] == "ValueError: <number>"
    table = windrow("jobs", "list", "--state", "failed", "--by-error", columns=80).stdout
    assert table.splitlines()[0].split() == ["jobs", "first", "last", "id", "error"]
    assert windrow("jobs", "list", "--by-error", "--kind", "scrape").returncode == 2


def test_narrow_table_shows_beginnings_that_name_the_jobs(
    windrow: Windrow, read: Read, failed: list[Job]
) -> None:
    """U12: what is listed can be handed to the next command."""
    _, *lines = windrow("jobs", "list", "--state", "failed", columns=60).stdout.splitlines()
    shown = [line.split()[0] for line in lines]
    assert [read("jobs", "show", short)["id"] for short in shown] == [job.id for job in failed]
    assert shown[0] != failed[0].id
    wide = windrow("jobs", "list", "--state", "failed", columns=160).stdout
    assert failed[0].id in wide


def test_retry_from_the_start_forgets_what_steps_gave_back(
    windrow: Windrow, failed: list[Job], store_url: str
) -> None:
    with Queue.sync(store_url) as queue:
        queue.retry(failed[0].id)
        lease = queue.claim(["web"])
        job = lease.jobs[0]
        assert job.lease_token is not None
        queue._portal.run(queue.store.save_step(job.id, job.lease_token, "fetch", "1"))
        lease.fail(job, "boom", retry=False)
        assert [step.name for step in queue.steps(job.id)] == ["fetch"]
        assert windrow("jobs", "retry", job.id, "--from-start").returncode == 0
        assert not queue.steps(job.id)


def test_what_a_job_says_cannot_steer_the_terminal(windrow: Windrow, failed: list[Job]) -> None:
    for words in (["list"], ["list", "--by-error"], ["show", failed[-1].id]):
        printed = windrow("jobs", *words)
        assert "disk full" in printed.stdout, words
        assert "\x1b" not in printed.stdout


def test_colours_are_for_terminals_and_not_for_those_who_want_none(
    windrow: Windrow, failed: list[Job]
) -> None:
    assert "\x1b[" in windrow("jobs", "list", FORCE_COLOR="1", TERM="xterm").stdout
    plain = windrow("jobs", "list", FORCE_COLOR="1", TERM="xterm", NO_COLOR="1").stdout
    assert "\x1b[" not in plain


def test_edit_takes_new_values_and_retries(
    windrow: Windrow, read: Read, failed: list[Job], tmp_path: Path
) -> None:
    wanted = failed[0].id
    edited = read("jobs", "edit", wanted, "--payload", '{"n": "ü"}', "--priority", "9")
    assert (edited["payload"], edited["priority"], edited["state"]) == ({"n": "ü"}, 9, "failed")
    (tmp_path / "payload.json").write_text("[1, 2]", "utf-8")
    assert read("jobs", "edit", wanted, "--payload", "@payload.json")["payload"] == [1, 2]
    assert read("jobs", "edit", wanted, "--payload", "-", input="3")["payload"] == 3
    printed = windrow("jobs", "edit", wanted, "--queue", "slow", "--retry")
    assert printed.stdout == f"{wanted} ready: changed queue and retried\n"
    assert read("jobs", "show", wanted)["queue"] == "slow"


@pytest.mark.parametrize("given", ["{not json", "@missing.json"])
def test_edit_refuses_what_is_not_json(windrow: Windrow, failed: list[Job], given: str) -> None:
    refused = windrow("jobs", "edit", failed[0].id, "--payload", given)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr


def editor(tmp_path: Path, code: str) -> str:
    """An editor: Python that changes `text`, the file it was given."""
    program = tmp_path / "editor.py"
    program.write_text(
        "import pathlib, sys\npath = pathlib.Path(sys.argv[1])\ntext = path.read_text('utf-8')\n"
        f"{code}\npath.write_text(text, 'utf-8')\n"
    )
    return shlex.join([sys.executable, str(program)])


def test_edit_opens_the_payload_in_an_editor(
    windrow: Windrow, read: Read, failed: list[Job], tmp_path: Path
) -> None:
    wanted = failed[0]
    change = editor(tmp_path, "assert text.startswith('{\\n  \"n\": '); text = '{\"n\": 77}'")
    printed = windrow("jobs", "edit", wanted.id, EDITOR=change, VISUAL="")
    assert printed.stdout == f"{wanted.id} failed: changed payload\n", printed.stderr
    assert read("jobs", "show", wanted.id)["payload"] == {"n": 77}
    same = windrow("jobs", "edit", wanted.id, EDITOR=editor(tmp_path, ""), VISUAL="")
    assert same.stdout == "nothing was changed\n"


@pytest.mark.parametrize(("code", "exit_code"), [("sys.exit(3)", 1), ("text = '{'", 2)])
def test_edit_that_goes_wrong_changes_nothing(
    windrow: Windrow, read: Read, failed: list[Job], tmp_path: Path, code: str, exit_code: int
) -> None:
    refused = windrow("jobs", "edit", failed[0].id, VISUAL=editor(tmp_path, code))
    assert refused.returncode == exit_code
    assert "Traceback" not in refused.stderr
    assert read("jobs", "show", failed[0].id)["payload"] == failed[0].payload


def test_edit_of_a_running_job_is_refused(windrow: Windrow, store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        job = queue.enqueue("work")
        queue.claim()
    refused = windrow("jobs", "edit", job.id, "--priority", "1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.splitlines()[0] == f"error: job {job.id} is active; it cannot be edited"


def test_wait_is_over_when_all_have_completed(read: Read, store_url: str) -> None:
    with Queue.sync(store_url) as queue:
        made = [one.id for one in queue.enqueue_many([NewJob("work"), NewJob("work")])]
        lease = queue.claim(limit=2)
        lease.complete(lease.jobs[0], {"ok": True})
        finishing = threading.Timer(1, lease.complete, [lease.jobs[1]])
        finishing.start()
        found = read("jobs", "wait", *made, "--timeout", "1m")
        finishing.join()
    assert [job["state"] for job in found] == ["completed", "completed"]
    assert found[0]["result"] == {"ok": True}


def test_wait_fails_if_a_job_failed_or_the_time_is_up(
    windrow: Windrow, read: Read, failed: list[Job]
) -> None:
    assert read("jobs", "wait", failed[0].id, code=1)[0]["state"] == "failed"
    [ready] = read("jobs", "list", "--state", "ready")
    late = windrow("jobs", "wait", ready["id"], "--timeout", "0.1")
    assert late.returncode == 1
    assert late.stderr == f"error: still not ended when the time was up: {ready['id']}\n"
    assert windrow("jobs", "wait", UNKNOWN_ID).returncode == 1
    assert windrow("jobs", "wait", ready["id"], "--timeout", "soon").returncode == 2


def test_listing_tells_what_became_of_the_runs(store_url: str) -> None:
    """Not of how many attempts: a handler may allow fewer than its job does."""
    with Queue.sync(store_url) as queue:
        done, failed = queue.enqueue("done"), queue.enqueue("failed")
        lease = queue.claim(limit=2)
        by_id = {job.id: job for job in lease.jobs}
        lease.complete(by_id[done.id])
        lease.fail(by_id[failed.id], "broken", retry=False)
        waits = queue.enqueue("waits")
        shown = [tries(queue.get(job.id)) for job in (done, failed, waits)]
    assert shown == ["1", "1, 1 failed", "0"]
