"""Which part of a page is what people came for.

First whatever frames pages everywhere goes: navigation, banners, footers, share buttons. Then, if
the page names its main part and nearly everything is in it, that part alone is taken. A page that
has only links is an index, and its links are its content: the framing is not removed when little
or nothing would be left.

Frames and main parts are known by selectors and by names. A name is a whole class or id, compared
without case: `sidebar` is not `layout-with-sidebar`.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.ingest.convert.clutter import (
    HEADING,
    HEADINGS,
    is_inside,
    is_prose,
    remove,
    text_length,
)

# Elements that frame a page, wherever they are, and those that say of themselves that they do.
FRAMES = """
    nav, dialog, menu, header, footer, aside, [aria-modal='true'], span.mw-editsection,
    span.sr-only, span.visually-hidden, span.screen-reader-text
"""
_ROLES_OF_FRAMES = """
    navigation banner contentinfo search menu menubar toolbar dialog alertdialog tooltip
"""

_NAMES_OF_FRAMES = """
    header site-header page-header masthead top-bar topbar banner site-banner announcement-bar
    nav navbar nav-bar navigation navigation-bar main-nav main-navigation site-nav menu main-menu
    mega-menu breadcrumb breadcrumbs pagination pager page-nav prev-next post-navigation nav-links
    footer site-footer page-footer colophon copyright
    sidebar side-bar sidenav side-nav sidebar-wrapper left-sidebar right-sidebar widget-area widget
    widgets toc table-of-contents
    related related-posts related-articles related-links related-products recommended
    recommendations more-stories you-may-also-like
    share sharing share-buttons social social-share social-media social-links social-icons
    sharedaddy addtoany_share_save_container
    cookie cookies cookie-banner cookie-consent cookie-notice cookie-bar cookieconsent cc-window
    gdpr gdpr-banner consent consent-banner onetrust-consent-sdk onetrust-banner-sdk
    newsletter newsletter-signup subscribe subscription signup-form popup modal overlay lightbox
    toast promo promotion paywall comment-respond post-menu sitenotice
    skip-link skip-to-content skiplink skip-nav screen-reader-text sr-only visually-hidden
    edit-link edit-this-page editsection print-link printfriendly back-to-top backtotop scroll-top
    language-selector lang-switcher search searchbox search-box search-form
    sphinxsidebar sphinxsidebarwrapper
    md-header md-tabs md-footer md-sidebar md-source-file md-skip md-announce md-content__button
    theme-doc-toc-mobile theme-doc-toc-desktop theme-doc-breadcrumbs theme-edit-this-page
    theme-doc-footer pagination-nav table-of-contents__left-border
    navheader navfooter
    mw-editsection mw-jump-link catlinks printfooter noprint navbox vector-menu mw-indicators
"""

# What people call a remark that belongs to the text, which `aside` is also used for.
_NAMES_OF_CALLOUTS = """
    note tip hint warning caution danger important info admonition callout footnote footnotes
    footnote-list endnotes sidenote marginnote starlight-aside pullquote
"""

# Buttons and marks beside the text.
TRIMMINGS = """
    a.headerlink, a.hash-link, a.anchor, a.anchorjs-link, a.id_link, .copybtn, .copy-button,
    .clipboard-copy, .linenos, .linenodiv, .lineno, td.gutter, .line-numbers-rows, select, textarea,
    input:not(.task-list-item-checkbox):not(.task-list-item > input), button, progress, meter
