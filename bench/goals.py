"""The goals, as ratios inside one run, and whether they are met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench import convert, crawl, knowledge
from bench.results import Results, Spread, ratio, spread

PLAIN, BATCHES, RAW = "windrow postgres", "windrow postgres, batches", "windrow postgres, raw loop"
FLOOR = "floor postgres"
SQLITE, SQLITE_BATCHES = "windrow sqlite", "windrow sqlite, batches"
SQLITE_FLOOR = "floor sqlite"
DRAIN, ONE, BULK = "drain_per_second", "one_per_second", "bulk_per_second"


@dataclass(frozen=True)
class Goal:
    measure: str
    least: float | None
    find: Callable[[Results], Spread | None]
    most: float | None = None

    @property
    def text(self) -> str:
        return f"≥ {self.least:g}" if self.least is not None else f"≤ {self.most:,g}"

    def is_met(self, found: Spread) -> bool:
        if self.least is not None:
            return found.median >= self.least
        return self.most is not None and found.median <= self.most


def of(
    over: str, over_measure: str, under: str, under_measure: str | None = None
) -> Callable[[Results], Spread | None]:
    """The ratio of two contestants, or of two situations of one."""
    return lambda results: ratio(
        results, (over, over_measure), (under, under_measure or over_measure)
    )


def best_peer(results: Results) -> Spread | None:
    """Beside the fastest of all that have a worker (PGMQ has none, litequeue neither)."""
    own = ("windrow", "floor", "pgmq", "litequeue")
    names = [one.name for one in results.measured if not one.name.startswith(own)]
    found = [ratio(results, (PLAIN, DRAIN), (name, DRAIN)) for name in names]
    return min(filter(None, found), key=lambda one: one.median, default=None)


def better_of_batches(results: Results) -> Spread | None:
    found = [ratio(results, (name, DRAIN), ("pgmq", DRAIN)) for name in (BATCHES, RAW)]
    return max(filter(None, found), key=lambda one: one.median, default=None)


def wal_per_job(results: Results) -> Spread | None:
    measured = results.find(PLAIN)
    if measured is None:
        return None
    enqueue, drain = (measured.figures.get(name, []) for name in ("wal_enqueue", "wal_drain"))
    return Spread.of([one + other for one, other in zip(enqueue, drain, strict=True)])


def crawl_goals(name: str) -> list[Goal]:
    return [
        Goal(f"crawl, {name} ÷ Scrapy, pages/s", 1.0, of(name, "pages_per_second", crawl.SCRAPY)),
        Goal(
            f"crawl, {name} ÷ Scrapy, CPU per page",
            None,
            of(name, "page_cpu_ms", crawl.SCRAPY),
            most=1.2,
        ),
    ]


def knowledge_goals() -> list[Goal]:
    """Of the embedded index, at about 50,000 chunks."""

    def found(measure: str) -> Callable[[Results], Spread | None]:
        return lambda results: spread(results, knowledge.EDGE, measure)

    return [
        Goal("files ingested/s, 2 KiB, two cores", 500, found("files_per_second")),
        Goal("hybrid search in the process, p50 ms", None, found("search_p50_ms"), most=3),
        Goal("hybrid search through the owner, p50 ms", None, found("owner_p50_ms"), most=8),
        Goal("second scan of 20,000 files, s", None, found("rescan_seconds"), most=5),
    ]


GOALS = [
    Goal("Postgres drain, plain handlers ÷ UPDATE floor", 0.7, of(PLAIN, DRAIN, FLOOR)),
    Goal("Postgres drain, plain handlers ÷ PgQueuer", 2.5, of(PLAIN, DRAIN, "pgqueuer")),
    Goal("Postgres drain, plain handlers ÷ the fastest peer with a worker", 1.0, best_peer),
    Goal("Postgres drain, batches or raw loop ÷ PGMQ", 1.0, better_of_batches),
    Goal("Postgres bulk enqueue ÷ COPY", 0.7, of(PLAIN, BULK, FLOOR)),
    Goal("Postgres single enqueue ÷ INSERT, worker busy", 0.8, of(PLAIN, "one_busy", FLOOR, ONE)),
    Goal(
        "Postgres single enqueue ÷ INSERT, worker to be woken",
        0.5,
        of(PLAIN, "one_woken", FLOOR, ONE),
    ),
    Goal("SQLite drain, batches ÷ floor", 0.5, of(SQLITE_BATCHES, DRAIN, SQLITE_FLOOR)),
    Goal("SQLite drain, plain handlers ÷ floor", 0.25, of(SQLITE, DRAIN, SQLITE_FLOOR)),
    Goal("SQLite drain, plain handlers ÷ Huey", 8.0, of(SQLITE, DRAIN, "huey")),
    Goal(
        "SQLite single enqueue, 8 threads ÷ single commits",
        5.0,
        of(SQLITE, "one_threads", SQLITE_FLOOR, ONE),
    ),
    Goal(
        "drain behind {waiting:,} waiting ÷ without", 0.9, of(PLAIN, "drain_waiting", PLAIN, DRAIN)
    ),
    Goal("drain, snapshot held open ÷ without", 0.8, of(PLAIN, "drain_snapshot", PLAIN, DRAIN)),
    Goal(
        "claim behind {in_flight:,} active ÷ empty",
        None,
        of(RAW, "claim_ms_active", RAW, "claim_ms"),
        most=1.2,
    ),
    Goal(
        "claim behind {waiting:,} scheduled ÷ empty",
        None,
        of(RAW, "claim_ms_scheduled", RAW, "claim_ms"),
        most=1.2,
    ),
    Goal("WAL on Postgres, bytes per job", None, wal_per_job, most=1600),
    Goal("two worker processes ÷ one, Postgres", 1.3, of(PLAIN, "drain_two", PLAIN, DRAIN)),
    *crawl_goals(crawl.SQLITE),
    *crawl_goals(crawl.POSTGRES),
    Goal(
        "conversion, CPU ms per page of 25 kB",
        None,
        lambda results: spread(results, "windrow", "convert_ms"),
        most=convert.GOAL_MS,
    ),
    Goal(
        "conversion ÷ trafilatura, CPU",
        None,
        of("windrow", "convert_ms", convert.TRAFILATURA),
        most=1.0,
    ),
    *knowledge_goals(),
]


def judge(results: Results) -> list[tuple[str, str, str, str]]:
    """(measure, goal, found, met or not) of each goal."""
    rows = []
    waiting = results.options["waiting"] or 1_000_000
    for goal in GOALS:
        found = goal.find(results)
        measure = goal.measure.format_map({**results.options, "waiting": waiting})
        if found is None:
            rows.append((measure, goal.text, "–", "not measured"))
            continue
        digits = 0 if found.median >= 100 else 2
        told = f"{found.median:,.{digits}f} ({found.least:,.{digits}f}–{found.most:,.{digits}f})"
        rows.append((measure, goal.text, told, "met" if goal.is_met(found) else "not met"))
    return rows
