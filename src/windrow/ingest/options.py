"""`ScrapeOptions`: everything that can be asked of one page, checked before anything is fetched.

The names, defaults and rules are those of the Firecrawl API. Times are in milliseconds, as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from windrow.errors import InvalidOptions

MAX_ACTIONS = 50
MAX_WAIT_MS = 60_000  # of `waitFor`, and of all waits together
SELECTOR_WAIT_MS = 1_000  # what waiting for a selector counts in that sum
MIN_TIMEOUT_MS = 1_000
MAX_PDF_PAGES = 10_000
MAX_VIEWPORT_PX = 8_192

FormatName = Literal[
    "markdown",
    "html",
    "rawHtml",
    "rawBase64",
    "links",
    "images",
    "attributes",
    "screenshot",
    "changeTracking",
    "summary",
    "json",
    "deterministicJson",
    "extract",
    "question",
    "highlights",
    "query",
    "branding",
    "product",
    "menu",
    "audio",
    "video",
]
ActionName = Literal[
    "wait",
    "click",
    "write",
    "press",
    "scroll",
    "screenshot",
    "scrape",
    "executeJavascript",
    "pdf",
]

# Other spellings of formats, by the clients that have them.
_SPELLINGS: dict[str, dict[str, Any]] = {
    "raw_html": {"type": "rawHtml"},
    "change_tracking": {"type": "changeTracking"},
    "screenshot@fullPage": {"type": "screenshot", "fullPage": True},
}
# Formats that others make out of the markdown.
_OF_MARKDOWN: tuple[FormatName, ...] = (
    "markdown",
    "changeTracking",
    "summary",
    "json",
    "deterministicJson",
    "extract",
    "question",
    "highlights",
    "query",
)
_FIELDS_OF_FORMATS: dict[str, frozenset[str]] = {
    "attributes": frozenset({"selectors"}),
    "screenshot": frozenset({"full_page", "quality", "viewport"}),
    "changeTracking": frozenset({"modes", "schema", "prompt", "tag"}),
    "json": frozenset({"schema", "prompt", "check_prompt_injection"}),
    "deterministicJson": frozenset({"schema", "prompt"}),
    "extract": frozenset({"schema", "prompt"}),
    "question": frozenset({"question"}),
    "highlights": frozenset({"query"}),
    "query": frozenset({"prompt", "mode"}),
}
_FIELDS_OF_ACTIONS: dict[str, frozenset[str]] = {
    "wait": frozenset({"milliseconds", "selector"}),
    "click": frozenset({"selector", "all"}),
    "write": frozenset({"text"}),
    "press": frozenset({"key"}),
    "scroll": frozenset({"direction", "selector"}),
    "screenshot": frozenset({"full_page", "quality", "viewport"}),
    "executeJavascript": frozenset({"script"}),
    "pdf": frozenset({"format", "landscape", "scale"}),
}
# What makes no sense without: the first of them that is there will do.
_NEEDS = {
    "attributes": ("selectors",),
    "question": ("question",),
    "highlights": ("query",),
    "query": ("prompt",),
    "wait": ("milliseconds", "selector"),
    "click": ("selector",),
    "write": ("text",),
    "press": ("key",),
    "executeJavascript": ("script",),
}


class _Options(
    msgspec.Struct,
    rename="camel",
    omit_defaults=True,
    kw_only=True,
    frozen=True,
    forbid_unknown_fields=True,
):
    """A part of what is asked."""


class Viewport(_Options, frozen=True):
    width: int
    height: int


class AttributeSelector(_Options, frozen=True):
    selector: str
    attribute: str


class Format(_Options, frozen=True):
    """One thing to be made of a page. Which fields it takes depends on its type."""

    type: FormatName
    selectors: list[AttributeSelector] | None = None
    full_page: bool | None = None
    quality: int | None = None
    viewport: Viewport | None = None
    modes: list[Literal["git-diff", "json"]] | None = None
    schema: Any = None
    prompt: str | None = None
    tag: str | None = None
    question: str | None = None
    query: str | None = None
    mode: Literal["freeform", "directQuote"] | None = None
    check_prompt_injection: bool | None = None

    def __post_init__(self) -> None:
        _check_fields(self, f"format {self.type!r}", _FIELDS_OF_FORMATS)
        _check_picture(self)


class Action(_Options, frozen=True):
    """One thing to do on a page in a browser. Which fields it takes depends on its type."""

    type: ActionName
    milliseconds: int | None = None
    selector: str | None = None
    all: bool | None = None
    text: str | None = None
    key: str | None = None
    direction: Literal["up", "down"] | None = None
    full_page: bool | None = None
    quality: int | None = None
    viewport: Viewport | None = None
    script: str | None = None
    format: str | None = None
    landscape: bool | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        _check_fields(self, f"action {self.type!r}", _FIELDS_OF_ACTIONS)
        _check_picture(self)
        if self.type == "wait" and self.milliseconds is not None and self.selector is not None:
            raise ValueError("action 'wait' takes milliseconds or a selector, not both")
        if self.milliseconds is not None and self.milliseconds <= 0:
            raise ValueError("milliseconds must be more than 0")

    @property
    def wait_ms(self) -> int:
        """What it counts among the waits."""
        return (self.milliseconds or SELECTOR_WAIT_MS) if self.type == "wait" else 0


class Parser(_Options, frozen=True):
    """How to read files that are no pages."""

    type: Literal["pdf", "image"]
    mode: Literal["fast", "auto", "ocr"] = "auto"
    max_pages: int | None = None
    pages: bool = False  # also page by page
    blocks: bool = False
    page_markers: bool = False

    def __post_init__(self) -> None:
        if self.max_pages is not None and not 1 <= self.max_pages <= MAX_PDF_PAGES:
            raise ValueError(f"maxPages must be between 1 and {MAX_PDF_PAGES}")


class Location(_Options, frozen=True):
    country: str | None = None
    languages: list[str] | None = None


class ScrapeOptions(_Options, frozen=True):
    """What to make of a page, and how to get it.

    `ScrapeOptions.parse({"formats": ["markdown", {"type": "screenshot"}]})`
    """

    formats: list[Format] = msgspec.field(default_factory=lambda: [Format(type="markdown")])
    headers: dict[str, str] = {}
    include_tags: list[str] = []
    exclude_tags: list[str] = []
    only_main_content: bool = True
    only_clean_content: bool = False
    timeout: int | None = None
    wait_for: int = 0
    mobile: bool = False
    parsers: list[Parser] = msgspec.field(default_factory=lambda: [Parser(type="pdf")])
    actions: list[Action] = []
    location: Location | None = None
    skip_tls_verification: bool | None = None
    remove_base64_images: bool = True
    fast_mode: bool = False
    use_mock: str | None = None
    block_ads: bool = True
    proxy: Literal["auto", "basic", "stealth", "enhanced"] | None = None
    max_age: int | None = None
    min_age: int | None = None
    store_in_cache: bool = True
    lockdown: bool = False
    redact_pii: bool | dict[str, Any] | None = msgspec.field(default=None, name="redactPII")
    profile: dict[str, Any] | None = None
    zero_data_retention: bool = False
    index: bool = True  # whether the page becomes searchable
    check_prompt_injection: bool = False
    integration: str | None = None
    origin: str | None = None

    @classmethod
    def parse(cls, wanted: Mapping[str, Any] | None = None) -> ScrapeOptions:
        """Options from JSON values; `InvalidOptions` names the field that is wrong."""
        try:
            return msgspec.convert(_normalised(wanted or {}), cls)
        except msgspec.ValidationError as error:
            raise InvalidOptions(_explain(str(error))) from error

    def to_wire(self) -> dict[str, Any]:
        """The options as JSON values, without those that are as by default."""
        wire: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in wire.items() if value != _DEFAULTS.get(name)}

    def wants(self, *names: FormatName) -> bool:
        """Whether one of these formats is asked for."""
        return any(format.type in names for format in self.formats)

    @property
    def wants_markdown(self) -> bool:
        """Whether markdown is asked for, or something that is made out of it."""
        return self.wants(*_OF_MARKDOWN)

    def format(self, name: FormatName) -> Format | None:
        """The format of that name, with its settings, if it is asked for."""
        return next((format for format in self.formats if format.type == name), None)

    def parser(self, name: Literal["pdf", "image"]) -> Parser | None:
        """How to read such files; None leaves them as they are."""
        return next((parser for parser in self.parsers if parser.type == name), None)

    @property
    def is_indexed(self) -> bool:
        """Whether the page is to become searchable."""
        return self.index and not self.zero_data_retention

    @property
    def sent_headers(self) -> dict[str, str]:
        """Those that are asked for, and the languages."""
        languages = (self.location and self.location.languages) or []
        wanted = {"Accept-Language": ", ".join(languages)} if languages else {}
        return wanted | self.headers

    @property
    def unmet(self) -> list[str]:
        """What is asked for and cannot be done, in words for people. The rest is done all the
        same."""
        country = self.location and self.location.country
        said = {
            "onlyCleanContent: no model cleans pages here; onlyMainContent was used.": (
                self.only_clean_content
            ),
            f"proxy {self.proxy!r}: there are none here; the page was fetched directly.": (
                self.proxy in ("stealth", "enhanced")
            ),
            f"location {country!r}: the page was fetched from where the worker is.": bool(country),
            "profile: browsers keep nothing here; the page was opened in a new one.": bool(
                self.profile
            ),
            "useMock: there are no mocks here; the page was fetched.": bool(self.use_mock),
        }
        return [text for text, is_asked in said.items() if is_asked]

    @property
    def verifies_tls(self) -> bool:
        """Pages alone are read from anywhere; what carries somebody's secrets is not sent."""
        if self.skip_tls_verification is not None:
            return not self.skip_tls_verification
        return bool(self.headers or self.actions)

    def __post_init__(self) -> None:
        _check_formats([format.type for format in self.formats])
        if self.redact_pii:
            raise ValueError("redactPII is not to be had here: nothing would be redacted")
        _check_times(self)
        _check_actions(self.actions, self.wait_for)


