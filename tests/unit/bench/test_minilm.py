"""The larger model of the quality figures, where its weights are installed."""

from __future__ import annotations

import numpy as np
import pytest

from bench.minilm import INSTALL, MODEL, MiniLM, find_weights, gelu, serving
from windrow.index.embed import open_embedder
from windrow.settings import Settings

# What others get for these sentences from this model, in their order to the first.
SENTENCES = [
    "That is a happy person",
    "That is a happy dog",
    "That is a very happy person",
    "Today is a sunny day",
]
LIKENESSES = [1.0, 0.69457746, 0.94291496, 0.25687605]

weights = find_weights()
installed = pytest.mark.skipif(weights is None, reason=f"no weights: {INSTALL}")


def test_gelu_is_zero_far_below_and_the_number_itself_far_above() -> None:
    rows = np.array([-9, -1, 0, 1, 9], np.float32)

    assert gelu(rows) == pytest.approx([0, -0.15865525, 0, 0.84134475, 9], abs=1e-6)


@installed
def test_likenesses_are_those_that_are_known_of_the_model() -> None:
    assert weights is not None
    rows = MiniLM(weights).embed(SENTENCES)

    assert rows @ rows[0] == pytest.approx(LIKENESSES, abs=1e-5)


@installed
async def test_it_is_asked_as_any_endpoint_is() -> None:
    assert weights is not None
    async with serving(weights) as url:
        embedder = await open_embedder(Settings(embed_url=url, embed_model=MODEL))
        rows = await embedder.embed(SENTENCES)
        await embedder.close()

    assert rows @ rows[0] == pytest.approx(LIKENESSES, abs=1e-5)
