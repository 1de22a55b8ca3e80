"""The index in Postgres: vectors by the extension `vector`, words by full text search.

A table for each space, in the schema `windrow_index`, which the index makes by itself: a database
without the extension has none of it. Many processes may use it at once.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from windrow.errors import IndexUnavailable
from windrow.index.globs import to_regex
from windrow.index.home import (
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

if TYPE_CHECKING:
    import asyncpg

SCHEMA: Final = "windrow_index"
WORTH_A_GRAPH: Final = 5_000  # chunks; fewer are compared one by one in no time
MOST_DIMENSIONS: Final = 2_000  # that a graph can have
# Nodes of the graph that are compared: with Postgres' 40, a tenth of the right pages was lost.
COMPARED: Final = 100
MANY_CHUNKS: Final = 1_500  # that rare words are in; where these are enough, others find none
MOST_RANKED: Final = 32  # words of a question that count, the rarest of them
FRESH_SECONDS: Final = 60.0  # before it is asked again how many chunks have a word
LOCK: Final = 0x77696E64726F77  # who makes tables, one at a time

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS {table} (
    id uuid PRIMARY KEY,
    content uuid NOT NULL,
    tenant text NOT NULL,
    collection text NOT NULL,
    source text NOT NULL,
    uri text NOT NULL,
    branches text[] NOT NULL,
    language text NOT NULL,
    tags text[] NOT NULL,
    date double precision,
    title text NOT NULL,
    {others},
    headings text[] NOT NULL,
    "start" integer NOT NULL,
    "end" integer NOT NULL,
    text text NOT NULL,
    words tsvector NOT NULL,
    vector vector({dimension}) NOT NULL
);
CREATE INDEX IF NOT EXISTS {content} ON {table} (content);
CREATE INDEX IF NOT EXISTS {place} ON {table} (tenant, collection, source);
CREATE INDEX IF NOT EXISTS {words} ON {table} USING gin (words);
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
"""
# What documents say of a content besides the first: columns that tables of old do not have.
_OTHERS: Final = (
    "other_uris text[] NOT NULL DEFAULT '{}'",
    "other_languages text[] NOT NULL DEFAULT '{}'",
    "other_dates double precision[] NOT NULL DEFAULT '{}'",
)
_COLUMNS: Final = """id, content, tenant, collection, source, uri, branches, language, tags, date,
title, other_uris, other_languages, other_dates, headings, "start", "end", text"""
_WRITE: Final = """
INSERT INTO {table} ({columns}, words, vector)
SELECT {columns}, to_tsvector('english', words), vector
  FROM json_to_recordset($1::text::json) AS given(
       id uuid, content uuid, tenant text, collection text, source text, uri text, branches text[],
       language text, tags text[], date double precision, title text, other_uris text[],
       other_languages text[], other_dates double precision[], headings text[],
       "start" integer, "end" integer, text text, words text, vector vector)
 ORDER BY id
ON CONFLICT (id) DO UPDATE SET
  content = excluded.content, tenant = excluded.tenant, collection = excluded.collection,
  source = excluded.source, uri = excluded.uri, branches = excluded.branches,
  language = excluded.language, tags = excluded.tags, date = excluded.date, title = excluded.title,
  other_uris = excluded.other_uris, other_languages = excluded.other_languages,
  other_dates = excluded.other_dates,
  headings = excluded.headings, "start" = excluded."start", "end" = excluded."end",
  text = excluded.text, words = excluded.words, vector = excluded.vector
"""
_RELABEL: Final = """
UPDATE {table} AS chunk
   SET tenant = given.tenant, collection = given.collection, source = given.source,
       uri = given.uri, branches = given.branches, language = given.language, tags = given.tags,
       date = given.date, title = given.title, other_uris = given.other_uris,
       other_languages = given.other_languages, other_dates = given.other_dates
  FROM json_to_recordset($1::text::json) AS given(
       content uuid, tenant text, collection text, source text, uri text, branches text[],
       language text, tags text[], date double precision, title text, other_uris text[],
       other_languages text[], other_dates double precision[])
 WHERE chunk.content = given.content
"""
_LEXEMES: Final = "SELECT tsvector_to_array(to_tsvector('english', $1::text))"
# What ANALYZE has seen of the words. Behind the share of each comes the smallest one of them all.
_SHARES: Final = """
SELECT reltuples AS chunks, most_common_elems::text::text[] AS words,
       most_common_elem_freqs AS shares
  FROM pg_class
  JOIN pg_namespace ON pg_namespace.oid = relnamespace
  JOIN pg_stats ON schemaname = nspname AND tablename = relname AND attname = 'words'
 WHERE pg_class.oid = to_regclass($1) AND most_common_elems IS NOT NULL
"""
# A row's words are unpacked once, by the copy that `setweight` makes, and not for each word that is
# asked for; the rest of a row is read for the best ones only.
_BY_WORDS: Final = """
SELECT {columns}, score
  FROM (SELECT id, {score} AS score
          FROM (SELECT id, setweight(words, 'D') AS words
                  FROM {table} WHERE {where} AND words @@ {asked}
                OFFSET 0) AS found
         ORDER BY score DESC, id LIMIT {limit}) AS best
  JOIN {table} USING (id)
 ORDER BY score DESC, id
"""
# Identifiers are found by their parts, too.
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[^\W\d_A-Za-z]+")
_IDENTIFIER: Final = re.compile(r"\b\w*(?:[a-z][A-Z]|[A-Z]{2}[a-z]|_)\w*\b")


