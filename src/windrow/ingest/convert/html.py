"""A page: parsed once, asked about as it was, then cleaned, cut down and written as asked."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.ingest.convert.branding import find_branding
from windrow.ingest.convert.cleaning import (
    clean,
    make_addresses_absolute,
    select,
    show_late_images,
)
from windrow.ingest.convert.links import Resolve, find_images, find_links, resolver
from windrow.ingest.convert.main_content import keep_main_content
from windrow.ingest.convert.markdown import to_markdown
from windrow.ingest.convert.markup import (
    name_languages,
    open_tables,
    tidy_links,
    write_formulas,
    write_frames,
    write_powers,
)
from windrow.ingest.convert.metadata import read_metadata
from windrow.ingest.convert.product import find_product
from windrow.ingest.convert.taming import tame
from windrow.ingest.document import AttributeValues, Document, Resource
from windrow.ingest.options import AttributeSelector, ScrapeOptions
from windrow.patterns import Budget

FRAMES_KEPT = "More than nine tenths of the text looked like framing: it was kept."
HIDDEN_KEPT = "Nearly all of the text is hidden until a script runs: it was kept."


def convert_html(resource: Resource, options: ScrapeOptions) -> Document:
    """The formats that a page has by itself; those that need a browser or a model come later."""
    text = resource.text()
    page = LexborHTMLParser(tame(text))
    if "frameset" in text.lower():
        page = write_frames(page)
    resolve = resolver(page, resource.final_url)
    document = _describe(page, resource, options, resolve)
    if options.wants("rawHtml"):
        document.raw_html = text
    if options.wants("html") or options.wants_markdown:
        _write(document, page, text, options, resolve)
    return document


def _describe(
    page: LexborHTMLParser, resource: Resource, options: ScrapeOptions, resolve: Resolve
) -> Document:
    """What the whole page says, before anything is taken out of it."""
    metadata = read_metadata(page, resource, resolve)
    document = Document(
        metadata=metadata,
        title=metadata.title,
        description=metadata.description,
        url=resource.final_url,
    )
    if options.wants("links"):
        document.links = find_links(page, resolve)
    if options.wants("images"):
        document.images = find_images(page, resolve)
    if wanted := options.format("attributes"):
        document.attributes = [_values(page, one) for one in wanted.selectors or []]
    if options.wants("product"):
        document.product = find_product(metadata.json_ld or [], resource.final_url, resolve)
        if document.product is None:
            document.warn("The page describes no product.")
    if options.wants("branding"):
        document.branding = find_branding(metadata)
    return document


def _values(page: LexborHTMLParser, wanted: AttributeSelector) -> AttributeValues:
    values = [
        value
        for node in select(page, wanted.selector, "attributes")
        if (value := node.attributes.get(wanted.attribute)) is not None
    ]
    return AttributeValues(selector=wanted.selector, attribute=wanted.attribute, values=values)


def _write(
    document: Document, page: LexborHTMLParser, text: str, options: ScrapeOptions, resolve: Resolve
) -> None:
    if "math" in text or "katex" in text:
        write_formulas(page)
    clean(page, text, options)
    parts = _parts(page, options, document.title or "")
    show_late_images(page, resolve)
    if options.wants("html"):
        make_addresses_absolute(page, resolve)
        document.html = _serialise(parts)
    if options.wants_markdown:
        for part in parts:
            name_languages(part)
            open_tables(page, part)
            tidy_links(page, part)
            write_powers(part)
            part.unwrap_tags(["span", "font"])  # mean nothing in markdown, and halve its speed
        document.markdown = to_markdown(
            _serialise(parts), resolve(""), remove_inline_images=options.remove_base64_images
        )


def _parts(page: LexborHTMLParser, options: ScrapeOptions, title: str) -> list[LexborNode]:
    """What is to be written of the page."""
    if options.include_tags:
        return _included(page, options.include_tags)
    part = keep_main_content(page, title) if options.only_main_content else page.body
    return [part] if part is not None else []


def _included(page: LexborHTMLParser, selectors: list[str]) -> list[LexborNode]:
    """What the selectors name, in the order of the page and nothing twice."""
    found = select(page, ", ".join(selectors), "includeTags")
    ids = {node.mem_id for node in found}
    return [node for node in found if not _has_ancestor(node, ids)]


def _has_ancestor(node: LexborNode, ids: set[int]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.mem_id in ids:
            return True
        parent = parent.parent
    return False


def _serialise(parts: list[LexborNode]) -> str:
    return "\n".join(part.html or "" for part in parts)
