"""Chains: work done in stages, each a job of its own, handed from one to the next.

    calls = Chain("call", status=StatusRow("call", field="call_id"))

    @calls.stage("fetch", queue="fetching", lease=120, max_attempts=3, status="fetching")
    async def fetch(job, payload: Call) -> Fetched: ...

    @calls.stage("index", queue="indexing", status="indexing")
    async def index(job, payload: Fetched) -> dict: ...

    await queue.enqueue_many([calls.begin({"call_id": 7})])
    await Worker(queue, calls.handlers).run()

What a stage returns is the payload of the next one, enqueued in the transaction that completes it.
What the last one returns is its result; `Done(result)` ends the chain sooner, and the other
outcomes mean what they always do. With a `StatusRow` a row of the user's own table says where the
chain is: it changes with the hand-off, when a stage begins anew, and when one fails for good.
"""

from __future__ import annotations

import inspect
import re
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Final

from windrow.errors import ConfigError, LeaseLost
from windrow.queue.job import Job, NewJob
from windrow.queue.lease import describe
from windrow.queue.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze
from windrow.worker.classify import classify
from windrow.worker.registry import Handler, handler

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_NEXT_NAMESPACE: Final = uuid.UUID("3f8c5a57-0b1e-4d5c-9f2e-6f8f3c2a9d41")


@dataclass(frozen=True, slots=True)
class StatusRow:
    """A row of the user's own table that shows where its chain is. `field` of the payload names the
    row by its `key`."""

    table: str
    key: str = "id"
    field: str = "id"
    column: str = "processing_status"
    error: str | None = "processing_error"
    done: str = "done"
    failed: str = "failed"

    def __post_init__(self) -> None:
        for name in (self.table, self.key, self.column, self.error):
            if name is not None and not _NAME.fullmatch(name):
                raise ConfigError(f"{name!r} is not the name of a table or a column")

    def update(self, job: Job, status: str, error: str | None) -> tuple[Any, ...]:
        """The statement that changes the row of a job, and its arguments."""
        row = self.row_of(job)
        if self.error is None:
            return f"update {self.table} set {self.column} = $1 where {self.key} = $2", status, row
        change = f"{self.column} = $1, {self.error} = $2"
        return f"update {self.table} set {change} where {self.key} = $3", status, error, row

    def row_of(self, job: Job) -> Any:
        payload = job.payload
        if not isinstance(payload, dict) or self.field not in payload:
            raise ConfigError(
                f"the payload of {job.kind} has no {self.field!r}, which names its row"
            )
        return payload[self.field]


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    handler: Handler
    status: str | None


class Chain:
    """Stages in the order in which they were declared."""

    def __init__(self, name: str, *, status: StatusRow | None = None) -> None:
        self.name = name
        self.status = status
        self._stages: list[Stage] = []

    def __iter__(self) -> Iterator[Stage]:
        return iter(self._stages)

    @property
    def handlers(self) -> list[Handler]:
        """For `Worker(queue, chain.handlers)`."""
        return [stage.handler for stage in self._stages]

    def stage(
        self, name: str, *, status: str | None = None, **options: Any
    ) -> Callable[[Callable[..., Any]], Handler]:
        """Declare the next stage. `status` is what the row says while it waits and runs; the other
        options are those of `@handler`, and the kind is `<chain>.<stage>`."""
        if options.get("run") == "process" or options.get("batch"):
            raise ConfigError("a stage runs in the loop or in a thread, one job at a time")

        def make(function: Callable[..., Any]) -> Handler:
            place = len(self._stages)
            wrap = _awaiting if inspect.iscoroutinefunction(function) else _blocking
            made = handler(f"{self.name}.{name}", **options)(wrap(self, place, function))
            self._stages.append(Stage(name, made, status))
            return made

        return make

    def begin(self, payload: Any, **options: Any) -> NewJob:
        """A new job that begins a chain; the options are those of `NewJob`."""
        return self.job(self._stages[0].name, payload, **options)

    def job(self, stage: str, payload: Any, **options: Any) -> NewJob:
        """A new job that begins a chain at some other stage."""
        for one in self._stages:
            if one.name == stage:
                options.setdefault("queue", one.handler.queue)
                return NewJob(one.handler.kind, payload, **options)
        raise ConfigError(f"the chain {self.name!r} has no stage {stage!r}")


