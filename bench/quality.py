"""How well things are found: recall and mean reciprocal rank, by mode.

    .venv/bin/python -m bench.quality [--models | --code] [--of-each 2500] [--write]

Pages and questions are those of `bench.corpus`. A question counts by the place of the first page
that the book's index names for it, each page once, as a person who reads results would count.
Measured are ways to cut the pages, with the model that is configured; with `--models`, the local
one beside a larger one (`bench.minilm`), over a part of the pages. With `--code` the files and
questions are those of `bench.code_corpus`. `--write` puts the figures into docs/search-quality.md.
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

from bench import minilm
from bench.code_corpus import read_code
from bench.corpus import INSTALL, Page, Question, folders, read_pages, read_questions
from windrow.index.chunk import DEFAULT_LIMITS, Chunk, Limits, chunk
from windrow.index.edge import EdgeIndex
from windrow.index.embed import Embedder, open_embedder
from windrow.index.home import Labels, Mode, Point, Query, Space
from windrow.settings import Settings, load_settings

DOCUMENT: Final = Path(__file__).parent.parent / "docs" / "search-quality.md"
BOOK_OF_MODELS: Final = "postgres"
EVERY: Final = 8  # of its pages, one in so many: the larger model takes a tenth of a second a chunk
ASKED: Final = 30  # chunks of one search: what a search for ten pages asks for
COUNTED: Final = 10  # places after which a page is as good as not found
BATCH: Final = 32  # chunks of one call, which a slow model must answer in time
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
    name: str  # of the variant or of the model
    mode: Mode
    chunks: int
    recall: float  # of questions, those with a right page among the first five
    mrr: float


def main() -> None:
    arguments = _arguments()
    if arguments.code:
        mark, table = "code", measure_code(arguments.of_each)
    else:
        mark, table = measure_books(arguments.of_each, is_of_models=arguments.models)
    print(table)
    if arguments.write:
        write(mark, table)


def measure_code(count: int) -> str:
    pages, questions = read_code(count)
    found, model = asyncio.run(measure_variants(pages, questions, VARIANTS[:1]))
    return variants_table(pages, questions, found, model)


def measure_books(of_each: int, *, is_of_models: bool) -> tuple[str, str]:
    """The name of the table, and the table."""
    books = folders()
    if not books:
        sys.exit(f"the pages are not installed: {INSTALL}")
    if is_of_models:
        books = {BOOK_OF_MODELS: books[BOOK_OF_MODELS]}
    pages = list(read_pages(books))[:: EVERY if is_of_models else 1]
    questions = read_questions(books, {page.name for page in pages}, of_each)
    print(f"{len(pages)} pages, {len(questions)} questions")
    if is_of_models:
        quality = asyncio.run(measure_models(pages, questions))
        return "models", models_table(pages, questions, quality)
    found, model = asyncio.run(measure_variants(pages, questions))
    return "figures", variants_table(pages, questions, found, model)


async def measure_variants(
    pages: Sequence[Page], questions: Sequence[Question], variants: Sequence[Variant] = VARIANTS
) -> tuple[list[Quality], str]:
    """The figures, and the model they are of."""
    embedder = await open_embedder(load_settings())
    found: list[Quality] = []
    try:
        for variant in variants:
            found += await measure(pages, questions, variant, embedder, variant.name)
    finally:
        await embedder.close()
    return found, embedder.model


async def measure_models(pages: Sequence[Page], questions: Sequence[Question]) -> list[Quality]:
    weights = minilm.find_weights()
    if weights is None:
        sys.exit(f"the other model is not installed: {minilm.INSTALL}")
    found: list[Quality] = []
    async with minilm.serving(weights) as url:
        for settings in (Settings(), Settings(embed_url=url, embed_model=minilm.MODEL)):
            embedder = await open_embedder(settings)
            try:
                found += await measure(pages, questions, VARIANTS[0], embedder, embedder.model)
            finally:
                await embedder.close()
    return found


async def measure(
    pages: Sequence[Page],
    questions: Sequence[Question],
    variant: Variant,
    embedder: Embedder,
    name: str,
) -> list[Quality]:
    """One index, asked in every mode."""
    found: list[Quality] = []
    async with indexed(pages, variant, embedder) as (index, space):
        chunks = await index.count(space)
        for mode in MODES:
            places = await ask(index, space, embedder, questions, mode)
            found.append(Quality(name, mode, chunks, *figures(places)))
            print(found[-1], flush=True)
    return found


@asynccontextmanager
async def indexed(
    pages: Sequence[Page], variant: Variant, embedder: Embedder
) -> AsyncIterator[tuple[EdgeIndex, Space]]:
    """An index of all pages, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        index, space = EdgeIndex(Path(folder)), Space("pages", embedder.dimension)
        parts = [
            (page, part)
            for page in pages
            for part in chunk(page.text, language=page.language, limits=variant.limits)
        ]
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


def variants_table(
    pages: Sequence[Page], questions: Sequence[Question], found: Sequence[Quality], model: str
) -> str:
    return f"{_said(pages, questions)} with {model} in the embedded index.\n\n" + _table(
        "Chunks", found
    )


def models_table(
    pages: Sequence[Page], questions: Sequence[Question], found: Sequence[Quality]
) -> str:
    said = f"One page in {EVERY} of {BOOK_OF_MODELS.capitalize()}' book: {_said(pages, questions)}"
    return f"{said} in the embedded index.\n\n{_table('Model', found)}"


def _said(pages: Sequence[Page], questions: Sequence[Question]) -> str:
    millions = sum(len(page.text) for page in pages) / 1e6
    return (
        f"{len(pages):,} pages, {millions:.1f} million characters; {len(questions):,} questions;\n"
        f"measured on {time.strftime('%Y-%m-%d')}"
    )


def _table(first: str, found: Sequence[Quality]) -> str:
    lines = [f"| {first} | how many | mode | recall@5 | MRR |", "| --- | --: | --- | --: | --: |"]
    lines += [
        f"| {one.name} | {one.chunks:,} | {one.mode} | {one.recall:.3f} | {one.mrr:.3f} |"
        for one in found
    ]
    return "\n".join(lines)


def write(mark: str, table: str) -> None:
    """Put a table between its marks."""
    first, last = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    text = DOCUMENT.read_text("utf-8")
    found = re.compile(f"{re.escape(first)}.*{re.escape(last)}", re.DOTALL)
    if not found.search(text):
        raise SystemExit(f"{DOCUMENT} has no place for {mark}")
    DOCUMENT.write_text(found.sub(lambda _: f"{first}\n{table}\n{last}", text), "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of-each", type=int, default=2500, help="questions from each book")
    parser.add_argument("--code", action="store_true", help="code, by what its functions say")
    parser.add_argument("--models", action="store_true", help="the local model beside a larger one")
    parser.add_argument("--write", action="store_true", help="write docs/search-quality.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