"""

# What pages call their main part, the surest first.
MAIN_PARTS = (
    "main, [role='main']",
    "article, [itemprop='articleBody'], .h-entry, .hentry",
    """
    #main-content, #mw-content-text, #content, #main, #docContent, #bodyContent, .post-content,
    .entry-content, .article-content, .article-body, .markdown-body, .main-content, .page-content,
    .content, .body
    """,
)

FRAME_ROLES = frozenset(_ROLES_OF_FRAMES.split())
FRAME_NAMES = frozenset(_NAMES_OF_FRAMES.split())
CALLOUT_NAMES = frozenset(_NAMES_OF_CALLOUTS.split())

MIN_SHARE = 0.4  # of the text of the cleaned page that is in the main part, if it is that
MAX_BESIDE = 0.2  # as much text as this in others of its name, and it is only one of several
MAX_FRAME_SHARE = 0.6  # of the text: a frame with more in it is the page, badly named

_LETTER = re.compile(r"[^\W\d_]")
# Only these are looked at for their names: text is full of small elements with classes.
_NAMED_ELEMENTS = (
    ", ".join(
        f"{tag}[class], {tag}[id]"
        for tag in (
            "div",
            "section",
            "aside",
            "header",
            "footer",
            "ul",
            "ol",
            "p",
            "table",
            "td",
            "form",
        )
    )
    + ", a[class]"
)


def keep_main_content(
    page: LexborHTMLParser, body: LexborNode, title: str, *, trust_names: bool = True
) -> LexborNode:
    """Take the framing out of the page and return the part that is left to be read. Without
    `trust_names`, prose stays wherever it is, whatever it is called."""
    headings = page.css("h1")
    _remove_frames(page, body, trust_names=trust_names)
    part = _find_main_part(body)
    remove(_trimmings(part))
    if len(headings) == 1 and part.css_first("h1") is None:
        _give_heading(part, headings[0], title)
    return part


def _give_heading(part: LexborNode, heading: LexborNode, title: str) -> None:
    """Puts the heading of the page, if this is it, before the part that it was outside of."""
    # The name of the site is a heading too, on every page: then a lesser one is that of the page.
    if _is_in(heading, title) and not any(_is_in(other, title) for other in part.css("h2")):
        first = part.child
        if first is None:
            part.insert_child(heading)
        else:
            first.insert_before(heading)


def _is_in(heading: LexborNode, title: str) -> bool:
    text = " ".join(heading.text().split()).lower()
    return bool(text) and text in title.lower()


def _remove_frames(page: LexborHTMLParser, body: LexborNode, *, trust_names: bool) -> None:
    most = len(body.text()) * MAX_FRAME_SHARE
    for node in [*page.css(FRAMES), *_frames_by_role(page)]:
        if _frames(node) and len(node.text()) <= most:
            remove([node])
    for node in _named_frames(page):
        if _frames(node) and len(node.text()) <= most and not _is_content(node, trust_names):
            remove([node])


def _is_content(node: LexborNode, trust_names: bool) -> bool:
    """Whether this is a part of the text, whatever it is called: what a heading says, code, or what
    is in the main part and looks like prose. Framing is made of links and of forms."""
    if node.attributes.get("role") == "heading":
        return True
    if is_inside(node, HEADINGS) or _is_only_heading(node) or _has_code(node):
        return True
    if trust_names and not _is_in_main(node):
        return False
    return is_prose(node)


def _is_only_heading(node: LexborNode) -> bool:
    """Whether this is the box of a heading, not of the name of the site (a link) or of a form."""
    headings = node.css("h2, h3, h4, h5, h6")
    return (
        len(headings) == 1
        and node.css_first("a[href]:not([href*='#']), form, input, select, textarea") is None
        and 0 < text_length(node) == text_length(headings[0])
    )


def _is_in_main(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag in ("main", "article") or parent.attributes.get("role") == "main":
            return True
        parent = parent.parent
    return False


def _has_code(node: LexborNode) -> bool:
    return any(_LETTER.search(listing.text()) for listing in node.css("pre"))


def _frames_by_role(page: LexborHTMLParser) -> list[LexborNode]:
    return [node for node in page.css("[role]") if node.attributes["role"] in FRAME_ROLES]


def _named_frames(page: LexborHTMLParser) -> list[LexborNode]:
    found = []
    for node in page.css(_NAMED_ELEMENTS):
        attributes = node.attributes
        names = (attributes.get("class") or "").lower().split()
        name = attributes.get("id")
        if not FRAME_NAMES.isdisjoint(names) or (
            # Sections of documents are called what their headings say: "Cookies", "Search".
            name
            and name.lower() in FRAME_NAMES
            and node.tag != "section"
            and "section" not in names
        ):
            found.append(node)
    return found


def _frames(node: LexborNode) -> bool:
    """Whether this really frames the page, and is no part of the text."""
    if node.tag == "span":
        return not _is_all_of_heading(node)
    if node.css_first("main, [role='main']") is not None:
        return False
    is_in_main = _is_in_main(node)
    if is_in_main and (node.css_first("h1") is not None or _has_code(node)):
        return False
    match node.tag:
        case "header":  # of an article: its heading and who wrote it when
            return not is_in_main
        case "footer":  # of a quotation: whose it is
            return not is_inside(node, ("blockquote",))
        case "aside":
            return CALLOUT_NAMES.isdisjoint((node.attributes.get("class") or "").lower().split())
    return True


def _is_all_of_heading(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None and parent.tag not in HEADINGS:
        parent = parent.parent
    return parent is not None and text_length(parent) == text_length(node)


def _find_main_part(body: LexborNode) -> LexborNode:
    """The part that the page names, if it holds enough of the text; otherwise all of it."""
    total = len(body.text())
    for selector in MAIN_PARTS:
        parts = [(len(part.text()), part) for part in body.css(selector)]
        length, largest = max(parts, key=lambda found: found[0], default=(0, body))
        if parts and length >= total * MIN_SHARE and _beside(largest, parts) <= length * MAX_BESIDE:
            return largest
    return body


def _beside(largest: LexborNode, parts: list[tuple[int, LexborNode]]) -> int:
    """How much text is in other parts of that name: the answers to the longest post of a thread."""
    if len(parts) == 1:
        return 0
    inside = {part.mem_id for part in largest.css("*")}
    return sum(length for length, part in parts if part.mem_id not in inside)


def _trimmings(part: LexborNode) -> list[LexborNode]:
    return [node for node in part.css(TRIMMINGS) if not _says_something(node)]


def _says_something(node: LexborNode) -> bool:
    """Whether this is a part of the text: a heading that opens what is under it or links to itself,
    code that is called what its line numbers (which have no letters) are called, or prose."""
    heading = node if is_inside(node, HEADINGS) else node.css_first(HEADING)
    if heading is not None:
        return _LETTER.search(heading.text()) is not None
    codes = node.css("pre, code")
    return any(_LETTER.search(code.text()) for code in codes) or is_prose(node)
