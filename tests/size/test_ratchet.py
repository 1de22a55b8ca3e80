"""No figure of the source is above its ratchet, and the tool that measures them counts rightly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.size import ratchet
from tests.size.figures import FIGURES, TRACED, small_modules
from tests.size.source import SOURCE, Source, net_sql_lines

MakeSource = Callable[..., Source]


@pytest.fixture(scope="module")
def source() -> Source:
    return Source(SOURCE)


@pytest.fixture
def make_source(tmp_path: Path) -> MakeSource:
    """Call it with the text of each module of a package by its name."""

    def make(**texts: str) -> Source:
        folder = tmp_path / "package"
        folder.mkdir()
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text)
        return Source(folder)

    return make


@pytest.mark.parametrize("name", FIGURES)
def test_no_figure_is_above_its_ratchet(name: str, source: Source) -> None:
    measured = FIGURES[name].measure(source)
    figure = measured if isinstance(measured, int) else len(measured)

    assert ratchet.complaint(name, figure, ratchet.load().get(name)) is None


def test_each_line_of_the_ratchet_has_its_figure() -> None:
    assert ratchet.load().keys() == {*FIGURES, *TRACED}


def test_a_figure_above_its_ratchet_is_a_complaint() -> None:
    assert "modules is 3, above its ratchet of 2" in (ratchet.complaint("modules", 3, 2) or "")
    assert ratchet.complaint("modules", 2, 2) is None
    assert ratchet.complaint("modules", 2, None) == "modules has no line in ratchet.toml"


def test_tightening_lowers_to_a_whole_step_keeps_reasons_and_raises_nothing() -> None:
    text = "# how\nmodules = 9  # a second store\nnet_sql = 1200\ncycle = 3\n"
    figures = {"modules": 7, "net_sql": 1001, "cycle": 4}

    found = ratchet.tightened(text, figures, {"net_sql": 100})

    assert found == "# how\nmodules = 7  # a second store\nnet_sql = 1100\ncycle = 3\n"


def test_blanks_comments_and_docstrings_are_no_net_lines(make_source: MakeSource) -> None:
    text = '"""What it is.\n\nMore.\n"""\n# why\nX = """\n# text\n\n"""\n\ndef f():\n    "Doc."\n'

    [module] = make_source(one=text).modules.values()

    assert module.net_lines == 5  # the four of the string, and the one of `def`


def test_comments_of_both_kinds_are_no_net_lines_of_sql() -> None:
    assert net_sql_lines("-- what\nSELECT 1 -- why\n/* more\n   of it */\n\nFROM t\n") == 2


def test_imports_in_functions_and_for_types_close_a_cycle(make_source: MakeSource) -> None:
    source = make_source(
        a="from package import b",
        b="def f():\n    import package.c",
        c="if TYPE_CHECKING:\n    from package.a import A",
        d="from package.a import A",
    )

    assert source.largest_cycle == ["package.a", "package.b", "package.c"]


def test_a_small_module_counts_while_one_module_imports_it(make_source: MakeSource) -> None:
    source = make_source(
        a="from package import b, c", b="", c="", d="from package.c import C", e="x = 1\n" * 60
    )

    assert small_modules(source) == ["package.b <- package.a"]