class PgvectorIndex:
    """`dsn` is one that asyncpg takes."""

    def __init__(self, dsn: str, *, pool_size: int = 4) -> None:
        self._dsn = dsn
        self._pool_size = pool_size
        self._pool: asyncpg.Pool[Any] | None = None
        self._opening = asyncio.Lock()
        self._known: set[str] = set()
        self._known_shares: dict[str, tuple[float, Shares]] = {}  # and when they were read

    async def write(self, space: Space, points: Sequence[Point]) -> None:
        if not points:
            return
        each = {point.id: point for point in points}  # a statement writes no row twice
        rows = await asyncio.to_thread(lambda: _json([_row(one) for one in each.values()]))
        async with self._connection() as connection:
            await self._ensure(connection, space)
            await connection.execute(_WRITE.format(table=_table(space), columns=_COLUMNS), rows)

    async def remove(self, space: Space, contents: Sequence[str]) -> None:
        async with self._connection() as connection:
            if contents and await self._is_there(connection, space):
                await connection.execute(
                    f"DELETE FROM {_table(space)} "  # noqa: S608 - a name, quoted
                    "WHERE content = ANY ($1::uuid[])",
                    list(contents),
                )

    async def relabel(self, space: Space, labels: Mapping[str, Labels]) -> None:
        rows = [{"content": content, **_labels(new)} for content, new in labels.items()]
        async with self._connection() as connection:
            if rows and await self._is_there(connection, space):
                await connection.execute(_RELABEL.format(table=_table(space)), _json(rows))

    async def search(self, space: Space, query: Query) -> list[Hit]:
        async with self._connection() as connection:
            if query.limit <= 0 or not await self._is_there(connection, space):
                return []
            rankings = {
                name: await self._ranking(connection, space, query, name) for name in _ways(query)
            }
        return fuse(rankings, query.limit)

    async def count(self, space: Space, filter: Filter | None = None) -> int:
        async with self._connection() as connection:
            if not await self._is_there(connection, space):
                return 0
            where, values = _where(filter or Filter())
            text = f"SELECT count(*) FROM {_table(space)} WHERE {where}"  # noqa: S608 - values are bound
            return int(await connection.fetchval(text, *values))

    async def optimize(self, space: Space) -> None:
        """Make a graph of the vectors, once there are many."""
        async with self._connection() as connection:
            if not await self._is_there(connection, space):
                return
            many = await connection.fetchval(
                "SELECT count(*) >= $1::bigint "  # noqa: S608 - a name, quoted
                f"FROM (SELECT FROM {_table(space)} LIMIT $1::bigint) AS first",
                WORTH_A_GRAPH,
            )
            if many and space.dimension <= MOST_DIMENSIONS:
                await connection.execute(
                    f"CREATE INDEX IF NOT EXISTS {_name(space, 'near')} "
                    f"ON {_table(space)} USING hnsw (vector vector_cosine_ops)"
                )
            # What was written last is not in the order of the index yet, and read by each search.
            await connection.execute("SELECT gin_clean_pending_list($1)", _index(space, "words"))
            await connection.execute(f"ANALYZE {_table(space)}")
            self._known_shares.pop(space.name, None)

    async def spaces(self) -> list[str]:
        async with self._connection() as connection:
            rows = await connection.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1", SCHEMA
            )
            return [row["tablename"] for row in rows]

    async def drop(self, space: Space) -> None:
        self._known.discard(space.name)
        self._known_shares.pop(space.name, None)
        async with self._connection() as connection:
            await connection.execute(f"DROP TABLE IF EXISTS {_table(space)}")

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    @cached_property
    def _asyncpg(self) -> Any:
        import asyncpg

        return asyncpg

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        try:
            async with self._opening:
                if self._pool is None:
                    # Without a cache of statements it works behind any pooler.
                    self._pool = await self._asyncpg.create_pool(
                        self._dsn, min_size=0, max_size=self._pool_size, statement_cache_size=0
                    )
            async with self._pool.acquire() as connection, connection.transaction():
                yield connection
        except (self._asyncpg.PostgresError, self._asyncpg.InterfaceError, OSError) as error:
            raise IndexUnavailable(f"the index in Postgres does not do it: {error}") from error

    async def _is_there(self, connection: Any, space: Space) -> bool:
        if space.name not in self._known:
            if await connection.fetchval("SELECT to_regclass($1)", _table(space)) is None:
                return False
            await self._upgrade(connection, space)
            self._known.add(space.name)
        return True

    async def _upgrade(self, connection: Any, space: Space) -> None:
        """Give a table of old the columns it lacks; that changes no row."""
        is_new = await connection.fetchval(
            "SELECT EXISTS (SELECT FROM pg_attribute "
            "WHERE attrelid = to_regclass($1) AND attname = 'other_uris')",
            _table(space),
        )
        if not is_new:
            adding = ", ".join(f"ADD COLUMN IF NOT EXISTS {one}" for one in _OTHERS)
            await connection.execute(f"ALTER TABLE {_table(space)} {adding}")

    async def _ensure(self, connection: Any, space: Space) -> None:
        if await self._is_there(connection, space):
            return
        await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        names = {what: _name(space, what) for what in ("content", "place", "words")}
        table = {"table": _table(space), "dimension": int(space.dimension)}
        others = ",\n    ".join(_OTHERS)
        await connection.execute(_TABLE.format(**table, **names, others=others))

    async def _ranking(
        self, connection: Any, space: Space, query: Query, way: str
    ) -> Sequence[Hit]:
        ranked = self._by_words if way == "keyword" else self._by_vector
        rows = await ranked(connection, space, query)
        return [hit_of(str(row["id"]), row["score"], {}, _plain(row)) for row in rows]

    async def _by_vector(self, connection: Any, space: Space, query: Query) -> Sequence[Any]:
        where, values = _where(query.filter)
        given = _bound(values, _json(floats(query.vector)))
        if query.mode == "exact":
            where += f" AND position({_bound(values, query.text)}::text IN text) > 0"
        await connection.execute(
            f"SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.ef_search = {COMPARED}"
        )
        near = f"vector <=> {given}::text::vector"
        rows: Sequence[Any] = await connection.fetch(
            f"SELECT {_COLUMNS}, 1 - ({near}) AS score FROM {_table(space)} WHERE {where} "  # noqa: S608
            f"ORDER BY {near} LIMIT {int(query.limit)}",
            *values,
        )
        return rows

    async def _by_words(self, connection: Any, space: Space, query: Query) -> Sequence[Any]:
        """Chunks with any of the words, as the other homes do; rare ones count more. Of words that
        very many chunks have, those are not looked at that have no rarer one, if there are enough
        without them."""
        lexemes = await connection.fetchval(_LEXEMES, query.text)
        if not lexemes:
            return []
        shares = await self._shares(connection, space)
        lexemes.sort(key=lambda one: (shares.of(one), one))
        rare = shares.rarest(lexemes, MANY_CHUNKS)
        # The planner takes it for as cheap to look through all words as to look them up.
        await connection.execute("SET LOCAL enable_seqscan = off")
        found = await self._with_any(connection, space, query, lexemes, rare, shares)
        if len(found) < query.limit and len(rare) < len(lexemes):
            found = await self._with_any(connection, space, query, lexemes, lexemes, shares)
        return found

    async def _with_any(
        self,
        connection: Any,
        space: Space,
        query: Query,
        lexemes: Sequence[str],
        wanted: Sequence[str],
        shares: Shares,
    ) -> Sequence[Any]:
        where, values = _where(query.filter)
        asked = f"{_bound(values, ' | '.join(map(_as_query, wanted)))}::text::tsquery"
        score = " + ".join(
            f"{_bound(values, -math.log(shares.of(one)))}::double precision * "
            f"ts_rank(words, {_bound(values, _as_query(one))}::text::tsquery, 1)"
            for one in lexemes[:MOST_RANKED]
        )
        rows: Sequence[Any] = await connection.fetch(
            _BY_WORDS.format(
                columns=_COLUMNS,
                table=_table(space),
                where=where,
                asked=asked,
                score=score,
                limit=int(query.limit),
            ),
            *values,
        )
        return rows

    async def _shares(self, connection: Any, space: Space) -> Shares:
        now = time.monotonic()
        known = self._known_shares.get(space.name)
        if known is None or now - known[0] > FRESH_SECONDS:
            row = await connection.fetchrow(_SHARES, _table(space))
            known = now, Shares() if row is None else _read_shares(row)
            self._known_shares[space.name] = known
        return known[1]


