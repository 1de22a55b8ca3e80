"""`SpeechKit`: Yandex SpeechKit, asynchronous recognition v2.

A start is paid for, whether or not its answer arrives: it is asked for once, and who asks keeps the
id before anything else. Polls are free and counted by the hour, as starts are: see `QUOTAS`.
"""

from __future__ import annotations

from typing import Final, Self

import msgspec

from windrow.errors import ProviderError
from windrow.ingest.providers import ANSWER_SECONDS, Answer, Provider
from windrow.ingest.transcribe.iam import Identity, open_identity
from windrow.ingest.transcribe.transcriber import Quota, Speech
from windrow.ingest.transcribe.transcript import Line, Transcript
from windrow.settings import Settings

NAME: Final = "SpeechKit"
START: Final = Quota("speechkit:start", per_hour=500)
POLL: Final = Quota("speechkit:poll", per_hour=2500)
LONGEST_SECONDS: Final = 4 * 3600.0
MODEL: Final = "general"


class _Word(msgspec.Struct, rename="camel"):
    start_time: str = "0s"
    end_time: str = "0s"


class _Alternative(msgspec.Struct):
    text: str = ""
    words: list[_Word] = []


class _Chunk(msgspec.Struct, rename="camel"):
    alternatives: list[_Alternative] = []
    channel_tag: str | int = ""


class _Response(msgspec.Struct):
    chunks: list[_Chunk] = []  # none where nobody speaks


class _Error(msgspec.Struct):
    code: int | str = ""
    message: str = ""


class _Operation(msgspec.Struct):
    id: str
    done: bool = False
    response: _Response | None = None
    error: _Error | None = None


class SpeechKit:
    model = f"speechkit:{MODEL}"
    wants_upload = True
    quotas = (START, POLL)
    # Recognition takes about ten seconds for each minute.
    seconds_per_second = 1 / 6

    def __init__(
        self,
        identity: Identity,
        *,
        url: str,
        operations_url: str,
        language: str = "ru-RU",
        poll_seconds: float = 5.0,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._identity = identity
        self._url = f"{url.rstrip('/')}/speech/stt/v2/longRunningRecognize"
        self._operations = f"{operations_url.rstrip('/')}/operations"
        self._language = language
        self.poll_seconds = poll_seconds
        self._starting = Provider(NAME, limit_key=START.key, seconds=answer_seconds)
        self._polling = Provider(NAME, limit_key=POLL.key, seconds=answer_seconds)

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        return cls(
            open_identity(settings),
            url=settings.speechkit_url,
            operations_url=settings.speechkit_operations_url,
            language=settings.speechkit_language,
            poll_seconds=settings.speechkit_poll_interval_ms / 1000,
        )

    async def start(self, speech: Speech) -> str:
        if speech.uri is None:
            raise ProviderError(NAME, "reads recordings from a bucket: set artifacts_url to one")
        if speech.seconds > LONGEST_SECONDS:
            hours = f"{speech.seconds / 3600:.1f}"
            raise ProviderError(NAME, f"takes recordings of up to 4 hours, not of {hours}")
        # No audioChannelCount: with OGG it is refused.
        specification = {
            "languageCode": self._language,
            "model": MODEL,
            "audioEncoding": "OGG_OPUS",
            "literature_text": True,
        }
        body = {"config": {"specification": specification}, "audio": {"uri": speech.uri}}
        answer = await self._ask(self._starting, "POST", self._url, body)
        return answer.read(_Operation).id

    async def poll(self, operation: str, speech: Speech) -> Transcript | None:
        answer = await self._ask(self._polling, "GET", f"{self._operations}/{operation}")
        found = answer.read(_Operation)
        if found.error is not None:  # it may be there before it is done
            why = f"could not transcribe this: {found.error.message} (code {found.error.code})"
            raise ProviderError(NAME, why)
        if not found.done:
            return None
        return Transcript(_lines(found.response or _Response()), self.model, self._language)

    async def close(self) -> None:
        for one in (self._identity, self._starting, self._polling):
            await one.close()

    async def _ask(self, provider: Provider, method: str, url: str, body: object = None) -> Answer:
        headers = {"Authorization": await self._header()}
        try:
            return await provider.ask(method, url, headers=headers, body=body)
        except ProviderError as error:
            if error.status != 401 or not self._identity.is_renewable:
                raise
        # A token may end before its time. Nothing was begun: it can be asked for again.
        headers = {"Authorization": await self._header(renew=True)}
        return await provider.ask(method, url, headers=headers, body=body)

    async def _header(self, *, renew: bool = False) -> str:
        try:
            return await self._identity.header(renew=renew)
        except ProviderError as error:
            error.was_sent = False  # not to SpeechKit, which is what counts
            raise


def _lines(response: _Response) -> tuple[Line, ...]:
    tags = {str(chunk.channel_tag) for chunk in response.chunks}
    lines: list[Line] = []
    for chunk in response.chunks:
        said = chunk.alternatives[0] if chunk.alternatives else _Alternative()
        if not said.text.strip():
            continue
        before = lines[-1].end if lines else 0.0
        start = _seconds(said.words[0].start_time) if said.words else before
        end = _seconds(said.words[-1].end_time) if said.words else start
        # With one channel its number says nothing of who speaks.
        speaker = str(chunk.channel_tag) if len(tags) > 1 else ""
        lines.append(Line(start, end, said.text.strip(), speaker))
    return tuple(sorted(lines, key=lambda line: line.start))


def _seconds(text: str) -> float:
    try:
        return float(text.removesuffix("s"))
    except ValueError:
        return 0.0