@dataclass(frozen=True, slots=True)
class _End:
    """How a run ends, and what its row says then; None leaves it as it is."""

    outcome: Outcome
    status: str | None = None
    error: str | None = None


def _entering(chain: Chain, place: int, job: Job) -> str | None:
    """What the row is to say when a run begins. A hand-off has said it already, unless the stage
    begins anew: then it may have said that it failed."""
    is_said = place > 0 and job.runs <= 1
    return None if is_said else chain._stages[place].status


def _ending(chain: Chain, place: int, job: Job, value: Any) -> _End:
    """What becomes of a run that returned a value."""
    match value:
        case Done():
            return _End(value, chain.status.done if chain.status else None)
        case Fail():
            return _failing(chain, value.error)
        case Retry() if job.attempts + 1 >= job.max_attempts:
            return _failing(chain, value.error)
        case Retry() | Snooze() | Cancel():
            return _End(value)
    if place + 1 == len(chain._stages):
        return _End(Done(value), chain.status.done if chain.status else None)
    following = chain._stages[place + 1]
    return _End(Done(then=[_next_job(following, job, value)]), following.status)


def _raising(chain: Chain, place: int, job: Job, error: Exception) -> _End | None:
    """What becomes of a run that raised; None: the worker decides, for it may be run again."""
    outcome = classify(error, job, chain._stages[place].handler)
    is_last = isinstance(outcome, Retry) and job.attempts + 1 >= job.max_attempts
    return _failing(chain, error) if is_last or isinstance(outcome, Fail) else None


def _failing(chain: Chain, error: BaseException | str) -> _End:
    if chain.status is None:
        return _End(Fail(error))
    return _End(Fail(error, commit=True), chain.status.failed, describe(error).message)


def _next_job(stage: Stage, job: Job, payload: Any) -> NewJob:
    return NewJob(
        stage.handler.kind,
        payload,
        queue=stage.handler.queue,
        priority=job.priority,
        tenant=job.tenant,
        group=job.group,
        headers=job.headers or None,
        tags=job.tags,
        # The same for each run of the job: a store that cannot hand on in one transaction may
        # enqueue it twice, and has it once.
        id=str(uuid.uuid5(_NEXT_NAMESPACE, f"{job.id}:{stage.name}")),
    )


Steps = Generator[Callable[[], Any], Any, Outcome]


def _steps(chain: Chain, place: int, job: Job, call: Callable[[], Any]) -> Steps:
    """One run, as the calls it makes: in the loop they are awaited, in a thread they block."""
    if chain.status and (status := _entering(chain, place, job)):
        yield partial(job.tx.execute, *chain.status.update(job, status, None))
        yield job.tx.save
    try:
        end = _ending(chain, place, job, (yield call))
    except LeaseLost:
        raise
    except Exception as error:
        found = _raising(chain, place, job, error)
        if found is None:
            raise
        end = found
    if isinstance(end.outcome, Fail):
        yield job.tx.rollback
    if chain.status and end.status:
        yield partial(job.tx.execute, *chain.status.update(job, end.status, end.error))
    return end.outcome


def _awaiting(chain: Chain, place: int, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def run(job: Job, *payload: Any) -> Outcome:
        steps = _steps(chain, place, job, partial(function, job, *payload))
        try:
            step = next(steps)
            while True:
                try:
                    value = await step()
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    return run


def _blocking(chain: Chain, place: int, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(job: Job, *payload: Any) -> Outcome:
        steps = _steps(chain, place, job, partial(function, job, *payload))
        try:
            step = next(steps)
            while True:
                try:
                    value = step()
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    return run
