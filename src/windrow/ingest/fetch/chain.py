"""One fetch on its way: where it is, what it may send there, where it has been.

The invariant: what the caller gave for one origin is never sent to another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import CookieJar, encode_basic_auth
from yarl import URL

from windrow.errors import FetchError
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.credentials import Credentials, put_headers
from windrow.ingest.fetch.target import parse_url

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

# Of the caller's headers, those that say nothing about the caller to another origin.
HARMLESS: Final = frozenset({"accept", "accept-language", "accept-encoding", "user-agent", "dnt"})
# These belong to the connection; a caller's would break the framing or name another host.
OURS: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class Chain:
    """The requests that one fetch takes, redirect by redirect."""

    def __init__(
        self,
        url: str,
        *,
        own: Mapping[str, str],
        given: Mapping[str, str] | None = None,
        cookies: Mapping[str, str] | None = None,
        jar: CookieJar | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        asked = parse_url(url)
        self.url = asked.with_user(None) if asked.raw_user or asked.raw_password else asked
        self.asked = str(self.url)
        self.redirects: list[str] = []
        self._start = self.url
        self._own = own
        self._given = _checked(given or {}, self.asked)
        if cookies:
            self._given["Cookie"] = "; ".join(f"{key}={value}" for key, value in cookies.items())
            _checked(self._given, self.asked)
        if asked.user is not None:
            self._given.setdefault(
                "Authorization", encode_basic_auth(asked.user, asked.password or "")
            )
        self._jar = jar
        self._credentials = credentials or None
        self._cookies_seen = 0
        self._visits = {(self._address(), 0)}

    def headers(self) -> dict[str, str]:
        """What to send to where the chain is now."""
        headers = dict(self._own)
        if self._credentials is not None:
            put_headers(headers, self._credentials.headers_for(self.url))
        if self._given:
            is_home = _may_have_secrets_of(self.url, self._start)
            sent = self._given.items()
            put_headers(headers, {n: v for n, v in sent if is_home or n.lower() in HARMLESS})
        if self._jar is not None and (cookies := self._jar.filter_cookies(self.url)):
            held = "; ".join(f"{name}={morsel.coded_value}" for name, morsel in cookies.items())
            put_headers(headers, {"Cookie": held})
        return headers

    @property
    def shows_credentials(self) -> bool:
        """Whether somebody's stored secrets are sent to where the chain is now, who must then prove
        to be who it says."""
        return self._credentials is not None and bool(self._credentials.headers_for(self.url))

    def keep_cookies(self, lines: list[str]) -> None:
        """Remember what the server set, for the rest of the chain."""
        if self._jar is None:
            # IP addresses may set cookies too: they go back to the same address only.
            self._jar = CookieJar(unsafe=True)
        self._jar.update_cookies_from_headers(lines, self.url)
        self._cookies_seen += len(lines)

    def follow(self, location: str, max_redirects: int) -> None:
        """Go where a redirect points to."""
        target = self._target(location)
        self.redirects.append(str(self.url))
        if len(self.redirects) > max_redirects:
            why = f"more than {max_redirects} redirects"
            raise FetchError(codes.TOO_MANY_REDIRECTS, self.asked, why)
        self.url = target
        # A page may send one back to itself when it has set a cookie; without one it is a circle.
        visit = (self._address(), self._cookies_seen)
        if visit in self._visits:
            why = f"the redirects go in a circle, at {visit[0]}"
            raise FetchError(codes.REDIRECT_LOOP, self.asked, why)
        self._visits.add(visit)

    def _target(self, location: str) -> URL:
        # Headers are bytes: what is no UTF-8 came through as lone surrogates.
        raw = location.strip().encode("utf-8", "surrogateescape")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)
        try:
            target = self.url.join(URL(text))
        except (ValueError, IndexError) as error:  # the latter is of `http://[::1]@`
            why = "leads to a redirect that is no URL"
            raise FetchError(codes.INVALID_URL, self.asked, why) from error
        checked = parse_url(str(target))
        # User and password in a redirect are the other side's idea: not ours to send.
        checked = checked.with_user(None) if checked.raw_user is not None else checked
        inherits = self.url.raw_fragment and not checked.raw_fragment
        return checked.with_fragment(self.url.fragment) if inherits else checked

    def _address(self) -> str:
        return str(self.url.with_fragment(None) if self.url.raw_fragment else self.url)


def _may_have_secrets_of(url: URL, start: URL) -> bool:
    if url.raw_host != start.raw_host:
        return False
    if (url.scheme, url.port) == (start.scheme, start.port):
        return True
    return (start.scheme, start.port, url.scheme, url.port) == ("http", 80, "https", 443)


def _checked(given: Mapping[str, str], url: str) -> dict[str, str]:
    for name, value in given.items():
        if not name or any(bad in name + value for bad in "\r\n\0") or not name.isascii():
            raise FetchError(codes.INVALID_HEADER, url, f"header {name!r} cannot be sent")
    return {name: value for name, value in given.items() if name.lower() not in OURS}
