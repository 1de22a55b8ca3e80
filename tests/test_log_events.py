"""The events of the log are stable: the table of the guide has each, with its level and fields."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.test_docs import ROOT
from tests.test_layers import SOURCE

GUIDE: Final = ROOT / "docs/guides/logging.md"
LEVELS: Final = {"debug", "info", "warning", "error", "critical"}
# Where every record has an event: what an operator may want to alert on.
COMPLETE: Final = ("worker", "services/working.py", "services/serving.py")
# What a module calls fields that several of its events share, and what the guide calls them.
SHARED: Final = {
    ("worker/run_log.py", "fields"): "run",
    ("worker/run_log.py", "_error_fields"): "failure",
    ("queue/crash_log.py", "fields"): "crash",
}
ROW: Final = re.compile(r"^\| `([\w.]+)` \| ([\w, ]+) \| ([^|]*) \|", re.MULTILINE)


@dataclass
class Event:
    levels: set[str] = field(default_factory=set)
    fields: set[str] = field(default_factory=set)


def test_the_table_of_the_guide_is_what_the_code_logs() -> None:
    documented = {
        name: Event(set(levels.split(", ")), set(re.findall(r"[\w]+", fields)))
        for name, levels, fields in ROW.findall(GUIDE.read_text("utf-8"))
    }
    assert documented == events_of_the_code()


def test_the_guide_lists_the_shared_fields() -> None:
    text = GUIDE.read_text("utf-8")
    for module, function, name in (
        ("worker/run_log.py", "_fields", "run"),
        ("worker/run_log.py", "_error_fields", "failure"),
        ("queue/crash_log.py", "_log_crash", "crash"),
    ):
        listed = re.search(rf"^- \*{name}\*: (.*?)(?=\n- |\n\n)", text, re.MULTILINE | re.DOTALL)
        assert listed, name
        assert set(re.findall(r"`(\w+)`", listed[1])) == keys_of(module, function)


def test_every_record_of_a_worker_has_an_event() -> None:
    without = [
        f"{path.relative_to(SOURCE)}:{call.lineno}"
        for part in COMPLETE
        for path in ([SOURCE / part] if part.endswith(".py") else sorted(SOURCE.glob(f"{part}/*")))
        if path.suffix == ".py"
        for call in calls_of(ast.parse(path.read_text("utf-8")))
        if is_logged(call) and not any(keyword.arg == "extra" for keyword in call.keywords)
    ]
    assert without == []


def events_of_the_code() -> dict[str, Event]:
    found: defaultdict[str, Event] = defaultdict(Event)
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        tree = ast.parse(path.read_text("utf-8"))
        for call in calls_of(tree):
            if isinstance(call.func, ast.Name) and call.func.id == "event":
                [name] = call.args
                found[text_of(name)].fields |= {field_of(module, one) for one in call.keywords}
                found[text_of(name)].levels |= set(levels_of(tree, call))
    return dict(found)


def calls_of(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def text_of(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant), ast.dump(node)
    return str(node.value)


def is_logged(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "logger"
        and call.func.attr in LEVELS
    )


def field_of(module: str, keyword: ast.keyword) -> str:
    if keyword.arg is not None:
        return keyword.arg
    value = keyword.value.func if isinstance(keyword.value, ast.Call) else keyword.value
    assert isinstance(value, ast.Name), module
    return SHARED[module, value.id]


def levels_of(tree: ast.AST, made: ast.Call) -> Iterator[str]:
    """The levels of the records whose `extra` is this event, or a variable that has it."""
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.value is made
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in filter(is_logged, calls_of(tree)):
        for keyword in call.keywords:
            value = keyword.value
            is_named = isinstance(value, ast.Name) and value.id in names
            if keyword.arg == "extra" and (value is made or is_named):
                assert isinstance(call.func, ast.Attribute)
                yield call.func.attr


def keys_of(module: str, function: str) -> set[str]:
    """The keys of all dictionaries that a function writes down."""
    tree = ast.parse(Path(SOURCE / module).read_text("utf-8"))
    [made] = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    return {
        text_of(node)
        for part in ast.walk(made)
        for node in (
            part.keys
            if isinstance(part, ast.Dict)
            else [part.slice]
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)
            else []
        )
        if isinstance(node, ast.Constant)
    }
