"""The local model: the same vectors as the library whose weights it reads."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from windrow.errors import EmbeddingError
from windrow.index.embed import open_embedder
from windrow.index.embed.local import MODEL, VOCABULARY, LocalEmbedder, local_embedder
from windrow.settings import Settings

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "def embed(texts):\n    return [vector(text) for text in texts]\n",
    "日本語 のテキスト 😀  a   b\r\n\r\n\tx ▁y",
    "مرحبا بالعالم",
    "   leading and trailing   \n\n",
    "if (self.load_2('é.txt', x2=0x1F)) {  //==== a1\u00b2. \n  return\tx▁ ▁ y; }\x00 1 23",
    " ",
    "x" * 3000,
    "one two three " * 700,
]


@pytest.fixture(scope="module")
def library() -> Iterator[object]:
    """The wheel's own code, told where its files are: it looks in a folder that is not there."""
    import logging

    level = logging.root.level
    import wordllama

    folder = Path(wordllama.__file__).parent
    yield wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    logging.root.setLevel(level)


async def test_vectors_are_those_of_the_library(library: object) -> None:
    embedder = await open_embedder(Settings())
    wanted = np.vstack([library.embed(text, norm=True) for text in TEXTS])  # type: ignore[attr-defined]

    found = await embedder.embed(TEXTS)

    assert (embedder.model, embedder.dimension) == (MODEL, 256)
    assert found.dtype == np.float32
    assert found.shape == (len(TEXTS), 256)
    assert (found * wanted).sum(axis=1).min() > 0.99999
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_no_token_reaches_from_one_word_into_the_next() -> None:
    """What taking a text apart at its spaces and lines rests on, and ASCII also at its digits, and
    between letters and signs."""
    vocabulary = Tokenizer.from_file(str(_wheel() / VOCABULARY)).get_vocab()

    assert len(vocabulary) == 32_000
    assert [token for token in vocabulary if re.search("[^▁]▁", token)] == []
    assert [token for token in vocabulary if "\n" in token and token != "\n"] == []
    plain = [token for token in vocabulary if not re.fullmatch("<.*>", token)]
    whole = "▁*(?:[A-Za-z]+|[0-9]|[^▁A-Za-z0-9]+)"
    ascii_ = [token for token in plain if token.replace("▁", "").isascii()]
    assert [token for token in ascii_ if not re.fullmatch(f"{whole}|▁+", token)] == []


def test_words_that_are_remembered_give_the_same_vectors() -> None:
    embedder = LocalEmbedder(_wheel())
    first = embedder.embed_now(TEXTS)

    assert np.array_equal(embedder.embed_now(TEXTS), first)
    another = LocalEmbedder(_wheel())
    one_by_one = np.vstack([another.embed_now([text]) for text in reversed(TEXTS)])[::-1]
    assert np.allclose(one_by_one, first, atol=1e-6)
    assert max(map(len, embedder._words.places)) <= 48


def test_the_memory_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = LocalEmbedder(_wheel())
    texts = [
        " ".join(f"w{number}" for number in range(start, start + 20)) for start in range(0, 400, 20)
    ]
    wanted = local_embedder().embed_now(texts)
    monkeypatch.setattr("windrow.index.embed.local.MOST_WORDS", 50)

    for text, row in zip(texts, wanted, strict=True):
        assert np.allclose(embedder.embed_now([text])[0], row, atol=1e-6)
        assert len(embedder._words.places) <= 50


async def test_nothing_and_empty_texts_have_vectors_too() -> None:
    embedder = local_embedder()

    assert (await embedder.embed([])).shape == (0, 256)
    empty, said = await embedder.embed(["", "\udcff said"])
    assert not empty.any()
    assert np.linalg.norm(said) == pytest.approx(1, abs=1e-5)


async def test_a_long_text_does_not_hold_up_the_loop() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await local_embedder().embed(["some words to embed " * 3000] * 4)
    ticking.cancel()

    assert ticks > 1


def test_many_threads_get_what_one_gets() -> None:
    embedder = local_embedder()
    texts = [f"text {number} of many, {number * 7} words" for number in range(400)]
    alone = embedder.embed_now(texts)

    with ThreadPoolExecutor(8) as threads:
        parts = list(
            threads.map(embedder.embed_now, [texts[n : n + 10] for n in range(0, 400, 10)])
        )

    assert np.allclose(np.vstack(parts), alone, atol=1e-6)


def test_related_texts_are_nearer_than_others() -> None:
    question, answer, other = local_embedder().embed_now(
        ["how do I undo a commit in git?", "revert the last git commit", "recipe for apple cake"]
    )

    assert question @ answer > question @ other + 0.2


def test_neither_the_library_itself_nor_masked_arrays_are_imported() -> None:
    code = (
        "import sys\nfrom windrow.index.embed.local import local_embedder\n"
        "local_embedder().embed_now(['x'])\nprint({'wordllama', 'numpy.ma'} & set(sys.modules))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "set()"


def test_files_that_are_not_there_or_broken_are_told(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match="cannot be read"):
        LocalEmbedder(tmp_path)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "l2_supercat_256.safetensors").write_bytes(b"\x08" + bytes(40))
    with pytest.raises(EmbeddingError, match="cannot be read"):
        LocalEmbedder(tmp_path)


def _wheel() -> Path:
    wheel = find_spec("wordllama")
    assert wheel is not None
    assert wheel.submodule_search_locations
    return Path(wheel.submodule_search_locations[0])
