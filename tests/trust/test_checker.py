"""The checker finds what it is there for: for every promise a clean history, and broken ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.trust.checker import ALL, check
from tests.trust.history import Entry, History, What


class Script:
    """A history written by hand: what each of its lines says happened to a job."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, by: str, what: What, job: str = "", **fields: Any) -> Script:
        History(self.entries, by, lambda: float(len(self.entries))).write(what, job, **fields)
        return self

    def enqueue(self, job: str, **fields: Any) -> Script:
        self.add("producer", "offered", job)
        return self.add("producer", "enqueued", job, **fields)

    def claim(self, job: str, token: str, run: int = 1, by: str = "worker", **more: Any) -> Script:
        """A run that begins; without a `started` nobody knows that it did."""
        self.add(by, "asked")
        self.add(by, "claimed", job, token=token, attempt=run, **more)
        return self.add(by, "started", job, token=token, attempt=run, **more)

    def end(
        self, job: str, token: str, outcome: str = "done", by: str = "worker", accepted: bool = True
    ) -> Script:
        self.add(by, "ended", job, token=token)
        return self.add(by, "finished", job, token=token, outcome=outcome, accepted=accepted)

    def final(self, job: str, state: str = "completed", **fields: Any) -> Script:
        return self.add("judge", "final", job, state=state, **fields)

    def whole(self, job: str, **fields: Any) -> Script:
        """A life without trouble."""
        limits = {"limits": fields.pop("limits")} if "limits" in fields else {}
        self.enqueue(job, **fields).claim(job, f"{job}-1", **limits).end(job, f"{job}-1")
        return self.final(job)

    def broken(self, promise: str, **limits: int) -> list[str]:
        """The words of all violations, which must be of this promise."""
        found = check(self.entries, limits=limits)
        assert {violation.promise for violation in found} <= {promise}
        assert check(self.entries, promises=set(ALL) - {promise}, limits=limits) == []
        return [violation.words for violation in found]


@pytest.fixture
def script() -> Script:
    return Script()


def test_a_life_with_every_kind_of_trouble_that_is_allowed_breaks_no_promise(
    script: Script,
) -> None:
    bounds: dict[str, Any] = {"max_attempts": 3, "max_crashes": 3}
    script.add("producer", "offered", "never-acknowledged")
    script.enqueue("a", key="k", queue="q", priority=1)
    script.claim("a", "t1").end("a", "t1", "retry")
    script.claim("a", "t2", 2, by="zombie")  # stopped for longer than its lease
    script.claim("a", "t3", 3).end("a", "t3", "snooze")
    script.end("a", "t2", by="zombie", accepted=False)
    script.claim("a", "t4", 4).add("worker", "written", "a", token="t4")
    script.end("a", "t4").end("a", "t4")  # its reply was lost, so it was said again
    script.final("a", attempts=1, crashes=1, rows=1, results=1, **bounds)
    script.enqueue("b", key="k").claim("b", "t5").end("b", "t5", "fail")
    script.final("b", "failed", attempts=1, crashes=0, rows=0, **bounds)

    assert check(script.entries) == []


def test_all_promises_can_be_asked_for_by_name_and_no_others(script: Script) -> None:
    assert check(script.entries, promises=ALL) == []
    with pytest.raises(ValueError, match="no such promise: happiness"):
        check(script.entries, promises=["happiness"])


def test_nothing_lost_finds_an_acknowledged_job_that_is_gone(script: Script) -> None:
    script.whole("a").enqueue("b")

    words = script.broken("nothing_lost")

    assert words == ["job b was acknowledged, and at the end it is not there"]


def test_nothing_lost_does_not_miss_what_was_only_offered_refused_or_removed(
    script: Script,
) -> None:
    script.add("producer", "offered", "a").enqueue("b", outcome="rejected")
    script.enqueue("c").add("pruner", "removed", "c")

    assert check(script.entries) == []


