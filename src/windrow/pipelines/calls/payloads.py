"""What the stages of a call hand to each other, and where its parts are kept."""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from typing import Final

import msgspec

from windrow.queue.store import Capabilities

# The queue of the dialect of this name, whose rows these jobs are.
QUEUE: Final = "processing_jobs"
CHAIN: Final = "call"
STAGES: Final = ("extract_audio", "transcribe_start", "transcribe_poll", "analyze")
EXTRACT: Final = f"{CHAIN}.{STAGES[0]}"
PENDING: Final = "pending"
DONE: Final = "done"
FAILED: Final = "failed"
_NAMESPACE: Final = uuid.UUID("0c1d4b52-4f3e-4f5c-8f5e-2b8f5a1f7c11")
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class ExtractPayload(msgspec.Struct, frozen=True):
    call_id: str


class StartPayload(msgspec.Struct, frozen=True):
    call_id: str
    seconds: float


class PollPayload(msgspec.Struct, frozen=True):
    call_id: str
    seconds: float
    operation_id: str


class AnalyzePayload(msgspec.Struct, frozen=True):
    call_id: str


@dataclass(frozen=True, slots=True)
class Keys:
    """Where the parts of a call are in the store of artifacts: the same for each run."""

    tenant: str | None
    call_id: str

    @property
    def source(self) -> str:
        """The recording as it came; it goes when its sound was taken out."""
        return self._key("source")

    @property
    def audio(self) -> str:
        return self._key("audio.flac")

    @property
    def speech(self) -> str:
        """What a provider fetches; it goes when there is a transcript."""
        return self._key("speech.ogg")

    @property
    def transcript(self) -> str:
        return self._key("transcript.json")

    def _key(self, name: str) -> str:
        return f"calls/{_folder(self.tenant)}/{self.call_id}/{name}"


def queue_of(stage: str, capabilities: Capabilities) -> str:
    """Where the jobs of a stage wait. Each stage has a queue of its own where a worker cannot
    choose among the jobs of one."""
    return QUEUE if capabilities.exact_claims else f"{CHAIN}.{stage}"


def call_id_of(tenant: str | None, digest: str) -> str:
    """The id of a call: the same recording of the same tenant is the same call."""
    return str(uuid.uuid5(_NAMESPACE, f"{tenant or ''}\0{digest}"))


def tag_of(call_id: str) -> str:
    """By which the jobs of a call are found."""
    return f"call:{call_id}"


def _folder(tenant: str | None) -> str:
    """A tenant's name as a folder: names that are none are told apart by their hash."""
    if tenant is None:
        return "_"
    if _PLAIN.fullmatch(tenant):
        return tenant
    return f"={hashlib.sha256(tenant.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
