"""`assert_enqueued` and its opposite: what they accept, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from windrow import Queue
from windrow.testing import assert_enqueued, assert_not_enqueued


async def test_what_was_enqueued_is_found_and_returned(queue: Queue) -> None:
    first = await queue.enqueue("mail", {"to": "ada", "body": {"lang": "en", "text": "hi"}})
    second = await queue.enqueue("mail", {"to": "bob"}, queue="slow", priority=8, tags=["news"])

    assert [job.id for job in await assert_enqueued(queue, "mail")] == [first.id, second.id]
    [found] = await assert_enqueued(queue, "mail", {"body": {"lang": "en"}})
    assert found.id == first.id
    [found] = await assert_enqueued(queue, "mail", queue="slow", priority=8, tags=["news"])
    assert found.id == second.id
    await assert_enqueued(queue, "mail", count=2)
    await assert_enqueued(queue, "mail", {"to": "eve"}, count=0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"kind": "letter"}, "no job with kind 'letter' was enqueued. These were:"),
        (
            {"kind": "mail", "payload": {"to": "eve"}},
            "no job with kind 'mail', payload {'to': 'eve'} was enqueued. These were:",
        ),
        ({"kind": "mail", "payload": None}, "payload None was enqueued"),
        ({"kind": "mail", "queue": "fast"}, "kind 'mail', queue 'fast' was"),
        ({"kind": "mail", "count": 1}, "2 jobs with kind 'mail' were enqueued, not 1."),
        ({"kind": "mail", "count": 3, "priority": 5}, "priority 5 were enqueued, not 3."),
    ],
)
async def test_a_failure_lists_what_was_enqueued_instead(
    queue: Queue, options: dict[str, Any], complaint: str
) -> None:
    await queue.enqueue("mail", {"to": "ada"})
    await queue.enqueue("mail", {"to": "bob"}, delay=60, queue="slow")

    with pytest.raises(AssertionError) as failure:
        await assert_enqueued(queue, **options)

    said = str(failure.value)
    assert complaint in said
    assert "  mail  {'to': 'ada'}  (queue default, ready)" in said
    assert "  mail  {'to': 'bob'}  (queue slow, scheduled)" in said


async def test_an_empty_queue_is_said_to_be_empty(queue: Queue) -> None:
    with pytest.raises(AssertionError, match="Nothing was enqueued"):
        await assert_enqueued(queue, "mail")


async def test_long_lists_and_payloads_are_cut(queue: Queue) -> None:
    for _ in range(25):
        await queue.enqueue("mail", {"text": "x" * 1000})
    with pytest.raises(AssertionError, match="and 5 more") as failure:
        await assert_enqueued(queue, "letter")
    assert len(str(failure.value)) < 25 * 400


async def test_what_must_not_be_enqueued_is_named_when_it_was(queue: Queue) -> None:
    await assert_not_enqueued(queue)
    await queue.enqueue("mail", {"to": "ada"})
    await assert_not_enqueued(queue, "letter")
    await assert_not_enqueued(queue, "mail", {"to": "bob"})
    with pytest.raises(AssertionError, match=r"(?s)no job at all should .*mail  {'to': 'ada'}"):
        await assert_not_enqueued(queue)
    with pytest.raises(AssertionError, match="no job with kind 'mail' should"):
        await assert_not_enqueued(queue, "mail")


async def test_a_field_that_jobs_do_not_have_is_refused(queue: Queue) -> None:
    with pytest.raises(TypeError, match="a job has no colour; it has attempts, "):
        await assert_enqueued(queue, "mail", colour="red")
