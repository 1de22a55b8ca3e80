"""Cutting, embedding and weighing in a process of its own, which does what is done here."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from multiprocessing import active_children
from multiprocessing.process import BaseProcess

import numpy as np
import pytest

from windrow.index.aside import LITTLE, MUCH, Aside, AsideEmbedder
from windrow.index.chunk import chunk
from windrow.index.embed.local import local_embedder
from windrow.index.qdrant_terms import weigh

TEXTS = [
    ("# Pots\n\n" + "They are round.\n\n" * 1000, "markdown"),
    ("def pot(size):\n    return size\n\n\n" * 500, "python"),
    ("\ud800 and pöts " * 100, "text"),
]
CHUNKS = [chunk(text, language=language) for text, language in TEXTS]
WORDS = [piece.text for pieces in CHUNKS for piece in pieces]


Born = Callable[[], list[BaseProcess]]


@pytest.fixture
def born() -> Born:
    """The processes that are there and were not when the test began: others may be ending."""
    before = active_children()
    return lambda: [child for child in active_children() if child not in before]


@pytest.fixture
async def aside(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Aside]:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    aside = Aside(much=0)
    yield aside
    await aside.close()


async def test_texts_are_cut_embedded_and_weighed_elsewhere_as_they_are_here(
    aside: Aside, born: Born
) -> None:
    embedder = AsideEmbedder(local_embedder(), aside)
    await aside.begin()

    assert await aside.cut(TEXTS) == CHUNKS
    assert await aside.weigh(WORDS) == weigh(WORDS)
    assert np.array_equal(await embedder.embed(WORDS), local_embedder().embed_now(WORDS))
    assert len(born()) == 1
    assert (embedder.model, embedder.dimension) == (local_embedder().model, 256)


async def test_what_comes_before_the_process_is_there_is_done_here(
    aside: Aside, born: Born, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_start = asyncio.Event()
    start = aside._start

    async def start_late() -> None:
        await may_start.wait()
        await start()

    monkeypatch.setattr(aside, "_start", start_late)
    assert await aside.weigh(WORDS) == weigh(WORDS)
    assert not aside.begin().done()

    may_start.set()
    await aside.begin()

    assert len(born()) == 1
    assert await aside.weigh(WORDS) == weigh(WORDS)


async def test_questions_and_what_is_little_are_done_here(aside: Aside, born: Born) -> None:
    embedder = AsideEmbedder(local_embedder(), aside)

    assert len(await embedder.embed(WORDS, query=True)) == len(WORDS)
    assert await aside.cut([("a pot " * (LITTLE // 6), "text")])
    assert await aside.weigh(["a pot " * (LITTLE // 6)]) is None
    assert born() == []


@pytest.mark.parametrize(("much", "cores"), [(MUCH, 2), (None, 2), (0, 1)])
async def test_no_process_is_begun_before_there_was_much_to_do_or_where_it_would_not_help(
    born: Born, monkeypatch: pytest.MonkeyPatch, much: int | None, cores: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    aside = Aside(much)

    assert await aside.cut(TEXTS) == CHUNKS
    assert sum(len(text) for text, _ in TEXTS) < MUCH
    assert born() == []
    await aside.close()


async def test_what_a_killed_process_has_not_answered_is_done_here_and_another_follows(
    aside: Aside, born: Born
) -> None:
    await aside.begin()
    [killed] = born()
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    killed.join()

    assert await aside.cut(TEXTS) == CHUNKS
    assert born() == []
    assert await aside.cut(TEXTS) == CHUNKS
    assert len(born()) == 1


@pytest.mark.parametrize("is_there", [True, False])
async def test_process_ends_with_its_owner(aside: Aside, born: Born, is_there: bool) -> None:
    starting = aside.begin()
    if is_there:
        await starting

    await aside.close()

    assert born() == []
