"""A filter as conditions that an index of Qdrant's knows, in this process or in a server: what is
asked of the payload is the same, only the words for it differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.index.globs import literal_prefix
from windrow.index.home import Filter


@dataclass(frozen=True, slots=True)
class AnyOf:
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BeginsWith:
    key: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Within:
    key: str
    since: float | None
    until: float | None


@dataclass(frozen=True, slots=True)
class Contains:
    key: str
    text: str


Condition = AnyOf | BeginsWith | Within | Contains


def conditions_of(filter: Filter, exact: str | None = None) -> Iterator[Condition]:
    """All of these hold for what is meant. Of a glob only how it begins is asked; the rest is for
    whoever reads the answer."""
    if filter.tenant is not None:
        yield AnyOf("tenant", (filter.tenant,))
    for key, values in (
        ("collection", filter.collections),
        ("source", filter.sources),
        ("language", filter.languages),
        ("branches", () if filter.branch is None else (filter.branch,)),
        *(("tags", (tag,)) for tag in filter.tags),
    ):
        if values:
            yield AnyOf(key, values)
    if filter.path is not None and (prefix := literal_prefix(filter.path)):
        yield BeginsWith("uri", prefix)
    if filter.since is not None or filter.until is not None:
        yield Within("date", filter.since, filter.until)
    if exact is not None:
        yield Contains("text", exact)
