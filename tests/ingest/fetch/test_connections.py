"""Connections: each way to fail has its code, and is tried again only where that is safe."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.ingest.fetch.hostile import HostileServer, Visit, page
from windrow.errors import FetchError, FetchTimeout
from windrow.ingest.fetch import codes
from windrow.ingest.fetch.fetcher import Fetcher
from windrow.ingest.fetch.guard import Guard
from windrow.ingest.fetch.limits import FetchLimits


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_write_certificate(tmp_path_factory.mktemp("tls") / "both.pem"))
    with HostileServer(tls=context) as server:
        yield server


async def failure(fetcher: Fetcher, url: str) -> FetchError:
    with pytest.raises(FetchError) as raised:
        await fetcher.fetch(url)
    return raised.value


async def test_a_certificate_of_nobody_is_refused_unless_asked_otherwise(
    tls_server: HostileServer, fetcher: Fetcher
) -> None:
    url = tls_server.serves(page(b"in private"))
    error = await failure(fetcher, url)
    assert (error.code, error.transient) == (codes.TLS, False)
    assert (await fetcher.fetch(url, verify_tls=False)).body == b"in private"
    assert (await failure(fetcher, url)).code == codes.TLS, "the open connection is not shared"


async def test_a_server_without_tls_is_told_apart(server: HostileServer, fetcher: Fetcher) -> None:
    url = server.serves(page()).replace("http://", "https://")
    assert (await failure(fetcher, url)).code in {codes.TLS, codes.RESET}


async def test_nobody_listening_is_tried_twice_and_refused(fetcher: Fetcher) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        error = await failure(fetcher, f"http://127.0.0.1:{free.getsockname()[1]}/")
    assert (error.code, error.transient) == (codes.REFUSED, True)


async def test_a_name_that_does_not_exist_is_for_good(fetcher: Fetcher) -> None:
    error = await failure(fetcher, "http://windrow-nobody.invalid/")
    assert error.code == codes.DNS
    assert "windrow-nobody.invalid" in str(error)


@pytest.mark.parametrize(
    ("number", "is_transient"), [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)]
)
async def test_a_name_server_that_is_away_is_another_matter_than_a_wrong_name(
    fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, number: int, is_transient: bool
) -> None:
    def look_up(*_: object) -> None:
        raise socket.gaierror(number, "no")

    monkeypatch.setattr("windrow.ingest.fetch.resolver._look_up", look_up)
    error = await failure(fetcher, "http://somewhere.example/")
    assert (error.code, error.transient) == (codes.DNS, is_transient)


async def test_a_name_server_that_says_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()

    def look_up(*_: object) -> list[object]:
        answered.wait(10)
        return []

    monkeypatch.setattr("windrow.ingest.fetch.resolver._look_up", look_up)
    async with Fetcher(limits=FetchLimits(connect_seconds=0.1)) as fetcher:
        error = await failure(fetcher, "http://somewhere.example/")
        answered.set()
    assert (error.code, error.transient) == (codes.DNS, True)
    assert "did not answer within 0.1 s" in str(error)


async def test_a_reset_before_the_answer_is_tried_again(
    server: HostileServer, fetcher: Fetcher
) -> None:
    async def shaky(visit: Visit) -> None:
        if len(server.visits[visit.path]) < 3:
            visit.reset()
        else:
            await visit.send(page(b"at last"))

    async def broken(visit: Visit) -> None:
        visit.reset()

    assert (await fetcher.fetch(server.serves(shaky))).body == b"at last"
    url = server.serves(broken)
    error = await failure(fetcher, url)
    assert (error.code, error.transient) == (codes.RESET, True)
    assert 2 <= len(server.seen(url)) <= 4


async def test_a_reset_in_the_body_is_not_tried_again(
    server: HostileServer, fetcher: Fetcher
) -> None:
    async def half(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        visit.reset()

    url = server.serves(half)
    error = await failure(fetcher, url)
    assert error.code in {codes.RESET, codes.BAD_RESPONSE}
    assert error.transient
    assert len(server.seen(url)) == 1


async def test_an_idle_connection_that_the_server_closed_is_no_failure(
    server: HostileServer, fetcher: Fetcher
) -> None:
    async def once(visit: Visit) -> None:
        await visit.send(page(b"ok"))
        visit.writer.close()

    url = server.serves(once)
    for _ in range(5):
        assert (await fetcher.fetch(url)).body == b"ok"


async def test_nobody_answering_the_call_is_a_timeout() -> None:
    with socket.socket() as full:
        # A backlog that is full: the kernel lets further connections wait.
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        limits = FetchLimits(connect_seconds=0.2)
        async with Fetcher(guard=Guard(allow_private=True), limits=limits) as fetcher:
            error = await failure(fetcher, f"http://127.0.0.1:{full.getsockname()[1]}/")
        for one in waiting:
            one.close()
    assert isinstance(error, FetchTimeout)
    assert "connection" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 " + b"y" * 100_000 + b"\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello-and-more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 100_000,
    ],
    ids=lambda answer: repr(answer[:60]),
)
async def test_what_is_no_http_is_told_and_bounded(
    server: HostileServer, fetcher: Fetcher, answer: bytes
) -> None:
    async def act(visit: Visit) -> None:
        await visit.send(answer)
        visit.writer.close()

    error = await failure(fetcher, server.serves(act))
    assert error.code in {codes.BAD_RESPONSE, codes.RESET}
    assert len(str(error)) < 500


async def test_many_interim_answers_end_with_the_time(
    server: HostileServer, fetcher: Fetcher
) -> None:
    async def interim(visit: Visit) -> None:
        while True:
            await visit.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 50)

    with pytest.raises(FetchError):
        await fetcher.fetch(server.serves(interim), timeout=0.2)


@pytest.mark.parametrize(
    "url",
    ["", "no-scheme", "ftp://example.org/", "http://", "http://a b/", "http://x:99999/"],
)
async def test_what_is_no_url_of_the_web_is_refused(fetcher: Fetcher, url: str) -> None:
    error = await failure(fetcher, url)
    assert (error.code, error.transient) == (codes.INVALID_URL, False)


async def test_secrets_of_a_url_are_in_no_message(fetcher: Fetcher) -> None:
    for url in ("ftp://me:hush@x.example/", "http://me:hush@x.invalid/", "http://me:hush@[::1]/"):
        error = await failure(fetcher, url)
        assert "hush" not in f"{error!r} {vars(error)}"


def _write_certificate(path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(pem)
    )
    return path
