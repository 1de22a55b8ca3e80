"""Secrets out of what is shown and searched: the one place that says what a secret looks like.

What is kept is never changed, only what people see of it: listings, pages, errors, logs. Payloads
are judged by the names in them, texts by the addresses and headers in them. `restore` puts back
what was hidden from somebody who edited the rest. Files are judged by name and content before they
are indexed (`is_secret_file`, `redact_secrets`); every pattern takes time linear in the text.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import log2
from typing import Any, AnyStr, Final, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

HIDDEN: Final = "***"
SHORTEST: Final = 6  # of a secret that is looked for as it is


def _pattern(text: AnyStr, flags: int = 0) -> Callable[[], re.Pattern[AnyStr]]:
    """An expression that is compiled when it is first used: all of these take 10 ms, and most
    commands need none."""
    return cache(lambda: re.compile(text, flags))


# Names of what only its owner should read, without case, `-` and `_`: whole ones, and endings.
_NAMES: Final = frozenset({"authorization", "proxyauthorization", "cookie", "cookies", "setcookie"})
_ENDINGS: Final = ("password", "passwd", "secret", "token", "apikey", "secretkey", "privatekey")
_JOINTS: Final = re.compile(r"[-_. ]")
_PARAMETER: Final = re.compile(r"((?:^|&)(?:ssl)?password=)[^&]*", re.IGNORECASE)
_SUSPECT: Final = _pattern(
    rb"passw|secret|token|authorization|cookie|webhook|api[-_. ]?key|private[-_. ]?key"
    rb"|://[^\"/?#]*@|\\u00|bearer |basic ",
    re.IGNORECASE,
)
_ROWS: Final = re.compile(r"((?:^|&)rows=)([^&]*)")
# What can be told in a text that somebody else wrote: the user of an address, a password among
# its parameters, and the value of a header. Each is bounded, so that no text takes long.
_IN_TEXT: Final = _pattern(
    r"(?P<head>\b[a-z][a-z0-9+.-]{1,20}://[^\s/?#@:'\"]{0,200}:)[^\s/?#@]{1,500}(?=@)"
    r"|(?P<query>[?&](?:ssl)?password=)[^\s&'\"]{1,500}"
    r"|(?P<rows>[?&]rows=[a-z]{1,20}%3a%2f%2f)[^\s&'\"]{1,1000}"
    # A word after it is no secret: those have digits.
    r"|(?P<scheme>\b(?:bearer|basic|api-key)\s+)(?=[a-z._~+/=-]{0,200}\d)[a-z0-9._~+/=-]{12,2000}",
    re.IGNORECASE,
)

# Files that are there to hold secrets, by their lower-case names.
_SECRET_FILE: Final = _pattern(
    r"\.env(?:rc|[-_.~].*)?|.*\.env(?:\.(?:txt|bak|old|orig|save)|~)?"
    r"|env[-_.](?:prod|production|dev|development|stag|stage|staging|test|local|live)"
    r"|\.?git-credentials|[._]?netrc|g?shadow-?|\.?pgpass|pgpass\.conf|\.my\.cnf"
    r"|\.?htpasswd|\.htdigest|\.dockercfg|\.dockerconfigjson|\.npmrc|\.yarnrc|\.pypirc|\.s3cfg"
    r"|\.boto|\.vault[-_]token|\.?vault[-_]pass(?:word)?(?:[-_.].*)?|\.terraformrc|terraform\.rc"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:[-_.].*)?(?<!\.pub)"
    r"|.*\.(?:pem|key|p12|pfx|pkcs12|jks|keystore|kdbx?|ppk|p8|ovpn|tfstate|tfstate\..*|tfvars)"
    r"|.*\.(?:tfvars\.json|agekey|kubeconfig)|kubeconfig"
    r"|(?:.*[-_.])?(?:credentials?|secrets?|passwords?)"
    r"(?:\..*|[-_](?:prod|dev|stag|test|qa|local|live|ci|db|app|backup|bak|old|copy|private|\d).*)?"
    r"\.(?:ya?ml|json|toml|ini|cfg|conf|properties|xml|csv|txt|enc|plist|hcl)"
    r"|(?:credentials|secrets|passwords)"
    r"|(?:.*[-_.])?(?:token|api[-_]?key)(?:\.txt)?|secret|password|passphrase"
    r"|(?:rootkey|(?:.*[-_.])?access[-_]?keys?)\.csv"
    r"|(?:.*[-_.])?service[-_]?account(?:[-_.].*)?\.json|client_secrets?.*\.json"
    r"|wp-config(?:[-_.].*)?\.php"
)
_TEMPLATE: Final = re.compile(r"(?:^|[-_.])(?:example|sample|template|tmpl|dist|schema)(?:[-_.]|$)")
_KUBERNETES_SECRET: Final = re.compile(
    r"(?:^[ \t]{0,40}(?:-[ \t]{1,8})?|[\"{,])kind[\"']?[ \t]{0,8}:[ \t]{0,40}[\"']?Secret"
    r"(?:[\"',}\s]|$)",
    re.MULTILINE,
)
_MANIFEST: Final = re.compile(r"^kind:", re.MULTILINE)
_MANIFEST_START: Final = re.compile(r"^(?=---)", re.MULTILINE)
_KUBERNETES_DATA: Final = re.compile(r"\b(?:data|stringData)[\"']?[ \t]{0,8}:")
# Files that are encrypted as a whole, and cookies of a browser.
_SECRET_HEADS: Final = ("$ANSIBLE_VAULT;", "# Netscape HTTP Cookie File", "# HTTP Cookie File")
_DOCKER_LOGIN: Final = re.compile(
    r"(?P<docker>\"(?:auth|identitytoken)\"\s{0,40}:\s{0,40}\")[A-Za-z0-9+/=._-]{8,4000}"
)
# Passwords in a file or a command without a sign that assigns them.
_HANDED_OVER: Final = _pattern(
    r"(?P<netrc>\bmachine\s{1,40}\S{1,200}\s{1,40}login\s{1,40}\S{1,100}\s{1,40}password\s{1,40})"
    r"\S{1,200}"
    r"|(?P<curl>\bcurl\b[^\n]{0,300}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:)[^\s\"']{1,200}"
    r"|(?P<mysql>\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\s(?:[^\n]{0,300}?\s)?-p)[^\s\"'`]{1,200}"
    r"|(?P<login>\b(?:sshpass|docker\slogin)\s(?:[^\n]{0,300}?\s)?-p\s?)[^\s\"'`]{1,200}"
    r"|(?P<powershell>\bConvertTo-SecureString\s{1,8}(?:-String\s{1,8})?[\"'])[^\s\"']{1,200}"
    r"|(?P<sql>\b(?i:identified)\s{1,8}(?:(?i:with)\s{1,8}\S{1,60}\s{1,8})?(?i:by)\s{1,8}')[^\s']{1,200}"
    r"|(?P<redis>^[ \t]{0,8}(?:requirepass|masterauth)[ \t]{1,8}\"?)[^\s\"]{1,200}"
    r"|(?P<unseal>\b(?i:unseal\skey)(?:\s\d)?:\s{1,8})\S{1,200}"
    r"|(?P<header>\b(?i:authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:token|key)\s{1,4})"
    r"(?=[^\s\"']{0,200}\d)[^\s\"']{12,2000}",
    re.MULTILINE,
)
# Values that are secrets if they look random: of a variable of the environment, of a cookie, and
# what prose says a password is.
_SAID: Final = _pattern(
    r"(?P<variable>^[ \t]{0,40}(?:export[ \t]|set[ \t]|-[ \t])?[A-Z][A-Z0-9_]{2,80}=[\"']?)"
    r"(?P<value>[A-Za-z0-9+/=_-]{16,500})(?=[\"']?\s*$)"
    r"|(?P<cookie>\b(?i:cookie)[\"']?:\s{0,4}[\"']?[\w.-]{1,80}=)(?P<pair>[^\s;\"',]{16,2000})"
    r"|(?P<prose>\b(?i:password|passphrase|token|api[- ]key|secret)\b[^.:=\n]{0,60}?\s(?:is|was)"
    r":?\s{1,4}[`\"'*]{0,3})(?P<word>[^\s`\"'*]{8,200})",
    re.MULTILINE,
)
# Any other value of configuration, if it is long and random and neither a hash nor an id.
_SETTING: Final = re.compile(
    r"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{0,80})[\"']?[ \t]{0,8}[:=][ \t]{0,8}[\"']?"
    r"(?P<value>[A-Za-z0-9+/_-]{20,200}={0,2})(?=[\"',;\s]|$)"
)
_NO_SECRET: Final = _pattern(
    r"(?i:hash|sha\d|digest|integrity|checksum|fingerprint|etag|uuid|guid|commit|revision|signature"
    r"|public|cert|version)|(?i:(?:^|[-_.])(?:id|ref|rev|url|data|x5c|n)$)|(?:Id|Ids|ID|Url|URL)$",
)
_COLUMN: Final = _pattern(
    r"(?:login_)?(?:password|passwd)|passphrase|secret(?:[ _]access[ _]key)?|(?:access_)?token"
    r"|api[ _]?key",
    re.IGNORECASE,
)
# Not a password before a host, but the end of one value in a line of JSON and more of it.
_NEXT_VALUE: Final = re.compile(r"[\"'][,:\]})]")

_KEY_BEGIN: Final = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY: Final = re.compile(r"(?:[A-Za-z0-9+/=\s\"'+,]|\\[nr])*")
_BASE64_RUN: Final = re.compile(r"[A-Za-z0-9+/]{40}")
_LONGEST_KEY: Final = 16_384

# Keys that their issuers made easy to tell. Markdown may have put a backslash before an underscore.
_ISSUED: Final = _pattern(
    r"\b(?:"
    r"(?P<AWS>(?:AKIA|ASIA)[A-Z2-7]{16}\b)"
    r"|(?P<GitHub>gh[pousr]\\?_[A-Za-z0-9]{36,255}|github\\?_pat\\?_[\w\\]{22,255})"
    r"|(?P<GitLab>gl(?:pat|dt|ptt|rt|cbt|agent|soat|ft|imt)-[\w.\\-]{20,300})"
    r"|(?P<Slack>xox[abeoprs]-[A-Za-z0-9-]{10,250}|xapp-\d-[A-Za-z0-9-]{20,250}"
    r"|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{20,100})"
    r"|(?P<Stripe>[sr]k\\?_(?:live|test)\\?_[A-Za-z0-9]{16,250}|whsec\\?_[A-Za-z0-9+/=]{24,100})"
    r"|(?P<Anthropic>sk-ant-[\w\\-]{20,250})"
    r"|(?P<OpenAI>sk-[A-Za-z0-9_\\-]{20,250})"
    r"|(?P<Google>AIza[\w\\-]{35,70}|GOCSPX-[\w\\-]{28,60}|ya29\.[\w\\-]{20,500})"
    r"|(?P<npm>npm\\?_[A-Za-z0-9]{36})"
    r"|(?P<PyPI>pypi-AgE[\w\\-]{50,300})"
    r"|(?P<Hugging_Face>hf\\?_[A-Za-z0-9]{30,50})"
    r"|(?P<SendGrid>SG\.[\w\\-]{20,30}\.[\w\\-]{40,60})"
    r"|(?P<DigitalOcean>do[opr]\\?_v1\\?_[a-f0-9]{64})"
    r"|(?P<Shopify>shp(?:at|ca|pa|ss)\\?_[a-fA-F0-9]{32})"
    r"|(?P<Docker>dckr\\?_pat\\?_[\w\\-]{20,100})"
    r"|(?P<Vault>hv[sb]\.[\w\\-]{24,300})"
    r"|(?P<Databricks>dapi[0-9a-f]{32})"
    r"|(?P<age>AGE-SECRET-KEY-1[A-Z0-9]{58})"
    r"|(?P<Terraform>[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70})"
    r"|(?P<Discord>[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38})"
    r"|(?P<Azure>sig=[\w%+/]{40,60}(?:=|%3[Dd]))"
    r"|(?P<Telegram>\d{8,10}:AA[\w\\-]{32,40})"
    r"|(?P<JWT>eyJ[\w\\-]{10,4000}\.eyJ[\w\\-]{10,8000}\.[\w\\-]{10,2000})"
    r")"
)
# A name of a secret, and what is assigned to it. The name is looked for by its end, so that no
# long word is looked at twice.
_ASSIGNED: Final = _pattern(
    r"(?:passw(?:or)?d|passphrase|secret|token|api[-_.]?key|(?:access|private|secret|account|auth"
    r"|encryption|signing|master|shared|client)[-_.]?key|_auth|credentials?|pwd"
    r"|connection[-_.]?string|(?<![a-z])psk|(?<![a-z])pass|(?<=[a-z])(?-i:Pass))"
    r"(?:[-_.]?(?:base|hash|value|data|id|key|v?\d))?"
    r"(?:"
    r"[\"'\])]{0,3}\s{0,40}(?:=>|:=|==|=|:)\s{0,40}(?:[|>][+-]?\s{1,40})?"
    r"|[\"']?\s{0,40}[,{]?\s{0,40}[\"']?(?:value|default)[\"']?\s{0,40}[:=]\s{0,40}"
    # A variable of Terraform with a type or a description, and the last argument of a call.
    r"|\"\s{0,40}\{[^{}]{0,400}?\bdefault\s{0,40}=\s{0,40}"
    r"|[\"']\s{0,4},\s{0,40}(?=(?P<quote>[\"'])[^\"'\r\n]{0,500}(?P=quote)\s{0,4}\))"
    r"|>"
    r"|(?-i:(?<=[A-Z]))[ \t]{1,40}"
    r")"
    r"(?:[bru]{0,2}\"(?P<double>[^\"\r\n]*)|[bru]{0,2}'(?P<single>[^'\r\n]*)"
    r"|`?(?P<bare>[^\s\"'`,;<>()\[\]{}|]++)(?!\())",
    re.IGNORECASE,
)
_PASSWORD: Final = re.compile(r"pass|pwd", re.IGNORECASE)
_DOTTED: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # an expression of a program
_SHORTEST_RANDOM: Final = 16
_MIN_ENTROPY: Final = 3.5  # bits per character: words of a language are below, random ones above
_LONGEST_LINE: Final = 100_000  # of a table
_MIN_PASSWORD_ENTROPY: Final = 2.5
_PLACEHOLDER: Final = _pattern(
    r"example|change[-_]?me|placeholder|your[-_ ]|x{4}|\*{3}|dummy|sample|redacted|todo|fake"
    r"|1234567|abcdef|foobar|insert|replace|<|\.\.\.|…",
    re.IGNORECASE,
)
# Not the secret itself: a variable, a path, an address, an expression.
_REFERENCE: Final = _pattern(
    r"[$%{<@/~&*!]|\.{1,2}/|https?://|[a-z]+(?:\.[A-Za-z_]\w*)+$|[a-z_]+\(|"
    r"(?:pass|password|passwd|pwd|secret|user|username|token|key|test|none|null|true|false"
    r"|base|sha|hmac|aes|rsa|oauth)\d{0,4}$",
    re.IGNORECASE,
)


def redact_url(url: str) -> str:
    """The URL as it may be shown. A password may stand before the host, or in the query, where
    libpq takes it too; and the database beside a queue has one of its own."""
    try:
        parts = urlsplit(url)
        has_password = bool(parts.password)
    except ValueError:
        return redact_text(url)
    address = parts.netloc
    if has_password:
        address = f"{parts.username or ''}:{HIDDEN}@{address.rpartition('@')[2]}"
    query = _ROWS.sub(_shown_rows, _PARAMETER.sub(rf"\1{HIDDEN}", parts.query))
    if (address, query) == (parts.netloc, parts.query):
        return url
    return urlunsplit(parts._replace(netloc=address, query=query))


def redact_text(text: str) -> str:
    """A text without the passwords in its addresses and the values of headers it repeats."""
    if "://" not in text and " " not in text:
        return text
    return _IN_TEXT().sub(_hide, text)


def hide(text: str, secrets: Collection[str]) -> str:
    """A text without these secrets, which are known. Short ones would be found in any text."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def redact(value: Any) -> Any:
    """JSON as it may be shown: what is named as a secret is hidden, and so is where a webhook is,
    for its path can be as secret as a header."""
    match value:
        case dict():
            return {name: _redact_item(name, item) for name, item in value.items()}
        case list() | tuple():
            return [redact(item) for item in value]
        case str():
            return redact_text(value)
    return value


