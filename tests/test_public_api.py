"""What users see, pinned: the names, the methods and their arguments."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import subprocess
import sys
import typing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import windrow
from windrow import errors, handler
from windrow.queue.events import EventType
from windrow.queue.job import EnqueueOptions, Job, JobOptions, JobState, NewJob
from windrow.queue.queue import Queue
from windrow.queue.scheduling import ScheduleOptions
from windrow.worker.registry import HandlerOptions

DOCS = Path(__file__).parents[1] / "docs"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_at_most_twelve_names_are_public() -> None:
    assert sorted(windrow.__all__) == windrow.__all__
    assert len(windrow.__all__) <= 12
    assert all(hasattr(windrow, name) for name in windrow.__all__)


def test_enqueue_takes_what_a_new_job_takes() -> None:
    of_method = inspect.signature(Queue.enqueue).parameters
    of_job = inspect.signature(NewJob).parameters
    assert set(of_method) - {"self", "tx", "timeout"} == set(of_job)
    for name, parameter in of_job.items():
        assert of_method[name].default == parameter.default, name


def test_schedule_takes_what_makes_sense_of_a_new_job() -> None:
    of_method = inspect.signature(Queue.schedule).parameters
    of_job = inspect.signature(NewJob).parameters
    # Without a name, the handler comes first: then there is no kind beside it.
    own = {"self", "name", "kind", "every", "cron", "timezone", "jitter", "catch_up"}
    assert set(of_method) - own <= set(of_job) - {"id", "run_at", "delay", "group"}
    for name in set(of_method) - own:
        assert of_method[name].default == of_job[name].default, name


@pytest.mark.parametrize(
    ("options", "takes", "besides"),
    [
        (JobOptions, NewJob, {"kind", "payload"}),
        (EnqueueOptions, Queue.enqueue, {"self", "kind", "payload"}),
        (ScheduleOptions, Queue.schedule, {"self", "name", "kind", "payload"}),
        (HandlerOptions, handler, {"kind", "batch"}),
    ],
)
def test_typed_options_are_the_arguments_of_what_takes_them(
    options: Any, takes: Any, besides: set[str]
) -> None:
    arguments = dict(inspect.signature(takes, eval_str=True).parameters)
    assert arguments.keys() - besides == typing.get_type_hints(options).keys()
    for name, hint in typing.get_type_hints(options).items():
        assert arguments[name].annotation == hint, name


def test_errors_that_people_meet_are_a_short_list_that_the_guides_name() -> None:
    assert sorted(errors.__all__) == errors.__all__
    assert len(errors.__all__) < 20
    assert all(issubclass(getattr(errors, name), errors.WindrowError) for name in errors.__all__)
    pages = [*DOCS.glob("*.md"), *DOCS.glob("guides/*.md")]
    guides = "\n".join(page.read_text("utf-8") for page in pages)
    assert [name for name in errors.__all__ if f"`{name}`" not in guides] == []


def test_states_print_as_plain_strings() -> None:
    job = Job("1", 1, "q", "mail", JobState.READY, 5, 0, 0, 0, 5, 5, NOW, NOW)
    counts = dict.fromkeys(JobState, 0)

    assert f"{JobState.READY} {JobState.READY!r} %s" % JobState.READY == "ready 'ready' ready"
    assert "state='ready'" in repr(job)
    assert str(counts) == str({state.value: 0 for state in JobState})
    assert json.loads(json.dumps(counts)) == {state.value: 0 for state in JobState}
    assert repr(EventType.JOB_FINISHED) == "'job.finished'"


def test_the_face_has_the_promised_methods() -> None:
    promised = (
        "open sync close enqueue enqueue_many claim get get_many list counts cancel retry edit "
        "delete pause resume create_group group pause_group resume_group cancel_group "
        "schedule unschedule schedules pause_schedule resume_schedule"
    )
    assert [name for name in promised.split() if not hasattr(Queue, name)] == []
    assert [
        name
        for name in ["complete", "fail", "snooze", "release", "renew", "progress"]
        if not hasattr(windrow.Lease, name)
    ] == []


def test_every_error_is_drawn_in_the_tree_and_says_something() -> None:
    drawn = inspect.getdoc(errors) or ""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.WindrowError):
            assert name in drawn, f"{name} is missing from the tree in errors.py"
            assert kind.__doc__


def test_transient_errors_are_the_ones_marked_in_the_tree() -> None:
    drawn = inspect.getdoc(errors) or ""
    marked = set(re.findall(r"(\w+)(?:\([^)]*\))? \*", drawn)) - {"marked"}
    transient = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.WindrowError) and kind.transient
    }
    assert transient == marked


def test_a_rate_limit_carries_its_key_and_how_long_to_wait() -> None:
    limited = errors.RateLimited("api.example.org", 30)
    assert (limited.key, limited.retry_after) == ("api.example.org", 30)
    assert str(limited) == "api.example.org is asked too often, asks for 30 s"
    assert errors.RateLimited("api.example.org").retry_after is None


def test_errors_cross_processes_as_they_are() -> None:
    for error in (
        errors.RateLimited("api", 30),
        errors.DuplicateJob("key", "1"),
        errors.StoreFull(),
    ):
        other = pickle.loads(pickle.dumps(error))
        assert (type(other), str(other), vars(other)) == (type(error), str(error), vars(error))


def test_importing_windrow_loads_nothing_that_is_optional() -> None:
    optional = ["pytest", "django", "fastapi", "opentelemetry", "prometheus_client", "aio_pika"]
    optional += ["aiohttp", "brotli", "charset_normalizer", "cryptography"]  # heavy
    optional += ["selectolax", "html_to_markdown", "kreuzberg"]
    optional += ["numpy", "semantic_text_splitter", "tokenizers", "tree_sitter", "wordllama"]
    code = (
        f"import sys, windrow, windrow.testing; print([m for m in {optional} if m in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"
