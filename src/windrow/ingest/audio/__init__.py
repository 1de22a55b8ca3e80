"""Recordings: what is in a file, its sound alone, and that sound in pieces, all by ffmpeg.

A file that is no recording, or a broken one, is named as such: `UnsupportedFormat`,
`ConversionError`. Neither becomes better by another try.
"""

from __future__ import annotations

from windrow.ingest.audio.extracting import Audio, extract_audio, to_ogg_opus
from windrow.ingest.audio.ffmpeg import find_ffmpeg
from windrow.ingest.audio.pieces import SAMPLE_RATE, Piece, read_pieces
from windrow.ingest.audio.probing import Probe, probe

__all__ = [
    "SAMPLE_RATE",
    "Audio",
    "Piece",
    "Probe",
    "extract_audio",
    "find_ffmpeg",
    "probe",
    "read_pieces",
    "to_ogg_opus",
]
