"""`make schema`: rewrite the SQLite snapshot from the migrations. Postgres's is written by hand, so
that it reads well, and a test proves that it makes the same tables."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from windrow import Queue
from windrow.queue import sqlite
from windrow.queue.sqlite.schema import describe_schema


async def described() -> str:
    with tempfile.TemporaryDirectory(prefix="windrow-schema-") as folder:
        url = f"sqlite:///{folder}/jobs.db"
        async with Queue.open(url):
            return await describe_schema(url)


def main() -> None:
    text = asyncio.run(described())
    path = Path(sqlite.__file__).parent / "schema.sql"
    path.write_text(text, "utf-8")
    print(f"wrote {path.name}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
