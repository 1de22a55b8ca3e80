"""Where the database is: `sqlite:///relative.db`, `sqlite:////absolute/path.db`, with options."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from windrow.errors import ConfigError

_SYNCHRONOUS: Final = ("full", "normal")


class Location(msgspec.Struct, frozen=True):
    """`synchronous` full: what is acknowledged survives a power cut; normal: it survives a crash of
    the process, and a power cut may take the last moments."""

    path: str
    synchronous: str = "full"


def parse_url(url: str) -> Location:
    """The place a URL names; the folder must be there, the file need not."""
    parts = urlsplit(url)
    if parts.netloc:
        raise ConfigError(
            f"{url!r} names a host: a file takes three slashes (sqlite:///jobs.db), "
            "or four with an absolute path"
        )
    path = unquote(parts.path.removeprefix("/"))
    if path in ("", ":memory:"):
        raise ConfigError(
            f"{url!r} names no file, and a queue must be durable: use sqlite:///jobs.db"
        )
    folder = Path(path).parent
    if not folder.is_dir():
        raise ConfigError(f"{url!r}: the folder {str(folder)!r} does not exist")
    return Location(path, _synchronous(url, parts.query))


def _synchronous(url: str, query: str) -> str:
    try:
        options = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise ConfigError(f"{url!r}: the options cannot be read: {error}") from error
    chosen = options.pop("synchronous", ["full"])[-1].lower()
    if options:
        raise ConfigError(f"{url!r}: unknown option {next(iter(options))!r}; there is: synchronous")
    if chosen not in _SYNCHRONOUS:
        raise ConfigError(f"{url!r}: synchronous is one of {', '.join(_SYNCHRONOUS)}")
    return chosen