def test_nothing_lost_finds_a_fired_slot_whose_job_is_gone(script: Script) -> None:
    script.add("scheduler", "fired", "a", key="nightly", slot="2026-01-01")

    assert script.broken("nothing_lost") == [
        "job a was acknowledged, and at the end it is not there"
    ]


def test_one_final_state_finds_two_states_of_one_job(script: Script) -> None:
    script.whole("a").final("a", "failed")

    assert "job a is both completed and failed" in script.broken("one_final_state")


def test_one_final_state_finds_a_job_that_never_ended(script: Script) -> None:
    script.enqueue("a").final("a", "active")

    assert script.broken("one_final_state") == ["job a is active at the end, which is no end"]


def test_one_final_state_finds_a_job_that_ran_again_after_its_end(script: Script) -> None:
    script.enqueue("a").claim("a", "t1").end("a", "t1")
    script.claim("a", "t2", 2).end("a", "t2", "snooze", accepted=False).final("a")

    assert script.broken("one_final_state") == [
        "job a was completed in run 1, and claimed again as run 2"
    ]


def test_one_final_state_finds_an_end_that_is_not_the_one_accepted(script: Script) -> None:
    script.enqueue("a").claim("a", "t1").end("a", "t1").final("a", "cancelled")

    assert script.broken("one_final_state") == [
        "run 1 of job a was accepted as done, but it is cancelled at the end"
    ]


def test_one_final_state_lets_a_job_run_again_that_somebody_retried(script: Script) -> None:
    script.enqueue("a").claim("a", "t1").end("a", "t1", "fail").add("person", "retried", "a")
    script.claim("a", "t2", 2).end("a", "t2").final("a")

    assert check(script.entries) == []


def test_one_final_state_lets_a_root_be_cancelled_with_its_group(script: Script) -> None:
    script.enqueue("a").claim("a", "t1").end("a", "t1").final("a", "cancelled", note="root")

    assert check(script.entries) == []


def test_one_accepted_completion_finds_two_runs_that_completed_a_job(script: Script) -> None:
    script.enqueue("a").claim("a", "t1", by="one").claim("a", "t2", 2, by="two")
    script.end("a", "t2", by="two").end("a", "t1", by="one").final("a")

    found = check(script.entries)

    assert ("one_accepted_completion", "the completion of job a was accepted of runs 1 and 2") in {
        (violation.promise, violation.words) for violation in found
    }


def test_one_accepted_completion_finds_a_job_that_nobody_completed(script: Script) -> None:
    script.enqueue("a").claim("a", "t1").end("a", "t1", "retry").final("a")

    assert script.broken("one_accepted_completion") == [
        "job a is completed, and no run completed it"
    ]


def test_one_accepted_completion_takes_a_killed_worker_for_one_that_may_have_completed(
    script: Script,
) -> None:
    script.enqueue("a").claim("a", "t1").final("a")

    assert check(script.entries) == []


def test_one_accepted_completion_finds_two_results(script: Script) -> None:
    script.whole("a").final("a", results=2)

    assert script.broken("one_accepted_completion") == ["job a has 2 results"]


def test_stale_token_refused_finds_a_zombie_that_was_believed(script: Script) -> None:
    script.enqueue("a").claim("a", "t1", by="zombie").claim("a", "t2", 2)
    script.end("a", "t1", "snooze", by="zombie").end("a", "t2", accepted=False).final("a", "failed")

    [words] = script.broken("stale_token_refused")

    assert words == (
        "run 1 of job a was accepted as snooze by zombie after run 2 had claimed it: "
        "its token was stale"
    )


@pytest.mark.parametrize(
    ("what", "words"), [("renewed", "extended its lease"), ("kept", "kept a step")]
)
def test_stale_token_refused_finds_what_was_taken_of_a_zombie_meanwhile(
    script: Script, what: What, words: str
) -> None:
    script.enqueue("a").claim("a", "t1", by="zombie").claim("a", "t2", 2)
    script.add("zombie", "holds", "a", token="t1").add("zombie", what, "a", token="t1")
    script.end("a", "t2").final("a")

    assert script.broken("stale_token_refused") == [
        f"run 1 of job a {words} by zombie after run 2 had claimed it: its token was stale"
    ]


