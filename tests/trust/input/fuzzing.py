"""Files that are broken by chance, by a seed: small real ones of each kind, torn, mixed and bent.

As a program (`python -m tests.trust.input.fuzzing KIND FIRST COUNT`) it reads so many of them in a
process of its own, whose memory is bounded, so that whoever asks can see it die or hang.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import resource as limits
import struct
import sys
import time
import wave
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.unit.ingest.convert import files
from tests.unit.ingest.convert.pages import URL, resource
from windrow.errors import WindrowError
from windrow.ingest.convert import convert
from windrow.ingest.convert.pdf_office import check_archive
from windrow.ingest.fetch.charset import detect_charset
from windrow.ingest.files.content import FileContent, to_text
from windrow.ingest.options import ScrapeOptions
from windrow.ingest.video.scrapecreators import text_of
from windrow.ingest.web.discovery import read_llms_txt
from windrow.ingest.web.robots import read_robots
from windrow.ingest.web.sitemap import read_sitemap

MEMORY: Final = 4 * 1024**3  # of the process, addresses included
PAGES: Final = Path(__file__).parents[2] / "vectors" / "pages"
NAMES: Final = ("a.docx", "a.xlsx", "a.pptx", "a.odt", "a.epub", "a.pdf", "a.html", "a.ipynb")
OPTIONS: Final = (
    {"formats": ["markdown", "html", "links", "images", "summary", "rawHtml"]},
    {"onlyMainContent": False, "formats": ["markdown", "links"]},
    {"includeTags": ["p", "div", "#a", ".b"], "excludeTags": ["a", "table"]},
)
# What parsers stumble over, put in anywhere.
STRAY: Final = (
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xae", b"<![CDATA[",
    b"<!DOCTYPE a [<!ENTITY b 'c'><!ENTITY d '&b;&b;&b;&b;'>]>", b"&d;" * 50, b"&#x110000;",
    b"<base href='http://[x'>", b"<a href='http://[::1'>", b"<a href='//%zz'>", b"&#0;",
    b"<img srcset=',,'>", b"<link rel=canonical href='http://['>", b"<meta charset='utf-7'>",
    b"<meta charset='\x00'>", b"<table>" * 40, b"<div>" * 300, b"</div>" * 300,
    b"<svg><foreignObject>", b"<template>", b"<meta http-equiv=refresh content='0;url=http://['>",
    b"<frameset>", b"<plaintext>", b"]]>", b"/Kids [1 0 R]", b"/Length 999999999", b"/Count -1",
    b"<< " * 100, b"endobj", b"%%EOF", b"User-agent: *\nDisallow: " + b"*" * 60 + b"$\n",
    b"Crawl-delay: 1e999\n", b"Sitemap: http://[\n", b"<loc>" * 20, b"<sitemapindex>",
    b"<loc>http://[</loc>", b"<?xml version='1.0' encoding='nope'?>", b"[x](http://[)",
    b"00:00:00.000 --> 99:99:99.999\n", b"\n" * 500, b"PK\x03\x04", b"PK\x05\x06",
)  # fmt: skip


def seeds(kind: str) -> list[bytes]:
    """Files of a kind as they should be."""
    match kind:
        case "html":
            return [path.read_bytes() for path in sorted(PAGES.iterdir())][:12]
        case "pdf":
            return [files.pdf(["# One\ntext", "two"], title="T"), files.pdf(["x"], encrypt=True)]
        case "office":
            return [
                files.docx("A", "b c"),
                files.xlsx([["a", "b"], ["1", "2"]]),
                files.pptx("T"),
                files.odt("p"),
                files.epub("T", "p"),
            ]
        case "archive":
            return [bomb(), nested(), outside()]
        case "text":
            return [
                b"# Title\n\n- a\n- [b](https://example.org/c)\n\n```py\nx = 1\n```\n",
                b'{"cells": [{"cell_type": "code", "source": ["a"]}], "metadata": {}}',
                b"a,b\n1,2\n",
                b"WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n<v A>Hello\n",
                b"# llms\n\n> about\n\n## Docs\n\n- [a](https://example.org/a): b\n",
            ]
        case "sitemap":
            plain = (
                b"<?xml version='1.0'?><urlset><url><loc>https://example.org/a</loc>"
                b"<lastmod>2026-01-01</lastmod></url></urlset>"
            )
            return [
                plain,
                gzip.compress(plain * 20),
                b"https://example.org/a\nhttps://b.example/\n",
            ]
        case "robots":
            return [b"User-agent: *\nDisallow: /a\nAllow: /a/b$\nSitemap: https://example.org/s\n"]
        case "audio":
            return [sound()]
    raise ValueError(kind)


def read(kind: str, body: bytes, chance: random.Random) -> str:
    """What becomes of it: a document, or which error of ours."""
    try:
        _READERS[kind](body, chance)
    except WindrowError as error:
        return type(error).__name__
    return "read"


def bend(body: bytes, chance: random.Random) -> bytes:
    """Broken in a few places."""
    made = bytearray(body)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        start = chance.randrange(len(made) + 1)
        end = min(len(made), start + chance.choice((1, 4, 32, 300)))
        match chance.randrange(7):
            case 0:
                del made[start:end]
            case 1:
                made[start:start] = chance.choice(STRAY)
            case 2:
                made[start:end] = made[start:end] * chance.randrange(2, 5)
            case 3:
                made[start:end] = chance.randbytes(end - start)
            case 4 if start < len(made):
                made[start] ^= 1 << chance.randrange(8)
            case 5:
                made[start : start + 4] = struct.pack("<I", chance.choice((0, 1, 2**31, 2**32 - 1)))
            case 6:
                del made[start:]
                made += body[chance.randrange(len(body) + 1) :]
    return bytes(made[: 2**20])


def repack(body: bytes, chance: random.Random) -> bytes:
    """An archive whose members are broken, and that is whole itself: otherwise none is reached."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as old, zipfile.ZipFile(made, "w") as new:
        for member in old.infolist():
            content = old.read(member)
            if chance.random() < 0.5:
                content = bend(content, chance)
            new.writestr(member, content)
    return made.getvalue()


