"""Threads that write for each other while they wait.

Of the threads that want something written at the same time one leads: it writes for all, in its own
thread, so that nobody has to be woken before the writing begins, and everybody else once, when it
is over. The last of those who are expected leads; if it does not come in time, the first does.
"""

from __future__ import annotations

import sqlite3
import threading
from enum import Enum

from windrow.errors import StoreUnavailable
from windrow.queue.sqlite.committing import (
    GATHER_SECONDS,
    MOST_CALLS,
    MOST_GATHER_SECONDS,
    Call,
    commit,
    follow_up,
    roll_back,
)


class Role(Enum):
    LEADS = "leads"
    FIRST = "first"  # nobody leads: this one counts the time
    FOLLOWS = "follows"


class Crew:
    def __init__(self, connection: sqlite3.Connection, turn: threading.Lock) -> None:
        self._connection = connection
        self._turn = turn  # held by whoever uses the connection
        self._guard = threading.Lock()  # for a moment, around all below
        self._waiting: list[Call] = []  # in the order in which they came
        self._expected = 1  # as many as were answered the last time
        self._is_led = False
        self._is_closed = False
        self._emptied = threading.Event()  # after it was closed

    def ask(self, call: Call) -> None:
        """Returns when the call is committed, or has its error."""
        call.new_waiter()
        with self._guard:
            if self._is_closed:
                raise StoreUnavailable("the store is closed")
            self._waiting.append(call)
            role = self._role_of(call)
        try:
            while role is Role.LEADS or not call.is_answered:
                if role is Role.LEADS:
                    self._lead()  # more may wait than one transaction takes, and ours be among them
                    role = self._role_when_woken(call)
                else:
                    role = self._wait(call, role)
        except BaseException:  # this thread is to end, and others wait for it
            self._leave(call)
            raise

    def close(self) -> None:
        """Let nobody in any more, and wait until all who are in have been answered."""
        with self._guard:
            self._is_closed = True
            is_empty = not self._is_led and not self._waiting
        if not is_empty:
            self._emptied.wait()

    def _role_of(self, call: Call) -> Role:
        """Under the guard. Whoever is told to lead has to."""
        if self._is_led:
            return Role.FOLLOWS
        if len(self._waiting) >= self._expected:
            self._is_led = True
            return Role.LEADS
        is_first = bool(self._waiting) and self._waiting[0] is call
        return Role.FIRST if is_first else Role.FOLLOWS

    def _wait(self, call: Call, role: Role) -> Role:
        """Sleep until the call is answered, or it falls to us to lead or to count the time."""
        waiter = call.waiter
        if waiter is None:
            raise RuntimeError("a call without a waiter cannot be waited for")
        while role is Role.FIRST:
            count = len(self._waiting)
            missing = max(1, self._expected - count)
            if waiter.acquire(timeout=min(missing * GATHER_SECONDS, MOST_GATHER_SECONDS)):
                return self._role_when_woken(call)
            with self._guard:
                role = self._role_of(call)
                if role is Role.FIRST and len(self._waiting) == count:  # no more have come
                    self._is_led = True
                    return Role.LEADS
        if role is Role.FOLLOWS:
            waiter.acquire()
            return self._role_when_woken(call)
        return role

    def _role_when_woken(self, call: Call) -> Role:
        if call.is_answered:
            return Role.FOLLOWS
        with self._guard:  # the one who led has gone, or somebody else who waited
            return self._role_of(call)

    def _lead(self) -> None:
        calls: list[Call] = []
        try:
            with self._turn:
                with self._guard:
                    calls, self._waiting = self._waiting[:MOST_CALLS], self._waiting[MOST_CALLS:]
                try:
                    commit(self._connection, calls)
                except BaseException:
                    roll_back(self._connection)
                    raise
        except BaseException:
            for call in calls:  # whether it was committed is not known
                call.error = call.error or StoreUnavailable("the thread that wrote was stopped")
            raise
        finally:
            self._answer(calls)
        follow_up(calls)

    def _answer(self, calls: list[Call]) -> None:
        with self._guard:
            self._is_led = False
            self._expected = max(1, len(calls) + len(self._waiting))
            self._appoint()
        for call in calls:
            call.is_answered = True
            if call.waiter is not None:
                call.waiter.release()

    def _leave(self, call: Call) -> None:
        """Nobody waits for this call any more; if it is not being written, it will not be."""
        with self._guard:
            if call not in self._waiting:
                return
            self._waiting.remove(call)
            if not self._is_led:
                self._appoint()

    def _appoint(self) -> None:
        """Under the guard, when nobody leads: wake the first of those who wait, to see to it."""
        if self._waiting:
            first = self._waiting[0]
            former = first.waiter
            first.new_waiter()  # for the answer
            if former is not None:
                former.release()
        elif self._is_closed:
            self._emptied.set()
