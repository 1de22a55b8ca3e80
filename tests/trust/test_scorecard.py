"""The page of guarantees says what was recorded, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trust import scorecard
from tests.trust.promises import PROMISES


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(scorecard.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def keep(fault: str = "kill -9", **changes: object) -> None:
    given = {"store": "sqlite", "jobs": 20_000, "faults": 3, "lost": 0, "doubled": 0, **changes}
    scorecard.record("durable", fault, **given)  # type: ignore[arg-type]


def test_figures_are_on_the_page_with_their_median_and_worst_recovery(folder: Path) -> None:
    keep(recovery=[1.0, 2.0, 9.5], note="lease 2 s")
    text = scorecard.page(scorecard.read(folder))
    row = "| kill -9 | sqlite | 3 | 20,000 | 0 | 0 | 2.00 s / 9.50 s | lease 2 s |"
    assert row in text
    assert "[test_scorecard](../tests/trust/test_scorecard.py)" in text


def test_one_run_is_one_line_whichever_promises_it_was_about(folder: Path) -> None:
    keep(note="whole")
    scorecard.record(
        "group_ends",
        "kill -9",
        store="sqlite",
        jobs=20_000,
        faults=3,
        lost=0,
        doubled=0,
        recovery=[1.0],
        note="with groups",
    )
    text = scorecard.page(scorecard.read(folder))
    assert (
        "| kill -9 | sqlite | 3 | 20,000 | 0 | 0 | 1.00 s / 1.00 s | whole; with groups |" in text
    )
    assert text.count("| kill -9 |") == 1


def test_what_several_promises_note_alike_is_said_once(folder: Path) -> None:
    for promise in ("durable", "group_ends", "limits_hold"):
        scorecard.record(
            promise,
            "simulated",
            store="sqlite",
            jobs=9,
            faults=9,
            lost=0,
            doubled=0,
            note="5 seeds",
        )
    assert "| – | 5 seeds |" in scorecard.page(scorecard.read(folder))


def test_bad_input_is_counted_by_what_was_handed_in_and_taken(folder: Path) -> None:
    scorecard.record_input("names", given=300, taken=20)
    text = scorecard.page(scorecard.read(folder))
    assert "| names | – | 300 | 20 | 0 | 0 | – |  |" in text
    assert next(row for row in text.splitlines() if "Bad input gets" in row).endswith(
        "| 300 | 20 | 0 | 0 |"
    )


def test_the_page_says_how_busy_the_machine_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, load in enumerate((1.0, 3.0, 20.4)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0.0, 0.0))
        keep(fault=f"fault {number}")
    text = scorecard.page(scorecard.read(folder))
    assert "was 3 in the median and at most 20:" in text


def test_a_later_run_takes_the_place_of_an_earlier_one(folder: Path) -> None:
    keep(lost=0)
    keep(lost=4)
    [kept] = scorecard.read(folder)
    assert kept.lost == 4


def test_the_checkers_name_of_a_promise_is_as_good_and_another_one_is_an_error(
    folder: Path,
) -> None:
    scorecard.record("nothing_lost", "x", store="postgres", jobs=1, faults=1, lost=0, doubled=0)
    assert scorecard.read(folder)[0].promise == "durable"
    with pytest.raises(KeyError):
        scorecard.record("no_such", "x", store="postgres", jobs=1, faults=1, lost=0, doubled=0)


def test_others_stand_beside_us_and_not_among_our_promises(folder: Path) -> None:
    keep(beside=True)
    keep(system="another", beside=True, lost=7, stuck=2)
    text = scorecard.page(scorecard.read(folder))
    ours, beside = text.split("## Beside others")
    assert "20,000" not in ours
    assert beside.index("| windrow |") < beside.index("| another | 3 | 20,000 | 7 | 2 |")


def test_without_the_variable_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(scorecard.FOLDER_VARIABLE, raising=False)
    keep()
    assert not list(tmp_path.iterdir())


def test_every_test_that_a_promise_names_is_there() -> None:
    named = {test for promise in PROMISES for test in promise.tests}
    assert [test for test in sorted(named) if not (scorecard.ROOT / test).exists()] == []


def test_the_page_in_the_docs_is_what_the_figures_say() -> None:
    figures = scorecard.read(scorecard.ROOT / "tests" / "trust" / "figures")

    assert scorecard.PAGE.read_text("utf-8") == scorecard.page(figures)
