"""What pages say in ways that markdown has none for, said in a way that it has.

Formulas become TeX between dollar signs, listings get the name of their language, tables that only
place things on the page are opened, frames become links.
"""

from __future__ import annotations

import re
from html import escape

from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.ingest.convert.clutter import remove

# How far above a listing its language may be written.
LANGUAGE_DEPTH = 3
CARD_DEPTH = 4  # how far above its heading the link of a card is looked for
LANGUAGE_ATTRIBUTES = ("data-lang", "data-language")
# Other names of languages, and of none.
LANGUAGES = {
    "python3": "python",
    "py": "python",
    "ipython3": "python",
    "js": "javascript",
    "ts": "typescript",
    "shell-session": "console",
    "default": "",
    "none": "",
    "text": "",
    "plain": "",
    "plaintext": "",
    "nohighlight": "",
    "notranslate": "",
}
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-text-|highlight-|brush:\s*|src-"
    r"|sourceCode\s+|hljs\s+(?!language-|lang-))([A-Za-z][\w+#.-]*)"
)
_TEX_WRAPPER = re.compile(r"^\{\\(?:display|text)style\s*(.*)\}$", re.DOTALL)
_DELIMITED = re.compile(r"\s*\\([\[(])(.*)\\[\])]\s*", re.DOTALL)
_POWER = re.compile(r"[-+−]?(?:\d{1,6}|[a-zA-Z])")

# A table with one of these in it and no header places things on the page.
NOT_IN_CELLS = "h1, h2, h3, h4, pre, blockquote, article, section, form"


def write_frames(page: LexborHTMLParser) -> LexborHTMLParser:
    """A page of frames as a page of links to them, with what it has for those without frames."""
    if page.css_first("frameset") is None:
        return page
    links = "".join(
        f'<li><a href="{escape(source)}">{escape(frame.attributes.get("name") or source)}</a></li>'
        for frame in page.css("frame[src]")
        if (source := frame.attributes["src"] or "")
    )
    otherwise = "".join(node.text() for node in page.css("noframes"))
    head = page.head.html if page.head is not None else ""
    return LexborHTMLParser(f"<html>{head}<body><ul>{links}</ul>{otherwise}</body></html>")


def write_formulas(page: LexborHTMLParser) -> None:
    """Formulas as TeX, where the page has it; it is often where nobody sees it."""
    for script in page.css("script[type^='math/tex']"):
        is_block = "display" in (script.attributes.get("type") or "")
        script.replace_with(_formula(script.text(), is_block=is_block))
    for katex in page.css(".katex"):
        tex = katex.css_first("annotation[encoding='application/x-tex']")
        parent = katex.parent
        if tex is not None:
            names = "" if parent is None else parent.attributes.get("class") or ""
            katex.replace_with(_formula(tex.text(), is_block="katex-display" in names))
    for math in page.css("math"):
        tex = math.css_first("annotation[encoding='application/x-tex']")
        text = tex.text() if tex is not None else math.attributes.get("alttext")
        if text:
            is_block = math.attributes.get("display") == "block"
            _replace_formula(math, _formula(text, is_block=is_block))
    for node in page.css(".math"):
        if delimited := _DELIMITED.fullmatch(node.text()):
            node.replace_with(_formula(delimited[2], is_block=delimited[1] == "["))


def name_languages(part: LexborNode) -> None:
    """Writes the language of a listing where markdown takes it from."""
    for listing in part.css("pre"):
        language = _language_of(listing)
        for node in (listing, listing.css_first("code")):
            if node is None:
                continue
            if language:
                node.attrs["class"] = f"language-{language}"
            elif node.attributes.get("class"):
                del node.attrs["class"]


def open_tables(page: LexborHTMLParser, part: LexborNode) -> None:
    """Puts what is in the cells of tables that only place things one below the other."""
    tables = part.css("table")
    outer = {holder for table in tables if (holder := _table_around(table)) is not None}
    for table in tables:
        if table.mem_id not in outer and not _places_things(table):
            continue
        block = page.create_node("div")
        for cell in _cells_of(table):
            opened = page.create_node("div")
            for child in list(cell.iter(include_text=True)):
                opened.insert_child(child, move=True)
            block.insert_child(opened, move=True)
        table.replace_with(block, move=True)


