"""Short ways to say what tests of items are about."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from windrow import Job, Queue, handler
from windrow.catalog import Catalog
from windrow.catalog.contents import Written
from windrow.catalog.documents import DocumentInfo
from windrow.pipelines.index.payloads import QUEUE as INDEX
from windrow.pipelines.index.payloads import WRITE
from windrow.pipelines.knowledge.context import Knowledge
from windrow.pipelines.knowledge.handlers import knowledge_handlers
from windrow.pipelines.knowledge.items import QUEUE, ItemType, Operation, new_item
from windrow.queue.job import LIVE
from windrow.testing import drain

COLLECTION = "notes"
OLD_NS = 1_700_000_000_000_000_000


class Desk:
    """A queue beside a tree. What the index does is reduced to what the tables see of it: a content
    that was written is switched to."""

    def __init__(self, queue: Queue, tree: Path) -> None:
        self.queue = queue
        self.tree = tree
        self.written: list[str] = []  # contents, as often as they were handed to the index

    async def enqueue(
        self,
        item_type: ItemType,
        op: Operation,
        payload: Mapping[str, Any],
        *,
        tenant: str | None = None,
        **more: Any,
    ) -> str:
        item = new_item(item_type, op, COLLECTION, payload, tenant=tenant, **more)
        [inserted] = await self.queue.enqueue_many([item])
        return inserted.id

    async def run(
        self,
        item_type: ItemType,
        op: Operation,
        payload: Mapping[str, Any],
        *,
        tenant: str | None = None,
    ) -> Job:
        """Enqueue an item and run all there is; the item as it ended."""
        id = await self.enqueue(item_type, op, payload, tenant=tenant)
        await self.work()
        return await self.queue.get(id)

    async def scan(self, folder: Path | None = None, **more: Any) -> dict[str, Any]:
        job = await self.run("folder", "scan", {"folder_path": str(folder or self.tree), **more})
        assert job.error is None, job.error
        result: dict[str, Any] = job.result
        return result

    async def work(self, *, scheduled: bool = False, with_index: bool = True) -> list[Job]:
        @handler(WRITE, queue=INDEX, batch=64)
        async def write(jobs: list[Job], payloads: list[dict[str, Any]]) -> None:
            contents = [payload["content"] for payload in payloads]
            self.written += contents
            await Catalog(self.queue.database).contents.switch(
                [Written(one, 1, "space") for one in contents]
            )

        handlers = knowledge_handlers(Knowledge(self.queue))
        index = [write] if with_index else []
        return await drain(
            self.queue, [*handlers, *index], concurrency=8, most=100_000, scheduled=scheduled
        )

    async def documents(self, *, tenant: str | None = None) -> list[DocumentInfo]:
        return await Catalog(self.queue.database).documents.page(tenant, COLLECTION)

    async def uris(self) -> list[str]:
        """What can be found."""
        return [one.uri for one in await self.documents() if one.is_searchable]

    async def text(self, uri: str, *, branch: str = "") -> str:
        [found] = [d for d in await self.documents() if (d.uri, d.branch) == (uri, branch)]
        assert found.content is not None
        [content] = await Catalog(self.queue.database).contents.get([found.content])
        return content.text

    async def live(self) -> list[Job]:
        return await self.queue.list(queue=QUEUE, state=list(LIVE))

    def write(self, name: str, text: str | bytes = "words", *, age: int = 0) -> Path:
        """A file that was written long ago, or `age` seconds after that."""
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        moment = OLD_NS + age * 10**9 + (hash(name) % 10**9)
        os.utime(path, ns=(moment, moment))
        return path

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.tree), "-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()


def states(jobs: Sequence[Job]) -> set[str]:
    return {str(job.state) for job in jobs}
