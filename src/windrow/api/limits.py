"""How much may be asked, and how often.

Bodies that are too large are refused, whether their length is told before or not. How often one key
may ask, and how often one address may try wrong keys, is a bucket for each, which fills again over
a minute.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from functools import lru_cache
from typing import Final, TypeVar

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windrow.api.answers import answer
from windrow.api.errors import ApiError

MAX_BODY: Final = 10 * 1024 * 1024
MAX_UPLOAD: Final = 50 * 1024 * 1024  # of files, which are not kept in memory while they come
UPLOADS: Final = ("/documents/upload", "/api/documents/upload")

KEPT: Final = 10_000  # keys, those that asked last
WRONG_KEYS_PER_MINUTE: Final = 20  # different ones, from one address
UNGUESSABLE: Final = 32  # characters: a right key so long was not found by trying

Key = TypeVar("Key")
Value = TypeVar("Value")


class TooLarge(Exception):
    """More came than is taken."""


class BodyLimit:
    def __init__(self, app: ASGIApp, most: int = MAX_BODY) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = MAX_UPLOAD if scope["path"] in UPLOADS else self._most
        if _length(scope) > most:
            await self._refuse(most, scope, receive, send)
            return
        seen = 0
        has_begun = False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except TooLarge:
            if has_begun:
                raise
            await self._refuse(most, scope, receive, send)

    async def _refuse(self, most: int, scope: Scope, receive: Receive, send: Send) -> None:
        said = f"the body is larger than {most} bytes"
        body = {"success": False, "code": "PAYLOAD_TOO_LARGE", "error": said}
        await answer(body, 413, headers={"Connection": "close"})(scope, receive, send)


def _length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


class RateLimit:
    """So many requests a minute for each key, in this process; 0 is no limit."""

    def __init__(self, per_minute: int, what: str = "requests") -> None:
        self._most = per_minute
        self._what = what
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, key: str) -> None:
        """One more request. Raises ApiError 429, with when to come again."""
        if self._most:
            left, now = self._left(key)
            self._refuse_below_one(left)
            _keep(self._buckets, key, (left - 1, now))

    def check(self, key: str) -> None:
        """Raise the same, but count nothing."""
        if self._most:
            self._refuse_below_one(self._left(key)[0])

    def _left(self, key: str) -> tuple[float, float]:
        now = time.monotonic()
        left, at = self._buckets.get(key, (float(self._most), now))
        return min(self._most, left + (now - at) * self._most / 60), now

    def _refuse_below_one(self, left: float) -> None:
        if left < 1:
            wait = (1 - left) * 60 / self._most
            said = (
                f"Rate limit exceeded: {self._most} {self._what} a minute; retry after {wait:.1f} s"
            )
            headers = {"Retry-After": str(int(wait) + 1)}
            raise ApiError(429, "RATE_LIMITED", said, headers=headers)


class Guesses:
    """Wrong keys by client address, in this process. Who tries too many different ones waits. Let
    through meanwhile, so that nobody behind the same router or proxy is locked out, are right keys
    that are too long to be guessed, and those that were right from that address before. A wrong key
    that is only repeated is no new guess."""

    def __init__(self, per_minute: int = WRONG_KEYS_PER_MINUTE) -> None:
        self._wrong = RateLimit(per_minute, "wrong keys")
        self._last: OrderedDict[str, str] = OrderedDict()  # the wrong key of each address
        self._right: OrderedDict[tuple[str, str], None] = OrderedDict()

    def count(self, connection: HTTPConnection, key: str, hashed: str, *, is_right: bool) -> None:
        """A key was shown. Raises ApiError 429, with when to come again, before it is said whether
        the key is right."""
        address = _address(connection)
        if is_right and (len(key) >= UNGUESSABLE or (address, hashed) in self._right):
            _keep(self._right, (address, hashed), None)
        elif self._last.get(address) != hashed:
            self._wrong.check(address)
            if is_right:
                _keep(self._right, (address, hashed), None)
            else:
                self._wrong.count(address)
                _keep(self._last, address, hashed)


def _address(connection: HTTPConnection) -> str:
    return "" if connection.client is None else _network(connection.client.host)


@lru_cache(maxsize=1000)
def _network(host: str) -> str:
    """An address; of IPv6 the network of a household, which has as many addresses as it likes.
    A server on `::` sees IPv4 addresses as `::ffff:…`, all of which are in one such network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


def _keep(kept: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > KEPT:
        kept.popitem(last=False)
