"""sqlite:// URLs: a file in a folder that is there, or a clear refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.db.sqlite.location import Location, parse_url
from windrow.errors import ConfigError


def test_three_slashes_are_a_relative_path() -> None:
    assert parse_url("sqlite:///jobs.db") == Location("jobs.db")


def test_four_slashes_are_an_absolute_path(tmp_path: Path) -> None:
    assert parse_url(f"sqlite:///{tmp_path}/jobs.db").path == f"{tmp_path}/jobs.db"


def test_percent_signs_spell_characters(tmp_path: Path) -> None:
    assert parse_url(f"sqlite:///{tmp_path}/my%20jobs%3F.db").path == f"{tmp_path}/my jobs?.db"


@pytest.mark.parametrize("chosen", ["full", "normal", "NORMAL"])
def test_synchronous_can_be_chosen(chosen: str) -> None:
    location = parse_url(f"sqlite:///jobs.db?synchronous={chosen}")

    assert location.synchronous == chosen.lower()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("sqlite://", "must be durable"),
        ("sqlite:///", "must be durable"),
        ("sqlite:///:memory:", "must be durable"),
        ("sqlite://jobs.db", "three slashes"),
        ("sqlite:///no/such/folder/jobs.db", "'no/such/folder' does not exist"),
        ("sqlite:///jobs.db?synchronous=off", "one of full, normal"),
        ("sqlite:///jobs.db?mode=ro", "unknown option 'mode'"),
        ("sqlite:///jobs.db?synchronous", "cannot be read"),
    ],
)
def test_anything_else_is_refused_with_a_reason(url: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_url(url)
