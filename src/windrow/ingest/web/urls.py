"""URLs of the web in one form, so that the same page is not fetched twice.

`normalise` gives the address that is fetched; `page_key` the name under which it was seen, which
for similar URLs is the same. Both are pure and never raise: what is no page of the web is None.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urljoin, urlsplit

import idna

# Longer ones are nobody's page: traps make them, by appending to themselves.
MAX_URL_LENGTH: Final = 2048

# Not pages, and nothing that can be turned into one.
SKIPPED_EXTENSIONS: Final = frozenset(
    {"png", "jpg", "jpeg", "gif", "css", "js", "ico", "svg", "tiff", "zip", "exe", "dmg", "mp4"}
    | {"mp3", "wav", "pptx", "xlsx", "avi", "flv", "woff", "ttf", "woff2", "webp", "inc"}
)

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LINE_BREAKS: Final = re.compile(r"[\t\r\n]")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?")
_PLAIN_PATH: Final = re.compile(r"/[A-Za-z0-9_~!$&'()*+,;=:@./-]*")
# What nothing has to be done about, if it has no `/.` and no `.` at the end of its host.
_NORMAL: Final = re.compile(
    r"https?://[a-z0-9_-][a-z0-9._-]*(/[A-Za-z0-9_~!$&'()*+,;=:@./-]*)(?:\?[A-Za-z0-9_~!$&'()*+,;=:@./?-]+)?"
)
_PLAIN_HOST: Final = re.compile(r"[a-z0-9._-]+")
_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~"
_QUERY_SAFE: Final = "/%:@!$&'()*+,;=~?[]|"
_INDEX_FILE: Final = re.compile(r"/index\.(?:html?|php)$", re.IGNORECASE)
# Parameters that say where somebody came from, not what they want to see.
_CAMPAIGN: Final = "utm_"
_TRACKING: Final = frozenset(
    {"gclid", "gclsrc", "fbclid", "msclkid", "twclid", "li_fat_id", "mc_cid", "mc_eid", "ref"}
    | {"hsctatracking", "_hsenc", "_hsmi", "_ga", "_gac", "_gl", "source"}
)
# The route of a page that is drawn by a script: `#/inbox`, `#!/inbox`.
_ROUTE: Final = re.compile(r"/.|!/")


class Place(NamedTuple):
    """Where a URL leads: the parts that scopes and limits ask about."""

    scheme: str
    site: str  # host, and port if it is not the usual one
    host: str
    path: str


def normalise(url: str, base: str | None = None) -> str | None:
    """The URL as it is fetched, or None if it is none of the web.

    Relative ones are taken from `base`. Host and scheme are lower case, names in other scripts as
    DNS has them; usual ports, user names, `/../` and fragments go, except those that are routes.
    """
    if _is_normal(url):
        return url
    cleaned = _LINE_BREAKS.sub("", url.strip()).replace("\\", "/")
    try:
        if base is not None and not cleaned.startswith(("https://", "http://")):
            cleaned = urljoin(base, cleaned)
        parts = urlsplit(cleaned)
        site = _site_of(parts)
        if site is None:
            return None
        path = _path_of(parts.path)
        query = "?" + _escaped(parts.query, _QUERY_SAFE) if parts.query else ""
        route = _route_of(parts.fragment)
    except ValueError:  # a lone surrogate, which no address has, is one too
        return None
    made = f"{parts.scheme.lower()}://{site}{path}{query}{route}"
    return made if len(made) <= MAX_URL_LENGTH else None


def page_key(url: str, *, similar: bool = True, ignore_query: bool = False) -> str:
    """The name under which a normalised URL counts as seen.

    With `similar`, http and https, `www.` or not, `/index.html` or `/index.php` or none, and a
    slash at the end or none, are one page.
    """
    parts = urlsplit(url)
    query = "" if ignore_query or not parts.query else f"?{parts.query}"
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    if not similar:
        return f"{parts.scheme}://{parts.netloc}{parts.path}{query}{fragment}"
    path = _INDEX_FILE.sub("/", parts.path).rstrip("/")
    return f"{without_www(parts.netloc)}{path or '/'}{query}{fragment}"


def drop_query(url: str) -> str:
    """The URL without its query."""
    head, mark, rest = url.partition("?")
    if not mark:
        return url
    _, mark, fragment = rest.partition("#")
    return f"{head}{mark}{fragment}"


def canonical(url: str, *, keeps_slash: bool = False) -> str:
    """What a normalised URL is the same as: without what only says where somebody came from, with
    its parameters in order, and no slash or fragment at the end."""
    parts = urlsplit(url)
    kept = sorted(
        one
        for one in parse_qsl(parts.query, keep_blank_values=True)
        if not one[0].lower().startswith(_CAMPAIGN) and one[0].lower() not in _TRACKING
    )
    query = f"?{urlencode(kept)}" if kept else ""
    path = parts.path if keeps_slash else parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}{query}"


@lru_cache(maxsize=4096)
def place_of(url: str) -> Place:
    """Where a normalised URL leads."""
    parts = urlsplit(url)
    return Place(parts.scheme, parts.netloc, parts.hostname or "", parts.path or "/")


def origin_of(url: str) -> str:
    """`https://example.org`, of a normalised URL: what a robots.txt is for."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{re.split('[/?#]', rest, maxsplit=1)[0]}"


def without_www(host: str) -> str:
    return host.removeprefix("www.")


def has_skipped_extension(url: str) -> bool:
    """Whether the path ends as something that is no page."""
    _, dot, extension = place_of(url).path.rpartition(".")
    return bool(dot) and extension.lower() in SKIPPED_EXTENSIONS


def _is_normal(url: str) -> bool:
    """Whether this is certainly the form already, which most links of a page have."""
    if len(url) > MAX_URL_LENGTH:
        return False
    found = _NORMAL.fullmatch(url)
    return found is not None and "/." not in url and url[found.start(1) - 1] != "."


def _site_of(parts: SplitResult) -> str | None:
    """Host and port, or None if there is no such place on the web."""
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS or not parts.hostname:
        return None
    host = parts.hostname.rstrip(".")
    if ":" in host:
        host = f"[{host}]"
    elif not _PLAIN_HOST.fullmatch(host):
        # Other scripts have dots of their own, which are one at the end only now.
        host = idna.encode(host, uts46=True).decode("ascii").rstrip(".")
    port = parts.port
    if not host or port == 0:
        return None
    return host if port is None or port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"


def _path_of(path: str) -> str:
    if _PLAIN_PATH.fullmatch(path) and "/." not in path:
        return path
    return _without_dots(_escaped(path, _PATH_SAFE)) or "/"


def _escaped(text: str, safe: str) -> str:
    """Escaped where it must be and nowhere else, with the digits in upper case."""
    if "%" in text:
        text = _ESCAPE.sub(_settle_escape, text)
    return quote(text, safe=safe)


def _settle_escape(match: re.Match[str]) -> str:
    digits = match[1]
    if digits is None:
        return "%25"
    byte = int(digits, 16)
    return chr(byte) if byte in _UNRESERVED else f"%{digits.upper()}"


def _without_dots(path: str) -> str:
    """`/a/./b/../c` is `/a/c`; there is nothing above the root."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _route_of(fragment: str) -> str:
    return f"#{quote(fragment, safe=_QUERY_SAFE + '#!')}" if _ROUTE.match(fragment) else ""
