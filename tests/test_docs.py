"""Documents are true: examples run, links lead somewhere, words are explained."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry

from windrow.queue.job import JobState
from windrow.queue.records import JobRow
from windrow.worker import metrics
from windrow.worker.metrics import Metrics

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
LINK = re.compile(r"\]\(([^)#: ]*)(?:#([^)]*))?\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def fenced(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text("utf-8"), re.DOTALL)


def test_the_readme_example_runs_as_printed(tmp_path: Path) -> None:
    [example] = fenced(ROOT / "README.md", "python")
    statements = [line for line in example.splitlines() if line.strip()]
    assert len(statements) <= 21
    printed = run_program(example, tmp_path)
    assert "{'path': 'cat.png'}" in printed
    assert "'completed': 2" in printed
    assert (tmp_path / "jobs.db").exists()


def test_the_worker_of_the_guide_runs_as_printed(tmp_path: Path) -> None:
    by_name, by_handler = fenced(ROOT / "docs/guides/workers.md", "python")
    assert "indexed ['0.png', '1.png', '2.png']" in run_program(by_name, tmp_path)
    assert run_program(by_handler, tmp_path) == "cat.png\n"


def test_the_loops_of_ones_own_run_as_printed(tmp_path: Path) -> None:
    by_lease, by_id = fenced(ROOT / "docs/guides/own-loop.md", "python")
    assert "'completed': 1" in run_program(by_lease, tmp_path)
    printed = run_program(by_id, tmp_path)
    assert "analyze for call 7 of org-1" in printed
    assert "'completed': 3" in printed
    assert "'scheduled': 1" in printed


def test_the_pipeline_of_the_guide_runs_as_printed(tmp_path: Path) -> None:
    [example] = fenced(ROOT / "docs/guides/pipelines.md", "python")
    printed = run_program(example, tmp_path)
    assert "{'id': 1, 'processing_status': 'done', 'words': 4}" in printed
    assert "{'id': 2, 'processing_status': 'done', 'words': None}" in printed
    assert "{'id': 3, 'processing_status': 'done', 'words': 4}" in printed


def test_the_conversion_of_the_guide_runs_as_printed(tmp_path: Path) -> None:
    [page] = fenced(ROOT / "docs/guides/converting.md", "python")
    printed = run_program(page, tmp_path)
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


def test_links_between_documents_lead_somewhere() -> None:
    dead = [
        f"{path.relative_to(ROOT)}: {target}#{anchor}"
        for path in DOCUMENTS
        for target, anchor in LINK.findall(FENCED.sub("", path.read_text("utf-8")))
        if not leads_somewhere(path, target, anchor)
    ]
    assert dead == []


def leads_somewhere(path: Path, target: str, anchor: str) -> bool:
    file = path.parent / target if target else path
    return file.exists() and (not anchor or anchor in anchors_of(file))


@cache
def anchors_of(path: Path) -> set[str]:
    """What the headings of a document are called in links, on the site and elsewhere."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", one.lower())) for one in headings}


def test_pages_of_the_site_link_to_no_page_outside_it() -> None:
    """Other files are laid beside the site; a document that is no page has no address there."""
    docs = ROOT / "docs"
    outside = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in docs.glob("**/*.md")
        for target, _ in LINK.findall(path.read_text("utf-8"))
        if target.endswith(".md") and not (path.parent / target).resolve().is_relative_to(docs)
    ]
    assert outside == []


def test_a_link_to_a_heading_that_is_not_there_is_found() -> None:
    concepts = ROOT / "docs/concepts.md"
    assert leads_somewhere(concepts, "", "events")
    assert not leads_somewhere(concepts, "", "no-such-heading")
    assert not leads_somewhere(concepts, "guides/nowhere.md", "")


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
    for family in [*registry.collect(), *metrics.families(None)]:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{name}`" in text, name
