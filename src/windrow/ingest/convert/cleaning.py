"""What nobody sees on a page is taken out of it: scripts, hidden parts, advertisements.

The tree is changed in place; what is asked of the page as it was must be asked before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from windrow.errors import InvalidOptions
from windrow.ingest.convert.links import Resolve, image_source
from windrow.ingest.options import ScrapeOptions
from windrow.patterns import Budget

# A page with less text than this without its <noscript> is shown with it.
FEW_CHARACTERS = 80

NEVER_SEEN = """
    script, style, link, meta, head, template, canvas, embed, svg, datalist, source, track
"""
MAY_BE_HIDDEN = "[hidden], [style], [aria-hidden='true']"
# Where one of these is inside, a script would show it again: it is the page itself.
CONTENT_INSIDE = "main, article, h1, [role='main']"
ADVERTISEMENTS = """
    ins.adsbygoogle, .adsbygoogle, .advertisement, .advert, .ad-slot, .ad-container, .ad-banner,
    .ad-wrapper, .google-ad, .dfp-ad, .taboola, .outbrain, [id^='google_ads'],
    [id^='div-gpt-ad'], [id^='taboola-'], [data-ad-slot], [aria-label='Advertisement' i],
    [aria-label='Sponsored' i], iframe[src*='doubleclick.net'],
    iframe[src*='googlesyndication.com']
"""
# In the source of every page that one of the selectors above finds something in.
_TRACES_OF_ADVERTISEMENTS = (
    "ads",
    "dvert",
    "ad-",
    "taboola",
    "outbrain",
    "ponsored",
    "doubleclick",
)
_HIDDEN_STYLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
TRACKING_IMAGES = "img[width='1'][height='1'], img[width='0'], img[height='0']"


def clean(page: LexborHTMLParser, text: str, options: ScrapeOptions) -> None:
    """Takes out what is never shown, and what `excludeTags` names. `text` is the page's source."""
    if "shadowroot" in text:
        _open_shadow_roots(page)
    remove(page.css(NEVER_SEEN))
    remove([node for node in page.css(MAY_BE_HIDDEN) if _is_hidden(node)])
    _settle_noscript(page)
    # Selectors are tried on every element; a look at the source first saves most pages from that.
    if "width" in text:
        remove(page.css(TRACKING_IMAGES))
    if options.block_ads and any(one in text for one in _TRACES_OF_ADVERTISEMENTS):
        remove(page.css(ADVERTISEMENTS))
    for selector in options.exclude_tags:
        remove(select(page, selector, "excludeTags"))


def remove(nodes: Iterable[LexborNode]) -> None:
    """Takes these out of the tree, with what is in them."""
    for node in nodes:
        if node.tag not in ("html", "body"):
            node.decompose(recursive=False)  # unlinks the whole subtree in one step


def select(page: LexborHTMLParser, selector: str, option: str) -> list[LexborNode]:
    """What a selector of the caller finds, in the order of the page."""
    try:
        return page.css(selector)
    except SelectolaxError as error:
        raise InvalidOptions(f"{option}: {selector!r} is not a CSS selector") from error


def make_addresses_absolute(page: LexborHTMLParser, resolve: Resolve) -> None:
    """Links and images of the page as they are asked for from anywhere else."""
    for node in page.css("a[href], area[href]"):
        node.attrs["href"] = resolve(node.attributes["href"] or "")
    for node in page.css("iframe[src], video[src], audio[src]"):
        node.attrs["src"] = resolve(node.attributes["src"] or "")


def show_late_images(page: LexborHTMLParser, resolve: Resolve) -> None:
    """Gives every image the address that a script would give it, absolute."""
    for node in page.css("img"):
        source = image_source(node)
        if source and not source.startswith("data:"):
            node.attrs["src"] = resolve(source)


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    if not (
        attributes.get("hidden", "until-found") != "until-found"
        or attributes.get("aria-hidden") == "true"
        or _HIDDEN_STYLE.search(attributes.get("style") or "")
    ):
        return False
    return node.css_first(CONTENT_INSIDE) is None


def _open_shadow_roots(page: LexborHTMLParser) -> None:
    """Templates are never shown, except those that a browser opens by itself."""
    for template in page.css("template[shadowrootmode]"):
        for fragment in template.template_fragments()[:1]:
            for child in list(fragment.iter(include_text=True)):
                template.insert_before(child)


def _settle_noscript(page: LexborHTMLParser) -> None:
    """Scripts do not run here, but what a page says to those without is seldom its content."""
    found = page.css("noscript")
    if not found:
        return
    remove(found)
    body = page.body
    if body is not None and len(body.text(strip=True)) < FEW_CHARACTERS:
        for node in found:
            for child in list(node.iter(include_text=True)):
                body.insert_child(child)
