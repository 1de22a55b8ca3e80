"""Reading a body: never more than the cap, and never for longer than a living server needs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windrow.errors import FetchError, FetchTimeout
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.decoding import BadCoding, Decoder, decode, decoders_for

if TYPE_CHECKING:
    import aiohttp

    from windrow.ingest.fetch.limits import FetchLimits


async def read_body(
    response: aiohttp.ClientResponse, url: str, limits: FetchLimits, max_bytes: int
) -> bytes:
    """The whole body, decompressed."""
    length = response.content_length
    if length is not None and length > max_bytes:
        raise _too_large(url, max_bytes)
    try:
        decoders = decoders_for(response.headers.get("Content-Encoding", ""))
        pieces = await _read_pieces(response, decoders, url, limits, max_bytes)
    except BadCoding as error:
        why = f"the body is not what its Content-Encoding says: {error}"
        raise FetchError(codes.BAD_CODING, url, why, transient=False) from error
    if not all(decoder.is_complete for decoder in decoders):
        raise FetchError(codes.BAD_RESPONSE, url, "the body broke off", transient=True)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _read_pieces(
    response: aiohttp.ClientResponse,
    decoders: list[Decoder],
    url: str,
    limits: FetchLimits,
    max_bytes: int,
) -> list[bytes]:
    clock = asyncio.get_running_loop().time
    started, received, made = clock(), 0, 0
    pieces: list[bytes] = []
    while data := await response.content.readany():
        received += len(data)
        if received > max_bytes:
            raise _too_large(url, max_bytes)
        elapsed = clock() - started
        if elapsed > limits.patience_seconds and received < elapsed * limits.min_bytes_per_second:
            why = f"the body comes too slowly: {received} bytes in {elapsed:.0f} s"
            raise FetchTimeout(url, why)
        for piece in decode(decoders, data):
            made += len(piece)
            if made > max_bytes:
                raise _too_large(url, max_bytes)
            pieces.append(piece)
    return pieces


def _too_large(url: str, max_bytes: int) -> FetchError:
    why = f"is larger than the {max_bytes} bytes that are read of one resource"
    return FetchError(codes.TOO_LARGE, url, why, transient=False)