def redact_json(stored: str | bytes) -> str | bytes:
    """The same for JSON as it is stored, which is read only where there may be something in it."""
    data = stored.encode() if isinstance(stored, str) else stored
    if _SUSPECT().search(data) is None:
        return stored
    return msgspec.json.encode(redact(msgspec.json.decode(data)))


def restore(edited: Any, original: Any) -> Any:
    """What was edited, with what had been hidden in it as it was."""
    if edited == redact(original):
        return original
    match edited, original:
        case dict(), dict():
            return {
                name: _restore_item(name, item, original[name]) if name in original else item
                for name, item in edited.items()
            }
        case list(), list():
            pairs = zip(edited, original, strict=False)
            return [restore(*pair) for pair in pairs] + edited[len(original) :]
    return edited


class Redacted(NamedTuple):
    """A text without its secrets, and how many of each kind there were."""

    text: str
    found: dict[str, int]


def is_secret_file(name: str) -> bool:
    """Whether a file of this name is there to hold secrets. Templates of such files are not."""
    lower = name.lower()
    if _TEMPLATE.search(lower):
        return False
    return _SECRET_FILE().fullmatch(lower) is not None


def is_secret_text(text: str, *, is_data: bool = True) -> bool:
    """Whether this text is nothing but secrets, whatever its file is called: a Secret of
    Kubernetes, logins of Docker, a random word, or a private key with little beside it. Documents
    and programs, which are not data, may show the first two among other things."""
    if is_data and _is_kubernetes_secret(text):
        return all(map(_is_kubernetes_secret, _manifests(text)))
    if is_data and '"auths"' in text and _DOCKER_LOGIN.search(text):
        return True
    if text.startswith(_SECRET_HEADS) or _is_random(text.strip()):
        return True
    keys = sum(end - start for start, end in _private_keys(text))
    return keys * 2 > len(text)


