"""Settings: defaults < `windrow.toml` < `WINDROW_*` environment < flags; documented once, here.

"Not given" is kept apart from "given as the default": a layer only overrides what it names.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from windrow.errors import ConfigError
from windrow.redaction import redact_text

FILE: Final = "windrow.toml"
PREFIX: Final = "WINDROW_"
TRUE: Final = ("1", "true", "yes", "on")
FALSE: Final = ("0", "false", "no", "off")
# Set by a supervisor for the workers it starts: its process id, and which of them is not the first.
SUPERVISOR: Final = "WINDROW_SUPERVISOR"
SIBLING: Final = "WINDROW_SIBLING"
# What else may be in the environment: those, and what the guides set for clients of the HTTP API.
_OTHER_VARIABLES: Final = frozenset({SUPERVISOR, SIBLING, "WINDROW_URL", "WINDROW_API_KEY"})


def _setting(default: Any, doc: str, *, is_secret: bool = False, also: str = "") -> Any:
    """`also` is another name that the environment may have for it."""
    return field(default=default, metadata={"doc": doc, "also": also}, repr=not is_secret)


@dataclass(frozen=True, slots=True)
class Settings:
    database_url: str = _setting(
        "sqlite:///windrow.db", "Where jobs are kept: sqlite:///path or postgresql://…"
    )
    database_direct_url: str = _setting(
        "", "The same database past a pooler, for LISTEN; empty: database_url leads there directly"
    )
    notifier: str = _setting(
        "",
        "Who wakes sleeping workers: postgres (NOTIFY), polling or amqp://… (RabbitMQ); empty: the "
        "database itself",
    )
    handlers: str = _setting(
        "",
        "Modules that `windrow worker` takes handlers from, with spaces or commas between; empty: "
        "web, knowledge, video, calls and index, Windrow's own",
    )
    max_payload_bytes: int = _setting(4 * 1024 * 1024, "The largest payload taken, as JSON")
    max_result_bytes: int = _setting(64 * 1024 * 1024, "The largest result taken, as JSON")
    archive_dir: str = _setting(
        "", "A folder that finished jobs are written to before they are removed; empty: none"
    )
    max_page_bytes: int = _setting(
        1024 * 1024 * 1024, "What pages of earlier scrapes may take before the oldest of them go"
    )
    host_concurrency: int = _setting(
        8, "Pages of one site at once, where a crawl or batch does not say how many; 0: any number"
    )
    index_pages: bool = _setting(
        True,
        "Make scraped and crawled pages searchable, unless a request says index=false; only where "
        "the extra knowledge is installed",
    )
    chromium: str = _setting(
        "/usr/bin/chromium", "The browser for what only a browser can do: screenshots, actions, …"
    )
    llm_url: str = _setting(
        "",
        "An OpenAI-compatible endpoint for what a language model makes of pages: "
        "https://api.example.com/v1; empty: none",
    )
    llm_key: str = _setting("", "The key for that endpoint", is_secret=True)
    llm_model: str = _setting("", "The name of the model there")
    scrapecreators_key: str = _setting(
        "",
        "The key for ScrapeCreators, who knows videos of TikTok, Instagram and YouTube; empty: "
        "only files and addresses of files are transcribed, here",
        is_secret=True,
    )
    scrapecreators_url: str = _setting(
        "https://api.scrapecreators.com", "Where ScrapeCreators is asked"
    )
    embed_url: str = _setting(
        "",
        "Who turns texts into vectors: an OpenAI-compatible endpoint, https://api.example.com/v1; "
        "fastembed: (the extra, for embed_model); empty: the model that comes with Windrow",
    )
    embed_key: str = _setting("", "The key for that endpoint", is_secret=True)
    embed_model: str = _setting("", "The name of the model there")
    embed_dimension: int = _setting(
        0, "How long the vectors of that model are to be; 0: as long as it makes them"
    )
    rerank_url: str = _setting(
        "",
        "Who puts what was found in a better order, for searches that ask for it: an endpoint with "
        "/rerank, https://api.example.com/v1; empty: nobody",
    )
    rerank_key: str = _setting("", "The key for that endpoint", is_secret=True)
    rerank_model: str = _setting("", "The name of the model there")
    qdrant_url: str = _setting(
        "",
        "A Qdrant server to keep the index in; empty: the database if it is a Postgres with the "
        "extension vector, else a folder in data_dir",
    )
    qdrant_key: str = _setting("", "The key for that server", is_secret=True)
    allow_private_networks: bool = _setting(
        False, "Whether pages may be fetched from this machine and from private networks"
    )
    allow_hosts: str = _setting(
        "",
        "Hosts, *.domains and networks (10.1.0.0/16) that may be fetched from although they are "
        "private, with spaces or commas between",
    )
    data_dir: str = _setting(
        "", "A folder for what is no job: keys and the like; empty: ~/.local/share/windrow"
    )
    artifacts_url: str = _setting(
        "",
        "A bucket for recordings and transcripts, s3://bucket/prefix (extra s3); empty: a folder "
        "in data_dir",
    )
    s3_endpoint: str = _setting(
        "", "Who has that bucket: https://storage.yandexcloud.net; empty: AWS"
    )
    s3_region: str = _setting("", "The region of that bucket; empty: as boto3 finds it")
    s3_key: str = _setting("", "The id of the key for that bucket; empty: as boto3 finds it")
    s3_secret: str = _setting("", "The secret of that key", is_secret=True)
    speechkit_key: str = _setting(
        "",
        "An API key of Yandex SpeechKit, which then transcribes calls; empty: see "
        "speechkit_account, else they are transcribed on this machine (extra audio)",
        is_secret=True,
    )
    speechkit_account: str = _setting(
        "",
        "In the place of that key, the file with the authorized key of a service account, whose "
        "IAM tokens are renewed in time; or metadata: the account of this virtual machine",
    )
    speechkit_language: str = _setting("ru-RU", "The language that SpeechKit is to listen for")
    speechkit_poll_interval_ms: int = _setting(
        5000,
        "How long SpeechKit is left alone between two looks, at least; waits grow from there",
        also="SPEECHKIT_POLL_INTERVAL_MS",
    )
    speechkit_url: str = _setting(
        "https://transcribe.api.cloud.yandex.net", "Where SpeechKit is asked to transcribe"
    )
    speechkit_operations_url: str = _setting(
        "https://operation.api.cloud.yandex.net", "Where SpeechKit is asked how far it is"
    )
    speechkit_iam_url: str = _setting(
        "https://iam.api.cloud.yandex.net", "Where the tokens of a service account come from"
    )
    secret_key: str = _setting(
        "",
        "What credentials are sealed with; several with commas between: the first seals, all of "
        "them open; empty: a file in data_dir",
        is_secret=True,
    )
    api_keys: str = _setting(
        "",
        "Who may use the HTTP API: key, key=tenant or key=tenant:role (read, write, admin), with "
        "spaces or commas between; a key alone is an admin's of all tenants",
        is_secret=True,
    )
    server_url: str = _setting(
        "", "The server (http://host:3002) that `windrow top` looks at; empty: the database"
    )
    server_key: str = _setting("", "The key for that server", is_secret=True)
    api_quotas: str = _setting(
        "",
        "What tenants may use of the HTTP API, a credit for each page: tenant=credits or "
        "tenant=credits/day (else a month), with spaces or commas between",
    )
    api_requests_per_minute: int = _setting(
        0, "How often each key may ask the HTTP API, in each server; 0: any number of times"
    )
    api_cors_origins: str = _setting(
        "",
        "Sites whose pages may use the HTTP API with a key (https://app.example.org), with spaces "
        "or commas between; *: all; empty: none",
    )
    webhook_secret: str = _setting(
        "",
        "What webhooks are signed with, in the header X-Firecrawl-Signature, and what those that "
        "come in must be; empty: they are not, and none is taken",
        is_secret=True,
    )
    event_retention_seconds: int = _setting(
        86_400, "How long events are kept; at most a week, 604800"
    )
    log_format: str = _setting(
        "text", "Format of the log of `windrow worker`, `serve` and `mcp`: text or json"
    )
    log_level: str = _setting(
        "",
        "Least level to log: debug, info, warning, error or critical; empty: info (`windrow mcp`: "
        "warning)",
    )

    def __repr__(self) -> str:
        """Without what is secret, and passwords in addresses."""
        shown = [item.name for item in fields(self) if item.repr]
        values = (f"{name}={redact_text(repr(getattr(self, name)))}" for name in shown)
        return f"Settings({', '.join(values)})"


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """The settings in force. Flags that are None were not given."""
    settings = Settings()
    settings = _override(settings, _from_file((folder or Path.cwd()) / FILE), FILE)
    settings = _override(settings, _from_environment(environment or os.environ), "environment")
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    return _override(settings, given, "flags")


def unknown_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that are named like a setting and are none, each with the setting that was probably
    meant; empty: none is similar."""
    known = [item.name.upper() for item in fields(Settings)]
    found: dict[str, str] = {}
    for name in sorted(set(environment) - _OTHER_VARIABLES):
        setting = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and setting not in known:
            similar = get_close_matches(setting, known, n=1)
            found[name] = PREFIX + similar[0] if similar else ""
    return found


