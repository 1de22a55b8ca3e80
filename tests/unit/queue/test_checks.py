from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from windrow.errors import InvalidJob, PayloadTooLarge, ResultTooLarge
from windrow.queue import checks, kinds
from windrow.queue.checks import SizeLimits, encode_result, to_row, to_rows, to_similar_row
from windrow.queue.job import NewJob
from windrow.queue.records import FOREVER

LIMITS = SizeLimits()
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": ""}, "the kind must be a text that is not empty"),
        ({"kind": "  "}, "the kind must be a text that is not empty"),
        ({"kind": 7}, "the kind must be the name of a handler"),
        ({"kind": "k" * 256}, "the kind has 256 characters; at most 255"),
        ({"kind": "a\x00"}, "the kind .* has a NUL character"),
        ({"queue": ""}, "the queue must be a text"),
        ({"tenant": ""}, "the tenant must be a text"),
        ({"priority": 1.5}, "priority must be an integer"),
        ({"priority": True}, "priority must be an integer"),
        ({"priority": 2**31}, "priority must be an integer"),
        ({"delay": -1}, "delay must be between 0 seconds and 100 years"),
        ({"delay": math.nan}, "delay must be between"),
        ({"delay": "soon"}, "delay must be seconds or a timedelta"),
        ({"run_at": datetime(2026, 1, 1)}, "run_at must be a datetime with a time zone"),  # noqa: DTZ001
        ({"run_at": NOON, "delay": 1}, "either run_at or delay"),
        ({"unique": ""}, "the unique key must be a text"),
        ({"unique": "x" * 1025}, "longer than 1024 bytes; hash it"),
        ({"on_conflict": "follow"}, "on_conflict='follow' needs a unique key"),
        ({"on_conflict": "merge", "unique": "x"}, "on_conflict must be one of return, reject"),
        ({"group": "my group"}, "the group must be a UUID"),
        ({"id": "1"}, "the id must be a UUID"),
        ({"tags": "abc"}, "tags must be a list of texts, not the text 'abc'"),
        ({"tags": [""]}, "the tag must be a text"),
        ({"tags": ["t"] * 101}, "at most 100 tags"),
        ({"headers": [("a", 1)]}, "headers must be a mapping"),
        ({"headers": {"a": math.inf}}, r"headers\.a is not a finite number"),
        ({"max_attempts": 0}, "max_attempts must be an integer from 1"),
        ({"max_crashes": 0}, "max_crashes must be an integer from 1"),
        ({"lease": 0.5}, "a lease lasts at least 1 second"),
        ({"retention": -1}, "retention must be between"),
    ],
)
def test_bad_fields_are_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        to_row(NewJob(**({"kind": "work"} | fields)), LIMITS)


def test_durations_may_be_timedeltas() -> None:
    new = NewJob("work", delay=timedelta(minutes=2), lease=timedelta(hours=1), retention=1.5)
    row = to_row(new, LIMITS)
    assert (row.delay, row.lease_seconds, row.retention_seconds) == (120.0, 3600, 2)


def test_an_infinite_retention_means_for_ever() -> None:
    assert to_row(NewJob("work", retention=math.inf), LIMITS).retention_seconds == FOREVER


def test_a_payload_over_the_limit_is_refused_with_both_sizes() -> None:
    with pytest.raises(PayloadTooLarge, match=r"the payload is 4\.0 MiB as JSON, the limit is 4"):
        to_row(NewJob("work", "x" * (4 * 1024 * 1024)), LIMITS)


def test_a_result_over_the_limit_is_refused() -> None:
    with pytest.raises(ResultTooLarge, match="the result is"):
        encode_result("x" * 100, SizeLimits(result=50))


def test_limits_count_bytes_not_characters() -> None:
    with pytest.raises(PayloadTooLarge):
        to_row(NewJob("work", "語" * 30), SizeLimits(payload=80))


