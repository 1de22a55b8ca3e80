"""The body of an answer: never more than the cap, and never for longer than a living server needs.

Content codings are undone piece by piece. A decoder never makes more than the piece it was asked
for: a bomb is noticed at the cap, not after it has filled the memory.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Final, Protocol

import brotli

from windrow.errors import FetchError, FetchTimeout
from windrow.ingest.fetch import codes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    import aiohttp

    from windrow.ingest.fetch.limits import FetchLimits

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"
PIECE_BYTES: Final = 256 * 1024
MOST_CODINGS: Final = 3  # real servers use one, misconfigured ones two
MOST_MEMBERS: Final = 1_000  # of one gzip or zstd stream; empty ones cost time and make no bytes
ZSTD_WINDOW_LOG: Final = 23  # 8 MiB, what RFC 9659 allows for HTTP


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


class BadCoding(Exception):
    """The body is not what its Content-Encoding says."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """What comes out of this, in pieces."""

    @property
    def is_complete(self) -> bool:
        """Whether the stream may end here."""


def decoders_for(content_encoding: str) -> list[Decoder]:
    """The decoders to go through, in order; none for a body that is sent as it is.

    Names nobody knows (`utf-8`, `none` are seen) mean nothing, as in browsers.
    """
    names = [name.strip().lower() for name in content_encoding.split(",")]
    known = [DECODERS[name] for name in names if name in DECODERS]
    if len(known) > MOST_CODINGS:
        raise BadCoding(f"{len(known)} content codings on top of each other")
    return [make() for make in reversed(known)]


def decode(decoders: list[Decoder], data: bytes) -> Iterator[bytes]:
    """What comes out of the last decoder."""
    if not decoders:
        yield data
        return
    for piece in decoders[0].feed(data):
        yield from decode(decoders[1:], piece)


class Inflate:
    """gzip, of any number of members, and deflate in both its forms."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._members = 0
        self._stream: zlib._Decompress | None = None
        self._is_plain = False
        self._is_over = False

    @property
    def is_complete(self) -> bool:
        return self._stream is None

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._is_over:
            if self._is_plain:
                yield data
                return
            if self._stream is None:
                self._open(data)
            else:
                data = yield from self._inflate(self._stream, data)

    def _open(self, data: bytes) -> None:
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise BadCoding(f"more than {MOST_MEMBERS} members in one stream")
        fits = data[0] == 0x1F if self._is_gzip else self._members == 1
        if not fits:
            # Servers that say gzip and send plain text exist; after a member it is padding.
            self._is_plain, self._is_over = self._members == 1, self._members > 1
            return
        has_zlib_header = data[0] & 0x8F == 0x08
        self._stream = zlib.decompressobj(31 if self._is_gzip else 15 if has_zlib_header else -15)

    def _inflate(self, stream: zlib._Decompress, data: bytes) -> Generator[bytes, None, bytes]:
        """Give what comes out of this member; return what follows it."""
        while True:
            try:
                piece = stream.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise BadCoding(str(error)) from error
            if piece:
                yield piece
            data = stream.unconsumed_tail
            if stream.eof:
                self._stream = None
                return stream.unused_data
            if not data and len(piece) < PIECE_BYTES:
                return b""


class Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self._is_fed = False

    @property
    def is_complete(self) -> bool:
        return not self._is_fed or self._stream.is_finished()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._is_fed = True
        try:
            while not self._stream.is_finished():
                piece = self._stream.process(data, output_buffer_limit=PIECE_BYTES)
                if piece:
                    yield piece
                elif self._stream.can_accept_more_data():
                    return
                data = b""
        except brotli.error as error:
            raise BadCoding(str(error)) from error


class Zstandard:
    def __init__(self) -> None:
        self._frames = 0
        self._stream: zstd.ZstdDecompressor | None = None

    @property
    def is_complete(self) -> bool:
        return self._stream is None

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream is None:
                self._stream = self._open()
            data = yield from self._decompress(self._stream, data)

    def _open(self) -> zstd.ZstdDecompressor:
        self._frames += 1
        if self._frames > MOST_MEMBERS:
            raise BadCoding(f"more than {MOST_MEMBERS} frames in one stream")
        window: dict[int, int] = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}
        return zstd.ZstdDecompressor(options=window)

    def _decompress(
        self, stream: zstd.ZstdDecompressor, data: bytes
    ) -> Generator[bytes, None, bytes]:
        while True:
            try:
                piece = stream.decompress(data, PIECE_BYTES)
            except zstd.ZstdError as error:
                raise BadCoding(str(error)) from error
            if piece:
                yield piece
            if stream.eof:
                self._stream = None
                return stream.unused_data
            if stream.needs_input:
                return b""
            data = b""


DECODERS: Final[dict[str, Callable[[], Decoder]]] = {
    "gzip": lambda: Inflate(is_gzip=True),
    "x-gzip": lambda: Inflate(is_gzip=True),
    "deflate": lambda: Inflate(is_gzip=False),
    "br": Brotli,
    "zstd": Zstandard,
}
