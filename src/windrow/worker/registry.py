"""Handlers: which function runs the jobs of a kind, and how.

A handler is called with the job and, if it takes a second argument, with the payload: as the type
the argument is annotated with (a msgspec struct, a dataclass, a TypedDict, a Pydantic model), or as
plain JSON values. A batch handler is called with a list of jobs instead, and a list of payloads.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import Any, Final, Literal

import msgspec

from windrow.errors import ConfigError, PayloadMismatch
from windrow.queue.checks import (
    check_integer,
    check_lease,
    check_limit_keys,
    check_name,
    check_seconds,
)
from windrow.queue.job import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_CRASHES,
    DEFAULT_QUEUE,
    Job,
    NewJob,
)
from windrow.queue.kinds import Kind, declare
from windrow.queue.policy import Backoff
from windrow.queue.policy import backoff as backoff_policy
from windrow.worker.presets import find_preset

Run = Literal["async", "thread", "process"]
# Told a job that a run failed for good, and why; the jobs that are enqueued with that. It may be
# async, and write in `job.tx`.
OnFailure = Callable[[Job, str], Sequence[NewJob] | Awaitable[Sequence[NewJob]]]
_PLAIN: Final = (inspect.Parameter.empty, Any, object, dict)
_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that runs the jobs of one kind. It can still be called as the function it is."""

    kind: str
    function: Callable[..., Any]
    run: Run
    queue: str
    backoff: Backoff
    lease: int | None = None  # seconds; None: the worker's
    heartbeat: float | None = None  # seconds between renewals; None: a part of the lease
    timeout: float | None = None
    max_attempts: int | None = None
    batch: int = 1  # the most jobs it takes at once
    batch_wait: float = 0.0  # how long a batch waits to become full
    is_batch: bool = False
    takes_payload: bool = False
    payload_type: Any = None  # None: plain JSON values
    on_failure: OnFailure | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def payload_of(self, job: Job) -> Any:
        """The payload as the function wants it. Raises PayloadMismatch, which names the field."""
        wanted = self.payload_type
        if wanted is None:
            return job.payload
        if hasattr(wanted, "model_validate_json"):
            return _by_pydantic(wanted, job)
        try:
            return msgspec.json.decode(job.payload_json, type=wanted)
        except msgspec.ValidationError as error:
            raise PayloadMismatch(job.kind, _name_of(wanted), str(error)) from error


def handler(
    kind: str,
    *,
    queue: str | None = None,
    lease: float | timedelta | None = None,
    timeout: float | timedelta | None = None,
    max_attempts: int | None = None,
    max_crashes: int | None = None,
    backoff: str | float | Sequence[float] | Backoff | None = None,
    limits: Sequence[str] = (),
    run: Run | None = None,
    batch: int | None = None,
    batch_wait: float | timedelta = 0.0,
    preset: str | None = None,
    on_failure: OnFailure | None = None,
) -> Callable[[Callable[..., Any]], Handler]:
    """Make a function the handler of a kind: `@handler("thumbnail", queue="images", timeout=60)`.

    Async functions run in the event loop, others in threads; `run="process"` is for work that keeps
    a processor busy. With `batch=100` the function takes a list of up to so many jobs and returns
    an outcome for each. `queue`, `max_attempts`, `max_crashes` and `limits` are also what new jobs
    of the kind get when they are enqueued where this handler is known. `preset` names a set of
    timings (`"nuq"`, `"crawl"`, `"unified"`, `"processing"`); what is given beside it comes first.
    `on_failure` is called with a job that a run has failed for good, and the reason: the jobs it
    returns are enqueued in the transaction of that failure, and what it executes in `job.tx` is
    committed there. (Not of one whose workers died.)
    """
    frame = sys._getframe(1)
    nearby = {**frame.f_globals, **frame.f_locals}
    timings = find_preset(preset)

    def make(function: Callable[..., Any]) -> Handler:
        made = Handler(
            kind=check_name(kind, "kind"),
            function=function,
            run=_way_to_run(function, run),
            queue=check_name(queue or DEFAULT_QUEUE, "queue"),
            backoff=backoff_policy(timings.backoff if backoff is None else backoff),
            lease=check_lease(lease) if lease is not None else timings.lease,
            heartbeat=timings.heartbeat,
            timeout=check_seconds(timeout, "timeout"),
            max_attempts=timings.max_attempts if max_attempts is None else max_attempts,
            batch=check_integer(batch or 1, "batch", 1),
            batch_wait=check_seconds(batch_wait, "batch_wait") or 0.0,
            is_batch=batch is not None,
            on_failure=on_failure,
            **_payload_of(function, nearby, is_batch=batch is not None),
        )
        declare(
            made.kind,
            Kind(
                queue=made.queue,
                max_attempts=made.max_attempts or DEFAULT_MAX_ATTEMPTS,
                max_crashes=max_crashes or timings.max_crashes or DEFAULT_MAX_CRASHES,
                limits=check_limit_keys(limits),
            ),
        )
        return made

    return make