def write_powers(part: LexborNode) -> None:
    """10 to the 43rd is not 1043. Ordinals and what leads to a footnote stay as they are."""
    for node in part.css("sup"):
        parent = node.parent
        is_link = node.css_first("a") is not None or (parent is not None and parent.tag == "a")
        if not is_link and _POWER.fullmatch(node.text()):
            node.insert_before("^")


def tidy_links(page: LexborHTMLParser, part: LexborNode) -> None:
    """Leaves links that lead somewhere, without the words that show up under the mouse."""
    remove(part.css("a:empty"))
    for link in part.css("a[title]"):
        del link.attrs["title"]
    for link in part.css("a[href^='javascript:' i]"):
        link.unwrap()
    for heading in part.css("h1, h2, h3, h4, h5, h6"):
        for link in heading.css("a[href^='#']"):
            link.unwrap()  # to itself
        _link_heading(page, heading)


def _link_heading(page: LexborHTMLParser, heading: LexborNode) -> None:
    """Of a card that is one big link, only its heading becomes the link."""
    link = heading.parent
    for _ in range(CARD_DEPTH):
        if link is None or link.tag == "a":
            break
        link = link.parent
    if link is None or link.tag != "a":
        return
    if (link.attributes.get("href") or "").startswith("#"):
        link.unwrap()  # to itself
        return
    smaller = page.create_node("a")
    smaller.attrs["href"] = link.attributes.get("href") or ""
    for child in list(heading.iter(include_text=True)):
        smaller.insert_child(child, move=True)
    heading.insert_child(smaller, move=True)
    for child in link.iter():
        child.insert_before(" ")  # what the style sheet sets apart
    link.unwrap()


def _formula(tex: str, *, is_block: bool) -> str:
    tex = tex.strip()
    if wrapped := _TEX_WRAPPER.match(tex):
        tex = wrapped[1].strip()
    return f"$${tex}$$" if is_block else f"${tex}$"


def _replace_formula(math: LexborNode, formula: str) -> None:
    """In place of the formula and, beside it, its picture for old browsers."""
    parent = math.parent
    while parent is not None and "mwe-math" in (parent.attributes.get("class") or ""):
        math, parent = parent, parent.parent
    math.replace_with(formula)


def _language_of(listing: LexborNode) -> str:
    """The language of a listing by its names, those of its code or of what is around it."""
    node: LexborNode | None = listing.css_first("code") or listing
    for _ in range(LANGUAGE_DEPTH + 1):
        if node is None:
            break
        attributes = node.attributes
        for name in LANGUAGE_ATTRIBUTES:
            if found := attributes.get(name):
                return _plain_name(found)
        if node.tag == "pre" and (found := attributes.get("lang")):
            return _plain_name(found)
        if named := _LANGUAGE.search(attributes.get("class") or ""):
            return _plain_name(named[1])
        node = node.parent
    return ""


def _plain_name(language: str) -> str:
    lower = language.strip().lower()
    return LANGUAGES.get(lower, lower if re.fullmatch(r"[\w+#.-]{1,20}", lower) else "")


def _table_around(table: LexborNode) -> int | None:
    """The table that this one is in, if it is in one."""
    parent = table.parent
    while parent is not None and parent.tag != "table":
        parent = parent.parent
    return None if parent is None else parent.mem_id


def _places_things(table: LexborNode) -> bool:
    if table.attributes.get("role") in ("presentation", "none"):
        return True
    if table.css_first("th") is not None:
        return False
    return table.css_first(NOT_IN_CELLS) is not None or len(table.css("td")) <= 1


def _cells_of(table: LexborNode) -> list[LexborNode]:
    """The cells of this table, not those of tables in them."""
    found = []
    for section in table.iter():
        rows = section.iter() if section.tag in ("tbody", "thead", "tfoot") else [section]
        for row in rows:
            found += [row] if row.tag == "caption" else list(row.iter()) if row.tag == "tr" else []
    return found