def describe_settings() -> str:
    """A `windrow.toml` that says of each setting what it is, and leaves it as it is."""
    lines = [
        "# Settings of Windrow. What is commented out is as it says here by default.",
        f"# {PREFIX}<NAME> in the environment comes before this file, flags come before both.",
    ]
    for item in fields(Settings):
        doc = textwrap.wrap(item.metadata["doc"], 96)
        value = json.dumps(item.default)  # of a text, number or truth TOML has the same form
        lines += ["", *(f"# {line}" for line in doc), f"#{item.name} = {value}"]
    return "\n".join(lines) + "\n"


def data_folder(settings: Settings) -> Path:
    """Where what is no job is kept; it may not be there yet."""
    if settings.data_dir:
        return Path(settings.data_dir).expanduser()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "windrow"


def _from_file(path: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}
    import tomllib  # not at the top: most commands start where there is no such file

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    known = {item.metadata["also"]: item.name for item in fields(Settings)}
    known |= {PREFIX + item.name.upper(): item.name for item in fields(Settings)}
    return {item: environment[name] for name, item in known.items() if environment.get(name)}


def _override(settings: Settings, given: Mapping[str, Any], source: str) -> Settings:
    known = {item.name: item for item in fields(Settings)}
    if unknown := sorted(set(given) - set(known)):
        raise ConfigError(
            f"unknown setting in {source}: {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    changes = {name: _converted(name, value, source) for name, value in given.items()}
    return replace(settings, **changes)


def _converted(name: str, value: Any, source: str) -> Any:
    wanted = type(getattr(Settings(), name))
    if wanted is bool:
        return _truth(name, value, source)
    try:
        return wanted(value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} in {source} must be {wanted.__name__}: {error}") from error


def _truth(name: str, value: Any, source: str) -> bool:
    said = str(value).strip().lower()
    if said in TRUE or said in FALSE:
        return said in TRUE
    raise ConfigError(f"{name} in {source} must be true or false, not {value!r}")