def redact_secrets(text: str, *, is_config: bool) -> Redacted:
    """A text with `***` in place of its secrets: keys of well-known issuers, private keys,
    passwords in URLs, and values that are assigned to names such as `password`. A value of
    configuration counts as soon as it may be one; elsewhere it has to look random."""
    found: Counter[str] = Counter()
    made, at = [], 0
    for start, end in _private_keys(text):
        made += [text[at:start], HIDDEN]
        at = end
        found["private key"] += 1
    text = "".join([*made, text[at:]]) if made else text
    for manifest in filter(_is_kubernetes_secret, _manifests(text)):
        text = text.replace(manifest, f"---\nkind: Secret\n{HIDDEN}\n")
        found["Secret of Kubernetes"] += 1

    def hide_issued(match: re.Match[str]) -> str:
        kind = match.lastgroup or ""
        if _PLACEHOLDER().search(match[0]) or (kind == "OpenAI" and not _is_mixed(match[0])):
            return match[0]
        found[f"{kind.replace('_', ' ')} key"] += 1
        return HIDDEN

    def hide_address(match: re.Match[str]) -> str:
        secret = match[0][match.end(match.lastgroup or 0) - match.start() :]
        if _is_placeholder(secret) or _NEXT_VALUE.search(secret):
            return match[0]
        is_url = match.lastgroup in ("head", "query", "rows")
        found["password in a URL" if is_url else "credentials"] += 1
        return _hide(match)

    def hide_assigned(match: re.Match[str]) -> str:
        kind = next(filter(match.group, ("double", "single", "bare")), "bare")
        value = match[kind] or ""
        is_password = _PASSWORD.match(match[0]) is not None
        if not (
            _may_be_secret(value, is_config=is_config, is_password=is_password)
            or (is_password and kind != "bare" and _is_strong(value))
        ):
            return match[0]
        if kind == "bare" and not is_config and _DOTTED.fullmatch(value):
            return match[0]
        found["value of a secret name"] += 1
        start = match.start(kind) - match.start()
        return f"{match[0][:start]}{HIDDEN}{match[0][start + len(value) :]}"

    def hide_said(match: re.Match[str]) -> str:
        value = match["value"] or match["pair"] or match["word"]
        if not _is_random(value) and not (match["word"] and _is_strong(value.rstrip(".,;"))):
            return match[0]
        found["random value"] += 1
        return match[0].removesuffix(value) + HIDDEN

    def hide_setting(match: re.Match[str]) -> str:
        if _NO_SECRET().search(match["name"]) or not _is_random(match["value"]):
            return match[0]
        found["random value"] += 1
        return match[0].removesuffix(match["value"]) + HIDDEN

    text = _ISSUED().sub(hide_issued, text)
    text = _IN_TEXT().sub(hide_address, text)
    text = _HANDED_OVER().sub(hide_address, text)
    if '"auths"' in text:
        text = _DOCKER_LOGIN.sub(hide_address, text)
    text = _ASSIGNED().sub(hide_assigned, text)
    text = _SAID().sub(hide_said, text)
    if is_config:
        text = _SETTING.sub(hide_setting, text)
    text, hidden = _hide_columns(text)
    if hidden:
        found["value of a secret name"] += hidden
    return Redacted(text, dict(found))


