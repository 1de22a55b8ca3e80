"""Services that do a part of the work, asked over HTTP, and what their refusals mean.

`Provider` asks; whoever has a client of their own reads a refusal with `read_refusal`. The rules
are the same for all of them:

- too often (429): `RateLimited`, with the time that the service asks for; the job waits for it;
- 408, 409, 5xx, no answer, an answer that is none: another try may help;
- out of credit (402, `insufficient_quota`) and everything else: never asked again by itself;
- `x-should-retry` overrides all of this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

import aiohttp
import msgspec

from windrow.errors import ProviderError, RateLimited
from windrow.ingest.fetch.retry_after import LONGEST_SECONDS, parse_retry_after
from windrow.redaction import hide, is_secret

ANSWER_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 10.0
LARGEST_ANSWER: Final = 32 * 1024 * 1024
LONGEST_REASON: Final = 300  # characters of what a service says
MAY_HELP: Final = frozenset({408, 409, 429})  # and 5xx
NO_CREDIT: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})

# Whoever could not be connected to was asked nothing.
_UNCONNECTED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refusal:
    """What an answer that is no success says."""

    status: int
    why: str
    transient: bool
    retry_after: float | None = None

    @property
    def is_too_often(self) -> bool:
        return self.status == 429 and self.transient

    def error(self, provider: str, limit_key: str) -> ProviderError | RateLimited:
        if self.is_too_often:
            return RateLimited(limit_key, self.retry_after)
        return ProviderError(
            provider,
            f"answers with {self.status}: {self.why}",
            status=self.status,
            transient=self.transient,
            retry_after=self.retry_after if self.transient else None,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    provider: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def read(self, type: type[T]) -> T:
        """The body as JSON. What is none was not made by the service: it may be at the next try."""
        try:
            return msgspec.json.decode(self.body, type=type)
        except msgspec.DecodeError as error:
            why = f"its answer cannot be read: {error}"
            raise ProviderError(self.provider, why, status=self.status, transient=True) from error


class Provider:
    """async with Provider("speechkit") as provider: (await provider.ask("GET", url)).read(dict)

    `limit_key` is what is parked when the service is asked too often: give its jobs that limit.
    """

    def __init__(
        self, name: str, *, limit_key: str | None = None, seconds: float = ANSWER_SECONDS
    ) -> None:
        self.name = name
        self.limit_key = limit_key or name
        self._seconds = seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        takes: Collection[int] = (),
    ) -> Answer:
        """One request, `body` as JSON. Raises ProviderError and RateLimited, unless the status of a
        refusal is among those that the caller `takes`."""
        sent = None if body is None else msgspec.json.encode(body)
        given = {
            **({} if sent is None else {"Content-Type": "application/json"}),
            **(headers or {}),
        }
        try:
            async with self._open().request(
                method, url, headers=given, params=params, data=sent, allow_redirects=False
            ) as response:
                read = await self._read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise ProviderError(
                self.name,
                f"does not answer: {why}",
                transient=True,
                was_sent=not isinstance(error, _UNCONNECTED),
            ) from error
        answer = Answer(self.name, response.status, response.headers, read)
        secrets = [value.split()[-1] for name, value in given.items() if value and is_secret(name)]
        refusal = read_refusal(answer.status, answer.headers, answer.body, secrets)
        if refusal is not None and refusal.status not in takes:
            raise refusal.error(self.name, self.limit_key)
        return answer

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        answer = bytearray()
        async for piece in response.content.iter_chunked(64 * 1024):
            answer += piece
            if len(answer) > LARGEST_ANSWER:
                raise ProviderError(self.name, f"its answer is over {LARGEST_ANSWER} bytes")
        return bytes(answer)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self._seconds, sock_connect=CONNECT_SECONDS)
            )
        return self._session


def read_refusal(
    status: int, headers: Mapping[str, str], body: bytes, secrets: Collection[str] = ()
) -> Refusal | None:
    """None if it is none: the service has answered. Some repeat the key they were sent: `secrets`
    are left out of the reason."""
    if 200 <= status < 300:
        return None
    why, codes = _read_reason(body)
    return Refusal(
        status=status,
        why=hide(why, secrets) or "no reason given",
        transient=_may_help(status, headers, codes),
        retry_after=read_retry_after(headers),
    )


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, of which some say the milliseconds."""
    try:
        seconds = float(headers["retry-after-ms"]) / 1000
    except (KeyError, ValueError):
        return parse_retry_after(headers.get("Retry-After"))
    return min(max(0.0, seconds), LONGEST_SECONDS)


def _may_help(status: int, headers: Mapping[str, str], codes: Collection[str]) -> bool:
    match headers.get("x-should-retry", "").strip().lower():
        case "true":
            return True
        case "false":
            return False
    if NO_CREDIT.intersection(codes):
        return False
    return status >= 500 or status in MAY_HELP


def _read_reason(body: bytes) -> tuple[str, Collection[str]]:
    """What a service says, in the words of those that are known, and the codes it gives it."""
    text = body[: 4 * LONGEST_REASON].decode("utf-8", "replace").strip()
    try:
        said = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return text[:LONGEST_REASON], ()
    found = said if isinstance(said, dict) else {}
    inner = found.get("error")
    one = inner if isinstance(inner, dict) else found
    why = next((w for w in (one.get("message"), inner) if isinstance(w, str) and w), text)
    codes = {code for code in (one.get("code"), one.get("type")) if isinstance(code, str)}
    return why[:LONGEST_REASON], codes
