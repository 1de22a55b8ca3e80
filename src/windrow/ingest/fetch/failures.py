"""What can go wrong with a connection, each under its own code.

Transient is what may be over in a minute; a name that does not exist or a certificate that is not
valid will still be so then.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Final

import aiohttp

from windrow.errors import Blocked, FetchError, FetchTimeout
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.guard import ForbiddenAddress

# Of these another try at once may well succeed, and nothing of an answer has come yet.
WORTH_ANOTHER_TRY: Final = frozenset({codes.REFUSED, codes.RESET, codes.UNREACHABLE, codes.DNS})


def to_fetch_error(error: Exception, url: str) -> FetchError:
    """What aiohttp raised, as one of ours."""
    match error:
        case FetchError():
            return error
        case aiohttp.ClientConnectorDNSError():
            return _dns_failure(error, url)
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return FetchError(codes.TLS, url, f"TLS failed: {_reason(error)}", transient=False)
        case aiohttp.ConnectionTimeoutError():
            return FetchTimeout(url, "no connection in time")
        case asyncio.TimeoutError():
            return FetchTimeout(url, "the server fell silent")
        case aiohttp.ClientPayloadError():
            return _broken_body(error, url)
        case OSError() | aiohttp.ServerDisconnectedError():
            return _connection_failure(error, url)
        case aiohttp.InvalidURL():
            return FetchError(codes.INVALID_URL, url, "is not a URL that can be fetched")
        case aiohttp.ClientResponseError():
            why = f"the answer is not valid HTTP: {_one_line(error.message)}"
            return FetchError(codes.BAD_RESPONSE, url, why)
        case _:
            return FetchError(codes.BAD_RESPONSE, url, _reason(error), transient=True)


def _dns_failure(error: aiohttp.ClientConnectorDNSError, url: str) -> FetchError:
    is_temporary = error.os_error.errno == socket.EAI_AGAIN
    why = f"no address for {error.host!r}: {_reason(error.os_error)}"
    return FetchError(codes.DNS, url, why, transient=is_temporary)


def _broken_body(error: aiohttp.ClientPayloadError, url: str) -> FetchError:
    if isinstance(error.__cause__, ConnectionError):
        return FetchError(codes.RESET, url, "the connection broke in the body", transient=True)
    return FetchError(
        codes.BAD_RESPONSE, url, f"the body broke off: {_reason(error)}", transient=True
    )


def _connection_failure(error: Exception, url: str) -> FetchError:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    match cause:
        case ForbiddenAddress():
            return Blocked(url, str(cause))
        case ConnectionRefusedError():
            return FetchError(codes.REFUSED, url, "connection refused", transient=True)
        case ConnectionError() | aiohttp.ServerDisconnectedError():
            return FetchError(codes.RESET, url, "the server closed the connection", transient=True)
        case aiohttp.ClientOSError() if not isinstance(error, aiohttp.ClientConnectorError):
            return FetchError(codes.RESET, url, "the server closed the connection", transient=True)
        case _:
            return FetchError(codes.UNREACHABLE, url, _reason(cause), transient=True)


def _reason(error: Exception) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return _one_line(str(said))


def _one_line(text: str, most: int = 200) -> str:
    """Servers decide what stands in some messages; keep it short and on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[:most] + "…"
