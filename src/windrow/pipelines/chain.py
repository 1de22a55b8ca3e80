"""Chains: work done in stages, each a job of its own, handed from one to the next.

    calls = Chain("call", status=StatusRow("call", field="call_id"))

    @calls.stage("fetch", queue="fetching", lease=120, max_attempts=3, status="fetching")
    async def fetch(job, payload: Call) -> Fetched: ...

    @calls.stage("index", queue="indexing", status="indexing")
    async def index(job, payload: Fetched) -> dict: ...

    await queue.enqueue_many([calls.begin({"call_id": 7})])
    await Worker(queue, calls.handlers).run()

What a stage returns is the payload of the next one, enqueued in the transaction that completes it;
`Next(payload, delay=60)` has it wait. What the last one returns is its result; `Done(result)` ends
the chain sooner, and the other outcomes mean what they always do. With a `StatusRow` a row of the
user's own table says where the chain is: it changes with the hand-off, when a stage begins anew,
and when one fails for good. All jobs of a row have one unique key, `call:7`: a chain that is under
way is not begun again.

`Sweeper` (sweeping.py) sees to rows that no job is at work for.
"""

from __future__ import annotations

import inspect
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Unpack

import msgspec

from windrow.errors import ConfigError
from windrow.queue.job import Job, JobOptions, NewJob
from windrow.queue.outcome import Cancel, Done, Fail, Outcome, Retry, Snooze
from windrow.worker.registry import Handler, handler

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
_NEXT_NAMESPACE: Final = uuid.UUID("3f8c5a57-0b1e-4d5c-9f2e-6f8f3c2a9d41")


@dataclass(frozen=True, slots=True)
class StatusRow:
    """A row of the user's own table that shows where its chain is. `field` of the payload names the
    row by its `key`. With a column for the `tenant` ("" for none) only rows of the job's own tenant
    are changed, whatever row a payload names."""

    table: str
    key: str = "id"
    field: str = "id"
    column: str = "processing_status"
    error: str | None = "processing_error"
    pending: str = "pending"
    done: str = "done"
    failed: str = "failed"
    tenant: str | None = None

    def __post_init__(self) -> None:
        for name in (self.table, self.key, self.column, self.error, self.tenant):
            if name is not None:
                check_column(name)

    def update(
        self, payload: Any, tenant: str | None, status: str, error: str | None
    ) -> tuple[Any, ...]:
        """The statement that changes the row that a tenant's payload names, and its arguments."""
        values: list[Any] = [status, self.row_of(payload)]
        change, which = f"{self.column} = $1", f"{self.key} = $2"
        if self.error is not None:
            values.append(error)
            change += f", {self.error} = ${len(values)}"
        if self.tenant is not None:
            values.append(tenant or "")
            which += f" and {self.tenant} = ${len(values)}"
        # The names are those the application gave its table, never of a job; values are bound.
        return f"update {self.table} set {change} where {which}", *values  # noqa: S608

    def row_of(self, payload: Any) -> Any:
        plain = msgspec.to_builtins(payload)
        if not isinstance(plain, dict) or self.field not in plain:
            raise ConfigError(f"the payload has no {self.field!r}, which names its row")
        return plain[self.field]


