"""Inserting in the caller's own transaction, on a connection of theirs to the same file.

The caller commits. Everything happens in the caller's thread; with a blocking connection nothing
here ever waits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from windrow.clock import Clock
from windrow.db.sqlite.connection import time_now
from windrow.db.sqlite.failures import translate
from windrow.db.statements import load_statement
from windrow.db.transactions import Executor, Row, executor_for
from windrow.queue.records import Inserted, JobRow
from windrow.queue.sqlite.inserting import insert_steps
from windrow.queue.sqlite.steps import Step
from windrow.queue.sqlite.work import PACKAGE


async def insert_jobs(tx: Any, rows: Sequence[JobRow], clock: Clock, path: str) -> list[Inserted]:
    """Insert through a connection that is in a transaction; a `sqlite3` one that is not is put in
    one, so that the caller's commit is what makes the jobs."""
    executor = executor_for(tx, "sqlite")
    begins = isinstance(tx, sqlite3.Connection) and not tx.in_transaction
    try:
        if begins:
            tx.execute("BEGIN IMMEDIATE")
        return await _insert(executor, rows, clock)
    except BaseException as error:
        if begins and tx.in_transaction:
            tx.execute("ROLLBACK")  # it was ours, and nothing of the caller's is in it
        cause = getattr(error, "orig", error)  # SQLAlchemy wraps what the driver raised
        if isinstance(cause, sqlite3.Error):
            raise translate(cause, path) from error
        raise


async def _insert(executor: Executor, rows: Sequence[JobRow], clock: Clock) -> list[Inserted]:
    await _run(executor, ("take_write_lock", {}))
    steps = insert_steps(rows, time_now(clock), keeps_bounds=True)
    found: Sequence[Row] = ()
    try:
        step = next(steps)
        while True:
            found = await _run(executor, step)
            step = steps.send(found)
    except StopIteration as end:
        inserted: list[Inserted] = end.value
        return inserted


async def _run(executor: Executor, step: Step) -> Sequence[Row]:
    name, values = step
    statement = load_statement(PACKAGE, name)
    if not isinstance(values, list):
        return await executor.fetch(statement, values)
    for one in values:
        await executor.fetch(statement, one)
    return ()
