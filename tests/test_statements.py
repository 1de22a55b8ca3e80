"""The rules of the SQL folders: every file is used, both stores have the same ones."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from windrow.db.statements import load_sources, load_statement
from windrow.db.typed import PACKAGES, Dialect, find_statements, typed

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef
SOURCE = Path(__file__).parent.parent / "src/windrow"
QUEUE = SOURCE / "queue"
STORES: tuple[Dialect, ...] = ("sqlite", "postgres")

# Statements one store has and the other does not, each with its reason.
ONLY: dict[str, dict[str, str]] = {
    "sqlite": {
        **dict.fromkeys(
            [
                *("insert_payloads", "replace_payloads", "insert_lease", "start_jobs"),
                *("remove_jobs", "remove_finished", "release_leases", "find_expired"),
                *(
                    "add_counts",
                    "add_events",
                    "drop_expired_leases",
                    "delete_payloads",
                    "delete_errors",
                    "delete_progress",
                ),
                *("add_results", "delete_results", "add_to_groups", "close_group", "cancel_group"),
                "find_results",
                *("unset_roots", "end_groups", "find_editable", "delete_group_notes"),
            ],
            "part of a larger statement there: SQLite can change only one table in each",
        ),
        **dict.fromkeys(
            ("find_live", "find_finished", "find_followers", "list_held"),
            "read under a lock on the rows there: SQLite has one writer and locks no rows",
        ),
        **dict.fromkeys(
            (
                "find_group_keys",
                "find_heads",
                "list_heads",
                "find_lapsed",
                "find_oldest_ready",
                "list_paused_queues",
            ),
            "part of a larger statement there: SQLite decides this in Python",
        ),
        **dict.fromkeys(
            [
                *("find_slots", "drop_slots", "add_slots", "take_places", "is_lane_closed"),
                *("find_held_lane", "list_held_lanes", "drop_unserved"),
            ],
            "part of a larger statement there: SQLite can change only one table in each",
        ),
        **dict.fromkeys(("count_members", "get_results"), "a join there"),
        **dict.fromkeys(
            ("find_migration_table", "find_schema_version", "record_migration"),
            "written beside the lock that guards migrations there",
        ),
        "insert_alike": "one statement there, which takes rows that differ, too",
        "drop_dead_workers": "part of a larger statement there",
        "take_write_lock": "rows are locked there: SQLite locks the whole file",
        "add_sequence": "made with the table there: SQLite makes it with the first insert",
    },
    "postgres": {
        **dict.fromkeys(
            ("complete_jobs", "complete_and_claim"),
            "round trips cost there: the commonest end of a run is one statement",
        ),
        "insert_job": "starting a large statement costs there: most jobs come one by one",
        "insert_many": "an INSERT inside a query there: SQLite has a statement for each table",
        **dict.fromkeys(
            [
                *("lock_jobs", "lock_finished", "lock_groups", "lock_blobs", "lock_parcel"),
                "find_roots",
            ],
            "rows are locked there: SQLite has one writer",
        ),
        **dict.fromkeys(
            ("take_group_keys", "keep_group_keys"),
            "one statement there: SQLite decides this in Python",
        ),
        **dict.fromkeys(
            ("delete_jobs", "edit_payload", "get_jobs", "find_blockers"),
            "one statement there: SQLite puts it together from smaller ones",
        ),
        **dict.fromkeys(
            ("count_jobs", "fold_counts"), "counts are deltas there: SQLite keeps totals"
        ),
        **dict.fromkeys(
            ("lock_limits", "lock_bounds"),
            "rows are locked there: SQLite has one writer",
        ),
        "add_limits": "there must be a row to lock there: SQLite has one writer",
        "count_slots": "one statement there: SQLite puts it together from smaller ones",
        **dict.fromkeys(
            [
                *("list_due_leaves", "scan_leaf", "lock_leaf", "probe_leaf", "empty_leaf"),
                *("lock_expired", "prune_jobs", "record_pruning"),
            ],
            "finished jobs lie in leaves by the hour there: SQLite has one table",
        ),
        "list_event_leaves": "events lie in leaves by their time there: SQLite has one table",
        "find_unused_blobs": "written before it is known whether the run may end there",
        "count_own_jobs": "tenants do not see the tally there: SQLite knows no tenants",
        **dict.fromkeys(
            [
                *("add_sleeper", "remove_sleeper", "add_waiters", "add_reader", "pass_commits"),
                "find_channel",
                "send_notice",
            ],
            "who sleeps is told by NOTIFY there: SQLite's processes look at the file",
        ),
        "find_history": "rows of a UNION cannot be locked there",
        "find_keys": "what finds holders for inserts takes whole rows there",
        "hold_run": "locked there: SQLite has one writer",
        "save_step": "fenced in the statement itself there: SQLite looks at the job before",
        "remove_moved": "one statement there: SQLite puts it together from smaller ones",
        "remove_groups": "what deletes groups there looks at their expiry",
        **dict.fromkeys(
            [
                *("describe_cron", "find_cron_version", "list_cron_jobs", "put_cron_job"),
                *("put_distant_job", "remove_cron_jobs", "drop_cron_history"),
            ],
            "pg_cron is an extension of Postgres",
        ),
        **dict.fromkeys(
            ("lock_following", "seize_following", "seize_groups", "seize_jobs"),
            "one transaction at a time there: SQLite has one writer",
        ),
        "find_held_by_lane": "one statement there: SQLite puts it together from smaller ones",
        **dict.fromkeys(
            ("share_queues", "share_heads"),
            "a claim of several queues there locks no more than it takes",
        ),
    },
}


def sql_files(package: str) -> list[Path]:
    return sorted((SOURCE / package.partition(".")[2] / "sql").glob("*.sql"))


def names(store: str) -> set[str]:
    return set(load_sources(f"windrow.queue.{store}"))


def test_both_stores_have_the_same_statements_apart_from_the_declared() -> None:
    assert names("sqlite") - names("postgres") == set(ONLY["sqlite"])
    assert names("postgres") - names("sqlite") == set(ONLY["postgres"])


@pytest.mark.parametrize("store", STORES)
def test_every_statement_is_used_and_every_use_has_a_file(store: str) -> None:
    code = "\n".join(path.read_text("utf-8") for path in (QUEUE / store).rglob("*.py"))
    quoted = set(re.findall(r'"([a-z_]+)"', code))
    assert sorted(names(store) - quoted) == [], "files that nothing uses"


@pytest.mark.parametrize("store", STORES)
def test_every_statement_begins_by_saying_what_it_does(store: str) -> None:
    for path in sorted((QUEUE / store / "sql").rglob("*.sql")):
        assert path.read_text("utf-8").startswith("-- "), path.name
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+\.sql", path.name), path.name


@pytest.mark.parametrize("package", PACKAGES)
def test_every_typed_statement_is_used_in_its_package(package: str) -> None:
    folder = SOURCE / package.partition(".")[2]
    code = "\n".join(path.read_text("utf-8") for path in folder.rglob("*.py"))
    quoted = set(re.findall(r'"([a-z_]+)"', code))
    own = {name for name, where in find_statements().items() if where == package}
    assert sorted(own - quoted) == [], "files that nothing uses"
    for path in (folder / "sql").glob("*.sql"):
        assert path.read_text("utf-8").startswith("-- "), path.name


def test_a_statement_has_its_name_in_one_package_only() -> None:
    files = [path.name for package in PACKAGES for path in sql_files(package)]
    queues = {f"{name}.sql" for store in STORES for name in names(store)}
    assert len(files) == len(set(files))
    assert queues & set(files) == set()


def test_the_queue_knows_no_table_of_the_catalog_or_the_accounts() -> None:
    tables = catalog_tables()
    assert {"document", "content", "page", "api_key", "usage"} <= tables
    named = re.compile(rf"\bwindrow[._]({'|'.join(sorted(tables))})\b(?!\.[a-z]+\b *import)")
    found = {
        path.relative_to(QUEUE).as_posix(): match[0]
        for path in [*QUEUE.rglob("*.py"), *QUEUE.rglob("sql/*.sql")]
        if (match := named.search(path.read_text("utf-8")))
    }
    assert found == {}


def test_no_name_in_the_queue_is_of_the_catalog_or_the_accounts() -> None:
    """Pages, sources and calls are other things there too: pages of a listing, waiting calls."""
    words = {"document", "crawl", "credential", "quota", "apikey"}
    allowed = {"documents"}  # the capability, which surfaces ask for
    found = set()
    for path in QUEUE.rglob("*.py"):
        identifiers = {path.stem} | {
            node.name if isinstance(node, ast.ClassDef | DEFINITIONS) else node.id
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ClassDef | DEFINITIONS | ast.Name)
        }
        for identifier in identifiers - allowed:
            parts = re.findall(r"[A-Z]?[a-z]+", identifier.replace("api_key", "apikey"))
            if words & {part.lower().removesuffix("s") for part in parts}:
                found.add(f"{path.relative_to(QUEUE)}: {identifier}")
    assert found == set()


def catalog_tables() -> set[str]:
    """The tables that typed statements write, without the queue's own."""
    written = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) windrow\.(\w+)")
    texts = [path.read_text("utf-8") for package in PACKAGES for path in sql_files(package)]
    return {table for text in texts for table in written.findall(text)} - {"leader"}


