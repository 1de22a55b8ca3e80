"""What is shown of what may have a secret in it."""

from __future__ import annotations

import msgspec
import pytest

from windrow.redaction import is_secret, redact, redact_json, redact_text, redact_url, restore


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
    assert redact_url(url) == shown


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
    assert redact_url(url) == url


PAYLOAD = {
    "url": "https://ann:s3cret@example.org/a",
    "scrapeOptions": {
        "headers": {"Authorization": "Bearer s3cret", "cookie": "sid=s3cret", "Accept": "text/html"}
    },
    "webhook": {
        "url": "https://hooks.example.org/services/s3cret?key=s3cret",
        "headers": {"X-Mine": "s3cret"},
        "events": ["page"],
    },
    "items": [{"api_key": "s3cret", "maxTokens": 5}, {"X-Auth-Token": "s3cret"}, None, 1.5],
    "client-secret": "s3cret",
    "PASSWORD": "",
    "password": {"rule": "long"},
}
SHOWN = {
    "url": "https://ann:***@example.org/a",
    "scrapeOptions": {"headers": {"Authorization": "***", "cookie": "***", "Accept": "text/html"}},
    "webhook": {
        "url": "https://hooks.example.org/***",
        "headers": {"X-Mine": "***"},
        "events": ["page"],
    },
    "items": [{"api_key": "***", "maxTokens": 5}, {"X-Auth-Token": "***"}, None, 1.5],
    "client-secret": "***",
    "PASSWORD": "",
    "password": {"rule": "long"},
}


def test_what_is_named_as_a_secret_is_hidden_and_nothing_else() -> None:
    assert redact(PAYLOAD) == SHOWN
    assert msgspec.json.decode(redact_json(msgspec.json.encode(PAYLOAD))) == SHOWN
    assert redact(redact(PAYLOAD)) == SHOWN


def test_what_has_nothing_to_hide_is_not_even_read() -> None:
    stored = b'{"url":  "https://example.org/a?b=@", "n": [1, 2]}'
    assert redact_json(stored) is stored


def test_what_was_hidden_comes_back_when_the_rest_was_edited() -> None:
    edited = msgspec.json.decode(msgspec.json.encode(SHOWN))
    assert restore(edited, PAYLOAD) == PAYLOAD
    edited["url"] = "https://example.org/b"
    edited["scrapeOptions"]["headers"]["cookie"] = "sid=new"
    edited["items"].append({"api_key": "mine"})
    back = restore(edited, PAYLOAD)
    assert back["url"] == "https://example.org/b"
    assert back["scrapeOptions"]["headers"]["cookie"] == "sid=new"
    assert back["scrapeOptions"]["headers"]["Authorization"] == "Bearer s3cret"
    assert back["webhook"] == PAYLOAD["webhook"]
    assert back["items"][1:] == [{"X-Auth-Token": "s3cret"}, None, 1.5, {"api_key": "mine"}]
    assert restore([], PAYLOAD) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot reach redis://:pa55@h:1/0 now", "cannot reach redis://:***@h:1/0 now"),
        ("to amqp://ann:pa55@h, again", "to amqp://ann:***@h, again"),
        ("postgresql://h/d?user=a&password=pa55&x=1", "postgresql://h/d?user=a&password=***&x=1"),
        ("sent Authorization: Bearer abcdefgh12345", "sent Authorization: Bearer ***"),
        ("http://h/a@b:c is a page", "http://h/a@b:c is a page"),
        ("the bearer of news", "the bearer of news"),
        ("a basic understanding is enough", "a basic understanding is enough"),
        (
            "bullmq+redis://h/0?rows=postgresql%3A%2F%2Fann%3Apa55%40h%2Fd",
            "bullmq+redis://h/0?rows=postgresql%3A%2F%2F***",
        ),
        ("a:b@c.example is no address", "a:b@c.example is no address"),
    ],
)
def test_a_text_loses_the_secrets_in_it(text: str, shown: str) -> None:
    assert redact_text(text) == shown


def test_a_long_text_takes_no_time() -> None:
    for text in (
        "http://" + "a" * 400_000,
        "a://b:" * 60_000,
        "bearer " * 60_000,
        "?password=" * 9,
    ):
        redact_text(text)


@pytest.mark.parametrize(
    "name", ["Authorization", "set-cookie", "x-api-key", "API KEY", "dbPasswd"]
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["tokens", "max_tokens", "author", "keyword", "cookie_policy", ""])
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret(name)