def is_secret(name: str) -> bool:
    """Whether something of this name is to be hidden."""
    plain = _JOINTS.sub("", name).lower()
    return plain in _NAMES or plain.endswith(_ENDINGS)


def _redact_item(name: Any, item: Any) -> Any:
    if isinstance(name, str):
        if is_secret(name) and isinstance(item, str) and item:
            return HIDDEN
        if name == "webhook":
            return _redact_webhook(item)
    return redact(item)


def _redact_webhook(webhook: Any) -> Any:
    match webhook:
        case str():
            return _origin(webhook)
        case {"url": str(url), **rest}:
            shown = {"url": _origin(url), **rest}
            headers: Any = rest.get("headers")
            if isinstance(headers, Mapping):
                shown["headers"] = dict.fromkeys(headers, HIDDEN)
            return shown
    return redact(webhook)


def _restore_item(name: str, item: Any, original: Any) -> Any:
    return original if item == _redact_item(name, original) else restore(item, original)


def _origin(url: str) -> str:
    """Where it is, without what may be a secret of it."""
    scheme, mark, rest = url.partition("://")
    host = re.split(r"[/?#\\]", rest, maxsplit=1)[0].rpartition("@")[2]
    return f"{scheme}{mark}{host}/{HIDDEN}" if mark else HIDDEN


