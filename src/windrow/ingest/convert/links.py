"""Addresses in a page: its base, its links and images, and relative ones made absolute."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

# What leads somewhere that can be asked for, or written to.
LINK_SCHEMES = ("http://", "https://", "mailto:")
# Where pages that load images late put the address, in the order of preference.
LATE_SOURCES = ("data-src", "data-original", "data-lazy-src", "data-url")

Resolve = Callable[[str], str]


def resolver(page: LexborHTMLParser, url: str) -> Resolve:
    """A function that makes the addresses in this page absolute."""
    base = _base_of(page, url)
    parts = urlsplit(base)
    origin = f"{parts.scheme}://{parts.netloc}"
    whole = base.partition("#")[0]

    def resolve(address: str) -> str:
        # The usual cases by hand: urljoin takes apart and puts together both sides each time.
        address = address.strip()
        if address.startswith(("https://", "http://")) or not address:
            return address or whole
        if address[0] == "#":
            return whole + address
        if address[0] == "/" and address[1:2] != "/" and "/." not in address:
            return origin + address
        try:
            return urljoin(base, address)
        except ValueError:  # such as a broken IPv6 host
            return address

    return resolve


def find_links(page: LexborHTMLParser, resolve: Resolve) -> list[str]:
    """Every address the page leads to, once, in the order of the page."""
    found: dict[str, None] = {}
    for node in page.css("a[href], area[href], frame[src], iframe[src]"):
        attributes = node.attributes
        address = attributes.get("href") or attributes.get("src") or ""
        if address and address[0] != "#":
            found[resolve(address)] = None
    return [link for link in found if link.startswith(LINK_SCHEMES)]


def find_images(page: LexborHTMLParser, resolve: Resolve) -> list[str]:
    """The address of every image, once; images that are in the page itself have none."""
    found: dict[str, None] = {}
    for node in page.css("img, picture > source, meta[property='og:image'], input[type='image']"):
        address = image_source(node)
        if address and not address.startswith("data:"):
            found[resolve(address)] = None
    return [link for link in found if link.startswith(("http://", "https://"))]


def image_source(node: LexborNode) -> str:
    """The address of an image, also of one that a script would load later."""
    attributes = node.attributes
    source = attributes.get("src") or ""
    if source and not source.startswith("data:"):
        return source
    for name in LATE_SOURCES:
        if attributes.get(name):
            return attributes[name] or ""
    candidates = attributes.get("srcset") or attributes.get("data-srcset") or ""
    return candidates.strip().split(" ")[0].rstrip(",") or attributes.get("content") or source


def _base_of(page: LexborHTMLParser, url: str) -> str:
    base = page.css_first("base[href]")
    if base is None:
        return url
    try:
        joined = urljoin(url, (base.attributes["href"] or "").strip())
    except ValueError:
        return url
    return joined if joined.startswith(("http://", "https://")) else url
