"""The benchmarks' own book-keeping: a run that lost or doubled a job has no figures, ratios are
taken inside a round, and every contestant that was not measured is named."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from bench import chart, contestant, crawl, drain, goals, record, report, rounds
from bench.results import Measured, Results, latest, ratio


def results_of(**drains: list[float]) -> Results:
    measured = [
        Measured(name, "postgres", "defaults", {}, 100, {"drain_per_second": values})
        for name, values in drains.items()
    ]
    options = {"rounds": 3, "waiting": 0, "in_flight": 20_000}
    return Results("2026-01-01T00:00:00Z", {"cores": "2"}, options, {}, measured)


def runs_of(*numbers: int) -> record.Runs:
    return record.Runs([(number, float(moment)) for moment, number in enumerate(numbers)])


def test_a_run_in_which_every_job_began_once_is_right() -> None:
    runs_of(2, 0, 1).check(3)
    runs_of(0, 1).check(10, all_of_them=False)


@pytest.mark.parametrize(
    ("numbers", "why"),
    [((0, 1), "1 of 3 jobs were lost"), ((0, 1, 2, 1), "more than once"), ((0, 1, 7), "nobody")],
)
def test_a_run_that_lost_doubled_or_invented_a_job_is_wrong(
    numbers: tuple[int, ...], why: str
) -> None:
    with pytest.raises(record.WrongRun, match=why):
        runs_of(*numbers).check(3)


def test_what_handlers_write_down_is_read_in_the_order_of_their_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(record.FILE, str(tmp_path / "record"))
    record.opened.cache_clear()
    record.note(1)
    record.note_many([2, 3])
    record.note_text('{"n": 4}')
    record.opened.cache_clear()
    assert [number for number, _ in record.Runs.read(tmp_path / "record").began] == [1, 2, 3, 4]


def test_a_part_that_does_not_end_is_ended_and_told() -> None:
    forever = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(record.WrongRun, match="bulk did not end within 0 s"):
        drain.read_answer("bulk", forever, 0.2)


def test_what_a_part_prints_last_is_its_answer() -> None:
    prints = [sys.executable, "-c", "print('connected'); print('[1, 2]')"]
    assert drain.read_answer("bulk", prints, 30.0) == [1, 2]


def test_a_ratio_is_taken_inside_each_round() -> None:
    results = results_of(ours=[10, 30, 20], theirs=[10, 10, 40])
    found = ratio(results, ("ours", "drain_per_second"), ("theirs", "drain_per_second"))
    assert found is not None
    assert (found.median, found.least, found.most) == (1.0, 0.5, 3.0)


def test_goals_say_met_not_met_or_not_measured() -> None:
    results = results_of(
        **{"windrow postgres": [75.0], "floor postgres": [100.0], "pgqueuer": [50.0]}
    )
    told = {row[0]: row[3] for row in goals.judge(results)}
    assert told["Postgres drain, plain handlers ÷ UPDATE floor"] == "met"
    assert told["Postgres drain, plain handlers ÷ PgQueuer"] == "not met"
    assert told["SQLite drain, plain handlers ÷ Huey"] == "not measured"


def test_what_was_measured_of_some_only_is_told_too() -> None:
    results = results_of(**{"windrow postgres": [75.0]})
    results.measured[0].figures["drain_snapshot"] = [60.0, 80.0]
    told = "| windrow postgres | drain_snapshot | 70.0 | 60.0 | 80.0 |"
    assert told in report.as_markdown(results)


def test_who_has_no_figures_is_named_with_the_reason() -> None:
    results = results_of(**{"floor postgres": [100.0]})
    results.measured.append(Measured("awa", "postgres", "", {}, 100, absent="not installed: awa"))
    assert "not installed: awa" in report.as_text(results)
    assert "| awa | not installed: awa |" in report.as_markdown(results)


def test_a_contestant_whose_package_is_not_there_is_described_as_absent() -> None:
    class Nobody:
        name = "nobody"
        store = "postgres"
        packages = ("no-such-package",)
        settings = ""
        has_bulk = False

    described = rounds.describe(Nobody(), 10)  # type: ignore[arg-type]
    assert described.absent == "not installed: no-such-package"


def test_the_chart_has_a_bar_for_each_contestant() -> None:
    drawn = ElementTree.fromstring(chart.draw(results_of(ours=[10, 30], theirs=[1000])))
    bars = [one for one in drawn.iter() if one.tag.endswith("rect")]
    assert len(bars) == 1 + 2  # the background is one


def test_all_contestants_can_be_listed_without_their_libraries() -> None:
    found = contestant.contestants()
    assert {"floor postgres", "windrow postgres", "pgqueuer", "pgmq", "huey"} <= set(found)
    assert all(one.settings for one in found.values())


def pages_of(**figures: dict[str, list[float]]) -> list[Measured]:
    return [Measured(name, "", "", {}, 10, found) for name, found in figures.items()]


def test_crawls_and_conversion_are_told_with_their_goals() -> None:
    results = results_of(**{"windrow postgres": [75.0]})
    results.pages = pages_of(
        **{
            crawl.SQLITE: {"pages_per_second": [120.0, 90.0], "page_cpu_ms": [3.0, 3.0]},
            crawl.SCRAPY: {"pages_per_second": [100.0, 100.0], "page_cpu_ms": [2.0, 2.0]},
            "windrow": {"convert_ms": [1.0, 1.2]},
        }
    )
    text = report.as_markdown(results)
    assert "| windrow, SQLite | 105 | 3.00 | – | – | – |" in text
    told = {row[0]: row[2:] for row in goals.judge(results)}
    assert told["crawl, windrow, SQLite ÷ Scrapy, pages/s"] == ("1.05 (0.90–1.20)", "met")
    assert told["crawl, windrow, SQLite ÷ Scrapy, CPU per page"] == ("1.50 (1.50–1.50)", "not met")
    assert told["crawl, windrow, Postgres ÷ Scrapy, pages/s"] == ("–", "not measured")
    assert told["conversion, CPU ms per page of 25 kB"][1] == "met"


def test_what_the_last_run_did_not_measure_is_taken_from_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.results.FOLDER", tmp_path)
    jobs, pages = results_of(ours=[1.0]), results_of()
    jobs.began_at, pages.began_at = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    pages.pages = pages_of(Scrapy={"pages_per_second": [1.0]})
    for run in (jobs, pages):
        run.save()
    last = latest()
    assert last is not None
    assert (last.began_at, [one.name for one in last.pages]) == (jobs.began_at, ["Scrapy"])


def test_slow_contestants_drain_fewer_jobs_and_the_table_says_how_many() -> None:
    found = contestant.contestants()
    assert rounds.describe(found["windrow postgres"], 50_000).jobs == 50_000
    assert rounds.describe(found["procrastinate"], 50_000).jobs == 1_000
    results = results_of(procrastinate=[400.0])
    assert "| procrastinate | 100 | –" in report.as_markdown(results)
