"""SpeechKit's client: who it says it is, and how it reads what it is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.calls.speechkit_server import KEY, SpeechKitServer, chunk, open_speechkit
from windrow.errors import ConfigError, ProviderError
from windrow.ingest.transcribe import Speech, Transcriber, open_transcriber
from windrow.ingest.transcribe.local import LocalTranscriber
from windrow.ingest.transcribe.speechkit import IamTokens, SpeechKit, open_identity
from windrow.settings import Settings, load_settings

SPEECH = Speech(Path(), 60.0)
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
async def server() -> AsyncIterator[SpeechKitServer]:
    async with open_speechkit() as opened:
        opened.operations["op-1"] = "somewhere"
        opened.public_key = PRIVATE.public_key()
        yield opened


def settings_of(server: SpeechKitServer, **more: str) -> Settings:
    urls = {f"speechkit_{name}": server.url for name in ("url", "operations_url", "iam_url")}
    return load_settings({**urls, **more}, environment={"PATH": ""})


def account(folder: Path) -> Path:
    """The file of a service account, as Yandex Cloud makes it."""
    pem = PRIVATE.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    path = folder / "authorized_key.json"
    warning = "PLEASE DO NOT REMOVE THIS LINE! Yandex.Cloud SA Key ID <ajek1>\n"
    body = {"id": "ajek1", "service_account_id": "ajesa", "private_key": warning + pem}
    path.write_text(json.dumps({**body, "key_algorithm": "RSA_2048"}))
    return path


async def test_a_key_is_sent_as_it_is(server: SpeechKitServer) -> None:
    transcriber = open_transcriber(settings_of(server, speechkit_key=KEY))
    transcript = await transcriber.poll("op-1", SPEECH)
    assert transcript is not None
    assert transcript.text == "The invoice was sent on Monday."
    await transcriber.close()
    wrong = open_transcriber(settings_of(server, speechkit_key="wrong"))
    with pytest.raises(ProviderError, match="401"):
        await wrong.poll("op-1", SPEECH)
    await wrong.close()


async def test_the_token_of_an_account_is_used_until_it_nears_its_end(
    server: SpeechKitServer, tmp_path: Path
) -> None:
    settings = settings_of(server, speechkit_account=str(account(tmp_path)))
    transcriber = open_transcriber(settings)
    for _ in range(3):
        await transcriber.poll("op-1", SPEECH)
    assert len(server.exchanged) == 1
    claims = server.exchanged[0]
    assert (claims["kid"], claims["iss"], claims["alg"]) == ("ajek1", "ajesa", "PS256")
    assert claims["aud"].endswith("/iam/v1/tokens")
    await transcriber.close()

    server.token_seconds = 300.0  # its end is near from the beginning
    transcriber = open_transcriber(settings)
    for _ in range(2):
        await transcriber.poll("op-1", SPEECH)
    assert len(server.exchanged) == 3
    await transcriber.close()


async def test_a_token_that_is_refused_is_renewed_once(
    server: SpeechKitServer, tmp_path: Path
) -> None:
    transcriber = open_transcriber(settings_of(server, speechkit_account=str(account(tmp_path))))
    await transcriber.poll("op-1", SPEECH)
    server.tokens.clear()
    assert await transcriber.poll("op-1", SPEECH) is not None
    assert len(server.exchanged) == 2
    await transcriber.close()


async def test_without_a_token_speechkit_was_not_asked(
    server: SpeechKitServer, tmp_path: Path
) -> None:
    settings = settings_of(server, speechkit_account=str(account(tmp_path)))
    transcriber = open_transcriber(replace(settings, speechkit_iam_url="http://127.0.0.1:1"))
    with pytest.raises(ProviderError, match="IAM does not answer") as raised:
        await transcriber.start(Speech(Path(), 60.0, "https://bucket/speech.ogg"))
    assert raised.value.transient
    assert not raised.value.was_sent
    await transcriber.close()


async def test_a_virtual_machine_has_its_account_from_its_metadata(
    server: SpeechKitServer,
) -> None:
    tokens = IamTokens(f"{server.url}/metadata")
    assert await tokens.header() == "Bearer from-metadata"
    await tokens.close()


async def test_lines_have_their_times_and_channels(server: SpeechKitServer) -> None:
    server.said = [
        chunk("Second.", 2, 3.5, "2"),
        chunk("First.", 0.88, 1.4, "1"),
        {"alternatives": [{"text": "  "}], "channelTag": "1"},
        {"alternatives": [{"text": "No times."}], "channelTag": "1"},
        {"alternatives": []},
    ]
    transcriber = open_transcriber(settings_of(server, speechkit_key=KEY))
    transcript = await transcriber.poll("op-1", SPEECH)
    assert transcript is not None
    said = [(line.text, line.start, line.end, line.speaker) for line in transcript.lines]
    assert said[:2] == [("First.", 0.88, 1.4, "1"), ("No times.", 1.4, 1.4, "1")]
    assert said[2] == ("Second.", 2.0, 3.5, "2")
    await transcriber.close()


async def test_more_than_four_hours_is_refused_before_anything_is_sent(
    server: SpeechKitServer,
) -> None:
    transcriber: Transcriber = open_transcriber(settings_of(server, speechkit_key=KEY))
    speech = Speech(Path(), 4 * 3600 + 60.0, "https://bucket/speech.ogg")
    with pytest.raises(ProviderError, match="up to 4 hours") as raised:
        await transcriber.start(speech)
    assert not raised.value.transient
    assert server.asked == {}
    await transcriber.close()


def test_who_transcribes_is_what_the_settings_say(tmp_path: Path) -> None:
    assert isinstance(open_transcriber(Settings()), LocalTranscriber)
    assert isinstance(open_transcriber(Settings(speechkit_key="k")), SpeechKit)
    with pytest.raises(ConfigError, match="no authorized key"):
        open_identity(Settings(speechkit_account=str(tmp_path / "none.json")))


@pytest.mark.parametrize(
    "name", ["SPEECHKIT_POLL_INTERVAL_MS", "WINDROW_SPEECHKIT_POLL_INTERVAL_MS"]
)
def test_j5_the_time_between_polls_is_a_setting(tmp_path: Path, name: str) -> None:
    settings = load_settings(environment={name: "1500"}, folder=tmp_path)
    assert settings.speechkit_poll_interval_ms == 1500
    both = {"SPEECHKIT_POLL_INTERVAL_MS": "1", "WINDROW_SPEECHKIT_POLL_INTERVAL_MS": "2000"}
    assert load_settings(environment=both, folder=tmp_path).speechkit_poll_interval_ms == 2000
    transcriber = open_transcriber(Settings(speechkit_key="k", speechkit_poll_interval_ms=1500))
    assert transcriber.poll_seconds == 1.5
