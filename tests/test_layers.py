"""Imports point downward only, and database drivers stay inside their stores.

The two tables below are the contract: a new part of the package gets a place in LAYERS, a new
driver or a module that must touch one gets a place in DRIVERS.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "windrow"

# Lowest first. A part may import its own layer and those below it, never one above. `windrow`
# itself, the public face, re-exports what lies below: only a surface may import from it.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset(
        {"errors", "extras", "settings", "clock", "events", "ids", "logging", "patterns"}
        | {"redaction"}
    ),
    frozenset({"db"}),
    frozenset({"queue", "catalog", "accounts"}),
    frozenset({"worker"}),
    frozenset({"ingest", "index", "search"}),
    frozenset({"pipelines"}),
    frozenset({"services"}),
    frozenset({"cli", "api", "mcp", "web", "integrations", "windrow"}),
    frozenset({"testing"}),
)

# Parts of one layer that never import each other: what joins them is a job's transaction.
APART = frozenset({"queue", "catalog", "accounts"})

# These put the package together, so they may import anything.
EXEMPT = frozenset({"__init__.py", "__main__.py"})

# Driver -> the only places in db/ and queue/ that may import it. db/transactions.py adapts a
# connection that the caller opened with a driver of their own choice.
DRIVERS: dict[str, tuple[str, ...]] = {
    "sqlite3": ("db/sqlite/", "queue/sqlite/", "db/transactions.py"),
    "asyncpg": ("db/postgres/", "queue/postgres/", "db/transactions.py"),
    "psycopg": ("db/transactions.py",),
    "sqlalchemy": ("db/transactions.py",),
    "aio_pika": ("queue/rabbitmq/",),
    "bullmq": ("queue/bullmq/",),
    "redis": ("queue/bullmq/",),
}


def test_imports_point_downward_only() -> None:
    assert list(layer_violations(SOURCE)) == []


def test_only_the_stores_import_their_drivers() -> None:
    assert list(driver_violations(SOURCE)) == []


@pytest.mark.parametrize(
    ("path", "code", "complaint"),
    [
        ("queue/bad.py", "from windrow.services.jobs import x", "queue/bad.py imports services"),
        ("queue/bad.py", "import windrow.cli.main", "queue/bad.py imports cli"),
        ("queue/bad.py", "from windrow.catalog import Catalog", "queue/bad.py imports catalog"),
        ("catalog/bad.py", "from windrow.queue.job import Job", "catalog/bad.py imports queue"),
        ("db/bad.py", "from windrow.queue.job import Job", "db/bad.py imports queue"),
        ("queue/bad.py", "from windrow import worker", "queue/bad.py imports worker"),
        ("queue/bad.py", "from windrow import Queue", "queue/bad.py imports windrow"),
        ("queue/sqlite/bad.py", "from ...cli import main", "queue/sqlite/bad.py imports cli"),
        ("queue/__init__.py", "from ..worker import x", "queue/__init__.py imports worker"),
        ("errors.py", "def f():\n    import windrow.queue", "errors.py imports queue"),
        ("services/bad.py", "import windrow.testing", "services/bad.py imports testing"),
        ("mystery/part.py", "", "mystery has no layer"),
        ("queue/bad.py", "from windrow.mystery import x", "mystery has no layer"),
    ],
)
def test_upward_import_is_reported(tmp_path: Path, path: str, code: str, complaint: str) -> None:
    _write(tmp_path, path, code)

    (violation,) = layer_violations(tmp_path)

    assert complaint in violation


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("cli/jobs.py", "from windrow.services.jobs import list_jobs"),
        ("cli/serve.py", "from windrow.api.app import app\nfrom windrow import __version__"),
        ("queue/queue.py", "import asyncio\nfrom windrow.queue.job import Job"),
        ("queue/sqlite/store.py", "from ..job import Job\nfrom ...errors import StoreError"),
        ("settings.py", "from windrow.errors import ConfigError"),
        ("__init__.py", "from windrow.worker.worker import Worker"),
        ("__main__.py", "from windrow.cli.main import main"),
    ],
)
def test_downward_import_is_accepted(tmp_path: Path, path: str, code: str) -> None:
    _write(tmp_path, path, code)

    assert list(layer_violations(tmp_path)) == []


@pytest.mark.parametrize(
    ("path", "code", "allowed"),
    [
        ("db/sqlite/connection.py", "import sqlite3", True),
        ("queue/postgres/listen.py", "from asyncpg.exceptions import PostgresError", True),
        ("db/transactions.py", "def f():\n    import psycopg", True),
        ("queue/queue.py", "import sqlite3", False),
        ("queue/sqlite/store.py", "import asyncpg", False),
        ("queue/postgres/store.py", "from sqlite3 import Row", False),
    ],
)
def test_driver_is_accepted_only_where_declared(
    tmp_path: Path, path: str, code: str, allowed: bool
) -> None:
    _write(tmp_path, path, code)

    assert (list(driver_violations(tmp_path)) == []) is allowed


def layer_violations(source: Path) -> Iterator[str]:
    for path, module in _modules(source):
        part = Path(module.parts[0]).stem
        if module.as_posix() in EXEMPT:
            continue
        if _layer(part) is None:
            yield f"{part} has no layer: {module} needs it in LAYERS of tests/test_layers.py."
            continue
        for target in sorted({_part(name) for name in _imports(path, module)} - {"", part}):
            yield from _judge(module, part, target)


def _judge(module: Path, part: str, target: str) -> Iterator[str]:
    own, other = _layer(part), _layer(target)
    if other is None:
        yield f"{target} has no layer, and {module} imports it: see LAYERS in tests/test_layers.py."
    elif own is not None and other > own:
        yield f"{module} imports {target}, but {part} lies below {target}: imports point downward."
    elif {part, target} <= APART:
        yield f"{module} imports {target}: {part} and {target} never import each other."


def driver_violations(source: Path) -> Iterator[str]:
    for path, module in _modules(source):
        if module.parts[0] not in ("db", "queue"):
            continue
        for driver in sorted({name.split(".")[0] for name in _imports(path, module)} & {*DRIVERS}):
            if not module.as_posix().startswith(DRIVERS[driver]):
                places = " and ".join(DRIVERS[driver])
                yield f"{module} imports {driver}, which belongs to {places} alone."


def _modules(source: Path) -> Iterator[tuple[Path, Path]]:
    for path in sorted(source.rglob("*.py")):
        yield path, path.relative_to(source)


def _imports(path: Path, module: Path) -> Iterator[str]:
    """Absolute dotted names of all that a module imports, wherever in it the import stands."""
    package = ("windrow", *module.parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += [node.module] if node.module else []
            yield from (".".join([*base, alias.name]) for alias in node.names)


def _part(name: str) -> str:
    """The part of Windrow an imported name belongs to; empty for other people's packages."""
    root, _, rest = name.partition(".")
    if root != "windrow":
        return ""
    first, _, deeper = rest.partition(".")
    is_module = deeper or _layer(first) is not None
    return first if is_module else "windrow"


def _layer(part: str) -> int | None:
    return next((rank for rank, parts in enumerate(LAYERS) if part in parts), None)


def _write(source: Path, path: str, code: str) -> None:
    module = source / path
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(code)
