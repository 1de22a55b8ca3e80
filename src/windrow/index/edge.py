"""The index in this process: Qdrant's own engine, embedded, a folder for each space.

One process at a time may have a space open; the engine refuses a second one. What was written is in
its log when `write` returns, and survives a killed process. Everything that takes time runs in
threads, but for searches: whoever calls the engine has the interpreter for as long as it takes, so
a thread would only make two changes of threads of it.

Vectors are compared one by one, in four bits for each number, and the best of them once more in
full. That finds what a full comparison finds. A graph (HNSW) lost 5 % of the right pages on real
questions, cost more than all other writing, and was built while everything else stood still: the
engine never lets go of the interpreter.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, assert_never

from windrow.errors import IndexUnavailable
from windrow.index.globs import fits
from windrow.index.home import (
    MOST_FETCHED,
    Filter,
    Fused,
    Hit,
    Labels,
    Point,
    Query,
    Space,
    floats,
    fuse_ids,
    hit_of,
    label_payload,
    lean_payload_of,
    uuid_text,
)
from windrow.index.qdrant_terms import (
    AnyOf,
    BeginsWith,
    Condition,
    Contains,
    Weigh,
    Weights,
    Within,
    bm25,
    conditions_of,
    weigh,
)

if TYPE_CHECKING:
    import qdrant_edge

T = TypeVar("T")

DENSE: Final = "dense"
WORDS: Final = "words"
KEYWORDS: Final = ("content", "collection", "source", "branches", "language", "tags")
FIELDS: Final = frozenset({*KEYWORDS, "tenant", "uri", "date"})  # that can be indexed
# Chunks from which on a payload field is indexed when a filter names it: the engine reads 5 MB of
# each index in each segment when it opens a space. Fewer are filtered without in milliseconds.
INDEXED_FROM: Final = 500
OVERSAMPLING: Final = 3.0  # times as many as are wanted are compared in full; 2 lost 6 in 1,000
NEVER_KB: Final = 2**40  # a segment of so much would be built anew for a graph that it does not get
PARTS: Final = min(os.cpu_count() or 1, 4)  # segments of a new space: each is searched by a thread
MAKING: Final = ".making"  # the folder of a space that is not whole yet
MOST_PARTS: Final = 8  # with more, the engine makes one of several; it takes long for that


class EdgeIndex:
    """`folder` has a folder for each space, which is made when it is first written to. `weigh`: who
    weighs the words of many texts, if somebody else does. `indexed_from`: with so many chunks a
    field is indexed when a filter first names it."""

    def __init__(
        self, folder: Path, weigh: Weigh | None = None, *, indexed_from: int = INDEXED_FROM
    ) -> None:
        self.folder = folder
        self._indexed_from = indexed_from
        self._weigh = weigh
        self._shards: dict[str, qdrant_edge.EdgeShard] = {}
        self._opening = asyncio.Lock()
        self._writing = asyncio.Lock()  # two would only take the interpreter from each other

    async def write(self, space: Space, points: Sequence[Point]) -> None:
        shard = await self._open(space)
        weights = await self._weigh([point.words for point in points]) if self._weigh else None
        async with self._writing:
            await self._run("written to", self._write, shard, points, weights)

    async def remove(self, space: Space, contents: Sequence[str]) -> None:
        if contents and (shard := await self._open_existing(space)):
            edge = self._edge
            await self._index_fields(shard, ["content"])
            meant = edge.Filter(must=[self._is_any("content", contents)])
            await self._update(shard, edge.UpdateOperation.delete_points_by_filter(meant))

    async def relabel(self, space: Space, labels: Mapping[str, Labels]) -> None:
        if (shard := await self._open_existing(space)) is None:
            return
        if labels:
            await self._index_fields(shard, ["content"])
        for content, new in labels.items():
            meant = self._edge.Filter(must=[self._is_any("content", [content])])
            change = self._edge.UpdateOperation.set_payload_by_filter(meant, label_payload(new))
            await self._update(shard, change)

    async def search(self, space: Space, query: Query) -> list[Hit]:
        if query.limit <= 0 or (shard := await self._open_existing(space)) is None:
            return []
        await self._index_fields(shard, _named_by(query.filter))
        if query.filter.path is not None:  # then most of it is done here, not by the engine
            return await self._run("searched", self._search, shard, query)
        with self._refused("searched"):
            return self._search(shard, query)

    async def count(self, space: Space, filter: Filter | None = None) -> int:
        if (shard := await self._open_existing(space)) is None:
            return 0
        meant = filter or Filter()
        await self._index_fields(shard, _named_by(meant))
        wanted = self._edge.CountRequest(exact=True, filter=self._filter(meant))
        return await self._run("counted", shard.count, wanted)

    async def optimize(self, space: Space) -> None:
        if shard := await self._open_existing(space):
            await self._run("optimized", shard.optimize)

    async def spaces(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        there = (one.name for one in self.folder.iterdir() if one.is_dir())
        return sorted(name for name in there if name != MAKING)

    async def drop(self, space: Space) -> None:
        async with self._opening:
            if shard := self._shards.pop(space.name, None):
                await asyncio.to_thread(shard.close)
            await asyncio.to_thread(shutil.rmtree, self.folder / space.name, ignore_errors=True)

    async def close(self) -> None:
        async with self._opening:
            shards, self._shards = list(self._shards.values()), {}
            for shard in shards:
                await asyncio.to_thread(shard.close)

    @cached_property
    def _edge(self) -> Any:
        import qdrant_edge

        return qdrant_edge

    async def _open(self, space: Space) -> qdrant_edge.EdgeShard:
        shard = self._shards.get(space.name)
        if shard is None:
            async with self._opening:
                shard = self._shards.get(space.name)
                if shard is None:
                    shard = await asyncio.to_thread(self._load, space)
                    self._shards[space.name] = shard
        return shard

    async def _open_existing(self, space: Space) -> qdrant_edge.EdgeShard | None:
        if space.name in self._shards or (self.folder / space.name).is_dir():
            return await self._open(space)
        return None

    def _load(self, space: Space) -> qdrant_edge.EdgeShard:
        path = self.folder / space.name
        try:
            if path.is_dir() and any(path.iterdir()):
                return self._edge.EdgeShard.load(str(path), self._config(space))  # type: ignore[no-any-return]
            return self._create(path, space)
        except Exception as error:  # the engine raises nothing more precise
            raise IndexUnavailable(f"the index in {path} cannot be opened: {error}") from error

    def _create(self, path: Path, space: Space) -> qdrant_edge.EdgeShard:
        """Make a space elsewhere and move it, so that it is whole from its first moment on."""
        making = self.folder / MAKING
        shutil.rmtree(making, ignore_errors=True)  # of a process that was killed
        self._make_parts(making, space).rename(path)
        shutil.rmtree(making)
        return self._edge.EdgeShard.load(str(path), self._config(space))  # type: ignore[no-any-return]

    def _make_parts(self, folder: Path, space: Space) -> Path:
        """An empty space with several segments, in a folder below this one. The engine makes one,
        but fills the smallest of those there are, and searches all of them at once."""
        first, *others = (folder / str(number) for number in range(PARTS))
        for one in (first, *others):
            one.mkdir(parents=True)
            self._edge.EdgeShard.create(str(one), self._config(space)).close()
        for one in others:
            for segment in (one / "segments").iterdir():
                segment.rename(first / "segments" / segment.name)
        return first

    def _config(self, space: Space) -> qdrant_edge.EdgeConfig:
        edge = self._edge
        # Cold: read as they are asked for. Else 64 MB of each segment are read when it is opened,
        # however little is in it.
        cold = edge.Memory.Cold
        dense = edge.EdgeVectorParams(
            size=space.dimension, distance=edge.Distance.Cosine, memory=cold
        )
        words = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
        return edge.EdgeConfig(  # type: ignore[no-any-return]
            vectors={DENSE: dense},
            sparse_vectors={WORDS: words},
            hnsw_config=edge.HnswIndexConfig(
                m=0, ef_construct=4, full_scan_threshold=10_000, payload_m=0
            ),
            quantization_config=edge.TurboQuantQuantizationConfig(
                bits=edge.TurboQuantBitSize.Bits4, memory=cold
            ),
            optimizers=edge.EdgeOptimizersConfig(
                indexing_threshold=NEVER_KB, default_segment_number=MOST_PARTS
            ),
        )

    def _write(
        self,
        shard: qdrant_edge.EdgeShard,
        points: Sequence[Point],
        weights: Sequence[Weights] | None,
    ) -> None:
        edge = self._edge
        if weights is None:
            weights = weigh([point.words for point in points])
        made = [
            edge.Point(
                point.id,
                {DENSE: floats(point.vector), WORDS: edge.SparseVector(*words)},
                lean_payload_of(point),
            )
            for point, words in zip(points, weights, strict=True)
        ]
        if made:
            shard.update(edge.UpdateOperation.upsert_points(made))

    async def _index_fields(self, shard: qdrant_edge.EdgeShard, names: Collection[str]) -> None:
        """Index fields that a filter names, in a space that has grown. It takes 6 µs a chunk, with
        the interpreter held; from then on the engine keeps the index up to date."""
        if names and self._lacking(shard, names):
            async with self._writing:
                await self._run("indexed", self._make_indexes, shard, names)

    def _lacking(self, shard: qdrant_edge.EdgeShard, names: Collection[str]) -> set[str]:
        info = shard.info()
        if info.points_count < self._indexed_from:
            return set()
        return {*names} & FIELDS - info.payload_schema.keys()

    def _make_indexes(self, shard: qdrant_edge.EdgeShard, names: Collection[str]) -> None:
        edge = self._edge
        kinds = dict.fromkeys(KEYWORDS, edge.PayloadSchemaType.Keyword) | {
            "tenant": edge.KeywordIndexParams(is_tenant=True),
            "uri": edge.KeywordIndexParams(prefix=True),
            "date": edge.PayloadSchemaType.Float,
        }
        for name in self._lacking(shard, names):
            shard.update(edge.UpdateOperation.create_field_index(name, kinds[name]))

    async def _update(self, shard: qdrant_edge.EdgeShard, change: Any) -> None:
        await self._run("changed", shard.update, change)

    async def _run(self, what: str, call: Callable[..., T], *given: Any) -> T:
        """In a thread."""
        with self._refused(what):
            return await asyncio.to_thread(call, *given)

    @contextmanager
    def _refused(self, what: str) -> Iterator[None]:
        """The engine raises bare exceptions, for a full disk as for all else: whatever has a name
        of its own is not the engine's."""
        try:
            yield
        except Exception as error:
            if type(error) is not Exception and not isinstance(error, OSError):
                raise
            said = f"the index in {self.folder} cannot be {what}: {error}"
            raise IndexUnavailable(said) from error

    def _search(self, shard: qdrant_edge.EdgeShard, query: Query) -> list[Hit]:
        """More of each ranking is asked for if a glob leaves too few. What is kept with a chunk is
        read for the best ones only: for all of both rankings it takes longer than to find them."""
        glob = query.filter.path
        limit = query.limit if glob is None else 4 * query.limit
        while True:
            rankings = self._rankings(shard, query, limit)
            is_all = all(len(found) < limit for found in rankings.values())
            ids: dict[int, Any] = {}
            ranked: dict[str, list[tuple[int, float]]] = {}
            for name, found in rankings.items():
                fitting = found if glob is None else [one for one in found if _fits(glob, one)]
                each = [one.id for one in fitting]
                ids.update((id.int, id) for id in each)
                ranked[name] = [(id.int, one.score) for id, one in zip(each, fitting, strict=True)]
            fused = fuse_ids(ranked, query.limit)
            if is_all or glob is None or len(fused) >= query.limit or limit >= MOST_FETCHED:
                return self._hits(shard, fused, ids, query.enough)
            limit = min(8 * limit, MOST_FETCHED)

    def _hits(
        self,
        shard: qdrant_edge.EdgeShard,
        fused: Sequence[Fused[int]],
        ids: Mapping[int, Any],
        enough: int | None,
    ) -> list[Hit]:
        """Read a part at a time: what is read here lies all over a file."""
        hits: list[Hit] = []
        size = enough or len(fused) or 1
        for start in range(0, len(fused), size):
            some = fused[start : start + size]
            found: list[Any] = shard.retrieve([ids[one.id] for one in some], True, False)
            if len(found) < len(some):  # one was removed between the two calls
                there = {one.id.int for one in found}
                some = [one for one in some if one.id in there]
            hits += [
                hit_of(uuid_text(f"{id:032x}"), score, ranks, one.payload or {})
                for (id, score, ranks), one in zip(some, found, strict=True)  # in the same order
            ]
            if enough and len({hit.content for hit in hits}) >= enough:
                break
        return hits

    def _rankings(
        self, shard: qdrant_edge.EdgeShard, query: Query, limit: int
    ) -> dict[str, list[Any]]:
        """Points with scores, of both rankings in one pass over the segments."""
        edge = self._edge
        exact = query.text if query.mode == "exact" else None
        nearest: dict[str, Any] = {}
        if query.mode in ("hybrid", "semantic", "exact"):
            nearest["semantic" if exact is None else "exact"] = edge.Query.Nearest(
                floats(query.vector), using=DENSE
            )
        if query.mode in ("hybrid", "keyword"):
            nearest["keyword"] = edge.Query.Nearest(bm25().embed_query(query.text), using=WORDS)
        given = {
            "limit": limit,
            "filter": self._filter(query.filter, exact),
            "params": edge.SearchParams(
                quantization=edge.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING)
            ),
            "with_payload": False if query.filter.path is None else ["uri"],
        }
        requests = [edge.QueryRequest(query=one, **given) for one in nearest.values()]
        answers = shard.query_batch(edge.QueryBatchRequest(requests))
        return dict(zip(nearest, answers, strict=True))

    def _filter(self, filter: Filter, exact: str | None = None) -> Any:
        must = [self._condition(one) for one in conditions_of(filter, exact)]
        return self._edge.Filter(must=must) if must else None

    def _condition(self, one: Condition) -> Any:
        edge = self._edge
        match one:
            case AnyOf():
                return self._is_any(one.key, one.values)
            case BeginsWith():
                return edge.FieldCondition(one.key, match=edge.MatchPrefix(one.prefix))
            case Within():
                within = edge.RangeFloat(gte=one.since, lte=one.until)
                return edge.FieldCondition(one.key, range=within)
            case Contains():
                return edge.FieldCondition(one.key, match=edge.MatchSubstring(one.text))
            case _:
                assert_never(one)

    def _is_any(self, key: str, values: Sequence[str]) -> Any:
        # One value is looked up in a third of the time that a choice of one takes.
        [*each] = values
        match = self._edge.MatchValue(each[0]) if len(each) == 1 else self._edge.MatchAny(each)
        return self._edge.FieldCondition(key, match=match)


def _named_by(filter: Filter) -> list[str]:
    return [one.key for one in conditions_of(filter)]


def _fits(glob: str, point: Any) -> bool:
    uri = point.payload["uri"]  # a list if documents have several names for it
    return fits(glob, uri) if isinstance(uri, str) else any(fits(glob, one) for one in uri)