def by_kind(handlers: Iterable[Handler | ModuleType]) -> dict[str, Handler]:
    """Handlers by their kind; of a module, all it has. Two for one kind are a mistake."""
    found: dict[str, Handler] = {}
    for one in _flatten(handlers):
        other = found.setdefault(one.kind, one)
        if other is not one:
            raise ConfigError(f"two handlers for the kind {one.kind!r}: {other} and {one}")
    if not found:
        raise ConfigError("a worker needs at least one handler: Worker(queue, [my_handler])")
    return found


def _flatten(handlers: Iterable[Handler | ModuleType]) -> Iterable[Handler]:
    for one in handlers:
        if isinstance(one, Handler):
            yield one
        elif isinstance(one, ModuleType):
            yield from (value for value in vars(one).values() if isinstance(value, Handler))
        else:
            raise ConfigError(f"{one!r} is not a handler: decorate it with @handler('kind')")


def _way_to_run(function: Callable[..., Any], asked: Run | None) -> Run:
    is_async = inspect.iscoroutinefunction(function)
    if asked is None:
        return "async" if is_async else "thread"
    if asked not in typing.get_args(Run):
        raise ConfigError(f"run must be one of {', '.join(typing.get_args(Run))}, not {asked!r}")
    if asked == "process" and "<" in function.__qualname__:
        raise ConfigError(
            f"{function.__qualname__} cannot run in a process: define it at the top of a module"
        )
    if is_async and asked == "thread":
        raise ConfigError("an async function runs in the event loop or in a process, not a thread")
    if not is_async and asked == "async":
        raise ConfigError("a function that blocks runs in a thread or a process, not in the loop")
    return asked


def _payload_of(
    function: Callable[..., Any], nearby: Mapping[str, Any], *, is_batch: bool
) -> dict[str, Any]:
    """Whether the function takes a payload, and of which type."""
    parameters = [
        one for one in inspect.signature(function).parameters.values() if one.kind in _POSITIONAL
    ]
    if len(parameters) < 2:
        return {"takes_payload": False}
    try:
        hints = typing.get_type_hints(function, localns=dict(nearby))
    except NameError as error:
        raise ConfigError(
            f"the annotations of {function.__qualname__} cannot be read: {error}"
        ) from error
    wanted = hints.get(parameters[1].name, Any)
    if is_batch and typing.get_origin(wanted) is list:
        [wanted] = typing.get_args(wanted)
    return {"takes_payload": True, "payload_type": None if wanted in _PLAIN else wanted}


def _by_pydantic(model: Any, job: Job) -> Any:
    try:
        return model.model_validate_json(job.payload_json)
    except ValueError as error:  # pydantic's ValidationError is one, and names the fields
        raise PayloadMismatch(job.kind, _name_of(model), str(error)) from error


def _name_of(wanted: Any) -> str:
    return getattr(wanted, "__name__", None) or str(wanted)