def run(kind: str, first: int, count: int) -> dict[str, int]:
    """Read so many, from this seed on; how often what came of them. Other errors are raised."""
    told: dict[str, int] = {}
    originals = seeds(kind)
    for seed in range(first, first + count):
        chance = random.Random(f"{kind} {seed}")
        body = chance.choice(originals)
        is_whole = kind == "office" and chance.random() < 0.5
        broken = repack(body, chance) if is_whole else bend(body, chance)
        began = time.monotonic()
        try:
            what = read(kind, broken, chance)
        except BaseException as error:
            error.add_note(f"seed {seed} of {kind}")
            raise
        if time.monotonic() - began > 60:
            raise TimeoutError(f"seed {seed} of {kind} took longer than a minute")
        told[what] = told.get(what, 0) + 1
    return told


def _read_page(body: bytes, chance: random.Random) -> None:
    said = chance.choice(("text/html", "text/html; charset=utf-16", "application/xhtml+xml", ""))
    convert(resource(body, content_type=said), ScrapeOptions.parse(chance.choice(OPTIONS)))


def _read_pdf(body: bytes, chance: random.Random) -> None:
    convert(resource(body, content_type="application/pdf"))


def _read_office(body: bytes, chance: random.Random) -> None:
    name = chance.choice(NAMES)
    if chance.random() < 0.5:
        to_text(name, FileContent(body, 0, "0"))
    else:
        said = chance.choice((files.DOCX, files.XLSX, files.PPTX, files.ODT, files.EPUB, ""))
        convert(resource(body, content_type=said))


def _read_archive(body: bytes, chance: random.Random) -> None:
    check_archive(body, "archive")
    to_text(chance.choice(NAMES), FileContent(body, 0, "0"))


def _read_text(body: bytes, chance: random.Random) -> None:
    detect_charset(body, "text/plain")
    text = body.decode("utf-8", errors="replace")
    text_of(text)
    read_llms_txt(text, URL)
    name = chance.choice(("a.md", "a.txt", "a.csv", "a.ipynb", "a.json", "a.py", "a.rst", "a"))
    to_text(name, FileContent(body, 0, "0"))


def _read_sitemap(body: bytes, chance: random.Random) -> None:
    entries = list(read_sitemap(body, URL, max_entries=1000))
    assert all(isinstance(entry.url, str) for entry in entries)


def _read_robots(body: bytes, chance: random.Random) -> None:
    rules = read_robots(body, "https://example.org/robots.txt")
    rules.allows("https://example.org/a/b", None)


_READERS: Final[dict[str, Callable[[bytes, random.Random], None]]] = {
    "html": _read_page,
    "pdf": _read_pdf,
    "office": _read_office,
    "archive": _read_archive,
    "text": _read_text,
    "sitemap": _read_sitemap,
    "robots": _read_robots,
}
KINDS: Final = tuple(_READERS)


def bomb() -> bytes:
    """A small archive that is 200 MiB unpacked."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w") as member,
    ):
        for _ in range(200):
            member.write(bytes(2**20))
    return made.getvalue()


def nested() -> bytes:
    """An archive in an archive in an archive."""
    inner = b"text"
    for depth in range(20):
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{depth}.zip", inner)
        inner = made.getvalue()
    return inner


def outside() -> bytes:
    """Members that would be written somewhere else."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name in (
            "../../escaped",
            "/tmp/escaped",
            "C:\\escaped",
            "a/../../b",
            "\x00",
            "a" * 999,
        ):
            archive.writestr(zipfile.ZipInfo(name), b"<w:document/>")
    return made.getvalue()


def sound() -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(8000))
    return made.getvalue()


if __name__ == "__main__":
    limits.setrlimit(limits.RLIMIT_AS, (MEMORY, MEMORY))
    limits.setrlimit(limits.RLIMIT_CORE, (0, 0))
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
