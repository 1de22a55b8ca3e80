"""Whatever is handed to the queue is read back as it was, or refused with nothing written.

Payloads, results, headers, tags, kinds, names of queues, tenants, unique and group keys, limits:
made up by Hypothesis, on both stores. `make chaos` makes up many more.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st

from tests.trust.scorecard import record_input
from windrow import NewJob, Queue
from windrow.db.codec import clean_text
from windrow.errors import InvalidJob
from windrow.queue.job import JobState

FEW, MANY = 20, 3000

# fmt: off
NASTY = [
    "'; DROP TABLE windrow.job; --", "\" OR 1=1 --", "$1", ":name", "?", "%s", "%(x)s", "{}", "\\",
    "\\u0000", "\x00", "a\x00b", "\ud800", "\udfff", "a\udc80b", "\ufffe", "\uffff", "\U0010ffff",
    "\u202e\u2066", "\u200b", "\ufeff", " ", "\t\n\r", "\x1b[31m", "\x7f", "\x85", "\u2028",
    "é", "e\u0301", "ﬁ", "ﬀ", "İ", "ı", "ß", "ẞ", "Å", "Å", "가", "ᄀ" + "ᅡ", "👩🏽‍🚀", "🇨🇭", "שלום",
    "a" * 255, "a" * 256, "ä" * 1024, "😀" * 300, "NULL", "null", "true", "0", "-1", "1e309", "NaN",
    "windrow.job", "pg_catalog", "sqlite_master", "__proto__", "constructor", "../../etc/passwd",
    "*", "%", "_", "[a-z]", "a:b", "a,b", "a b", "{a,b}", "(select 1)", "/*", "*/", "--", ";", "'",
]
# fmt: on
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)
TEXT = st.one_of(st.sampled_from(NASTY), ANY_TEXT, st.text(max_size=20))
SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    TEXT,
)
JSON = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=15,
)
JOB = st.fixed_dictionaries(
    {"kind": TEXT, "payload": JSON},
    optional={
        "queue": TEXT,
        "tenant": TEXT,
        "unique": TEXT,
        "tags": st.lists(TEXT, max_size=4),
        "headers": st.dictionaries(TEXT, SCALAR, max_size=4),
        "limits": st.lists(TEXT, max_size=3),
        "priority": st.integers(-(2**33), 2**33),
        "delay": st.floats() | st.integers(-5, 2**40),
        "max_attempts": st.integers(-2, 2**33),
    },
)


def made_up(examples: int) -> Any:
    return hypothesis.settings(
        max_examples=examples,
        deadline=None,
        derandomize=examples <= FEW,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture
def queue(store_url: str) -> Any:
    with Queue.sync(store_url) as queue:
        yield queue


def check_jobs(queue: Any, examples: int) -> tuple[int, int]:
    """How many were made up, and how many of them taken."""
    taken = refused = 0

    @made_up(examples)
    @hypothesis.given(job=JOB, result=JSON, error=TEXT)
    def check(job: dict[str, Any], result: Any, error: str) -> None:
        nonlocal taken, refused
        new = NewJob(**job)
        try:
            [made] = queue.enqueue_many([new])
        except InvalidJob:
            refused += 1
            assert queue.list(limit=5) == []
            return
        taken += 1
        try:
            read_back(queue, made.id, job)
            if queue.get(made.id).state == JobState.READY:
                finish(queue, made.id, job, result, error)
        finally:
            remove(queue, made.id)

    check()
    assert taken
    assert refused
    return taken + refused, taken


def read_back(queue: Any, id: str, job: dict[str, Any]) -> None:
    """It is what it was, and is found by all that it was given."""
    read = queue.get(id)
    assert read.kind == job["kind"]
    assert same(read.payload, job["payload"])
    assert same(dict(read.headers or {}), job.get("headers") or {})
    assert read.tags == tuple(job.get("tags", ()))
    assert read.unique == job.get("unique")
    assert read.tenant == job.get("tenant")
    names = ("kind", "queue", "tenant", "unique")
    filters: list[dict[str, Any]] = [{name: job[name]} for name in names if name in job]
    filters += [{"tag": tag} for tag in job.get("tags", ())]
    for wanted in filters:
        assert [one.id for one in queue.list(**wanted)] == [id], wanted
    other = unicodedata.normalize("NFKD", job["kind"])
    if other != job["kind"] and other.strip():
        assert queue.list(kind=other[:255]) == [], "another spelling is another name"


def finish(queue: Any, id: str, job: dict[str, Any], result: Any, error: str) -> None:
    """What a run says of it is kept as it was said, or refused, and then it still runs."""
    lease = queue.claim([job["queue"]] if "queue" in job else None)
    [mine] = lease.jobs
    assert same(mine.payload, job["payload"])
    lease.progress(mine, 50, error)
    assert queue.get(id).progress.message == clean_text(error)
    try:
        lease.complete(mine, result)
    except InvalidJob:
        assert queue.get(id).state == JobState.ACTIVE
        lease.fail(mine, error, retry=False)
        assert queue.get(id).state == JobState.FAILED
        return
    assert same(queue.get(id).result, result)


def remove(queue: Any, id: str) -> None:
    if not queue.get(id).is_finished:
        queue.cancel(id)
    queue.delete(id)
    assert queue.list(limit=5) == []


def same(read: Any, given: Any) -> bool:
    """Whether it is what was given: as JSON, with what no database keeps replaced."""
    match given:
        case str():
            return isinstance(read, str) and read == clean_text(given)
        case float() if math.isfinite(given) and given.is_integer():
            return bool(read == given)  # 1.0 and 1 are one number in JSON
        case list():
            return len(read) == len(given) and all(map(same, read, given))
        case dict():
            # Keys that differ only in what is replaced become one: the last one counts.
            wanted = {clean_text(name): item for name, item in given.items()}
            return set(read) == set(wanted) and all(same(read[name], wanted[name]) for name in read)
    return type(read) is type(given) and read == given


def test_jobs_are_read_back_as_they_were_or_refused(queue: Any) -> None:
    check_jobs(queue, FEW)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_very_many_jobs_are_read_back_as_they_were_or_refused(queue: Any, store_name: str) -> None:
    given, taken = check_jobs(queue, MANY)
    record_input(
        "jobs made up of any values",
        given=given,
        taken=taken,
        store=store_name,
        note="what was taken was read back as it was, run and ended",
    )


def check_names(queue: Any, examples: int) -> tuple[int, int]:
    """Names that are no jobs': schedules, limits, queues, groups' keys. How many were handed in,
    and how many of them taken."""
    given = taken = 0

    def tried(do: Any) -> bool:
        nonlocal given, taken
        was_taken = is_taken(do)
        given, taken = given + 1, taken + was_taken
        return was_taken

    @made_up(examples)
    @hypothesis.given(name=TEXT, other=TEXT)
    def check(name: str, other: str) -> None:
        tried(lambda: queue.schedule(name, "work", {"n": 1}, every=3600))
        listed = [one.name for one in queue.schedules()]
        assert listed in ([], [name])
        if listed:
            queue.unschedule(name)
        if tried(lambda: queue.set_limit(name, active=1)):
            assert [one.key for one in queue.limits()] == [name]
            queue.remove_limit(name)
        if tried(lambda: queue.pause(name)):
            assert [one.name for one in queue.queues() if one.is_paused] == [name]
            queue.resume(name)
        group = queue.create_group(hold=True)
        keys = [name, name, other]
        made = 0
        for key in keys:
            job = NewJob("work", queue="group", group=group.id, group_key=key)
            if tried(lambda job=job: queue.enqueue_many([job])):
                made = len(queue.list(group=group.id))
        storable = {key for key in keys if key and key == clean_text(key)}
        assert made == len(storable)
        queue.cancel_group(group.id)

    check()
    return given, taken


def is_taken(do: Any) -> bool:
    """Whether it was taken; if not, the error must be one of bad input."""
    try:
        do()
    except InvalidJob:
        return False
    return True


def test_names_are_kept_as_they_were_or_refused(queue: Any) -> None:
    check_names(queue, FEW // 2)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_very_many_names_are_kept_as_they_were_or_refused(queue: Any, store_name: str) -> None:
    given, taken = check_names(queue, 500)
    record_input("names of any letters", given=given, taken=taken, store=store_name)


def test_one_bad_job_of_many_leaves_nothing_of_the_others(queue: Any) -> None:
    for bad in NASTY:
        jobs = [NewJob("work", {"n": 1}), NewJob("work", queue=bad + "\x00"), NewJob("work")]
        with pytest.raises(InvalidJob):
            queue.enqueue_many(jobs)
    assert queue.list() == []
    assert queue.queues() == []
