"""Where the queue is: `bullmq+redis://host:6379/0?prefix=bull` (`bullmq+rediss://` over TLS), and,
with `rows=sqlite:///windrow.db` or `rows=postgresql://…`, the database beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from windrow.errors import ConfigError

PREFIX: Final = "bull"
SCHEMES: Final = ("bullmq+redis", "bullmq+rediss")
ROWS: Final = ("sqlite:", "postgresql:", "postgres:")
# Of the connection: what the client of Redis takes from an address.
OPTIONS: Final = frozenset(
    {
        "client_name",
        "db",
        "health_check_interval",
        "max_connections",
        "socket_connect_timeout",
        "socket_keepalive",
        "socket_timeout",
    }
)
TLS_OPTIONS: Final = frozenset(
    {"ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile"}
)


@dataclass(frozen=True, slots=True)
class Location:
    """A Redis, and what the names of all keys there begin with."""

    redis_url: str
    prefix: str = PREFIX
    rows_url: str | None = None  # of the database that has what jobs write


def parse_url(url: str) -> Location:
    try:
        parts = urlsplit(url)
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no number, or the host no address
        is_complete = False
    if not is_complete or parts.scheme not in SCHEMES:
        raise ConfigError("not the address of a Redis: use bullmq+redis://host:6379/0?prefix=bull")
    options = dict(parse_qsl(parts.query))
    prefix = options.pop("prefix", PREFIX)
    if not prefix or ":" in prefix:
        raise ConfigError(f"the prefix {prefix!r} must be a text without colons")
    rows_url = options.pop("rows", None)
    if rows_url is not None and not rows_url.startswith(ROWS):
        raise ConfigError("rows is a database of SQL: sqlite:///… or postgresql://…")
    is_secure = parts.scheme == SCHEMES[1]
    if unknown := sorted(options.keys() - (OPTIONS | TLS_OPTIONS if is_secure else OPTIONS)):
        raise ConfigError(
            f"the address of the Redis has an option {unknown[0]!r}, which there is not: use "
            f"prefix, rows, {', '.join(sorted(OPTIONS))}, or over TLS ssl_…"
        )
    plain = parts._replace(
        scheme=parts.scheme.removeprefix("bullmq+"), query=urlencode(options)
    ).geturl()
    return Location(plain, prefix, rows_url)


def tables_url(url: str) -> str:
    """Where the tables of a queue are: in the database that has its jobs, or in the one beside."""
    if not url.startswith(SCHEMES):
        return url
    return parse_url(url).rows_url or url
