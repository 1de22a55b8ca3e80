"""`EndpointEmbedder`: a model behind an OpenAI-compatible `/embeddings`.

Requests are as large as the endpoint takes them, several at a time. When it says that it is asked
too often, short waits are waited and long ones become `RateLimited`. A batch that it refuses is
halved until the texts are found that it does not take; the others are not to blame.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Self

import aiohttp
import msgspec
import numpy as np
from numpy.typing import NDArray
from yarl import URL

from windrow.errors import (
    ConfigError,
    EmbedderUnavailable,
    EmbeddingError,
    EmbeddingRefused,
    RateLimited,
)
from windrow.index.chunk import without_lone_surrogates
from windrow.index.embed.unit import to_unit_length
from windrow.ingest.providers import read_refusal
from windrow.settings import Settings

MOST_TEXTS: Final = 128  # of one request
MOST_TOKENS: Final = 60_000  # of one request
BYTES_PER_TOKEN: Final = 3  # a low guess: a batch must not turn out larger than it looks
ASKED_AT_ONCE: Final = 4
ANSWER_SECONDS: Final = 120.0
CONNECT_SECONDS: Final = 10.0
LONGEST_WAIT: Final = 5.0  # seconds waited here when asked too often; for longer the job waits
MOST_WAITS: Final = 3
LARGEST_ANSWER: Final = 64 * 1024 * 1024
CONTROL: Final = "windrow"  # a text that everybody takes

Texts = list[tuple[int, str]]  # with their places among those that were handed in
Rows = dict[int, NDArray[np.float32]]


class _Row(msgspec.Struct):
    index: int
    embedding: str | list[float]


class _Answer(msgspec.Struct):
    data: list[_Row]


class _Refused(Exception):
    """The endpoint says that what it was sent is wrong."""


class EndpointEmbedder:
    """async with await EndpointEmbedder.open(settings) as embedder: await embedder.embed(["…"])"""

    def __init__(
        self, url: str, model: str, key: str = "", *, dimension: int = 0, is_cut: bool = False
    ) -> None:
        self._url = f"{url.rstrip('/')}/embeddings"
        self._limit_key = f"embed:{URL(url).host or url}"
        self.model = model
        self._key = key
        self._dimension = dimension
        self._is_cut = is_cut  # the endpoint is asked to make vectors of that length
        self._takes_base64 = True
        self._session: aiohttp.ClientSession | None = None
        self._places = asyncio.Semaphore(ASKED_AT_ONCE)

    @classmethod
    async def open(cls, settings: Settings, *, dimension: int = 0) -> Self:
        """Asks for the length of its vectors, unless that is known."""
        if URL(settings.embed_url).scheme not in ("http", "https"):
            raise ConfigError("embed_url must begin with http:// or https://, or be fastembed:")
        embedder = cls(
            settings.embed_url,
            settings.embed_model,
            settings.embed_key,
            dimension=settings.embed_dimension or dimension,
            is_cut=bool(settings.embed_dimension),
        )
        if not embedder.dimension:
            try:
                await embedder.embed([CONTROL])
            except BaseException:
                await embedder.close()
                raise
        return embedder

    @property
    def dimension(self) -> int:
        return self._dimension

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Raises `EmbeddingRefused` with the places of all texts that are not taken."""
        numbered = [
            (place, without_lone_surrogates(text) or " ") for place, text in enumerate(texts)
        ]
        waits = 0 if query else MOST_WAITS
        answers = await _all([self._embed(batch, waits) for batch in _batches(numbered)])
        rows: Rows = {}
        refused: dict[int, str] = {}
        for found, not_taken in answers:
            rows |= found
            refused |= not_taken
        if refused:
            raise EmbeddingRefused(sorted(refused), next(iter(refused.values())))
        if not rows:
            return np.zeros((0, self._dimension), np.float32)
        return to_unit_length(np.stack([rows[place] for place in range(len(texts))]))

    async def _embed(self, batch: Texts, waits: int) -> tuple[Rows, dict[int, str]]:
        """The rows of a batch, and why there are none for some of it."""
        try:
            return await self._ask(batch, waits), {}
        except _Refused as error:
            if len(batch) == 1:
                await self._check_that_others_are_taken(error, waits)
                return {}, {batch[0][0]: str(error)}
        rows: Rows = {}
        refused: dict[int, str] = {}
        for half in (batch[: len(batch) // 2], batch[len(batch) // 2 :]):
            found, not_taken = await self._embed(half, waits)
            rows |= found
            refused |= not_taken
        return rows, refused

    async def _check_that_others_are_taken(self, error: _Refused, waits: int) -> None:
        """What is refused with every text is refused for another reason: the name of the model."""
        try:
            await self._ask([(0, CONTROL)], waits)
        except _Refused:
            raise EmbedderUnavailable(f"the embedder refuses every text: {error}") from error

    async def _ask(self, batch: Texts, waits: int) -> Rows:
        """One request, sent again after a short wait if there are too many of them."""
        while True:
            try:
                async with self._places:
                    return self._read(batch, await self._request(batch))
            except RateLimited as error:
                wait = error.retry_after if error.retry_after is not None else 1.0
                if waits <= 0 or wait > LONGEST_WAIT:
                    raise
                waits -= 1
                await asyncio.sleep(wait)

    async def _request(self, batch: Texts) -> bytes:
        body: dict[str, Any] = {"model": self.model, "input": [text for _, text in batch]}
        if self._is_cut:
            body["dimensions"] = self._dimension
        if not self._takes_base64:
            return await self._post(body)
        try:
            return await self._post({**body, "encoding_format": "base64"})
        except _Refused:
            # Some do not know this field; from one that does, the second refusal is the answer.
            answer = await self._post(body)
            self._takes_base64 = False
            return answer

    async def _post(self, body: Mapping[str, Any], *, is_again: bool = False) -> bytes:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        sent = msgspec.json.encode(body)
        try:
            async with self._open().post(self._url, data=sent, headers=headers) as response:
                answer = await _read_at_most(response, LARGEST_ANSWER)
        except aiohttp.ServerDisconnectedError as error:
            # A connection that was kept open had been closed by the other side: no answer is lost.
            if not is_again:
                return await self._post(body, is_again=True)
            raise EmbedderUnavailable(f"the embedder does not answer: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise EmbedderUnavailable(f"the embedder does not answer: {why}") from error
        self._check(response.status, response.headers, answer)
        return answer

    def _check(self, status: int, headers: Mapping[str, str], answer: bytes) -> None:
        refusal = read_refusal(status, headers, answer, [self._key])
        if refusal is None:
            return
        said = f"answers with {status}: {refusal.why}"
        if refusal.is_too_often:
            raise RateLimited(self._limit_key, refusal.retry_after)
        if status in (402, 429):
            raise EmbeddingError(f"the embedder {said}")  # nothing but money helps
        if status in (400, 413, 422):
            raise _Refused(f"it {said}")
        # Whatever else it is, a wrong key or a wrong path too, is not for these texts to pay for.
        raise EmbedderUnavailable(f"the embedder {said}")

    def _read(self, batch: Texts, answer: bytes) -> Rows:
        try:
            found = msgspec.json.decode(answer, type=_Answer).data
            rows = {batch[row.index][0]: _vector(row.embedding) for row in found if row.index >= 0}
        except (msgspec.DecodeError, IndexError, ValueError, binascii.Error) as error:
            raise EmbedderUnavailable(f"the embedder's answer is none: {error}") from error
        if len(rows) != len(batch):
            raise EmbedderUnavailable(
                f"the embedder was sent {len(batch)} texts and answers with {len(rows)} vectors"
            )
        for row in rows.values():
            self._check_dimension(row)
        return rows

    def _check_dimension(self, row: NDArray[np.float32]) -> None:
        self._dimension = self._dimension or len(row)
        if len(row) != self._dimension:
            raise EmbeddingError(
                f"the vectors of {self.model} have {len(row)} numbers, not {self._dimension}: it "
                "is not the model that this collection was made with"
            )
        if not np.isfinite(row).all():
            raise EmbedderUnavailable("the embedder answers with what is no number")

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS)
            )
        return self._session


def _batches(texts: Texts) -> Iterator[Texts]:
    batch: Texts = []
    tokens = 0
    for place, text in texts:
        cost = len(text.encode()) // BYTES_PER_TOKEN + 1
        if batch and (len(batch) == MOST_TEXTS or tokens + cost > MOST_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append((place, text))
        tokens += cost
    if batch:
        yield batch


async def _all(asked: list[Any]) -> list[tuple[Rows, dict[int, str]]]:
    """What all of them return; the first that fails ends the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in asked]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


async def _read_at_most(response: aiohttp.ClientResponse, most: int) -> bytes:
    answer = bytearray()
    async for piece in response.content.iter_chunked(256 * 1024):
        answer += piece
        if len(answer) > most:
            raise EmbedderUnavailable(f"the embedder's answer is larger than {most} bytes")
    return bytes(answer)


def _vector(embedding: str | list[float]) -> NDArray[np.float32]:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    return np.array(embedding, np.float32)
