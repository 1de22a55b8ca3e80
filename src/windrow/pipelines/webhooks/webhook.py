"""`Webhook`: where somebody wants to be told, and of what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from windrow.errors import FetchError, InvalidOptions
from windrow.ingest.fetch.target import parse_url

EventName = Literal["started", "page", "completed", "failed", "cancelled"]
MEANINGS: Final[Mapping[str, str]] = {  # for docs/reference/events.md
    "started": "a crawl or batch begins",
    "page": "a page of it is done, or has failed for good",
    "completed": "all its pages have ended",
    "failed": "it could not begin",
    "cancelled": "it was cancelled; once, and not for each page",
}

SIGNATURE: Final = "X-Firecrawl-Signature"
MOST_HEADERS: Final = 50
MOST_BYTES: Final = 32 * 1024  # of headers and metadata
# Ours to say, or about the connection.
_OWN_HEADERS: Final = frozenset(
    {
        SIGNATURE.lower(),
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
    }
)
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Webhook(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    url: str
    headers: dict[str, str] = {}
    metadata: dict[str, Any] = {}
    events: tuple[EventName, ...] | None = None  # None: all

    @classmethod
    def parse(cls, wanted: str | Mapping[str, Any]) -> Webhook:
        """A webhook from JSON values, or from its address alone. Raises InvalidOptions."""
        values = {"url": wanted} if isinstance(wanted, str) else wanted
        given = {name: value for name, value in values.items() if value is not None}
        try:
            made = msgspec.convert(given, cls)
        except msgspec.ValidationError as error:
            raise InvalidOptions(f"webhook: {error}") from error
        made.check()
        return made

    def check(self) -> None:
        try:
            parse_url(self.url)
        except FetchError as error:
            raise InvalidOptions("webhook.url: this is no address of the web") from error
        for name, value in self.headers.items():
            if name.lower() in _OWN_HEADERS:
                raise InvalidOptions(f"webhook.headers: {name} cannot be set")
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise InvalidOptions(f"webhook.headers: {name!r} is no header of HTTP")
        size = len(msgspec.json.encode([self.headers, self.metadata]))
        if len(self.headers) > MOST_HEADERS or size > MOST_BYTES:
            raise InvalidOptions(
                f"webhook: at most {MOST_HEADERS} headers, and {MOST_BYTES} bytes of headers and "
                "metadata"
            )

    def wants(self, event: EventName) -> bool:
        """Whoever wants to know of failures wants to know that a run was cancelled."""
        if self.events is None or event in self.events:
            return True
        return event == "cancelled" and "failed" in self.events
