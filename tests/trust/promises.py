"""What Windrow promises, how each promise is kept, and which tests try to break it.

`docs/guarantees.md` is written from here and from the figures of runs; see `scorecard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    name: str
    words: str
    kept_by: str
    tests: Sequence[str]  # beside those that record figures, which the page names by itself
    checked_as: Sequence[str] = ()  # what the checker of histories calls it


PROMISES = (
    Promise(
        "durable",
        "Durable on return: a job whose enqueue was acknowledged is there, whatever dies next.",
        "`enqueue` returns after the commit; a job enqueued twice under one id is one job, so "
        "whoever got no answer may ask again.",
        ("tests/conformance/test_faults.py", "tests/integration/test_archive_crash.py"),
        ("nothing_lost", "one_final_state"),
    ),
    Promise(
        "at_least_once",
        "Every job runs at least once, and ends in exactly one final state.",
        "A claim is a lease that runs out; whoever leads the workers brings back what was left.",
        ("tests/integration/test_race.py", "tests/integration/test_worker_outage.py"),
        ("runs_at_least_once", "one_accepted_completion"),
    ),
    Promise(
        "exactly_once_effect",
        "What a handler writes through `job.tx` takes effect exactly once.",
        "It is committed in the transaction that completes the job, and only if the lease holds.",
        ("tests/integration/test_transactional_enqueue.py",),
        ("effects_once",),
    ),
    Promise(
        "stale_refused",
        "A stale worker can change nothing, however late it comes.",
        "Every write names the token of its lease; a token that was replaced matches no row.",
        ("tests/conformance/test_lease.py", "tests/conformance/test_finish.py"),
        ("stale_token_refused",),
    ),
    Promise(
        "killed_worker",
        "The jobs of a killed worker run again within its lease + 5 s.",
        "A lease is 30 s unless told otherwise; a leader's term and its look-out together are "
        "shorter than 5 s, and whoever renews leases of its own sees those that ran out.",
        (
            "tests/conformance/test_lease.py",
            "tests/integration/test_workers.py",
            "tests/worker/test_life.py",
            "tests/knowledge/test_killed.py",
        ),
    ),
    Promise(
        "group_ends",
        "A group always ends, and its finish job is enqueued once.",
        "The last member's end, the group's end and the finish job are one transaction.",
        ("tests/conformance/test_groups.py",),
        ("groups_finish_once",),
    ),
    Promise(
        "cancel_holds",
        "After a cancel was answered, nothing of the group begins; only what runs may still end.",
        "The cancel of a root or a group, running or not, cancels what waits and closes the group "
        "in one transaction; what runs is told with the next renewal of its lease.",
        ("tests/conformance/test_groups.py", "tests/web/test_cancel.py"),
    ),
    Promise(
        "limits_hold",
        "Limits, counted by live leases, hold at every instant.",
        "A job is let in by a transaction that has locked the rows of its limits; what is in use "
        "is counted from the jobs, so a crash leaks nothing. A ready job that cannot run gives its "
        "place to one that waits for it.",
        (
            "tests/integration/test_limit_race.py",
            "tests/conformance/test_places.py",
            "tests/worker/test_places.py",
        ),
        ("limits_hold",),
    ),
    Promise(
        "bounded",
        "No job can fail or crash for ever, nor keep others from their turn by doing so.",
        "Attempts and crashes are counted apart, and each has a bound; a job near its last crash "
        "is run alone. A wrong return value or a broken exception fails its own job.",
        (
            "tests/conformance/test_retry_and_crash.py",
            "tests/worker/test_bad_ends.py",
            "tests/worker/test_service.py",
        ),
        ("bounded_attempts",),
    ),
    Promise(
        "order_kept",
        "Jobs are started by priority, then first come first.",
        "One index in claim order; `seq` is given by the database.",
        ("tests/conformance/test_claim.py",),
        ("order_kept",),
    ),
    Promise(
        "unique_holds",
        "At most one job that has not ended holds a unique key.",
        "A partial unique index over the jobs that have not ended.",
        ("tests/integration/test_race.py",),
        ("unique_holds",),
    ),
    Promise(
        "schedules_once",
        "A schedule fires once for each of its times.",
        "Firing and moving on to the next time are one transaction.",
        ("tests/integration/test_schedule_race.py",),
        ("schedules_fire_once",),
    ),
    Promise(
        "bad_input",
        "Bad input gets a clear error, and nothing is half-written.",
        "What is handed in is checked before the first write; what is written is one transaction.",
        ("tests/conformance/test_refusals.py",),
    ),
    Promise(
        "patterns_bounded",
        "No pattern that somebody hands in stops the work of others.",
        "Regular expressions, globs, rules of files and patterns of schemas run in linear time "
        "(RE2), within bounds of number, length and size, and outside the event loop.",
        ("tests/trust/input/test_patterns.py",),
    ),
    Promise(
        "secrets_left_out",
        "Secrets in folders are not indexed, unless somebody asks for it.",
        "Files are judged by name and content before they are indexed; what was skipped or "
        "redacted is listed with the reason.",
        ("tests/knowledge/test_secrets.py", "tests/unit/test_file_secrets.py"),
    ),
    Promise(
        "steady",
        "It stays steady under load: bounded tables, flat rates, many clients at once.",
        "Live rows stay few and narrow, finished ones leave the hot part; claims and ends go in "
        "batches.",
        ("tests/integration/test_wal_budget.py",),
    ),
    Promise(
        "recoverable",
        "What an operator may have to do has been done: restore, move, upgrade, rebuild.",
        "The pages in docs/operations are carried out by tests.",
        ("tests/integration/test_copy.py", "tests/integration/test_rolling_upgrade.py"),
    ),
)

BY_NAME = {name: one for one in PROMISES for name in (one.name, *one.checked_as)}