@dataclass(frozen=True, slots=True)
class Shares:
    """Which share of the chunks has a word, as far as Postgres knows it."""

    chunks: float = 0.0  # there are about so many
    shares: Mapping[str, float] = field(default_factory=dict)  # of words that many have
    rare: float = 1 / math.e  # of all others; so much if nothing is known: all count the same

    def of(self, lexeme: str) -> float:
        return self.shares.get(lexeme, self.rare)

    def rarest(self, lexemes: Sequence[str], chunks: int) -> Sequence[str]:
        """Of lexemes, the rarest first, those that about so many chunks have; one at least."""
        having = 0.0
        for number, one in enumerate(lexemes):
            having += self.of(one) * self.chunks
            if number and having > chunks:
                return lexemes[:number]
        return lexemes


def _read_shares(row: Any) -> Shares:
    *each, least, _ = row["shares"]
    # A word of every chunk counts next to nothing, but those with it come before those without.
    shares = {word: min(share, 0.999) for word, share in zip(row["words"], each, strict=True)}
    return Shares(row["chunks"], shares, least / 2)


def _bound(values: list[Any], value: Any) -> str:
    """The parameter that has this value from now on."""
    values.append(value)
    return f"${len(values)}"


def _as_query(lexeme: str) -> str:
    """A lexeme as a query of its own, as it is written."""
    doubled = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{doubled}'"


