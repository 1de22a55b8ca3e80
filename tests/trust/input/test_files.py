"""Broken files of every kind become a document or an error of ours: nothing hangs, nothing dies."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recordings import tone
from tests.trust.input.fuzzing import KINDS, bend, nested, outside, run, sound
from tests.trust.scorecard import record_input
from windrow.errors import WindrowError
from windrow.ingest.audio import extract_audio, probe, to_ogg_opus
from windrow.ingest.files.content import FileContent, to_text

CONTAINERS = ("wav", "mp3", "ogg", "mp4", "flac")
FEW = {"html": 40, "office": 40, "pdf": 25}
MANY = 3000
FILES = {
    "html": "pages of HTML",
    "pdf": "PDF files",
    "office": "office files",
    "archive": "archives, and bombs",
    "text": "text files",
    "sitemap": "sitemaps",
    "robots": "robots.txt files",
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "archive"])
def test_broken_files_are_read_or_refused(kind: str) -> None:
    count = FEW.get(kind, 60)
    told = run(kind, 0, count)
    assert sum(told.values()) == count
    assert set(told) <= {"read", "ConversionError", "UnsupportedFormat", "FileTooLarge"}


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_very_many_broken_files_neither_kill_nor_hang_their_reader(kind: str) -> None:
    count = 40 if kind == "archive" else MANY
    ended = subprocess.run(
        [sys.executable, "-m", "tests.trust.input.fuzzing", kind, "1000", str(count)],
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    told = json.loads(ended.stdout)
    assert sum(told.values()) == count
    words = ", ".join(f"{n:,} {error}" for error, n in sorted(told.items()) if error != "read")
    record_input(f"broken {FILES[kind]}", given=count, taken=told.get("read", 0), note=words)


def test_archives_within_archives_and_names_outside_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for body in (nested(), outside()):
        for name in ("a.docx", "a.epub", "a.odt", "a.zip"):
            with pytest.raises(WindrowError):
                to_text(name, FileContent(body, 0, "0"))
    assert list(tmp_path.iterdir()) == []
    assert not Path("/tmp/escaped").exists()


async def hear(seeds: range, folder: Path) -> int:
    """How many broken recordings, in one container after the other, were understood all the same,
    up to what a recogniser is given."""
    whole = [sound(), *(tone(folder, f"whole.{name}", 2).read_bytes() for name in CONTAINERS[1:])]
    heard = 0
    for seed in seeds:
        place = seed % len(CONTAINERS)
        path = folder / f"{seed}.{CONTAINERS[place]}"
        path.write_bytes(bend(whole[place], random.Random(seed)))
        try:
            await probe(path)
            await extract_audio(path, folder / f"{seed}.heard.wav")
            await to_ogg_opus(folder / f"{seed}.heard.wav", folder / f"{seed}.heard.ogg")
            heard += 1
        except WindrowError:
            continue
    return heard


async def test_broken_recordings_are_heard_or_refused(tmp_path: Path) -> None:
    await hear(range(len(CONTAINERS)), tmp_path)


@pytest.mark.chaos
async def test_very_many_broken_recordings_are_heard_or_refused(tmp_path: Path) -> None:
    heard = await hear(range(1000, 1200), tmp_path)
    assert 0 < heard < 200
    record_input("broken recordings", given=200, taken=heard)