def _shown_rows(found: re.Match[str]) -> str:
    return f"{found[1]}{redact_url(unquote(found[2]))}"


def _hide(found: re.Match[str]) -> str:
    return f"{found[found.lastgroup or 0]}{HIDDEN}"


def _is_kubernetes_secret(text: str) -> bool:
    if "Secret" not in text or _KUBERNETES_SECRET.search(text) is None:
        return False
    return _KUBERNETES_DATA.search(text) is not None


def _manifests(text: str) -> list[str]:
    """The objects in a file of several of Kubernetes; none, if it holds anything else or only one,
    which is judged as a whole."""
    if "\n---" not in text:
        return []
    parts = [part for part in _MANIFEST_START.split(text) if part.strip("- \r\n")]
    return parts if len(parts) > 1 and all(map(_MANIFEST.search, parts)) else []


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where the bodies of private keys are. One without an end is as long as its Base64."""
    at = end_mark = 0
    for begin in _KEY_BEGIN.finditer(text):
        start = begin.end()
        if start < at:
            continue
        if 0 <= end_mark < start:
            end_mark = text.find("-----END", start)
        body = _KEY_BODY.match(text, start)
        at = body.end() if body is not None else start
        if start < end_mark <= start + _LONGEST_KEY:
            at = max(at, end_mark)
        if _BASE64_RUN.search(text, start, at):
            yield start, at


def _may_be_secret(value: str, *, is_config: bool, is_password: bool) -> bool:
    value = value.strip()
    if len(value) < SHORTEST or _is_placeholder(value):
        return False
    has_letter = any(map(str.isalpha, value))
    has_digit = any(map(str.isdigit, value))
    if is_config and is_password and not has_letter:
        return has_digit and not any(map(str.isspace, value))
    if is_config:
        return has_letter and has_digit
    if not (has_letter and has_digit) or len(value) < _SHORTEST_RANDOM:
        return False
    return _entropy(value) >= _MIN_ENTROPY


def _hide_columns(text: str) -> tuple[str, int]:
    """A table whose first line names a column as a secret, without the values of that column."""
    head = next(iter(text[:_LONGEST_LINE].splitlines()), "")
    mark = max(",;\t", key=head.count)
    names = next(csv.reader([head], delimiter=mark), [])
    columns = [at for at, name in enumerate(names) if _COLUMN().fullmatch(name.strip())]
    if len(names) < 2 or not columns:
        return text, 0
    lines, hidden = text.splitlines(keepends=True), 0
    for number, line in enumerate(lines[1:], 1):
        fields = next(csv.reader([line[:_LONGEST_LINE]], delimiter=mark), [])
        if len(fields) != len(names):
            continue
        for value in {fields[at] for at in columns}:
            if _may_be_secret(value, is_config=True, is_password=True):
                lines[number] = lines[number].replace(value, HIDDEN)
                hidden += 1
    return "".join(lines), hidden


def _is_random(value: str) -> bool:
    """Whether a word looks like a made key: both cases and digits, mixed, and no part of a path."""
    if not _SHORTEST_RANDOM <= len(value) <= _LONGEST_KEY or _is_placeholder(value):
        return False
    kinds = [_kind(character) for character in value]
    digit_runs = sum(kind == "0" != before for before, kind in pairwise(["", *kinds]))
    return (
        {"a", "A", "0"} <= set(kinds) <= {"a", "A", "0", "+"}
        and value.count("/") * 12 <= len(value)
        and digit_runs >= 2
        and _changes(kinds) * 3 >= len(value)
        and _entropy(value) >= _MIN_ENTROPY
    )


def _is_strong(value: str) -> bool:
    """Whether this looks like a password: eight characters of three kinds, one a digit, or twelve
    letters of both cases, mixed."""
    if len(value) < 8 or any(map(str.isspace, value)) or _is_placeholder(value):
        return False
    kinds = [_kind(character) for character in value]
    if {"a", "A"} == set(kinds):
        return len(value) >= 12 and _changes(kinds) * 3 >= len(value)
    return "0" in kinds and len(set(kinds)) >= 3 and _entropy(value) >= _MIN_PASSWORD_ENTROPY


def _changes(kinds: Sequence[str]) -> int:
    return sum(kind != after for kind, after in pairwise(kinds))


def _kind(character: str) -> str:
    if character.isdigit():
        return "0"
    if character.isalpha():
        return "A" if character.isupper() else "a"
    return "+" if character in "+/=_-" else "."


def _is_placeholder(value: str) -> bool:
    return _PLACEHOLDER().search(value) is not None or _REFERENCE().match(value) is not None


def _is_mixed(value: str) -> bool:
    return any(map(str.isdigit, value)) and (any(map(str.isupper, value)) or len(value) > 40)


def _entropy(value: str) -> float:
    """Bits per character, as Shannon counts them."""
    counts = Counter(value).values()
    return -sum(count / len(value) * log2(count / len(value)) for count in counts)
