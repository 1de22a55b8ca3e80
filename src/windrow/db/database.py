"""What packages ask of a database: named statements and transactions.

A verb is `async def verb(tx, …)`: it names statements, gets rows and decides. It owns nothing but
its arguments, because a deadlock or a lost race rolls the transaction back and runs the verb again.
On SQLite the writer's thread drives it, so it may await nothing but `tx`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Transaction(Protocol):
    async def rows(self, statement: str, /, **values: Any) -> list[dict[str, Any]]:
        """Run a statement; its rows, with values of the types that its header names."""
        ...

    async def run(self, statement: str, /, **values: Any) -> None:
        """Run a statement whose rows nobody needs."""
        ...


Verb = Callable[Concatenate[Transaction, P], Coroutine[Any, Any, T]]


class Database(Protocol):
    async def rows(self, statement: str, /, **values: Any) -> list[dict[str, Any]]:
        """Run one statement, which commits by itself."""
        ...

    async def rows_each(
        self, statement: str, each: Sequence[Sequence[Any]], /, **values: Any
    ) -> list[dict[str, Any]]:
        """Run a statement once for each tuple; the rows of all, in the order of the tuples."""
        ...

    async def run(self, statement: str, /, **values: Any) -> None:
        """Run one statement whose rows nobody needs."""
        ...

    async def transact(self, verb: Verb[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a verb in a transaction of its own, again if another got in its way."""
        ...

    def joined(self, tx: Any) -> Transaction:
        """A job's transaction, for statements that commit with the job. Whether it can return rows
        is the store's capability `reads_in_transaction`."""
        ...
