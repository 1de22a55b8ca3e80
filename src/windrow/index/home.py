"""What an index is: chunks of contents, each with a vector and its words, in spaces.

A space holds what was embedded by one model. The id of a point follows from its content and its
place in it, so whatever is written again replaces itself. An index does not know which contents are
to be shown: documents say that. Three homes keep to this contract, and `tests/index` runs the same
suite on each: `edge` (embedded, one process), `qdrant` (a server), `pgvector` (in a Postgres).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

import msgspec

from windrow.ids import named_id
from windrow.ids import uuid_text as uuid_text

Mode = Literal["hybrid", "semantic", "keyword", "exact"]
MODES: Final[tuple[str, ...]] = get_args(Mode)
# How much the first places count more than later ones, and each ranking beside the others: with
# the usual 60 and no weights, both together find less than words alone (docs/search-quality.md).
RRF_K: Final = 5
WEIGHTS: Final[Mapping[str, float]] = {"semantic": 0.4, "keyword": 1.0, "exact": 1.0}
MOST_FETCHED: Final = 10_000  # of one ranking, while looking for what the index cannot filter


@dataclass(frozen=True, slots=True)
class Space:
    name: str
    dimension: int


# Structs, where others are dataclasses: a search makes dozens of each, a batch hundreds.
class Labels(msgspec.Struct, frozen=True):
    """What chunks of a content are filtered by. One that is several documents', on branches where a
    file has another name perhaps, is found by what any of them says (`other_…`: besides the
    first)."""

    collection: str
    source: str
    uri: str
    tenant: str = ""  # empty: none
    branches: tuple[str, ...] = ()
    language: str = ""
    tags: tuple[str, ...] = ()
    date: float | None = None  # seconds since 1970
    title: str = ""
    other_uris: tuple[str, ...] = ()
    other_languages: tuple[str, ...] = ()
    other_dates: tuple[float, ...] = ()

    @property
    def uris(self) -> tuple[str, ...]:
        return (self.uri, *self.other_uris)


class Point(msgspec.Struct, frozen=True):
    """A chunk: `start` and `end` say where in the content's text it stands."""

    content: str
    ordinal: int
    vector: Sequence[float]
    text: str
    labels: Labels
    headings: tuple[str, ...] = ()
    start: int = 0
    end: int = 0

    @property
    def id(self) -> str:
        return point_id(self.content, self.ordinal)

    @property
    def words(self) -> str:
        """What it is found by when words are looked for."""
        return "\n".join([self.labels.title, *self.headings, self.text])


@dataclass(frozen=True, slots=True)
class Filter:
    """Which chunks are meant; what is not given is not asked for."""

    tenant: str | None = None  # None: of all; "": of none
    collections: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    path: str | None = None  # a glob: * within a folder, ** through folders
    languages: tuple[str, ...] = ()
    branch: str | None = None
    tags: tuple[str, ...] = ()  # all of them
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    vector: Sequence[float] = ()  # not needed to look for words
    mode: Mode = "hybrid"
    limit: int = 10
    filter: Filter = field(default_factory=Filter)
    enough: int | None = None  # behind hits of so many contents, others may be left out


class Hit(msgspec.Struct, frozen=True):
    """A chunk that was found, and its place in each ranking, from 1 on."""

    id: str
    content: str
    score: float
    ranks: Mapping[str, int]
    text: str
    headings: tuple[str, ...]
    start: int
    end: int
    labels: Labels


class Index(Protocol):
    async def write(self, space: Space, points: Sequence[Point]) -> None:
        """Write chunks, each in the place of itself; on disk when this returns."""
        ...

    async def remove(self, space: Space, contents: Sequence[str]) -> None:
        """Remove all chunks of these contents."""
        ...

    async def relabel(self, space: Space, labels: Mapping[str, Labels]) -> None:
        """Give the chunks of contents other labels; nothing is embedded again."""
        ...

    async def search(self, space: Space, query: Query) -> list[Hit]:
        """The chunks that fit best, best first."""
        ...

    async def count(self, space: Space, filter: Filter | None = None) -> int: ...

    async def optimize(self, space: Space) -> None:
        """Do what makes searches faster. May take long; searches go on."""
        ...

    async def spaces(self) -> list[str]:
        """The names of those there are."""
        ...

    async def drop(self, space: Space) -> None:
        """Remove a space and all that is in it."""
        ...

    async def close(self) -> None: ...


def point_id(content: str, ordinal: int) -> str:
    return named_id(content, str(ordinal))


