"""Bodies: every coding read, every bomb, trickle and lie ended with a code of its own."""

from __future__ import annotations

import asyncio
import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest

from tests.ingest.fetch.hostile import HostileServer, Visit, page
from windrow.errors import FetchError, FetchTimeout
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.fetch.limits import FetchLimits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 1024 * 1024
TEXT = b"<p>windrow</p>\n" * 5_000

Compress = Callable[[bytes], bytes]


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()


CODINGS: dict[str, Compress] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
    "br": lambda data: brotli.compress(data, quality=4),
    "zstd": zstd.compress,
}
each_coding = pytest.mark.parametrize(("coding", "compress"), CODINGS.items(), ids=[*CODINGS])


def impatient(*, silence: float = 60, patience: float = 60) -> Fetcher:
    """A fetcher that gives up soon by one limit alone: on a busy machine each may be the first."""
    limits = FetchLimits(
        silence_seconds=silence, patience_seconds=patience, min_bytes_per_second=10_000
    )
    return Fetcher(guard=Guard(allow=["127.0.0.1"]), limits=limits)


async def failure(fetcher: Fetcher, url: str, **options: float) -> FetchError:
    with pytest.raises(FetchError) as raised:
        await fetcher.fetch(url, **options)  # type: ignore[arg-type]
    assert url in str(raised.value)
    return raised.value


@each_coding
async def test_every_coding_is_read(
    server: HostileServer, fetcher: Fetcher, coding: str, compress: Compress
) -> None:
    url = server.serves(page(compress(TEXT), f"Content-Encoding: {coding}"))
    assert (await fetcher.fetch(url)).body == TEXT


@each_coding
async def test_a_body_that_comes_byte_by_byte_is_read(
    server: HostileServer, fetcher: Fetcher, coding: str, compress: Compress
) -> None:
    async def drip(visit: Visit) -> None:
        await visit.send(head)
        for place in range(len(body)):
            await visit.send(body[place : place + 1])
            await asyncio.sleep(0)

    whole = page(compress(TEXT[:300]), f"Content-Encoding: {coding}")
    head, body = whole[: whole.index(b"\r\n\r\n") + 4], whole[whole.index(b"\r\n\r\n") + 4 :]
    assert (await fetcher.fetch(server.serves(drip))).body == TEXT[:300]


async def test_codings_on_top_of_each_other_are_undone_in_turn(
    server: HostileServer, fetcher: Fetcher
) -> None:
    twice = brotli.compress(gzip.compress(TEXT))
    url = server.serves(page(twice, "Content-Encoding: gzip, br"))
    assert (await fetcher.fetch(url)).body == TEXT
    url = server.serves(page(TEXT, "Content-Encoding: gzip, br, gzip, br"))
    assert (await failure(fetcher, url)).code == codes.BAD_CODING


async def test_streams_of_several_members_are_read_and_padding_is_not(
    server: HostileServer, fetcher: Fetcher
) -> None:
    for coding, compress in (("gzip", gzip.compress), ("zstd", zstd.compress)):
        parts = compress(b"one ") + compress(b"") + compress(b"two")
        url = server.serves(page(parts, f"Content-Encoding: {coding}"))
        assert (await fetcher.fetch(url)).body == b"one two"
    padded = gzip.compress(b"one") + b"\0" * 64
    url = server.serves(page(padded, "Content-Encoding: gzip"))
    assert (await fetcher.fetch(url)).body == b"one"
    many = gzip.compress(b"") * 2_000
    url = server.serves(page(many, "Content-Encoding: gzip"))
    assert (await failure(fetcher, url)).code == codes.BAD_CODING


async def test_a_coding_that_is_not_there_is_not_insisted_on(
    server: HostileServer, fetcher: Fetcher
) -> None:
    for said in ("utf-8", "none", "identity", "gzip", ""):
        url = server.serves(page(TEXT, f"Content-Encoding: {said}"))
        assert (await fetcher.fetch(url)).body == TEXT


@each_coding
async def test_a_bomb_ends_at_the_cap_and_never_fills_the_memory(
    server: HostileServer, fetcher: Fetcher, coding: str, compress: Compress
) -> None:
    url = server.serves(page(_bomb(compress), f"Content-Encoding: {coding}"))
    tracemalloc.start()
    try:
        error = await failure(fetcher, url, max_bytes=MIB)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (error.code, error.transient) == (codes.TOO_LARGE, False)
    assert most < 16 * MIB