@pytest.mark.parametrize("dialect", STORES)
def test_every_typed_statement_is_rendered_whole(dialect: Dialect) -> None:
    for name in find_statements():
        found = typed(name, dialect)
        assert "{" not in found.statement.numbered, name
        given = {*found.takes, *found.each, "now"}
        assert set(found.statement.parameters) <= given, name
        if dialect == "postgres":
            assert not re.search(r"\$\d+(?!\d|::)", found.statement.numbered), name


@pytest.mark.parametrize("store", STORES)
def test_every_part_is_in_several_statements(store: str) -> None:
    for part in (QUEUE / store / "sql/parts").glob("*.sql"):
        files = (QUEUE / store / "sql").glob("*.sql")
        users = [path for path in files if f"{{{part.stem}}}" in path.read_text("utf-8")]
        assert len(users) > 1, part.name


def test_ending_and_claiming_at_once_is_made_of_the_two_statements() -> None:
    """What they count and record is written out in each, and must agree word for word."""
    both, ends, claims = map(parts, ("complete_and_claim", "complete_jobs", "claim_jobs"))
    for name in ends.keys() & claims.keys():
        assert branches(both.pop(name)) == branches(claims.pop(name)) | branches(ends.pop(name))

    assert both == ends | claims


def branches(part: str) -> set[str]:
    """What an INSERT takes the UNION of, each as an INSERT of its own."""
    insert, _, queries = part.partition(" SELECT ")
    return {f"{insert} SELECT {query}" for query in queries.split(" UNION ALL SELECT ")}


def parts(name: str) -> dict[str, str]:
    """The parts of a WITH by name, in one line each."""
    line = " ".join(load_statement("windrow.queue.postgres", name).text.split())
    found = {}
    while match := re.match(r"(?:WITH |, )(\w+) AS (MATERIALIZED )?\(", line):
        end = closing(line, match.end())
        found[match[1]] = f"{match[2] or ''}{line[match.end() : end].strip()}"
        line = line[end + 1 :]
    assert line.startswith(" SELECT"), line
    return found


def closing(line: str, start: int) -> int:
    """Where the bracket is closed that was opened just before `start`."""
    depth = 1
    for place in range(start, len(line)):
        depth += {"(": 1, ")": -1}.get(line[place], 0)
        if depth == 0:
            return place
    raise AssertionError(f"a bracket is not closed: {line[start - 60 :]}")
