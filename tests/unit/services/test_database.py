"""What is shown of a database's URL."""

from __future__ import annotations

import pytest

from windrow.services.database import without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db/jobs", "postgresql://ann:***@db/jobs"),
        ("postgresql://:s3cret@db/jobs", "postgresql://:***@db/jobs"),
        ("postgresql://ann@db/jobs?password=s3cret", "postgresql://ann@db/jobs?password=***"),
        (
            "postgresql://db/jobs?user=ann&Password=s3cret&pooled=true",
            "postgresql://db/jobs?user=ann&Password=***&pooled=true",
        ),
        (
            "postgresql://ann:s3cret@db/jobs?sslpassword=s3cret",
            "postgresql://ann:***@db/jobs?sslpassword=***",
        ),
    ],
)
def test_no_password_is_shown_wherever_it_stands(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///jobs.db",
        "sqlite:////var/lib/jobs.db",
        "postgresql://ann@db:5432/jobs?pooled=true",
        "postgresql:///jobs?host=/run/postgresql&passfile=~/.pgpass",
    ],
)
def test_url_without_a_password_is_shown_as_it_is(url: str) -> None:
    assert without_password(url) == url