@pytest.mark.parametrize("what", ["renewed", "kept"])
def test_stale_token_refused_excuses_what_was_asked_for_in_time(script: Script, what: What) -> None:
    script.enqueue("a").claim("a", "t1", by="one").add("one", "holds", "a", token="t1")
    script.claim("a", "t2", 2, by="two").add("one", what, "a", token="t1")
    script.end("a", "t2", by="two").final("a")

    assert check(script.entries) == []


def test_stale_token_refused_goes_by_the_number_of_the_run_and_not_by_who_wrote_first(
    script: Script,
) -> None:
    script.enqueue("a").claim("a", "t2", 2).claim("a", "t1", 1, by="zombie")
    script.end("a", "t1", by="zombie", accepted=False).end("a", "t2").final("a")

    assert check(script.entries) == []


def test_stale_token_refused_excuses_a_reply_that_was_written_late(script: Script) -> None:
    script.enqueue("a").claim("a", "t1", by="one").add("one", "ended", "a", token="t1")
    script.claim("a", "t2", 2, by="two")
    script.add("one", "finished", "a", token="t1", outcome="snooze", accepted=True)
    script.end("a", "t2", by="two").final("a")

    assert check(script.entries) == []


def test_stale_token_refused_finds_a_token_that_nobody_was_given(script: Script) -> None:
    script.enqueue("a").claim("a", "t1").end("a", "made-up", "snooze").end("a", "t1").final("a")

    assert script.broken("stale_token_refused") == [
        "a finish of job a was accepted under a token nobody claimed"
    ]


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        ({"attempts": 4, "crashes": 0}, "job a used 4 attempts of at most 3"),
        ({"attempts": 0, "crashes": 3}, "job a used 3 crashes of at most 2"),
    ],
)
def test_bounded_attempts_finds_more_than_the_job_allows(
    script: Script, counted: dict[str, int], words: str
) -> None:
    script.enqueue("a").final("a", "failed", max_attempts=3, max_crashes=2, **counted)

    assert script.broken("bounded_attempts") == [words]


def test_bounded_attempts_finds_failures_that_were_not_counted(script: Script) -> None:
    script.enqueue("a")
    for run in (1, 2):
        script.claim("a", f"t{run}", run).end("a", f"t{run}", "retry")
    script.final("a", "failed", attempts=1)

    assert script.broken("bounded_attempts") == ["2 failed runs of job a were accepted, 1 counted"]


def test_bounded_attempts_finds_crashes_that_were_not_counted_by_the_runs(script: Script) -> None:
    script.enqueue("a")
    for run in range(1, 5):
        script.claim("a", f"t{run}", run)
    script.final("a", "failed", attempts=0, crashes=1, max_attempts=2, max_crashes=2)

    assert script.broken("bounded_attempts") == ["job a ran 4 times, where 3 are all it may"]


def test_bounded_attempts_counts_anew_where_a_job_may_have_been_replaced(script: Script) -> None:
    script.add("producer", "offered", key="k", note="replace")
    script.enqueue("a", key="k")
    for run in range(1, 5):
        script.claim("a", f"t{run}", run)
    script.final("a", "failed", attempts=0, crashes=1, max_attempts=2, max_crashes=2)

    assert check(script.entries) == []


def test_bounded_attempts_does_not_count_a_run_that_was_handed_back(script: Script) -> None:
    script.enqueue("a").claim("a", "t1").add("worker", "ended", "a", token="t1")
    script.add("worker", "finished", "a", token="t1", outcome="snooze")
    script.claim("a", "t2", 2).end("a", "t1", accepted=False).end("a", "t2")
    script.final("a", attempts=0, crashes=0, max_attempts=1, max_crashes=1)

    assert check(script.entries) == []


def test_limits_hold_finds_one_run_too_many(script: Script) -> None:
    for job in "abc":
        script.enqueue(job).claim(job, job, by=job, limits=("l",))
    for job in "abc":
        script.end(job, job, by=job).final(job)

    [words] = script.broken("limits_hold", l=2)

    assert words.startswith("3 jobs of l ran at once")
    assert words.endswith("(job c), where 2 may")
    assert script.broken("limits_hold", l=3) == []