def test_an_id_of_ones_own_marks_the_row_as_possibly_there() -> None:
    mine = "0190A0B0-0000-7000-8000-000000000000"
    row = to_row(NewJob("work", id=mine), LIMITS)
    assert (row.id, row.may_exist) == (mine.lower(), True)
    assert not to_row(NewJob("work"), LIMITS).may_exist


def test_jobs_that_differ_only_in_their_payload_are_checked_like_any_other() -> None:
    alike = [NewJob("mail", {"n": n}, queue="post", tags=["a"], priority=7) for n in range(3)]
    other = NewJob("mail", {"n": 3}, queue="post", tags=["b"], priority=7, headers={"h": 1})
    given = [*alike, other, NewJob("mail", {"n": 4}, queue="post", tags=["b"], priority=7)]
    limits = SizeLimits(payload=100)
    rows = to_rows(given, limits)
    singly = [to_row(job, limits, row.id) for job, row in zip(given, rows, strict=True)]
    assert rows == singly
    assert [row.id for row in rows] == sorted({row.id for row in rows})
    with pytest.raises(PayloadTooLarge):
        to_rows([*alike, NewJob("mail", "x" * 100, queue="post", tags=["a"], priority=7)], limits)


@pytest.mark.parametrize("wrong", [{"priority": True}, {"priority": 1.0}, {"delay": True}])
def test_a_wrong_type_that_equals_what_came_before_it_is_refused(wrong: dict[str, Any]) -> None:
    right = NewJob("mail", priority=1, delay=1)
    with pytest.raises(InvalidJob, match=f"{next(iter(wrong))} must be"):
        to_rows([right, msgspec.structs.replace(right, **wrong)], LIMITS)


def test_what_was_cleaned_in_one_payload_is_not_said_of_the_next() -> None:
    rows = to_rows([NewJob("mail", text) for text in ("a", "nul\x00", "b")], SizeLimits())
    assert [row.is_cleaned for row in rows] == [False, True, False]


def test_a_job_like_the_last_of_its_kind_is_checked_like_any_other() -> None:
    tags: list[str] = ["a"]
    limits = SizeLimits(payload=100)
    given = [
        NewJob("memo", {"n": 1}, queue="post", priority=7, limits=("k",)),
        NewJob("memo", {"n": 2}, queue="post", priority=7, limits=("k",)),
        NewJob("memo", "nul\x00", queue="post", priority=7, limits=("k",)),
        NewJob("memo", {"n": 3}, queue="post", priority=7, limits=("k",), tenant="acme"),
        NewJob("memo", {"n": 4}, headers={"h": 1}),
        NewJob("memo", {"n": 5}, id="0f38e00e-d7ee-4b77-8a7a-a787a3537ca2"),
        NewJob("memo", {"n": 6}, tags=tags),
    ]
    for job in (*given, *given):
        row = to_similar_row(job, limits)
        assert row == to_row(job, limits, row.id)
    tags.append("b")
    assert to_similar_row(given[-1], limits).tags == ("a", "b")
    ids = [to_similar_row(given[0], limits).id for _ in range(3)]
    assert ids == sorted(set(ids))
    with pytest.raises(PayloadTooLarge):
        to_similar_row(msgspec.structs.replace(given[0], payload="x" * 100), limits)
    with pytest.raises(InvalidJob, match="priority must be"):
        to_similar_row(msgspec.structs.replace(given[0], priority=7.0), limits)


def test_a_job_like_the_last_one_takes_what_its_kind_has_declared_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kinds, "_declared", {})
    job = NewJob("later declared")
    assert to_similar_row(job, LIMITS).queue == "default"
    kinds.declare("later declared", kinds.Kind(queue="images"))
    assert to_similar_row(job, LIMITS).queue == "images"


def test_of_kinds_without_number_only_some_are_remembered() -> None:
    for n in range(1000):
        to_similar_row(NewJob(f"kind {n}"), LIMITS)
    assert len(checks._checked) <= 256