def _normalised(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The short ways to say it, said at length; None is what is not said."""
    values = {name: value for name, value in wanted.items() if value is not None}
    for name in ("formats", "parsers"):
        if isinstance(values.get(name), list | tuple):
            values[name] = [_as_object(item) for item in values[name]]
    return values


def _as_object(item: Any) -> Any:
    if isinstance(item, str):
        return _SPELLINGS.get(item, {"type": item})
    if isinstance(item, Mapping) and item.get("type") in _SPELLINGS:
        return {**item, **_SPELLINGS[item["type"]]}
    return item


def _check_fields(part: Format | Action, what: str, table: Mapping[str, frozenset[str]]) -> None:
    allowed = table.get(part.type, frozenset()) | {"type"}
    given = {name for name in part.__struct_fields__ if getattr(part, name) is not None}
    for name in sorted(given - allowed):
        raise ValueError(f"{what} takes no {name!r}")
    needed = _NEEDS.get(part.type, ())
    if needed and not given & set(needed):
        raise ValueError(f"{what} needs {' or '.join(repr(name) for name in needed)}")


def _check_picture(part: Format | Action) -> None:
    if part.quality is not None and not 1 <= part.quality <= 100:
        raise ValueError("quality must be between 1 and 100")
    size = part.viewport
    if size is not None and not (
        1 <= size.width <= MAX_VIEWPORT_PX and 1 <= size.height <= MAX_VIEWPORT_PX
    ):
        raise ValueError(f"width and height must be between 1 and {MAX_VIEWPORT_PX}")


def _check_formats(names: list[FormatName]) -> None:
    if not names:
        raise ValueError("formats may not be empty")
    for name in sorted(set(names)):
        if names.count(name) > 1:
            raise ValueError(f"format {name!r} is asked for more than once")
    if "changeTracking" in names and "markdown" not in names:
        raise ValueError("format 'changeTracking' needs 'markdown' beside it")
    if "json" in names and "deterministicJson" in names:
        raise ValueError("formats 'json' and 'deterministicJson' exclude each other")
    if "rawBase64" in names and len(names) > 1:
        raise ValueError("format 'rawBase64' is only to be had alone")


def _check_times(options: ScrapeOptions) -> None:
    if options.timeout is not None and options.timeout < MIN_TIMEOUT_MS:
        raise ValueError(f"timeout must be at least {MIN_TIMEOUT_MS} ms")
    if not 0 <= options.wait_for <= MAX_WAIT_MS:
        raise ValueError(f"waitFor must be between 0 and {MAX_WAIT_MS} ms")
    if options.timeout is not None and options.wait_for > options.timeout / 2:
        raise ValueError("waitFor may be at most half of timeout")
    for name, age in (("maxAge", options.max_age), ("minAge", options.min_age)):
        if age is not None and age < 0:
            raise ValueError(f"{name} may not be negative")


def _check_actions(actions: list[Action], wait_for: int) -> None:
    if len(actions) > MAX_ACTIONS:
        raise ValueError(f"there may be at most {MAX_ACTIONS} actions")
    if wait_for + sum(action.wait_ms for action in actions) > MAX_WAIT_MS:
        raise ValueError(
            f"waitFor and the waits of actions may be at most {MAX_WAIT_MS} ms together"
        )


def _explain(message: str) -> str:
    """msgspec's words, with the choices there are where it only says that this is none."""
    if message.startswith("Object contains unknown field"):
        return message.replace("Object contains unknown field", "Unrecognized key in body:")
    for place, names in (("$.formats[", FormatName), ("$.actions[", ActionName)):
        if "Invalid enum value" in message and place in message and ".type`" in message:
            return f"{message}; there are {', '.join(get_args(names))}"
    return message


_DEFAULTS: dict[str, Any] = msgspec.to_builtins(ScrapeOptions())
