"""`LocalEmbedder`: the model that comes with Windrow, the weights of the wordllama wheel.

A text's vector is the mean of those of its tokens: nothing is needed but a table and a tokenizer.
The table is mapped from its file, and so shared by all processes of a machine. The wheel's own code
is never imported: it wants to download, and reads the whole table into each process.

No token of this vocabulary reaches from one word into the next, nor over the end of a line, nor
from letters to digits or signs (a test looks at all of them). So the vector of a text is the sum of
those of its words, and these are remembered: that takes a third of the time of adding up the tokens
of each text. Words are letters alone: `load(path_2):` is hardly ever there twice, its parts are.
"""

from __future__ import annotations

import asyncio
import mmap
import re
import threading
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
BATCH: Final = 256  # texts whose new words are learned together
MOST_WORDS: Final = 40_000  # remembered; about 50 MB
LONGEST_WORD: Final = 48  # characters; longer ones hardly come again
SHORT: Final = 2000  # characters that are embedded faster than handed to a thread
SPACE_MARK: Final = "▁"  # how the vocabulary writes a space
_WORD: Final = re.compile(r" *[^ \n]+|\n| +")
# The same of ASCII alone: letters, each digit, and signs.
_PART: Final = re.compile(r" *[A-Za-z]+|\n| *[0-9]| *[^ \nA-Za-z0-9]+| +")


class LocalEmbedder:
    """Safe to use from any thread."""

    model: Final = MODEL

    def __init__(self, folder: Path) -> None:
        self._table = _mapped(folder / WEIGHTS)
        self._vocabulary = _vocabulary(folder / VOCABULARY)
        self.dimension: int = self._table.shape[1]
        self._words = Remembered(self.dimension)
        self._wide = np.zeros(self._table.shape, np.float32)
        self._is_wide = np.zeros(len(self._table), np.bool_)
        self._learning = threading.Lock()

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
        """The sum of each text's words into its row."""
        split = [_words(text) for text in texts]
        known = self._words
        long: dict[str, NDArray[np.float32]] | None = None  # not looked for yet
        for number, words in enumerate(split):
            try:
                places = [*map(known.places.__getitem__, words)]
            except KeyError:
                if long is None:
                    known, long = self._learn(set().union(*split[number:]))
                rows[number] += sum(long[word] for word in words if word in long)
                places = [known.places[word] for word in words if word not in long]
            if places:
                # As none is out of range, nothing is looked at twice.
                rows[number] += np.add.reduce(known.rows.take(places, axis=0, mode="clip"), axis=0)

    def _learn(self, words: set[str]) -> tuple[Remembered, dict[str, NDArray[np.float32]]]:
        """A memory that has all these words but the long ones, and the vectors of those."""
        known = self._words
        new = words.difference(known.places)
        long = {word: self._sums([word])[0] for word in new if len(word) > LONGEST_WORD}
        new.difference_update(long)
        if new:
            with self._learning:
                known = self._words
                new = new.difference(known.places)  # to update it goes through all places
                if len(known.places) + len(new) > MOST_WORDS:
                    # A new one: another thread may be reading the old one.
                    known, new = Remembered(self.dimension), words.difference(long)
                order = sorted(new)
                known.add(order, self._sums(order))
                self._words = known
        return known, long

    def _sums(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The vector of each word: the sum of those of its tokens."""
        tokens = [self.tokens_of(word) for word in words]
        self._widen([token for ids in tokens for token in ids])
        rows = np.zeros((len(words), self.dimension), np.float32)
        for row, ids in zip(rows, tokens, strict=True):
            if ids:
                self._wide.take(ids, axis=0).sum(axis=0, out=row)
        return rows

    def _widen(self, tokens: Sequence[int]) -> None:
        """Have the rows of these tokens in full width: what is halved takes long to add up."""
        used = np.array(tokens, np.intp)
        # `np.unique` loads numpy's masked arrays, which take longer than to embed a question.
        new = list(set(used[~self._is_wide[used]].tolist()))
        self._wide[new] = self._table[new]
        self._is_wide[new] = True  # the last step: whoever sees it finds the row

    def tokens_of(self, word: str) -> list[int]:
        # A third of the time of a whole tokenizer.
        return [token.id for token in self._vocabulary.tokenize(word.replace(" ", SPACE_MARK))]


class Remembered:
    """Words and their vectors. It only grows: a place that was handed out stays good."""

    def __init__(self, dimension: int) -> None:
        self.places: dict[str, int] = {}
        # Memory of it is only taken by rows that were written.
        self.rows: NDArray[np.float32] = np.zeros((MOST_WORDS, dimension), np.float32)

    def add(self, words: Sequence[str], vectors: NDArray[np.float32]) -> None:
        before, after = len(self.places), len(self.places) + len(words)
        if after > len(self.rows):
            grown = np.zeros((max(after, 2 * before), vectors.shape[1]), np.float32)
            grown[:before] = self.rows[:before]
            self.rows = grown
        self.rows[before:after] = vectors
        # The last step: whoever finds a word finds its vector.
        self.places.update(zip(words, range(before, after), strict=True))


@cache
def local_embedder() -> LocalEmbedder:
    """The one of this process."""
    wheel = find_spec("wordllama")  # looks for it without importing it
    if wheel is None or not wheel.submodule_search_locations:
        raise EmbeddingError("the wheel wordllama, whose weights are the local model, is missing")
    return LocalEmbedder(Path(wheel.submodule_search_locations[0]))


def _words(text: str) -> list[str]:
    """The text taken apart, each word with the spaces before it."""
    if not text:
        return []
    if text.isascii():
        return _PART.findall(f" {text}")
    text = without_lone_surrogates(text).replace(SPACE_MARK, " ")
    return [part for word in _WORD.findall(f" {text}") for part in _parts(word)]


def _parts(word: str) -> Sequence[str]:
    return _PART.findall(word) if word.isascii() else (word,)


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
