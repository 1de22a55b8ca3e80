"""Jobs that are enqueued in your own transaction, with SQLAlchemy: `tx=session`.

An order and the job that invoices it are committed together, or not at all: there is no order that
nobody works on, and no job for an order that is not there. The handler writes its row through
`job.tx`, in the transaction that completes the job, so there is one invoice for each order.

    python examples/transactional.py [URL of a database]
"""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from windrow import Job, Queue, Worker, handler


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    cents: Mapped[int]


class Invoice(Base):
    __tablename__ = "invoices"
    order_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str]


# `job.tx` takes the parameters of the database itself: ?1 on SQLite, $1 on Postgres.
MARK = "$" if sys.argv[1:] and sys.argv[1].startswith("postgres") else "?"
ADD_INVOICE = f"INSERT INTO invoices (order_id, text) VALUES ({MARK}1, {MARK}2)"  # noqa: S608


@handler("invoice")
async def invoice(job: Job, payload: dict[str, Any]) -> None:
    text = f"{payload['customer']} owes {payload['cents'] / 100:.2f}"
    await job.tx.execute(ADD_INVOICE, payload["order"], text)


def place_order(session: Session, queue: Any, customer: str, cents: int) -> None:
    order = Order(customer=customer, cents=cents)
    session.add(order)
    session.flush()  # so that it has an id
    payload = {"order": order.id, "customer": customer, "cents": cents}
    queue.enqueue("invoice", payload, tx=session)
    if cents <= 0:
        raise ValueError(f"{customer} ordered nothing")


async def work(queue: Queue) -> None:
    await Worker(queue, [invoice]).run(until_idle=True)


def main(url: str) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1))
    Base.metadata.create_all(engine)
    with Queue.sync(url) as queue:
        for customer, cents in [("Ada", 1200), ("Bob", 0), ("Grace", 350)]:
            try:
                with Session(engine) as session, session.begin():
                    place_order(session, queue, customer, cents)
            except ValueError as error:
                print(f"rolled back: {error}")
        print("jobs before the worker ran:", sum(queue.counts().values()))
        queue.run(work)
    with Session(engine) as session:
        print("orders:", session.scalar(sqlalchemy.select(sqlalchemy.func.count(Order.id))))
        for found in session.scalars(sqlalchemy.select(Invoice).order_by(Invoice.order_id)):
            print("invoice:", found.text)
    engine.dispose()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/jobs.db")
