"""How well things are found: recall and mean reciprocal rank, by mode.

    .venv/bin/python -m bench.quality [--of-each 400] [--write]

Pages and questions are those of `bench.corpus`. A question counts by the place of the first page
that the book's index names for it, each page once, as a person who reads results would count.
`--write` puts the figures into docs/search-quality.md.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.corpus import INSTALL, Page, Question, folders, read_pages, read_questions
from windrow.index.chunk import DEFAULT_LIMITS, Chunk, Limits, chunk
from windrow.index.edge import EdgeIndex
from windrow.index.embed import Embedder, open_embedder
from windrow.index.home import Labels, Mode, Point, Query, Space
from windrow.settings import load_settings

DOCUMENT: Final = Path(__file__).parent.parent / "docs" / "search-quality.md"
MARKS: Final = ("<!-- figures -->", "<!-- end of figures -->")
ASKED: Final = 30  # chunks of one search: what a search for ten pages asks for
COUNTED: Final = 10  # places after which a page is as good as not found
BATCH: Final = 512
MODES: Final[tuple[Mode, ...]] = ("hybrid", "semantic", "keyword")


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    limits: Limits
    is_in_context: bool = True


VARIANTS: Final = (
    Variant("1000 characters (default)", DEFAULT_LIMITS),
    Variant("1000, without title and headings", DEFAULT_LIMITS, is_in_context=False),
    Variant("600 characters", Limits(600, 900, 150)),
    Variant("1600 characters", Limits(1600, 2400, 400)),
)


@dataclass(frozen=True, slots=True)
class Quality:
    variant: str
    mode: Mode
    chunks: int
    recall: float  # of questions, those with a right page among the first five
    mrr: float


def main() -> None:
    arguments = _arguments()
    books = folders()
    if not books:
        sys.exit(f"the pages are not installed: {INSTALL}")
    pages = list(read_pages(books))
    questions = read_questions(books, {page.name for page in pages}, arguments.of_each)
    print(f"{len(pages)} pages, {len(questions)} questions")
    found, model = asyncio.run(measure(pages, questions))
    table = as_table(pages, questions, found, model)
    print(table)
    if arguments.write:
        write(table)


async def measure(
    pages: Sequence[Page], questions: Sequence[Question]
) -> tuple[list[Quality], str]:
    """The figures, and the model they are of."""
    embedder = await open_embedder(load_settings())
    found: list[Quality] = []
    try:
        for variant in VARIANTS:
            async with indexed(pages, variant, embedder) as (index, space):
                chunks = await index.count(space)
                for mode in MODES:
                    places = await ask(index, space, embedder, questions, mode)
                    found.append(Quality(variant.name, mode, chunks, *figures(places)))
                    print(found[-1], flush=True)
    finally:
        await embedder.close()
    return found, embedder.model


@asynccontextmanager
async def indexed(
    pages: Sequence[Page], variant: Variant, embedder: Embedder
) -> AsyncIterator[tuple[EdgeIndex, Space]]:
    """An index of all pages, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        index, space = EdgeIndex(Path(folder)), Space("pages", embedder.dimension)
        parts = [(page, part) for page in pages for part in chunk(page.text, limits=variant.limits)]
        for start in range(0, len(parts), BATCH):
            some = parts[start : start + BATCH]
            texts = [_embedded(page, part, variant) for page, part in some]
            vectors = await embedder.embed(texts)
            made = [_point(*one, row.tolist()) for one, row in zip(some, vectors, strict=True)]
            await index.write(space, made)
        try:
            yield index, space
        finally:
            await index.close()


def _embedded(page: Page, part: Chunk, variant: Variant) -> str:
    return part.in_context(page.title) if variant.is_in_context else part.text


def _point(page: Page, part: Chunk, vector: list[float]) -> Point:
    return Point(
        content=str(uuid.uuid5(uuid.NAMESPACE_URL, page.name)),
        ordinal=part.ordinal,
        vector=vector,
        text=part.text,
        labels=Labels("docs", page.name.partition("/")[0], page.name, title=page.title),
        headings=part.headings,
        start=part.start,
        end=part.end,
    )


async def ask(
    index: EdgeIndex,
    space: Space,
    embedder: Embedder,
    questions: Sequence[Question],
    mode: Mode,
) -> list[int]:
    """The place of the first right page for each question; 0: there is none."""
    vectors = await embedder.embed([question.text for question in questions], query=True)
    places = []
    for question, vector in zip(questions, vectors, strict=True):
        hits = await index.search(space, Query(question.text, vector.tolist(), mode, ASKED))
        pages = list(dict.fromkeys(hit.labels.uri for hit in hits))[:COUNTED]
        right = (place for place, page in enumerate(pages, 1) if page in question.pages)
        places.append(next(right, 0))
    return places


def figures(places: Sequence[int]) -> tuple[float, float]:
    """Recall among the first five, and the mean of 1/place."""
    recall = sum(1 for place in places if 1 <= place <= 5) / len(places)
    return recall, sum(1 / place for place in places if place) / len(places)


def as_table(
    pages: Sequence[Page], questions: Sequence[Question], found: list[Quality], model: str
) -> str:
    characters = sum(len(page.text) for page in pages)
    lines = [
        (
            f"{len(pages):,} pages of {characters / 1e6:.1f} million characters, "
            f"{len(questions)} questions;"
        ),
        f"measured on {time.strftime('%Y-%m-%d')} with {model} in the embedded index.",
        "",
        "| Chunks | how many | mode | recall@5 | MRR |",
        "| --- | --: | --- | --: | --: |",
    ]
    lines += [
        f"| {one.variant} | {one.chunks:,} | {one.mode} | {one.recall:.3f} | {one.mrr:.3f} |"
        for one in found
    ]
    return "\n".join(lines)


def write(table: str) -> None:
    first, last = map(re.escape, MARKS)
    text = DOCUMENT.read_text("utf-8")
    inside = f"{MARKS[0]}\n{table}\n{MARKS[1]}"
    DOCUMENT.write_text(
        re.sub(f"{first}.*{last}", lambda _: inside, text, flags=re.DOTALL), "utf-8"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of-each", type=int, default=400, help="questions from each book")
    parser.add_argument("--write", action="store_true", help="write docs/search-quality.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