async def test_a_bomb_in_a_bomb_ends_at_the_cap(server: HostileServer, fetcher: Fetcher) -> None:
    nested = gzip.compress(_bomb(gzip.compress))
    url = server.serves(page(nested, "Content-Encoding: gzip, gzip"))
    assert (await failure(fetcher, url)).code == codes.TOO_LARGE


@each_coding
async def test_broken_and_cut_streams_are_told_apart(
    server: HostileServer, fetcher: Fetcher, coding: str, compress: Compress
) -> None:
    whole = compress(bytes(range(256)) * 20)
    cut = server.serves(page(whole[:-6], f"Content-Encoding: {coding}"))
    error = await failure(fetcher, cut)
    assert (error.code, error.transient) == (codes.BAD_RESPONSE, True)
    noise = whole[:1] + bytes(byte ^ 0xFF for byte in whole[1:])
    broken = server.serves(page(noise, f"Content-Encoding: {coding}"))
    assert (await failure(fetcher, broken)).code in {codes.BAD_CODING, codes.BAD_RESPONSE}


async def test_a_body_that_says_it_is_too_large_is_not_read(
    server: HostileServer, fetcher: Fetcher
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999999999\r\n\r\n"
    assert (await failure(fetcher, server.serves(head))).code == codes.TOO_LARGE


@pytest.mark.parametrize("framing", ["chunked", "until the end"])
async def test_an_endless_body_ends_at_the_cap(
    server: HostileServer, fetcher: Fetcher, framing: str
) -> None:
    async def endless(visit: Visit) -> None:
        piece = b"x" * 65_536
        is_chunked = framing == "chunked"
        kind = b"Transfer-Encoding: chunked\r\n" if is_chunked else b""
        await visit.send(b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n")
        while True:
            await visit.send(b"10000\r\n%b\r\n" % piece if is_chunked else piece)

    assert (await failure(fetcher, server.serves(endless), max_bytes=MIB)).code == codes.TOO_LARGE


async def test_a_trickle_ends_by_its_rate(server: HostileServer) -> None:
    async def trickle(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            await visit.send(b"x")
            await asyncio.sleep(0.02)

    async with impatient(patience=0.2) as fetcher:
        error = await failure(fetcher, server.serves(trickle))
    assert isinstance(error, FetchTimeout)
    assert "too slowly" in str(error)
    assert (error.code, error.transient) == ("SCRAPE_TIMEOUT", True)


async def test_silence_in_the_body_and_before_the_head_ends(server: HostileServer) -> None:
    async def silent(visit: Visit) -> None:
        await visit.reader.read()

    async def falls_silent(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        await visit.reader.read()

    async with impatient(silence=0.3) as fetcher:
        for act in (silent, falls_silent):
            error = await failure(fetcher, server.serves(act))
            assert isinstance(error, FetchTimeout)
            assert "silent" in str(error)


async def test_a_head_that_comes_drop_by_drop_ends_with_the_time(
    server: HostileServer, fetcher: Fetcher
) -> None:
    async def loris(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            await visit.send(b"X-Slow: 1\r\n")
            await asyncio.sleep(0.05)

    error = await failure(fetcher, server.serves(loris), timeout=0.3)
    assert isinstance(error, FetchTimeout)
    assert "0.3 s" in str(error)


async def test_a_body_shorter_than_it_says_is_an_error(
    server: HostileServer, fetcher: Fetcher
) -> None:
    async def short(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc")
        visit.writer.close()

    error = await failure(fetcher, server.serves(short))
    assert (error.code, error.transient) == (codes.BAD_RESPONSE, True)


async def test_what_follows_a_body_is_not_the_next_answer(
    server: HostileServer, fetcher: Fetcher
) -> None:
    smuggled = page(b"first") + page(b"smuggled")
    url, other = server.serves(smuggled), server.serves(page(b"other"))
    assert (await fetcher.fetch(url)).body == b"first"
    assert (await fetcher.fetch(other)).body == b"other"


def _bomb(compress: Compress) -> bytes:
    """Some hundred kilobytes at most that become 64 MiB."""
    return compress(bytes(64 * MIB))