def test_limits_hold_does_not_count_a_run_that_lost_its_job(script: Script) -> None:
    script.enqueue("a").enqueue("b").claim("a", "t1", by="zombie", limits=("l",))
    script.claim("b", "t2", limits=("l",)).end("b", "t2").final("b")
    script.end("a", "t1", by="zombie", accepted=False)
    script.claim("a", "t3", 2, limits=("l",)).end("a", "t3").final("a")

    assert script.broken("limits_hold", l=1) == []


def test_order_kept_finds_a_higher_priority_that_was_passed_over(script: Script) -> None:
    script.enqueue("low", queue="q", priority=1).enqueue("high", queue="q", priority=9)
    for job in ("low", "high"):
        script.claim(job, job).end(job, job)
    script.final("low").final("high")

    assert script.broken("order_kept") == [
        "job low was claimed before high, which was ready and had a higher priority"
    ]


def test_order_kept_finds_one_that_came_first_and_was_passed_over(script: Script) -> None:
    for job in "ab":
        script.enqueue(job, queue="q", priority=1)
    for job in "ba":
        script.claim(job, job).end(job, job)
    script.final("a").final("b")

    assert script.broken("order_kept") == [
        "job b was claimed before a, which was ready and had come first"
    ]


def test_order_kept_finds_a_claim_that_gave_its_jobs_in_the_wrong_order(script: Script) -> None:
    for job in "ab":
        script.enqueue(job, queue="q", priority=1)
    script.add("worker", "asked")
    for job in "ba":
        script.add("worker", "claimed", job, token=job, attempt=1)
    for job in "ab":
        script.add("worker", "started", job, token=job).end(job, job).final(job)

    assert script.broken("order_kept") == ["one claim gave job b before a, which was the better"]


def test_order_kept_excuses_what_is_written_late_of_a_claim_of_several(script: Script) -> None:
    script.enqueue("low", queue="q", priority=1).enqueue("high", queue="q", priority=9)
    script.add("one", "asked").add("one", "claimed", "other", token="other", attempt=1)
    for by, job in (("two", "low"), ("one", "high")):
        script.add(by, "claimed", job, token=job, attempt=1)
    for by, job in (("two", "low"), ("one", "high")):
        script.add(by, "started", job, token=job).end(job, job, by=by).final(job)

    assert check(script.entries) == []


def test_order_kept_asks_nothing_of_other_queues_late_comers_and_claims_made_at_once(
    script: Script,
) -> None:
    script.enqueue("other", queue="other", priority=9)
    script.enqueue("a", queue="q", priority=1).add("one", "asked").add("two", "asked")
    script.enqueue("late", queue="q", priority=9)
    for by, job in (("one", "a"), ("two", "late"), ("one", "other")):
        script.add(by, "claimed", job, token=job, attempt=1)
        script.add(by, "started", job, token=job).end(job, job, by=by).final(job)

    assert check(script.entries) == []


def test_unique_holds_finds_two_live_jobs_of_a_key(script: Script) -> None:
    script.enqueue("a", key="k").enqueue("b", key="k")
    for job in "ab":
        script.claim(job, job).end(job, job).final(job)

    assert script.broken("unique_holds") == ["job b was enqueued while a lived, both of key 'k'"]


def test_unique_holds_excuses_a_reply_that_came_after_the_end_of_the_job(script: Script) -> None:
    script.add("late", "offered", "a", key="k").claim("a", "a").end("a", "a")
    script.enqueue("b", key="k").add("late", "enqueued", "a", key="k")
    script.claim("b", "b").end("b", "b").final("a").final("b")

    assert check(script.entries) == []


