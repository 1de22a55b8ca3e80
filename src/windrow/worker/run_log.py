"""The log of runs: one record for each run that has ended, once its end is stored.

Completed runs are logged at the level DEBUG, so a worker that does not log them formats nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from windrow.logging import event, list_some
from windrow.queue.job import JobError, JobState
from windrow.queue.lease import safe_message
from windrow.queue.records import Finish, Finished
from windrow.worker.runs import Run, Stop

logger = logging.getLogger(__name__)

MAX_ERROR: Final = 500  # characters of an error in a message; the fields have all of it


def logs_completed() -> bool:
    """Whether completed runs are logged."""
    return logger.isEnabledFor(logging.DEBUG)


def log_end(run: Run, finish: Finish) -> None:
    """Log how a run ended. Never raises: a handler can make anything of its job."""
    try:
        _log_end(run, finish)
    except Exception as error:
        logger.warning(
            "job %s %s: its end cannot be described: %s",
            run.id,
            run.handler.kind,
            safe_message(error),
            extra=event("job.unreadable", job_id=run.id, kind=run.handler.kind),
        )


def log_refused(finished: Finished) -> None:
    """Log what the store refused of the ends it was given."""
    for job_id in finished.lost:
        logger.warning(
            "job %s: its end was refused, the lease was lost",
            job_id,
            extra=event("job.lease_lost", job_id=job_id),
        )
    for job_id in finished.conflicting:  # a commit whose reply was lost had arrived
        logger.info(
            "job %s: this run had ended already", job_id, extra=event("job.ended", job_id=job_id)
        )
    if dropped := sum(one.outcome == "dropped" for one in finished.then):
        logger.warning(
            "%d follow-up jobs were dropped: their group has ended",
            dropped,
            extra=event("jobs.dropped", count=dropped),
        )


def log_transaction_failed(run: Run, what: str, error: BaseException) -> None:
    """Log that the transaction of a run could not be ended or rolled back."""
    logger.warning(
        "job %s: its transaction could not be %s: %s",
        run.id,
        what,
        safe_message(error),
        extra=event("job.transaction_failed", job_id=run.id, error=safe_message(error)),
    )


def log_stopping(runs: Iterable[Run], grace: float, *, at_once: bool) -> None:
    """Log for a person who stops a worker what still runs, and how long it may."""
    kinds = Counter(run.handler.kind for run in runs)
    left = kinds.total()
    jobs = "1 job" if left == 1 else f"{left} jobs"
    extra = event("worker.stopping", running=left, kinds=dict(kinds), grace_seconds=grace)
    if not left:
        logger.warning("stopping: no job runs", extra=extra)
    elif at_once:
        logger.warning("stopping at once: %s handed back, to be run again", jobs, extra=extra)
    else:
        logger.warning(
            "stopping: %s may run for up to %g s (%s); a second Ctrl-C hands back what still runs",
            jobs,
            grace,
            list_some(kinds),
            extra=extra,
        )


def _log_end(run: Run, finish: Finish) -> None:
    fields = _fields(run)
    match finish.state:
        case JobState.COMPLETED:
            logger.debug(
                "job %s %s completed in %s",
                run.id,
                run.handler.kind,
                duration(run.seconds),
                extra=event("job.completed", **fields),
            )
        case JobState.CANCELLED:
            logger.info(
                "job %s %s cancelled by its handler: %s",
                run.id,
                run.handler.kind,
                _summary(finish.error),
                extra=event("job.cancelled", **fields, error=_message(finish.error)),
            )
        case JobState.FAILED:
            _log_failure(run, finish, fields)
        case _ if finish.uses_attempt:
            _log_retry(run, finish, fields)
        case _:
            _log_return(run, finish, fields)


def _log_failure(run: Run, finish: Finish, fields: dict[str, Any]) -> None:
    has_more = fields["attempt"] < fields["max_attempts"]
    logger.error(
        "job %s %s failed, attempt %d of %d: %s%s",
        run.id,
        run.handler.kind,
        fields["attempt"],
        fields["max_attempts"],
        _summary(finish.error),
        "; not retried" if has_more else "; no attempt is left",
        extra=event("job.failed", **fields, **_error_fields(finish.error)),
    )


def _log_retry(run: Run, finish: Finish, fields: dict[str, Any]) -> None:
    logger.warning(
        "job %s %s failed, attempt %d of %d: %s; next try %s",
        run.id,
        run.handler.kind,
        fields["attempt"],
        fields["max_attempts"],
        _summary(finish.error),
        f"in {duration(finish.delay)}" if finish.delay else "at once",
        extra=event(
            "job.retried",
            **fields,
            **_error_fields(finish.error),
            next_try_seconds=finish.delay,
        ),
    )


def _log_return(run: Run, finish: Finish, fields: dict[str, Any]) -> None:
    """A run that ended without an attempt: it was stopped, or its handler waits for something."""
    match run.stop:
        case Stop.SHUTDOWN:
            logger.info(
                "job %s %s handed back, to run again",
                run.id,
                run.handler.kind,
                extra=event("job.released", **fields),
            )
        case Stop.ASKED:
            logger.info(
                "job %s %s stopped: it is to be %s",
                run.id,
                run.handler.kind,
                run.job.stop_as,
                extra=event("job.stopped", **fields, stop_as=run.job.stop_as),
            )
        case _:
            logger.debug(
                "job %s %s snoozed for %s",
                run.id,
                run.handler.kind,
                duration(finish.delay),
                extra=event("job.snoozed", **fields, next_try_seconds=finish.delay),
            )


def _fields(run: Run) -> dict[str, Any]:
    """What every record about a run has."""
    return {
        "job_id": run.id,
        "kind": run.handler.kind,
        "queue": run.job.queue,
        "tenant": run.job.tenant,
        "attempt": run.job.attempts + 1,
        "max_attempts": run.job.max_attempts,
        "seconds": round(run.seconds, 6),
    }


def _error_fields(error: JobError | None) -> dict[str, Any]:
    """What every record about a failed run has. The traceback is for whoever looks for a cause."""
    fields = {"error": _message(error), "error_type": None if error is None else error.type}
    if error is not None and error.traceback and logs_completed():
        fields["traceback"] = error.traceback
    return fields


def _message(error: JobError | None) -> str:
    return "no message" if error is None else error.message


def _summary(error: JobError | None) -> str:
    """An error in one line of bounded length."""
    kind = "" if error is None or error.type is None else f"{error.type}: "
    text = kind + " ".join(_message(error)[: 2 * MAX_ERROR].split())
    return text if len(text) <= MAX_ERROR else text[: MAX_ERROR - 1] + "…"


def duration(seconds: float) -> str:
    """A duration for a person: 0.021 s, 1.5 s, 16 s, 10 min, 3 h."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"
