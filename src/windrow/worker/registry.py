"""Handlers: which function runs the jobs of a kind, and how.

A handler is called with the job and, if it takes a second argument, with the payload: as the type
the argument is annotated with (a msgspec struct, a dataclass, a TypedDict, a Pydantic model), or as
plain JSON values. A batch handler is called with a list of jobs instead, and a list of payloads.
The types of payload and result are those of its annotations, for type checkers and at run time.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    overload,
)

from windrow.errors import ConfigError
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
from windrow.queue.outcome import OUTCOMES, Done
from windrow.queue.policy import Backoff
from windrow.queue.policy import backoff as backoff_policy
from windrow.queue.typed_kind import P_co, R_co, TypedKind

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    R = DefaultedTypeVar("R", default=None)  # of a batch handler that returns nothing
else:
    R = TypeVar("R")

Run = Literal["async", "thread", "process"]
# Told a job that a run failed for good, and why; the jobs that are enqueued with that. It may be
# async, and write in `job.tx`.
OnFailure = Callable[[Job, str], Sequence[NewJob] | Awaitable[Sequence[NewJob]]]
P = TypeVar("P")
_PLAIN: Final = (inspect.Parameter.empty, Any, object, dict)
_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler(TypedKind[P_co, R_co]):
    """A function that runs the jobs of one kind. It can still be called as the function it is."""

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
    on_failure: OnFailure | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class HandlerOptions(TypedDict, total=False):
    """The options of `handler`, `batch` aside."""

    queue: str | None
    lease: float | timedelta | None
    heartbeat: float | timedelta | None
    timeout: float | timedelta | None
    max_attempts: int | None
    max_crashes: int | None
    backoff: str | float | Sequence[float] | Backoff | None
    limits: Sequence[str]
    run: Run | None
    batch_wait: float | timedelta
    preset: str | None
    on_failure: OnFailure | None


class Decorator(Protocol):
    """The return type of `handler`: turns a function into a `Handler` with its types."""

    @overload
    def __call__(
        self, function: Callable[[Job, P], Coroutine[Any, Any, R]], /
    ) -> Handler[P, R]: ...
    @overload
    def __call__(self, function: Callable[[Job, P], R], /) -> Handler[P, R]: ...
    @overload
    def __call__(self, function: Callable[[Job], Coroutine[Any, Any, R]], /) -> Handler[Any, R]: ...
    @overload
    def __call__(self, function: Callable[[Job], R], /) -> Handler[Any, R]: ...


class BatchDecorator(Protocol):
    """`Decorator` for batch handlers: lists in, a list or None out."""

    @overload
    def __call__(
        self,
        function: Callable[[list[Job], list[P]], Coroutine[Any, Any, Sequence[R] | None]],
        /,
    ) -> Handler[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[[list[Job], list[P]], Sequence[R] | None], /
    ) -> Handler[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[[list[Job]], Coroutine[Any, Any, Sequence[R] | None]], /
    ) -> Handler[Any, R]: ...
    @overload
    def __call__(
        self, function: Callable[[list[Job]], Sequence[R] | None], /
    ) -> Handler[Any, R]: ...


@overload
def handler(kind: str, *, batch: None = None, **options: Unpack[HandlerOptions]) -> Decorator: ...
@overload
def handler(kind: str, *, batch: int, **options: Unpack[HandlerOptions]) -> BatchDecorator: ...
def handler(
    kind: str,
    *,
    queue: str | None = None,
    lease: float | timedelta | None = None,
    heartbeat: float | timedelta | None = None,
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
    `heartbeat` is how many seconds pass between renewals of the lease, so how soon a running job
    notices that it was cancelled, paused or lost; it is a quarter of the lease at the most.
    `on_failure` is called with a job that a run has failed for good, and the reason: the jobs it
    returns are enqueued in the transaction of that failure, and what it executes in `job.tx` is
    committed there. (Not of one whose workers died.)
    """
    if callable(kind):
        raise ConfigError("@handler needs the kind: write @handler('thumbnail')")
    frame = sys._getframe(1)
    nearby = {**frame.f_globals, **frame.f_locals}
    timings = find_preset(preset)

    def make(function: Callable[..., Any]) -> Handler:
        if isinstance(function, Handler):  # of another kind, too
            function = function.function
        made = Handler(
            kind=check_name(kind, "kind"),
            function=function,
            run=_way_to_run(function, run),
            queue=check_name(queue or DEFAULT_QUEUE, "queue"),
            backoff=backoff_policy(timings.backoff if backoff is None else backoff),
            lease=check_lease(lease) if lease is not None else timings.lease,
            heartbeat=check_seconds(heartbeat, "heartbeat") or timings.heartbeat,
            timeout=check_seconds(timeout, "timeout"),
            max_attempts=timings.max_attempts if max_attempts is None else max_attempts,
            batch=check_integer(batch or 1, "batch", 1),
            batch_wait=check_seconds(batch_wait, "batch_wait") or 0.0,
            is_batch=batch is not None,
            on_failure=on_failure,
            **_types_of(function, nearby, is_batch=batch is not None),
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
            raise ConfigError(
                f"two handlers for the kind {one.kind!r}: {_place_of(other)} and {_place_of(one)}"
            )
    if not found:
        raise ConfigError("a worker needs at least one handler: Worker(queue, [my_handler])")
    return found


def _place_of(handler: Handler) -> str:
    """Where a handler is defined, for a message."""
    code = getattr(_plain_function(handler.function), "__code__", None)
    line = f" ({code.co_filename}, line {code.co_firstlineno})" if code is not None else ""
    return f"{name_of(handler.function)}{line}"


def name_of(function: Callable[..., Any]) -> str:
    """The module and the name of a function, for people."""
    plain = _plain_function(function)
    return f"{plain.__module__}.{plain.__qualname__}"


def _flatten(handlers: Iterable[Handler | ModuleType]) -> Iterable[Handler]:
    for one in handlers:
        if isinstance(one, Handler):
            yield one
        elif isinstance(one, ModuleType):
            yield from (value for value in vars(one).values() if isinstance(value, Handler))
        else:
            raise ConfigError(f"{one!r} is not a handler: decorate it with @handler('kind')")


def _way_to_run(function: Callable[..., Any], asked: Run | None) -> Run:
    name = _plain_function(function).__qualname__
    is_async = inspect.iscoroutinefunction(_plain_function(function))
    if asked is None:
        return "async" if is_async else "thread"
    if asked not in typing.get_args(Run):
        raise ConfigError(f"run must be one of {', '.join(typing.get_args(Run))}, not {asked!r}")
    if asked == "process" and ("<" in name or not inspect.isroutine(function)):
        raise ConfigError(f"{name} cannot run in a process: define it at the top of a module")
    if is_async and asked == "thread":
        raise ConfigError("an async function runs in the event loop or in a process, not a thread")
    if not is_async and asked == "async":
        raise ConfigError("a function that blocks runs in a thread or a process, not in the loop")
    return asked


def _types_of(
    function: Callable[..., Any], nearby: Mapping[str, Any], *, is_batch: bool
) -> dict[str, Any]:
    """Whether the function takes a payload, of which type, and the type of its result."""
    signature = inspect.signature(function)
    parameters = [one for one in signature.parameters.values() if one.kind in _POSITIONAL]
    takes_payload = len(parameters) >= 2
    try:
        signature.bind(*(["job", "payload"] if takes_payload else ["job"]))
    except TypeError as error:
        name = _plain_function(function).__qualname__
        raise ConfigError(f"{name} must take a job, or a job and a payload: {error}") from error
    try:
        hints = typing.get_type_hints(_plain_function(function), localns=dict(nearby))
    except Exception as error:  # of names that are imported for type checkers only, and the like
        if not takes_payload:
            return {}
        raise ConfigError(
            f"the annotations of {_plain_function(function).__qualname__} cannot be read: {error}"
        ) from error
    payload = hints.get(parameters[1].name, Any) if takes_payload else Any
    returned = hints.get("return", Any)
    if is_batch:
        payload, returned = _item_of(payload), _item_of(returned)
    return {
        "takes_payload": takes_payload,
        "payload_type": _unless_plain(payload),
        "result_type": _unless_plain(_result_in(returned)),
    }


def _plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with name and annotations: in a partial, or the `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _item_of(listed: Any) -> Any:
    """The type of the items of a list, which may be None instead."""
    for one in _members(listed):
        if typing.get_origin(one) in (list, Sequence):
            [item] = typing.get_args(one)
            return item
    return listed


def _result_in(returned: Any) -> Any:
    """The type of the result, of what a function returns: a value or outcomes."""
    results: list[Any] = []
    for one in _members(returned):
        if typing.get_origin(one) is Done:
            results.extend(typing.get_args(one))
        elif one is Done:
            return Any
        elif one not in OUTCOMES:
            results.append(one)
    return Union[tuple(results)] if results else Any  # noqa: UP007


def _members(wanted: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(wanted) in (Union, UnionType)
    return typing.get_args(wanted) if is_union else (wanted,)


def _unless_plain(wanted: Any) -> Any:
    return None if wanted in _PLAIN or wanted is type(None) else wanted


@dataclass(frozen=True, slots=True)
class Preset:
    """None: as usual."""

    lease: int | None = None  # seconds a claim holds without a renewal
    heartbeat: float | None = None  # seconds between renewals
    rescue: float | None = None  # seconds between looks for leases that ran out
    max_attempts: int | None = None  # runs that may report failure
    max_crashes: int | None = None  # runs whose lease may run out
    backoff: str = "default"


PRESETS: Final[dict[str, Preset]] = {
    # Renewed every 15 s, reaped every 15 s, failed at the ninth stall.
    "nuq": Preset(lease=60, heartbeat=15, rescue=15, max_crashes=9),
    # An ordinary error fails at once; a worker that is silent for two minutes is run again thrice.
    "crawl": Preset(lease=120, heartbeat=30, max_attempts=1, max_crashes=4),
    # Three retries after the first run.
    "unified": Preset(lease=300, max_attempts=4),
    # min(600, 30 · 2^attempts) seconds between five runs.
    "processing": Preset(max_attempts=5, backoff="processing"),
}


def find_preset(name: str | None) -> Preset:
    if name is None:
        return Preset()
    if name not in PRESETS:
        raise ConfigError(f"no preset named {name!r}; there are: {', '.join(sorted(PRESETS))}")
    return PRESETS[name]
