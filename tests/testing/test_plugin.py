"""The fixtures, used as an application's own tests use them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs/guides/testing.md"

pytest_plugins = ["pytester"]

APPLICATION = """
from windrow import Job, Queue, handler


@handler("greet", backoff=60)
async def greet(job: Job, payload: dict) -> str:
    if payload["name"] == "nobody":
        raise ConnectionError("nobody is there")
    return f"hello, {payload['name']}"


async def sign_up(queue: Queue, name: str) -> None:
    await queue.enqueue("greet", {"name": name}, delay=10)
"""

ASYNC_TESTS = """
import pytest
from application import greet, sign_up
from windrow.testing import assert_enqueued, assert_not_enqueued, drain

pytestmark = pytest.mark.{mark}


async def test_who_signs_up_is_greeted(windrow_queue, windrow_clock):
    await sign_up(windrow_queue, "ada")
    await assert_enqueued(windrow_queue, "greet", {{"name": "ada"}}, state="scheduled")
    assert await drain(windrow_queue, [greet]) == []
    windrow_clock.advance(10)
    [job] = await drain(windrow_queue, [greet])
    assert job.result == "hello, ada"


async def test_every_test_has_a_queue_of_its_own(windrow_queue):
    await assert_not_enqueued(windrow_queue)


async def test_what_fails_is_tried_again_without_waiting(windrow_queue):
    await sign_up(windrow_queue, "nobody")
    [job] = await drain(windrow_queue, [greet], scheduled=True)
    assert (job.state, job.attempts) == ("failed", 5)


async def test_a_failed_assertion_says_what_there_was(windrow_queue):
    await sign_up(windrow_queue, "ada")
    await assert_enqueued(windrow_queue, "greet", {{"name": "bob"}})
"""

BLOCKING_TESTS = """
from application import greet, sign_up
from windrow import Queue
from windrow.testing import assert_enqueued, drain


def test_blocking_code_uses_the_same_helpers(windrow_sync_queue, windrow_url):
    windrow_sync_queue.enqueue("greet", {"name": "ada"})
    with Queue.sync(windrow_url) as other:
        other.enqueue("greet", {"name": "bob"})
    windrow_sync_queue.run(assert_enqueued, "greet", count=2)
    jobs = windrow_sync_queue.run(drain, [greet], scheduled=True)
    assert [job.result for job in jobs] == ["hello, ada", "hello, bob"]
"""


@pytest.fixture
def application(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makeconftest('pytest_plugins = ["windrow.testing.plugin"]')
    pytester.makepyfile(application=APPLICATION)
    return pytester


@pytest.mark.parametrize(
    ("mark", "options"),
    [("asyncio", ()), ("asyncio", ("-o", "asyncio_mode=auto")), ("anyio", ())],
    ids=["pytest-asyncio", "pytest-asyncio in auto mode", "anyio"],
)
def test_the_fixtures_serve_async_tests(
    application: pytest.Pytester, mark: str, options: tuple[str, ...]
) -> None:
    application.makepyfile(test_it=ASYNC_TESTS.format(mark=mark))
    result = application.runpytest_inprocess("-p", "no:cacheprovider", *options)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*AssertionError: no job with kind 'greet', payload {'name': 'bob'} was enqueued.*",
            "*greet  {'name': 'ada'}  (queue default, scheduled)*",
        ]
    )


def test_the_fixtures_serve_tests_that_block(application: pytest.Pytester) -> None:
    application.makepyfile(test_it=BLOCKING_TESTS)
    result = application.runpytest_inprocess("-W", "error", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_the_guide_does_what_it_says(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    for name, code in re.findall(r"```python\n# (\w+)\.py\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        pytester.makepyfile(**{name: code})
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=3)