def floats(vector: Sequence[float]) -> list[float]:
    """A vector as a list: a row of an array, too, which is done fastest by itself."""
    to_list = getattr(vector, "tolist", None)
    return list(vector) if to_list is None else to_list()


# A UUID as text, or as the number it is, which is much less to make and in the same order.
Id = TypeVar("Id", str, int)


class Fused(NamedTuple, Generic[Id]):
    id: Id
    score: float
    ranks: dict[str, int]  # its place in each ranking that it was in


def fuse_ids(rankings: Mapping[str, Sequence[tuple[Id, float]]], limit: int) -> list[Fused[Id]]:
    """One ranking from several, of ids and scores, by reciprocal ranks. One alone keeps its own
    scores."""
    if len(rankings) == 1:
        [(name, found)] = rankings.items()
        return [Fused(*one, {name: rank}) for rank, one in enumerate(found[:limit], 1)]
    scores: dict[Id, float] = {}
    ranks: dict[Id, dict[str, int]] = {}
    for name, found in rankings.items():
        weight = WEIGHTS[name]
        for rank, (id, _) in enumerate(found, 1):
            if id in scores:
                scores[id] += weight / (RRF_K + rank)
                ranks[id][name] = rank
            else:
                scores[id] = weight / (RRF_K + rank)
                ranks[id] = {name: rank}
    # Ties in a fixed order, so that the same question has the same answer.
    best = sorted(zip((-score for score in scores.values()), scores, strict=True))[:limit]
    return [Fused(one, scores[one], ranks[one]) for _, one in best]


def fuse(rankings: Mapping[str, Sequence[Hit]], limit: int) -> list[Hit]:
    """The same of hits."""
    ids = {name: [(hit.id, hit.score) for hit in hits] for name, hits in rankings.items()}
    hits = {hit.id: hit for found in rankings.values() for hit in found}
    return [
        msgspec.structs.replace(hits[one.id], score=one.score, ranks=one.ranks)
        for one in fuse_ids(ids, limit)
    ]


def payload_of(point: Point) -> dict[str, Any]:
    """What is kept with a vector, for homes that keep JSON."""
    return {
        "content": point.content,
        "text": point.text,
        "headings": list(point.headings),
        "start": point.start,
        "end": point.end,
        **label_payload(point.labels),
    }


def lean_payload_of(point: Point) -> dict[str, Any]:
    """The same without empty lists and times, which `hit_of` does not miss, and with a text in the
    place of a list of one: the embedded engine takes half as long for it, and finds it as well."""
    return {
        name: value[0] if type(value) is list and len(value) == 1 else value
        for name, value in payload_of(point).items()
        if value != [] and value is not None
    }


def label_payload(labels: Labels) -> dict[str, Any]:
    """Where there are several of something, a list: what is asked of it holds for one of them."""
    return {
        "tenant": labels.tenant,
        "collection": labels.collection,
        "source": labels.source,
        "uri": _one_or_all(labels.uri, labels.other_uris),
        "branches": list(labels.branches),
        "language": _one_or_all(labels.language, labels.other_languages),
        "tags": list(labels.tags),
        "date": _one_or_all(labels.date, labels.other_dates),
        "title": labels.title,
    }


def _one_or_all(first: Any, others: Sequence[Any]) -> Any:
    return [one for one in (first, *others) if one is not None] if others else first


def hit_of(id: str, score: float, ranks: Mapping[str, int], payload: Mapping[str, Any]) -> Hit:
    uri, *uris = _texts(payload["uri"])
    language, *languages = _texts(payload["language"])
    dates = _dates(payload.get("date"))
    return Hit(
        id=id,
        content=payload["content"],
        score=score,
        ranks=ranks,
        text=payload["text"],
        headings=_texts(payload.get("headings", ())),
        start=payload["start"],
        end=payload["end"],
        labels=Labels(
            collection=payload["collection"],
            source=payload["source"],
            uri=uri,
            tenant=payload["tenant"],
            branches=_texts(payload.get("branches", ())),
            language=language,
            tags=_texts(payload.get("tags", ())),
            date=dates[0] if dates else None,
            title=payload["title"],
            other_uris=tuple(uris),
            other_languages=tuple(languages),
            other_dates=dates[1:],
        ),
    )


def _dates(value: Any) -> tuple[float, ...]:
    several = value if isinstance(value, list) else [value]
    return tuple(one for one in several if one is not None)


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
