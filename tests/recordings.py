"""Recordings for tests: real speech, silence, and files that are broken in every way there is."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from windrow.ingest.audio import find_ffmpeg

SAID = "Please call me back about the invoice tomorrow morning."


def ffmpeg(*arguments: str) -> None:
    command = [find_ffmpeg(), "-hide_banner", "-loglevel", "error", "-nostdin", "-y", *arguments]
    subprocess.run(command, check=True, timeout=60)


def recorded_speech(folder: Path) -> Path:
    """The first words of a reading of A Tale of Two Cities, which comes with the recogniser."""
    import moonshine_voice

    whole = Path(moonshine_voice.__file__).parent / "assets" / "two_cities.wav"
    path = folder / "two_cities.wav"
    ffmpeg("-i", str(whole), "-t", "6", str(path))
    return path


def spoken(folder: Path, text: str = SAID) -> Path:
    """Speech made by espeak-ng, which `.ci/run` installs where it may."""
    espeak = shutil.which("espeak-ng")
    if espeak is None:
        pytest.skip("espeak-ng IS MISSING: made-up speech is NOT TESTED here (apt: espeak-ng)")
    path = folder / "spoken.wav"
    subprocess.run([espeak, "-s", "140", "-w", str(path), text], check=True, timeout=60)
    return path


def silence(folder: Path, seconds: float, name: str = "silence.ogg") -> Path:
    path = folder / name
    source = f"anullsrc=r=8000:cl=mono:d={seconds}"
    ffmpeg("-f", "lavfi", "-i", source, "-c:a", "libopus", "-b:a", "6k", str(path))
    return path


def tone(folder: Path, name: str, seconds: float = 3, *options: str) -> Path:
    """A sound that is no speech, in the container that the name says."""
    path = folder / name
    ffmpeg("-f", "lavfi", "-i", f"sine=frequency=300:duration={seconds}", *options, str(path))
    return path


def picture_only(folder: Path) -> Path:
    path = folder / "silent_film.mp4"
    ffmpeg("-f", "lavfi", "-i", "color=c=red:s=64x64:d=1", str(path))
    return path


def not_audio(folder: Path) -> Path:
    path = folder / "notes.mp3"
    path.write_text("This is a letter, whatever it is called.\n" * 50)
    return path


def empty(folder: Path) -> Path:
    path = folder / "empty.wav"
    path.write_bytes(b"")
    return path


def corrupted(folder: Path) -> Path:
    """A container whose table of contents, at its end, is cut off."""
    whole = tone(folder, "whole.m4a")
    path = folder / "corrupted.m4a"
    path.write_bytes(whole.read_bytes()[:3000])
    return path


def unknown_codec(folder: Path) -> Path:
    """A WAV file that says its sound is in a codec nobody knows."""
    data = bytearray(tone(folder, "known.wav").read_bytes())
    place = data.find(b"fmt ") + 8
    data[place : place + 2] = struct.pack("<H", 0x7799)
    path = folder / "unknown_codec.wav"
    path.write_bytes(data)
    return path


def long_silence(folder: Path, seconds: int) -> Path:
    """Hours of it cost nothing: a WAV file with a hole in it."""
    path = folder / "hours.wav"
    rate, size = 8000, seconds * 8000 * 2
    form = struct.pack("<HHIIHH", 1, 1, rate, rate * 2, 2, 16)
    head = b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + struct.pack("<I", len(form))
    with path.open("wb") as file:
        file.write(head + form + b"data" + struct.pack("<I", size))
        file.truncate(44 + size)
    return path
