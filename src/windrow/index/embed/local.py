"""`LocalEmbedder`: the model that comes with Windrow, the weights of the wordllama wheel.

A text's vector is the mean of those of its tokens: nothing is needed but a table and a tokenizer.
The table is mapped from its file, and so shared by all processes of a machine. The wheel's own code
is never imported: it wants to download, and reads the whole table into each process.

No token of this vocabulary reaches from one word into the next, nor over the end of a line (a test
looks at all of them). So words are tokenized one by one and remembered: that gives the very tokens
of the whole text, in half the time.
"""

from __future__ import annotations

import asyncio
import mmap
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from windrow.errors import EmbeddingError
from windrow.index.chunk import without_lone_surrogates
from windrow.index.embed.unit import to_unit_length

if TYPE_CHECKING:
    from tokenizers.models import Model

MODEL: Final = "wordllama-l2-supercat-256"
WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
VOCABULARY: Final = "tokenizers/l2_supercat_tokenizer_config.json"
TENSOR: Final = "embedding.weight"
BATCH: Final = 256  # texts whose rows are read from the table together
MOST_WORDS: Final = 100_000  # remembered; about 15 MB
LONGEST_WORD: Final = 48  # characters; longer ones hardly come again
FEW_TOKENS: Final = 500
SHORT: Final = 2000  # characters that are embedded faster than handed to a thread
SPACE_MARK: Final = "▁"  # how the vocabulary writes a space
_WORD: Final = re.compile(r"▁*[^▁\n]+|\n|▁+")


class LocalEmbedder:
    """Safe to use from any thread."""

    model: Final = MODEL

    def __init__(self, folder: Path) -> None:
        self._table = _mapped(folder / WEIGHTS)
        self._vocabulary = _vocabulary(folder / VOCABULARY)
        self._words: dict[str, list[int]] = {}
        self.dimension: int = self._table.shape[1]

    async def close(self) -> None:
        """Nothing: the table is the process's."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        if sum(map(len, texts)) <= SHORT:
            return self.embed_now(texts)
        return await asyncio.to_thread(self.embed_now, texts)

    def embed_now(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), BATCH):
            self._fill(rows[start : start + BATCH], texts[start : start + BATCH])
        return to_unit_length(rows)

    def _fill(self, rows: NDArray[np.float32], texts: Sequence[str]) -> None:
        """The sum of each text's tokens into its row."""
        tokens = self.tokens(texts)
        ends = np.cumsum([len(ids) for ids in tokens])
        flat = np.fromiter((token for ids in tokens for token in ids), np.int32, int(ends[-1]))
        table, places = self._rows(flat)
        for row, start, end in zip(rows, [0, *ends[:-1]], ends, strict=True):
            if end > start:
                np.sum(table.take(places[start:end], axis=0), axis=0, out=row)

    def _rows(self, tokens: NDArray[np.int32]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Rows of the table, and which of them each token has. For many tokens each row is read
        and widened once; for few, as those of a question, that is not worth its while."""
        if len(tokens) <= FEW_TOKENS:
            return self._table[tokens].astype(np.float32), np.arange(len(tokens), dtype=np.int32)
        used = np.flatnonzero(np.bincount(tokens, minlength=len(self._table)))
        place_of = np.empty(len(self._table), np.int32)
        place_of[used] = np.arange(len(used))
        return self._table[used].astype(np.float32), place_of[tokens]

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text."""
        split = [_words(text) for text in texts]
        known, wanted = self._words, set().union(*split)
        ids = {word: known[word] for word in wanted if word in known}
        ids.update(self._learn(sorted(wanted - ids.keys())))
        return [[token for word in words for token in ids[word]] for words in split]

    def _learn(self, words: list[str]) -> dict[str, list[int]]:
        """The tokens of words; those that may come again are remembered."""
        tokenize = self._vocabulary.tokenize  # a third of the time of a whole tokenizer
        ids = {word: [token.id for token in tokenize(word)] for word in words}
        if len(self._words) + len(ids) > MOST_WORDS:
            self._words = {}  # never emptied: another thread may be reading it
        self._words.update((word, ids[word]) for word in words if len(word) <= LONGEST_WORD)
        return ids


@cache
def local_embedder() -> LocalEmbedder:
    """The one of this process."""
    wheel = find_spec("wordllama")  # looks for it without importing it
    if wheel is None or not wheel.submodule_search_locations:
        raise EmbeddingError("the wheel wordllama, whose weights are the local model, is missing")
    return LocalEmbedder(Path(wheel.submodule_search_locations[0]))


def _words(text: str) -> list[str]:
    """The text taken apart, each word with the spaces before it, as the vocabulary has them."""
    text = without_lone_surrogates(text)
    return _WORD.findall(f" {text}".replace(" ", SPACE_MARK)) if text else []


def _vocabulary(path: Path) -> Model:
    from tokenizers import Tokenizer

    if not path.is_file():
        raise EmbeddingError(f"{path} is missing: is this another version of wordllama?")
    model: Model = Tokenizer.from_file(str(path)).model
    return model


def _mapped(path: Path) -> NDArray[np.float16]:
    """The table in a safetensors file: the length of a JSON header, the header, the numbers."""
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(content[:8], "little")
        header = msgspec.json.decode(content[8 : 8 + size], type=dict[str, _Tensor])
        tensor = header[TENSOR]
        rows, columns = tensor.shape
        start, end = tensor.data_offsets
        numbers = np.frombuffer(content, np.float16, (end - start) // 2, 8 + size + start)
        return numbers.reshape(rows, columns)
    except (OSError, ValueError, KeyError, msgspec.DecodeError) as error:
        raise EmbeddingError(f"{path} cannot be read: {error}") from error


class _Tensor(msgspec.Struct):
    dtype: Literal["F16"]
    shape: tuple[int, int]
    data_offsets: tuple[int, int]
