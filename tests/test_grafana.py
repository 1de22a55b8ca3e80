"""The dashboard for Grafana: one that can be imported, and asks for nothing that `/metrics` has not
got."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from windrow.queue.job import JobState
from windrow.queue.records import QueueInfo
from windrow.worker import metrics
from windrow.worker.metrics import Metrics

ROOT = Path(__file__).parent.parent
DASHBOARD = json.loads((ROOT / "deploy/grafana/windrow.json").read_text("utf-8"))
ALERTS = ROOT / "docs/operations/monitoring.md"

NAME = re.compile(r"windrow_\w+")
SELECTED = re.compile(r"(windrow_\w+)\{([^}]*)\}")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
OF_PROMETHEUS = {"job", "instance"}  # given by whoever scrapes
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


def exported() -> dict[str, set[str]]:
    """The names that `/metrics` has, each with its labels."""
    registry = CollectorRegistry()
    worker = Metrics(registry)
    known = {
        f"{metric._name}{suffix}": set(metric._labelnames)
        for metric in vars(worker._families).values()
        if hasattr(metric, "_labelnames")
        for suffix in SUFFIXES[metric._type]
    }
    queue = QueueInfo(
        name="q", counts={JobState.READY: 1}, is_paused=False, oldest_ready_at=datetime.now(UTC)
    )
    for family in metrics.families([queue]):
        known[family.name] = labels_of(family)
    return known


def labels_of(family: Metric) -> set[str]:
    return {label for sample in family.samples for label in sample.labels}


def expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for variable in variables():
        if variable["type"] == "query":
            yield variable["query"]["query"]


def variables() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DASHBOARD["templating"]["list"]
    return found


def alerts() -> list[str]:
    rows = re.findall(r"^\|[^|]+\| `([^`]+)`", ALERTS.read_text("utf-8"), re.MULTILINE)
    return [row for row in rows if "windrow_" in row]


@pytest.mark.parametrize("asked", [*expressions(), *alerts()])
def test_dashboard_and_alerts_ask_for_metrics_and_labels_that_there_are(asked: str) -> None:
    known = exported()
    names = set(NAME.findall(asked))
    assert names
    assert names <= known.keys()
    for name, selected in SELECTED.findall(asked):
        assert set(LABEL.findall(re.sub(r'"[^"]*"', '""', selected))) <= known[name] | OF_PROMETHEUS
    grouped = {label.strip() for group in GROUPED.findall(asked) for label in group.split(",")}
    labels = set().union(*(known[name] for name in names))
    assert grouped <= labels | ({"le"} if "_bucket" in asked else set()) | OF_PROMETHEUS
    assert all(asked.count(one) == asked.count(other) for one, other in ("()", "{}", "[]"))


def test_every_metric_is_shown() -> None:
    shown = {name for asked in expressions() for name in NAME.findall(asked)}
    whole = {name for name in exported() if not name.endswith(("_sum", "_count"))}
    assert whole - shown == set()


def test_dashboard_can_be_imported() -> None:
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= DASHBOARD.keys()
    assert DASHBOARD.get("id") is None, "Grafana gives it one"
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    chosen = {variable["name"] for variable in variables()} | {"__rate_interval"}
    for panel in panels:
        assert {"type", "title", "gridPos", "targets", "fieldConfig", "options"} <= panel.keys()
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)
    for asked in expressions():
        assert set(re.findall(r"\$(\w+)", asked)) <= chosen


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
    assert all(place["x"] + place["w"] <= 24 for place in places)
