"""`TypedKind`: a kind with the types of its payload and result, which makes its jobs."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, overload

from windrow.db.codec import decode_as, encode, type_name
from windrow.errors import InvalidJob, PayloadMismatch
from windrow.queue.job import EnqueueOptions, Job, JobOptions, NewJob
from windrow.queue.kinds import HandlerLike

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultedTypeVar

    from windrow.queue.queue import Queue
    from windrow.queue.sync_queue import SyncQueue

    P_co = DefaultedTypeVar("P_co", covariant=True, default=Any)
    R_co = DefaultedTypeVar("R_co", covariant=True, default=Any)
else:
    P_co = TypeVar("P_co", covariant=True)
    R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TypedKind(Generic[P_co, R_co]):
    """A kind with the types of its payload and of what its handler returns.

    Covariant in its payload, although payloads are parameters of methods (mypy: ignore[misc]): a
    list of handlers is a `list[object]` otherwise, which no worker accepts. Functions that enqueue
    by a handler take a `HandlerLike`, which is strict.
    """

    kind: str
    payload_type: Any = None  # None: plain JSON values
    result_type: Any = None

    @overload
    def enqueue(
        self: HandlerLike[None, R],
        on: Queue,
        /,
        payload: None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Coroutine[Any, Any, Job[R]]: ...
    @overload
    def enqueue(
        self,
        on: Queue,
        /,
        payload: P_co,  # type: ignore[misc]
        **options: Unpack[EnqueueOptions],
    ) -> Coroutine[Any, Any, Job[R_co]]: ...
    @overload
    def enqueue(
        self: HandlerLike[None, R],
        on: SyncQueue,
        /,
        payload: None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Job[R]: ...
    @overload
    def enqueue(
        self,
        on: SyncQueue,
        /,
        payload: P_co,  # type: ignore[misc]
        **options: Unpack[EnqueueOptions],
    ) -> Job[R_co]: ...
    def enqueue(
        self, on: Queue | SyncQueue, /, payload: Any = None, **options: Unpack[EnqueueOptions]
    ) -> Any:
        """`await thumbnail.enqueue(queue, Thumb(url=…), priority=8)`: `Queue.enqueue` for a job of
        this kind; not awaited on a `Queue.sync`. Raises PayloadMismatch, which names the field,
        before anything is written."""
        if isinstance(on, type) or not hasattr(on, "enqueue"):
            raise InvalidJob(
                f"a handler's enqueue takes an open queue and the payload: enqueue(queue, payload);"
                f" its first argument here is of type {type(on).__name__}"
            )
        return on.enqueue(self, payload, **options)

    @overload
    def job(
        self: HandlerLike[None, Any], payload: None = None, **options: Unpack[JobOptions]
    ) -> NewJob: ...
    @overload
    def job(
        self,
        payload: P_co,  # type: ignore[misc]
        **options: Unpack[JobOptions],
    ) -> NewJob: ...
    def job(self, payload: Any = None, **options: Unpack[JobOptions]) -> NewJob:
        """A new job of this kind, for `enqueue_many` and `Done(then=…)`. Raises PayloadMismatch."""
        self.check_payload(payload)
        return NewJob(self.kind, payload, **options)

    def typed(self, job: Job[Any], /) -> Job[R_co]:
        """A job of this kind that was read by its id, with the type of its result."""
        if job.kind != self.kind:
            raise InvalidJob(f"job {job.id} is of the kind {job.kind!r}, not {self.kind!r}")
        return job.decode_result_as(self.result_type)

    def payload_of(self, job: Job[Any]) -> Any:
        """The payload as the handler takes it. Raises PayloadMismatch, which names the field."""
        if self.payload_type is None:
            return job.payload
        return self._decode_payload(job.payload_json)

    def check_payload(self, payload: P_co, /) -> None:  # type: ignore[misc]
        """Raise PayloadMismatch, which names the field, if the handler could not take it."""
        if self.payload_type is not None:
            self._decode_payload(encode(payload, "payload").json)

    def _decode_payload(self, payload_json: bytes | str) -> Any:
        try:
            return decode_as(payload_json, self.payload_type)
        except ValueError as error:
            name = type_name(self.payload_type)
            raise PayloadMismatch(self.kind, name, str(error)) from error
