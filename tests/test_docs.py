"""Documents are true: examples run, links lead somewhere, words are explained."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from windrow.queue.job import JobState
from windrow.queue.records import JobRow
from windrow.worker import depths
from windrow.worker.metrics import Metrics

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def fenced(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text("utf-8"), re.DOTALL)


def test_the_readme_example_runs_as_printed(tmp_path: Path) -> None:
    [example] = fenced(ROOT / "README.md", "python")
    statements = [line for line in example.splitlines() if line.strip()]
    assert len(statements) <= 21
    printed = run_program(example, tmp_path)
    assert "{'path': 'cat.png'}" in printed
    assert "<JobState.COMPLETED: 'completed'>: 2" in printed
    assert (tmp_path / "jobs.db").exists()


def test_the_worker_of_the_guide_runs_as_printed(tmp_path: Path) -> None:
    [example] = fenced(ROOT / "docs/guides/workers.md", "python")
    assert "indexed ['0.png', '1.png', '2.png']" in run_program(example, tmp_path)


def test_the_loops_of_ones_own_run_as_printed(tmp_path: Path) -> None:
    by_lease, by_id = fenced(ROOT / "docs/guides/own-loop.md", "python")
    assert "<JobState.COMPLETED: 'completed'>: 1" in run_program(by_lease, tmp_path)
    printed = run_program(by_id, tmp_path)
    assert "analyze for call 7 of org-1" in printed
    assert "<JobState.COMPLETED: 'completed'>: 3" in printed
    assert "<JobState.SCHEDULED: 'scheduled'>: 1" in printed


def test_the_pipeline_of_the_guide_runs_as_printed(tmp_path: Path) -> None:
    [example] = fenced(ROOT / "docs/guides/pipelines.md", "python")
    printed = run_program(example, tmp_path)
    assert "{'id': 1, 'processing_status': 'done', 'words': 4}" in printed
    assert "{'id': 2, 'processing_status': 'done', 'words': None}" in printed
    assert "{'id': 3, 'processing_status': 'done', 'words': 4}" in printed


def test_the_conversion_of_the_guide_runs_as_printed(tmp_path: Path) -> None:
    page, looking = fenced(ROOT / "docs/guides/converting.md", "python")
    printed = run_program(f"{page}\ntext = another = document.markdown * 9\n{looking}", tmp_path)
    assert "See [pots](https://example.org/pots)." in printed
    assert "'links': ['https://example.org/pots']" in printed


def run_program(text: str, folder: Path) -> str:
    """What a program prints, which must end well."""
    return subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ,
    ).stdout


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_page_is_in_the_navigation() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    named = list(_leaves(config["nav"]))
    there = {str(path.relative_to(ROOT / "docs")) for path in ROOT.glob("docs/**/*.md")}

    assert len(named) == len(set(named))
    assert set(named) == there, "mkdocs.yml names the pages of docs/, all of them"


def _leaves(nav: object) -> list[str]:
    match nav:
        case str():
            return [nav]
        case dict():
            return [leaf for one in nav.values() for leaf in _leaves(one)]
        case list():
            return [leaf for one in nav for leaf in _leaves(one)]
    raise TypeError(nav)


def test_concepts_explain_every_state_and_field() -> None:
    text = (ROOT / "docs/concepts.md").read_text("utf-8")
    assert [state for state in JobState if f"`{state}`" not in text] == []
    internal = {"payload", "is_cleaned", "may_exist", "lease_seconds", "retention_seconds"}
    internal |= {"max_hold_seconds"}
    fields = set(JobRow.__struct_fields__) - internal | {"lease", "retention", "max_hold"}
    assert [name for name in sorted(fields) if f"`{name}`" not in text] == []


def test_commands_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for block in fenced(ROOT / "README.md", "sh"):
        for target in re.findall(r"^make (\w+)", block, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_metric_is_in_the_guide() -> None:
    text = (ROOT / "docs/guides/observability.md").read_text("utf-8")
    registry = CollectorRegistry()
    Metrics(registry)
    for family in [*registry.collect(), *depths.families(None)]:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{name}`" in text, name
