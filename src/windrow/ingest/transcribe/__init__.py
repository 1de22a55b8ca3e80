"""From speech to text. A `Transcriber` is asked twice: `start` begins, `poll` fetches what came of
it; in between nobody needs to wait."""

from __future__ import annotations

from windrow.ingest.transcribe.transcriber import Quota, Speech, Transcriber, open_transcriber
from windrow.ingest.transcribe.transcript import Line, Transcript

__all__ = ["Line", "Quota", "Speech", "Transcriber", "Transcript", "open_transcriber"]