def split_identifiers(text: str) -> str:
    """The text, and behind it the parts of the identifiers in it."""
    parts = [" ".join(_PARTS.findall(word)) for word in _IDENTIFIER.findall(text)]
    return " ".join([text, *parts]) if parts else text


def _ways(query: Query) -> tuple[str, ...]:
    return ("semantic", "keyword") if query.mode == "hybrid" else (query.mode,)


def _where(filter: Filter) -> tuple[str, list[Any]]:
    """A condition, and the values of its parameters."""
    conditions = ["true"]
    values: list[Any] = []

    def add(condition: str, value: Any) -> None:
        values.append(value)
        conditions.append(condition.format(f"${len(values)}"))

    if filter.tenant is not None:
        add("tenant = {}::text", filter.tenant)
    for column, wanted in (
        ("collection", filter.collections),
        ("source", filter.sources),
    ):
        if wanted:
            add(column + " = ANY ({}::text[])", list(wanted))
    if filter.languages:
        wanted_languages = list(filter.languages)
        add("(language = ANY ({0}::text[]) OR other_languages && {0}::text[])", wanted_languages)
    if filter.branch is not None:
        add("{}::text = ANY (branches)", filter.branch)
    if filter.tags:
        add("tags @> {}::text[]", list(filter.tags))
    if filter.path is not None:
        add(
            f"(uri ~ {{0}}::text OR {_any_other('uris', 'other ~ {0}::text')})",
            to_regex(filter.path),
        )
    if filter.since is not None or filter.until is not None:
        within = "{0} >= ({1}::double precision[])[1] AND {0} <= ({1}::double precision[])[2]"
        since = -math.inf if filter.since is None else filter.since
        until = math.inf if filter.until is None else filter.until
        first, other = within.format("date", "{0}"), within.format("other", "{0}")
        add(f"({first} OR {_any_other('dates', other)})", [since, until])
    return " AND ".join(conditions), values


def _any_other(what: str, condition: str) -> str:
    return (
        f"(other_{what} <> '{{{{}}}}' AND EXISTS "
        f"(SELECT FROM unnest(other_{what}) AS other WHERE {condition}))"
    )


def _row(point: Point) -> dict[str, Any]:
    row = {"id": point.id, "vector": floats(point.vector), "words": split_identifiers(point.words)}
    return {**payload_of(point), **_labels(point.labels), **row}


def _labels(labels: Labels) -> dict[str, Any]:
    """The first of each in its own column, where an index and the planner know it."""
    return {
        **label_payload(labels),
        "uri": labels.uri,
        "language": labels.language,
        "date": labels.date,
        "other_uris": labels.other_uris,
        "other_languages": labels.other_languages,
        "other_dates": labels.other_dates,
    }


def _plain(row: Any) -> dict[str, Any]:
    several = {
        name: [row[name], *others]
        for name in ("uri", "language", "date")
        if (others := row[f"other_{name}s"])
    }
    return {**row, **several, "content": str(row["content"])}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _table(space: Space) -> str:
    return f"{SCHEMA}.{_quoted(space.name)}"


def _name(space: Space, what: str) -> str:
    """Of an index, where it is made: in the schema of its table."""
    return _quoted(f"{space.name} {what}")


def _index(space: Space, what: str) -> str:
    return f"{SCHEMA}.{_name(space, what)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
