"""The index in a Qdrant server: a collection there for each space, named `windrow-…`.

Many processes may use it at once. Words are weighed here, by the same code as in the embedded
index, and the server weighs how rare they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, assert_never

from windrow.errors import IndexUnavailable
from windrow.index.globs import fits
from windrow.index.home import (
    MOST_FETCHED,
    Filter,
    Hit,
    Labels,
    Point,
    Query,
    Space,
    floats,
    fuse,
    hit_of,
    label_payload,
    payload_of,
)
from windrow.index.qdrant_terms import (
    AnyOf,
    BeginsWith,
    Condition,
    Contains,
    Within,
    bm25,
    conditions_of,
)

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient

PREFIX: Final = "windrow-"
DENSE: Final = "dense"
WORDS: Final = "words"
KEYWORDS: Final = ("content", "collection", "source", "uri", "branches", "language", "tags")


class QdrantIndex:
    """`client` is given in tests; else one is made for the URL."""

    def __init__(
        self, url: str = "", key: str = "", *, client: AsyncQdrantClient | None = None
    ) -> None:
        self._url = url
        self._key = key
        self._given = client
        self._known: set[str] = set()
        self._making = asyncio.Lock()

    async def write(self, space: Space, points: Sequence[Point]) -> None:
        if not points:
            return
        models = self._models
        async with self._answering():
            await self._ensure(space)
            made = await asyncio.to_thread(
                lambda: [
                    models.PointStruct(
                        id=point.id,
                        vector={DENSE: floats(point.vector), WORDS: self._words_of(point)},
                        payload=payload_of(point),
                    )
                    for point in points
                ]
            )
            await self._client.upsert(_name(space), made, wait=True)

    async def remove(self, space: Space, contents: Sequence[str]) -> None:
        models = self._models
        async with self._answering():
            if contents and await self._is_there(space):
                meant = models.Filter(must=[self._is_any("content", contents)])
                await self._client.delete(
                    _name(space), models.FilterSelector(filter=meant), wait=True
                )

    async def relabel(self, space: Space, labels: Mapping[str, Labels]) -> None:
        async with self._answering():
            if not await self._is_there(space):
                return
            for content, new in labels.items():
                meant = self._models.Filter(must=[self._is_any("content", [content])])
                await self._client.set_payload(
                    _name(space), payload=label_payload(new), points=meant, wait=True
                )

    async def search(self, space: Space, query: Query) -> list[Hit]:
        async with self._answering():
            if query.limit <= 0 or not await self._is_there(space):
                return []
            return await self._search(space, query)

    async def count(self, space: Space, filter: Filter | None = None) -> int:
        async with self._answering():
            if not await self._is_there(space):
                return 0
            wanted = self._filter(filter or Filter())
            return (await self._client.count(_name(space), count_filter=wanted)).count

    async def optimize(self, space: Space) -> None:
        """The server does it by itself."""

    async def spaces(self) -> list[str]:
        async with self._answering():
            found = await self._client.get_collections()
        names = sorted(one.name for one in found.collections)
        return [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]

    async def drop(self, space: Space) -> None:
        async with self._answering():
            self._known.discard(space.name)
            await self._client.delete_collection(_name(space))

    async def close(self) -> None:
        if "_client" in self.__dict__:
            await self._client.close()

    @cached_property
    def _client(self) -> AsyncQdrantClient:
        from qdrant_client import AsyncQdrantClient

        return self._given or AsyncQdrantClient(
            url=self._url, api_key=self._key or None, check_compatibility=False
        )

    @cached_property
    def _models(self) -> Any:
        from qdrant_client import models

        return models

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        from qdrant_client.http.exceptions import ApiException

        try:
            yield
        except (ApiException, OSError) as error:
            raise IndexUnavailable(f"the Qdrant server does not do it: {error}") from error

    async def _is_there(self, space: Space) -> bool:
        if space.name not in self._known and await self._client.collection_exists(_name(space)):
            self._known.add(space.name)
        return space.name in self._known

    async def _ensure(self, space: Space) -> None:
        async with self._making:
            if not await self._is_there(space):
                await self._create(space)
                self._known.add(space.name)

    async def _create(self, space: Space) -> None:
        models = self._models
        await self._client.create_collection(
            _name(space),
            vectors_config={
                DENSE: models.VectorParams(size=space.dimension, distance=models.Distance.COSINE)
            },
            sparse_vectors_config={WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        tenant = models.KeywordIndexParams(type="keyword", is_tenant=True)
        path = models.KeywordIndexParams(type="keyword", prefix=True)
        kinds = {"tenant": tenant, "uri": path, "date": models.PayloadSchemaType.FLOAT}
        for field in ("tenant", "date", *KEYWORDS):
            schema = kinds.get(field, models.PayloadSchemaType.KEYWORD)
            await self._client.create_payload_index(_name(space), field, schema, wait=True)

    async def _search(self, space: Space, query: Query) -> list[Hit]:
        """More is asked for if a glob, which the server does not know, leaves too few."""
        glob = query.filter.path
        limit = query.limit if glob is None else 4 * query.limit
        while True:
            rankings = await self._rankings(space, query, limit)
            is_all = all(len(hits) < limit for hits in rankings.values())
            if glob is not None:
                rankings = {
                    name: [hit for hit in hits if any(fits(glob, one) for one in hit.labels.uris)]
                    for name, hits in rankings.items()
                }
            fused = fuse(rankings, query.limit)
            if is_all or glob is None or len(fused) >= query.limit or limit >= MOST_FETCHED:
                return fused
            limit = min(8 * limit, MOST_FETCHED)

    async def _rankings(self, space: Space, query: Query, limit: int) -> dict[str, list[Hit]]:
        models = self._models
        exact = query.text if query.mode == "exact" else None
        asked: dict[str, tuple[Any, str]] = {}
        if query.mode in ("hybrid", "semantic", "exact"):
            asked["semantic" if exact is None else "exact"] = (floats(query.vector), DENSE)
        if query.mode in ("hybrid", "keyword"):
            words = bm25().embed_query(query.text)
            sparse = models.SparseVector(indices=words.indices, values=words.values)
            asked["keyword"] = (sparse, WORDS)
        meant = self._filter(query.filter, exact)
        requests = [
            models.QueryRequest(
                query=what, using=using, limit=limit, filter=meant, with_payload=True
            )
            for what, using in asked.values()
        ]
        answers = await self._client.query_batch_points(_name(space), requests)
        return {
            name: [hit_of(str(one.id), one.score, {}, one.payload or {}) for one in found.points]
            for name, found in zip(asked, answers, strict=True)
        }

    def _filter(self, filter: Filter, exact: str | None = None) -> Any:
        must = [self._condition(one) for one in conditions_of(filter, exact)]
        return self._models.Filter(must=must) if must else None

    def _condition(self, one: Condition) -> Any:
        models = self._models
        match one:
            case AnyOf():
                return self._is_any(one.key, one.values)
            case BeginsWith():
                match = models.MatchPrefix(prefix=one.prefix)
                return models.FieldCondition(key=one.key, match=match)
            case Within():
                within = models.Range(gte=one.since, lte=one.until)
                return models.FieldCondition(key=one.key, range=within)
            case Contains():
                match = models.MatchSubstring(substring=one.text)
                return models.FieldCondition(key=one.key, match=match)
            case _:
                assert_never(one)

    def _is_any(self, key: str, values: Sequence[str]) -> Any:
        models = self._models
        return models.FieldCondition(key=key, match=models.MatchAny(any=list(values)))

    def _words_of(self, point: Point) -> Any:
        words = bm25().embed_document(point.words)
        return self._models.SparseVector(indices=words.indices, values=words.values)


def _name(space: Space) -> str:
    return PREFIX + space.name