def test_unique_holds_finds_a_follower_that_ran_beside_the_first(script: Script) -> None:
    script.enqueue("a", key="k").enqueue("b", key="k", note="follow")
    script.claim("a", "a", by="one").claim("b", "b", by="two")
    script.end("a", "a", by="one").end("b", "b", by="two").final("a").final("b")

    assert script.broken("unique_holds") == ["jobs a and b ran at once, both of key 'k'"]


def test_unique_holds_lets_a_follower_wait_and_a_key_be_used_again(script: Script) -> None:
    script.enqueue("a", key="k").enqueue("b", key="k", note="follow")
    for job in "ab":
        script.claim(job, job).end(job, job).final(job)
    script.whole("c", key="k")

    assert check(script.entries) == []


def test_groups_finish_once_finds_two_finish_jobs(script: Script) -> None:
    script.whole("a", group="g")
    for job in "xy":
        script.add("worker", "group_finished", job, group="g")

    assert script.broken("groups_finish_once") == ["group g finished 2 times: x, y"]


def test_groups_finish_once_finds_a_finish_before_the_last_member(script: Script) -> None:
    script.enqueue("a", group="g").claim("a", "a", by="one")
    script.claim("x", "x", by="two").add("two", "group_finished", "x", group="g")
    script.end("a", "a", by="one").end("x", "x", by="two").final("a").final("x")

    assert script.broken("groups_finish_once") == [
        "group g finished (job x) while its member a ran"
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": "active"}, "group g is active at the end, which is no end"),
        ({"state": "completed", "results": 0}, "group g ended with 0 finish jobs"),
    ],
)
def test_groups_finish_once_finds_a_group_without_its_end(
    script: Script, fields: dict[str, Any], words: str
) -> None:
    script.add("judge", "final", group="g", **fields)

    assert script.broken("groups_finish_once") == [words]


def test_groups_finish_once_is_content_with_one_finish_after_the_members(script: Script) -> None:
    script.whole("a", group="g").whole("x").add("worker", "group_finished", "x", group="g")
    script.add("judge", "final", group="g", state="completed", results=1)

    assert check(script.entries) == []


def test_schedules_fire_once_finds_a_slot_that_fired_twice_and_one_that_never_did(
    script: Script,
) -> None:
    for job, slot in (("a", "1"), ("a", "1"), ("b", "1"), ("c", "2")):
        script.add("scheduler", "due", key="nightly", slot=slot)
        script.add("scheduler", "fired", job, key="nightly", slot=slot)
    script.add("scheduler", "due", key="nightly", slot="3")
    for job in "abc":
        script.claim(job, job).end(job, job).final(job)

    assert script.broken("schedules_fire_once") == [
        "slot 1 of schedule nightly fired 2 times: a, b",
        "slot 3 of schedule nightly was due and never fired",
    ]


@pytest.mark.parametrize(("rows", "outcome"), [(0, "done"), (2, "done"), (1, "fail")])
def test_effects_once_finds_rows_that_do_not_go_with_the_completion(
    script: Script, rows: int, outcome: str
) -> None:
    script.enqueue("a").claim("a", "t1").add("worker", "written", "a", token="t1")
    script.end("a", "t1", outcome)
    state = {"done": "completed", "fail": "failed"}[outcome]
    script.final("a", state, rows=rows)

    [words] = script.broken("effects_once")

    wanted = {"done": 1, "fail": 0}[outcome]
    assert words == (
        f"job a is {state} and left {rows} rows through its transaction, where {wanted} were to be"
    )


def test_effects_once_goes_by_the_run_that_completed_and_not_by_those_that_tried(
    script: Script,
) -> None:
    script.enqueue("a")
    for run in (1, 2):
        script.claim("a", f"t{run}", run).add("worker", "written", "a", token=f"t{run}")
        script.end("a", f"t{run}", ("retry", "done")[run - 1])
    script.final("a", rows=1)

    assert check(script.entries) == []


def test_runs_at_least_once_finds_a_job_completed_without_a_run(script: Script) -> None:
    script.enqueue("a").add("worker", "claimed", "a", token="t", attempt=1)
    script.end("a", "t").final("a")

    assert script.broken("runs_at_least_once") == ["job a is completed and never ran"]
