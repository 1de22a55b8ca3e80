"""What can be asked of a page, and what is refused with a word about it."""

from __future__ import annotations

from typing import Any

import pytest

from windrow.errors import InvalidOptions
from windrow.ingest.options import Format, ScrapeOptions


def test_by_default_the_main_content_is_made_markdown() -> None:
    options = ScrapeOptions.parse()

    assert options.formats == [Format(type="markdown")]
    assert options.only_main_content
    assert options.remove_base64_images
    assert options.block_ads
    assert options.store_in_cache
    assert options.wait_for == 0
    assert options.timeout is None
    assert options.to_wire() == {}


def test_formats_are_strings_or_objects() -> None:
    options = ScrapeOptions.parse(
        {"formats": ["markdown", "screenshot@fullPage", {"type": "json", "prompt": "Prices?"}]}
    )

    assert options.wants("json")
    assert not options.wants("html", "links")
    assert options.format("screenshot") == Format(type="screenshot", full_page=True)
    assert options.format("html") is None


def test_options_come_back_from_the_wire_as_they_were() -> None:
    wanted = {
        "formats": [{"type": "attributes", "selectors": [{"selector": "a", "attribute": "id"}]}],
        "headers": {"X-A": "b"},
        "actions": [{"type": "wait", "milliseconds": 500}, {"type": "click", "selector": "#b"}],
        "parsers": [{"type": "pdf", "maxPages": 3}],
        "onlyCleanContent": True,
        "location": {"country": "DE"},
    }
    options = ScrapeOptions.parse(wanted)

    assert options.to_wire() == wanted
    assert ScrapeOptions.parse(options.to_wire()) == options


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        ({"fromats": []}, "Unrecognized key in body: `fromats`"),
        ({"formats": [{"type": "html", "promt": ""}]}, "`promt` - at `$.formats[0]`"),
        (
            {"formats": ["markdwon"]},
            "'markdwon' - at `$.formats[0].type`; there are markdown, html",
        ),
        ({"formats": []}, "may not be empty"),
        ({"formats": ["html", "html"]}, "'html' is asked for more than once"),
        ({"formats": [{"type": "html", "prompt": "x"}]}, "format 'html' takes no 'prompt'"),
        ({"formats": ["attributes"]}, "format 'attributes' needs 'selectors'"),
        ({"formats": ["screenshot", "screenshot@fullPage"]}, "'screenshot' is asked for more than"),
        ({"formats": ["changeTracking"]}, "needs 'markdown' beside it"),
        ({"formats": ["json", "deterministicJson"]}, "exclude each other"),
        ({"formats": ["rawBase64", "html"]}, "only to be had alone"),
        ({"onlyMainContent": "yes"}, "Expected `bool`, got `str` - at `$.onlyMainContent`"),
        ({"redactPII": True}, "redactPII is not to be had here"),
        ({"timeout": 999}, "timeout must be at least 1000 ms"),
        ({"waitFor": 60_001}, "waitFor must be between 0 and 60000 ms"),
        ({"waitFor": 600, "timeout": 1000}, "waitFor may be at most half of timeout"),
        ({"maxAge": -1}, "maxAge may not be negative"),
        ({"parsers": [{"type": "pdf", "maxPages": 10_001}]}, "maxPages must be between 1 and"),
        ({"actions": [{"type": "scrape"}] * 51}, "at most 50 actions"),
        ({"actions": [{"type": "wait", "milliseconds": 30_000}] * 3}, "at most 60000 ms together"),
        ({"actions": [{"type": "wait"}]}, "action 'wait' needs 'milliseconds' or 'selector'"),
        ({"actions": [{"type": "klick"}]}, "there are wait, click"),
        ({"proxy": "tor"}, "$.proxy"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(
    wanted: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidOptions) as refused:
        ScrapeOptions.parse(wanted)

    assert complaint in str(refused.value)
    assert refused.value.code == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("wanted", "verifies"),
    [
        ({}, False),
        ({"headers": {"Authorization": "x"}}, True),
        ({"actions": [{"type": "scrape"}]}, True),
        ({"headers": {"Authorization": "x"}, "skipTlsVerification": True}, False),
        ({"skipTlsVerification": False}, True),
    ],
)
def test_certificates_are_checked_before_secrets_are_sent(
    wanted: dict[str, Any], verifies: bool
) -> None:
    assert ScrapeOptions.parse(wanted).verifies_tls is verifies
