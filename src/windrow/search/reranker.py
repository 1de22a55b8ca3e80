"""`EndpointReranker`: what was found is put in another order by a model behind `/rerank`.

The protocol is the one that Cohere, Jina, vLLM, llama.cpp and others speak: a question and texts go
there, places and scores come back. What the endpoint does not name keeps its order, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import msgspec

from windrow.errors import ConfigError, ProviderError
from windrow.ingest.providers import Provider
from windrow.search.request import Found
from windrow.settings import Settings

PATIENCE_SECONDS: Final = 20.0  # somebody waits for the answer


class _Place(msgspec.Struct):
    index: int
    relevance_score: float


class _Answer(msgspec.Struct):
    results: list[_Place]


class EndpointReranker:
    def __init__(self, url: str, model: str, key: str = "") -> None:
        self._url = f"{url.rstrip('/')}/rerank"
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._provider = Provider("reranker", seconds=PATIENCE_SECONDS)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        if not settings.rerank_url.startswith(("http://", "https://")):
            raise ConfigError("rerank_url must begin with http:// or https://")
        return cls(settings.rerank_url, settings.rerank_model, settings.rerank_key)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._provider.close()

    async def rerank(self, query: str, found: Sequence[Found]) -> list[Found]:
        """Raises ProviderError, RateLimited."""
        if not found:
            return []
        texts = ["\n".join([*one.headings, one.text]) for one in found]
        body: dict[str, Any] = {"query": query, "documents": texts, "top_n": len(texts)}
        if self._model:
            body["model"] = self._model
        answer = await self._provider.ask("POST", self._url, headers=self._headers, body=body)
        places = [place.index for place in sorted(answer.read(_Answer).results, key=_worst_last)]
        if not all(0 <= place < len(found) for place in places):
            raise ProviderError("reranker", "it names texts that it was not sent", transient=True)
        rest = (place for place in range(len(found)) if place not in places)
        return [found[place] for place in dict.fromkeys([*places, *rest])]


def _worst_last(place: _Place) -> float:
    return -place.relevance_score
