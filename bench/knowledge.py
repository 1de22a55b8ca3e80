"""From files to results: ingestion, embedding and search, end to end.

    .venv/bin/python -m bench.knowledge [--files 20000] [--chunks 500000]

A tree of files of 2 KiB on average is made here, the same in every run. One process with the local
model and the embedded index, on SQLite, takes it in as `windrow add` does: scan, read, cut, embed,
write. Then the unchanged tree is scanned again, and questions are asked in the process that owns
the index and, from another connection, through its socket. `--chunks` measures searches alone in an
index of so many, which are written straight into it.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from windrow import Queue, Worker
from windrow.index.edge import EdgeIndex
from windrow.index.embed.local import local_embedder
from windrow.index.home import Labels, Point, Query, Space
from windrow.pipelines.index.context import space_of
from windrow.pipelines.knowledge.items import new_item
from windrow.search.request import SearchRequest
from windrow.services.indexing import (
    Embedders,
    index_folder,
    make_searcher,
    open_index,
    socket_path,
)
from windrow.services.searching import ask_owner
from windrow.services.working import open_own_handlers
from windrow.settings import Settings

COLLECTION: Final = "bench"
QUESTIONS: Final = 500
WORDS_OF_A_FILE: Final = 290  # 2 KiB
GOALS: Final = {
    "files/s ingested": (">=", 500.0),
    "search in the process, p50 ms": ("<=", 3.0),
    "search through the owner, p50 ms": ("<=", 8.0),
    "second scan, s": ("<=", 5.0),
}


@dataclass(slots=True)
class Figures:
    """What was measured, by name."""

    values: dict[str, float] = field(default_factory=dict)

    def note(self, name: str, value: float) -> None:
        self.values[name] = value
        print(f"{name:40} {value:12,.2f}{_judged(name, value)}", flush=True)


def main() -> None:
    arguments = _arguments()
    figures = Figures()
    measure_embedding(figures)
    if arguments.files:
        asyncio.run(measure_ingestion(figures, arguments.files))
    if arguments.chunks:
        asyncio.run(measure_searches(figures, arguments.chunks))


def measure_embedding(figures: Figures) -> None:
    texts = [" ".join(_words(random.Random(number), 140)) for number in range(2000)]
    embedder = local_embedder()
    embedder.embed_now(texts)
    began = time.process_time()
    embedder.embed_now(texts)
    figures.note("chunks/s embedded, of one core", len(texts) / (time.process_time() - began))


async def measure_ingestion(figures: Figures, files: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree, data = Path(folder) / "tree", Path(folder) / "data"
        size = make_tree(tree, files)
        figures.note("files", files)
        figures.note("mean size, KiB", size / files / 1024)
        settings = Settings(database_url=f"sqlite:///{folder}/jobs.db", data_dir=str(data))
        seconds, cpu = await _timed(lambda: scan(settings, tree))
        figures.note("files/s ingested", files / seconds)
        figures.note("files/s for each CPU second", files / cpu)
        seconds, _ = await _timed(lambda: scan(settings, tree))
        figures.note("second scan, s", seconds)
        figures.note("index, MB", _size_of(index_folder(settings)) / 1e6)
        await ask(figures, settings)


async def scan(settings: Settings, tree: Path) -> None:
    """All that follows from one scan of a folder, until nothing is left to do."""
    async with _working(settings, until_idle=True) as queue:
        payload = {"folder_path": str(tree)}
        await queue.enqueue_many([new_item("folder", "scan", COLLECTION, payload)])


async def ask(figures: Figures, settings: Settings) -> None:
    """The same questions in the process of the owner, then through its socket."""
    requests = [SearchRequest(query=text, collections=(COLLECTION,)) for text in make_questions()]
    async with Queue.open(settings.database_url) as queue:
        index, embedders = open_index(settings, "edge"), Embedders(settings)
        searcher = make_searcher(queue, index, embedders)
        [collection] = await queue.store.list_collections()
        space = space_of(collection)
        figures.note("chunks", await index.count(space))
        _, cpu = await _timed(lambda: index.optimize(space))
        figures.note("optimising the index, CPU s", cpu)
        await _percentiles(figures, "search in the process", requests, searcher.search)
        await index.close()
    async with _working(settings):
        path = socket_path(index_folder(settings))

        async def through_owner(request: SearchRequest) -> object:
            return await ask_owner(path, request)

        await _percentiles(figures, "search through the owner", requests, through_owner)


async def measure_searches(figures: Figures, count: int) -> None:
    """An index alone: written without jobs, asked without documents."""
    embedder = local_embedder()
    with tempfile.TemporaryDirectory() as folder:
        index, space = EdgeIndex(Path(folder)), Space("large", embedder.dimension)
        source = random.Random(2)
        began = time.process_time()
        for start in range(0, count, 1000):
            texts = [" ".join(_words(source, 100)) for _ in range(min(1000, count - start))]
            vectors = embedder.embed_now(texts)
            content = str(uuid.UUID(int=start + 1))
            labels = Labels(COLLECTION, "large", f"file-{start}.txt")
            await index.write(
                space,
                [
                    Point(content, number, row.tolist(), text, labels)
                    for number, (text, row) in enumerate(zip(texts, vectors, strict=True))
                ],
            )
        figures.note(f"writing {count:,} chunks, CPU s", time.process_time() - began)
        _, cpu = await _timed(lambda: index.optimize(space))
        figures.note(f"optimising {count:,} chunks, CPU s", cpu)
        figures.note(f"index of {count:,} chunks, MB", _size_of(Path(folder)) / 1e6)

        async def search(text: str) -> object:
            [vector] = embedder.embed_now([text])
            return await index.search(space, Query(text, vector.tolist(), "hybrid", 30))

        name = f"index search at {count:,} chunks"
        await _percentiles(figures, name, make_questions(), search)
        await index.close()


def make_tree(folder: Path, files: int) -> int:
    """Markdown, Python and plain text; how many bytes it has."""
    size = 0
    for number in range(files):
        source = random.Random(number)
        path = (
            folder / f"part-{number // 500}" / f"file-{number}{('.md', '.py', '.txt')[number % 3]}"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        text = _text(path.suffix, source, source.randint(60, 2 * WORDS_OF_A_FILE - 60))
        size += path.write_text(text, "utf-8")
    return size


def _text(suffix: str, source: random.Random, words: int) -> str:
    found = _words(source, words)
    lines = [" ".join(found[start : start + 12]) for start in range(0, words, 12)]
    if suffix == ".py":
        return "".join(
            f"def {found[place]}_{place}(value):\n    # {line}\n    return value\n\n\n"
            for place, line in enumerate(lines)
        )
    if suffix == ".md":
        return "".join(
            (f"## {line[:40]}\n\n" if place % 8 == 0 else "") + f"{line}.\n\n"
            for place, line in enumerate(lines)
        )
    return "\n".join(lines)


def make_questions() -> list[str]:
    source = random.Random("questions")
    return [" ".join(_words(source, source.randint(2, 6))) for _ in range(QUESTIONS)]


def _words(source: random.Random, count: int) -> list[str]:
    """As often as words are in a language: the first ones much more than the last."""
    places = (int(len(_VOCABULARY) * source.random() ** 3) for _ in range(count))
    return [_VOCABULARY[place] for place in places]


def _vocabulary(count: int = 20_000) -> list[str]:
    source = random.Random("words")
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er")]
    return ["".join(source.choices(syllables, k=source.randint(1, 4))) for _ in range(count)]


_VOCABULARY: Final = _vocabulary()


@asynccontextmanager
async def _working(settings: Settings, *, until_idle: bool = False) -> AsyncIterator[Queue]:
    """A worker with all that is needed; with `until_idle` it runs when the block has ended."""
    async with (
        Queue.open(settings.database_url) as queue,
        open_own_handlers(settings, queue, ("knowledge", "index")) as handlers,
    ):
        if until_idle:
            yield queue
            await Worker(queue, handlers, concurrency=64).run(until_idle=True)
            return
        worker = Worker(queue, handlers, concurrency=64)
        running = asyncio.create_task(worker.run())
        try:
            yield queue
        finally:
            worker.stop()
            await running


async def _percentiles(
    figures: Figures, name: str, asked: Sequence[Any], search: Callable[[Any], Awaitable[object]]
) -> None:
    for one in asked[:50]:
        await search(one)
    took = []
    for one in asked:
        began = time.perf_counter()
        await search(one)
        took.append((time.perf_counter() - began) * 1000)
    parts = statistics.quantiles(took, n=100)
    figures.note(f"{name}, p50 ms", parts[49])
    figures.note(f"{name}, p99 ms", parts[98])


async def _timed(run: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Seconds, and CPU seconds of this process."""
    began, used = time.perf_counter(), _cpu()
    await run()
    return time.perf_counter() - began, _cpu() - used


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _size_of(folder: Path) -> int:
    """Bytes on the disk: files of the index are longer than what is in them."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _judged(name: str, value: float) -> str:
    if name not in GOALS:
        return ""
    sign, goal = GOALS[name]
    is_met = value >= goal if sign == ">=" else value <= goal
    return f"   goal {sign} {goal:g}: {'met' if is_met else 'NOT met'}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000, help="files of the tree; 0: none")
    parser.add_argument("--chunks", type=int, default=0, help="chunks of the index alone; 0: none")
    return parser.parse_args()


if __name__ == "__main__":
    main()