def check_column(name: str) -> str:
    """A name that is written into a statement as it is. Raises ConfigError."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is not the name of a table or a column")
    return name


@dataclass(frozen=True, slots=True)
class Next:
    """What a stage hands on to the next one, which begins after so many seconds."""

    payload: Any
    delay: float = 0.0


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
        self,
        name: str,
        *,
        status: str | None = None,
        max_reads: int | None = None,
        **options: Any,
    ) -> Callable[[Callable[..., Any]], Handler]:
        """Declare the next stage. `status` is what the row says while it waits and runs. A job that
        `max_reads` runs have begun and none has ended, whether they failed or died, is failed by
        the next one, which only says so. The other options are those of `@handler`, and the kind is
        `<chain>.<stage>`."""
        if options.get("run") == "process" or options.get("batch"):
            raise ConfigError("a stage runs in the loop or in a thread, one job at a time")
        if max_reads is not None:
            options = {"max_attempts": max_reads, "max_crashes": max_reads + 1, **options}
        if self.status is not None:
            options.setdefault("on_failure", self._failed)

        def make(function: Callable[..., Any]) -> Handler:
            place = len(self._stages)
            wrap = _awaiting if inspect.iscoroutinefunction(function) else _blocking
            run = wrap(_Passage(self, place, max_reads), function)
            made: Handler = handler(f"{self.name}.{name}", **options)(run)
            self._stages.append(Stage(name, made, status))
            return made

        return make

    def begin(self, payload: Any, **options: Unpack[JobOptions]) -> NewJob:
        """A new job that begins a chain; the options are those of `NewJob`."""
        return self.job(self._stages[0].name, payload, **options)

    def job(self, stage: str, payload: Any, **options: Unpack[JobOptions]) -> NewJob:
        """A new job that begins a chain at some other stage."""
        for one in self._stages:
            if one.name == stage:
                options.setdefault("queue", one.handler.queue)
                options.setdefault("unique", self.key_of(payload))
                return NewJob(one.handler.kind, payload, **options)
        raise ConfigError(f"the chain {self.name!r} has no stage {stage!r}")

    def key_of(self, payload: Any) -> str | None:
        """The unique key of all jobs of a row; without a row there is none."""
        return None if self.status is None else f"{self.name}:{self.status.row_of(payload)}"

    async def _failed(self, job: Job, why: str) -> Sequence[NewJob]:
        """The row says why, in the transaction that fails the job."""
        if self.status is not None:
            statement = self.status.update(job.payload, job.tenant, self.status.failed, why)
            await job.tx.execute(*statement)
        return ()


@dataclass(frozen=True, slots=True)
class _Passage:
    """What a stage does beside its function: before it, and with what came of it."""

    chain: Chain
    place: int
    max_reads: int | None

    def entering(self, job: Job) -> tuple[Any, ...] | None:
        """What is written when a run begins. A hand-off has said it already, unless the stage
        begins anew: then the row may say that it failed."""
        status = self.chain._stages[self.place].status
        is_said = self.place > 0 and job.runs <= 1
        if self.chain.status is None or status is None or is_said:
            return None
        return self.chain.status.update(job.payload, job.tenant, status, None)

    def refusal(self, job: Job) -> Fail | None:
        """Whether a job is not to be tried again."""
        begun = job.attempts + job.crashes
        if self.max_reads is None or begun < self.max_reads:
            return None
        last = f": {job.error}" if job.error else ""
        return Fail(f"given up: read more than {self.max_reads} times{last}")

    def outcome_of(self, job: Job, value: Any) -> tuple[Outcome, tuple[Any, ...] | None]:
        """How a run that returned a value ends, and what is written with that."""
        row, stages = self.chain.status, self.chain._stages
        handed = value if isinstance(value, Next) else Next(value)
        match value:
            case Retry() | Snooze() | Cancel() | Fail():
                return value, None
            case Done():
                outcome, status = value, row.done if row else None
            case _ if self.place + 1 == len(stages):
                outcome, status = Done(handed.payload), row.done if row else None
            case _:
                following = stages[self.place + 1]
                outcome = Done(then=[_next_job(self.chain, following, job, handed)])
                status = following.status
        if row is None or status is None:
            return outcome, None
        return outcome, row.update(job.payload, job.tenant, status, None)


def _next_job(chain: Chain, stage: Stage, job: Job, handed: Next) -> NewJob:
    return NewJob(
        stage.handler.kind,
        handed.payload,
        delay=handed.delay or None,
        queue=stage.handler.queue,
        priority=job.priority,
        tenant=job.tenant,
        group=job.group,
        headers=job.headers or None,
        tags=job.tags,
        unique=chain.key_of(handed.payload),
        # The same for each run of the job: a store that cannot hand on in one transaction may
        # enqueue it twice, and has it once.
        id=str(uuid.uuid5(_NEXT_NAMESPACE, f"{job.id}:{stage.name}")),
    )


def _awaiting(passage: _Passage, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def run(job: Job, *payload: Any) -> Outcome:
        if refusal := passage.refusal(job):
            return refusal
        if statement := passage.entering(job):
            await job.tx.execute(*statement)
            await job.tx.save()
        outcome, statement = passage.outcome_of(job, await function(job, *payload))
        if statement:
            await job.tx.execute(*statement)
        return outcome

    return run


def _blocking(passage: _Passage, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(job: Job, *payload: Any) -> Outcome:
        if refusal := passage.refusal(job):
            return refusal
        if statement := passage.entering(job):
            job.tx.execute(*statement)
            job.tx.save()
        outcome, statement = passage.outcome_of(job, function(job, *payload))
        if statement:
            job.tx.execute(*statement)
        return outcome

    return run
