"""What nobody sees on a page is taken out of it: scripts, hidden parts, advertisements.

The tree is changed in place; what is asked of the page as it was must be asked before.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.ingest.convert.links import Resolve, image_source
from windrow.ingest.convert.selectors import select
from windrow.ingest.options import ScrapeOptions
from windrow.patterns import Budget

# A page with less text than this without its <noscript> is shown with it.
FEW_CHARACTERS = 80
# A page that shows less than this, and less than a tenth of its text, is shown with what is hidden:
# a script would show it.
HIDDEN_PAGE_CHARACTERS = 1_000
MIN_KEPT_SHARE = 0.1

NEVER_SEEN = """
    script, style, link, meta, head, template, canvas, embed, svg, datalist, source, track
"""
MAY_BE_HIDDEN = "[hidden], [style], [aria-hidden='true']"
# Where one of these is inside, a script would show it again: it is the page itself.
CONTENT_INSIDE = "main, article, h1, [role='main']"
NEVER_AN_ADVERTISEMENT = f"{CONTENT_INSIDE}, pre"
# Text that is not prose; links within the page are no way out of it.
NO_PROSE = """
    a[href]:not([href^='#']), nav, dialog, menu, [role='navigation'], [role='dialog'],
    [aria-modal='true'], select, textarea, button
"""
HEADING_LINKS = ", ".join(f"h{level} [aria-controls]" for level in range(1, 7))
CONTROLS = "form, input, button, select, textarea"
MIN_PROSE = 200
MIN_PROSE_OF_FORM = 600
MIN_PROSE_SHARE = 0.7

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt")
HEADING = "h1, h2, h3, h4, h5, h6"
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


def clean(page: LexborHTMLParser, text: str, options: ScrapeOptions) -> bool:
    """Take out what is never shown, and what `excludeTags` names. `text` is the page's source.

    Returns whether hidden text was kept, because a script would show it.
    """
    if "shadowroot" in text:
        _open_shadow_roots(page)
    remove(page.css(NEVER_SEEN))
    panels = _panels(page, text)
    hidden = [node for node in page.css(MAY_BE_HIDDEN) if _is_hidden(node, panels)]
    is_page_hidden = bool(hidden) and _holds_the_page(page, hidden)
    if not is_page_hidden:
        remove(hidden)
    _settle_noscript(page)
    # Selectors are tried on every element; a look at the source first saves most pages from that.
    if "width" in text:
        remove(page.css(TRACKING_IMAGES))
    if options.block_ads and any(one in text for one in _TRACES_OF_ADVERTISEMENTS):
        found = page.css(ADVERTISEMENTS)
        remove([node for node in found if _is_advertisement(node)])
    budget = Budget("excludeTags")
    for selector in options.exclude_tags:
        remove(select(page, selector, "excludeTags", budget))
    return is_page_hidden


def remove(nodes: Iterable[LexborNode]) -> None:
    """Takes these out of the tree, with what is in them."""
    for node in nodes:
        if node.tag not in ("html", "body"):
            node.decompose(recursive=False)  # unlinks the whole subtree in one step


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


def _panels(page: LexborHTMLParser, text: str) -> Container[str]:
    """The ids of what the page opens beside the text: answers of questions, say."""
    if "aria-controls" not in text:
        return ()
    buttons = page.css(f"button[aria-controls], {HEADING_LINKS}, [role='tab'][aria-controls]")
    return {id for node in buttons for id in (node.attributes["aria-controls"] or "").split()}


def _is_panel(node: LexborNode, panels: Container[str]) -> bool:
    """Whether this is text that opens at a click: a tab or an answer, and no menu and no form."""
    attributes = node.attributes
    if attributes.get("role") != "tabpanel" and attributes.get("id") not in panels:
        return False
    if node.css_first(CONTROLS) is not None and node.css_first("pre") is None:
        return False
    return prose_length(node) > text_length(node) * MIN_PROSE_SHARE


def _is_hidden(node: LexborNode, panels: Container[str]) -> bool:
    attributes = node.attributes
    if not (
        attributes.get("hidden", "until-found") != "until-found"
        or attributes.get("aria-hidden") == "true"
        or _HIDDEN_STYLE.search(attributes.get("style") or "")
    ):
        return False
    return node.css_first(CONTENT_INSIDE) is None and not _is_panel(node, panels)


def _holds_the_page(page: LexborHTMLParser, hidden: list[LexborNode]) -> bool:
    """Whether next to nothing is left of the page without its hidden parts."""
    body = page.body
    if body is None:
        return False
    total = text_length(body)
    shown = total - sum(text_length(node) for node in outermost(hidden) if node.tag != "body")
    return shown < min(HIDDEN_PAGE_CHARACTERS, total * MIN_KEPT_SHARE)


def outermost(nodes: Iterable[LexborNode]) -> list[LexborNode]:
    """These without those that are in another of them, and each once: a list of selectors finds a
    node once for each of them."""
    by_id = {node.mem_id: node for node in nodes}
    return [node for node in by_id.values() if not has_ancestor(node, by_id)]


def has_ancestor(node: LexborNode, ids: Container[int]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.mem_id in ids:
            return True
        parent = parent.parent
    return False


def is_inside(node: LexborNode, tags: tuple[str, ...]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag in tags:
            return True
        parent = parent.parent
    return False


def text_length(node: LexborNode) -> int:
    """Characters of text, without white space: pages are indented by as much as they say."""
    return len("".join(node.text().split()))


def _is_advertisement(node: LexborNode) -> bool:
    """Whether this is one, and not a part of the text that is called so."""
    if is_inside(node, (*HEADINGS, "pre")) or node.css_first(NEVER_AN_ADVERTISEMENT) is not None:
        return False
    return not is_prose(node)


def prose_length(body: LexborNode) -> int:
    """Characters of text that is neither a link nor in what opens only when it is asked for."""
    return text_length(body) - sum(map(text_length, outermost(body.css(NO_PROSE))))


def is_prose(node: LexborNode) -> bool:
    """Whether this reads like text, and not like framing, which is made of links and of forms."""
    prose = prose_length(node)
    if node.css_first(CONTROLS) is not None and prose < MIN_PROSE_OF_FORM:
        return False
    has_heading = node.css_first(HEADING) is not None
    return (has_heading or prose >= MIN_PROSE) and prose >= text_length(node) * MIN_PROSE_SHARE


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
