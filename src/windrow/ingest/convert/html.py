"""A page: parsed once, asked about as it was, then cleaned, cut down and written as asked."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.ingest.convert.branding import find_branding
from windrow.ingest.convert.cleaning import (
    MIN_KEPT_SHARE,
    clean,
    make_addresses_absolute,
    outermost,
    prose_length,
    show_late_images,
    text_length,
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
from windrow.ingest.convert.selectors import select
from windrow.ingest.convert.stream_slots import fill_slots
from windrow.ingest.convert.taming import tame
from windrow.ingest.document import AttributeValues, Document, Resource
from windrow.ingest.options import AttributeSelector, ScrapeOptions
from windrow.patterns import Budget

FRAMES_KEPT = "More than nine tenths of the text looked like framing: it was kept."
HIDDEN_KEPT = "Nearly all of the text is hidden until a script runs: it was kept."


def convert_html(resource: Resource, options: ScrapeOptions) -> Document:
    """The formats that a page has by itself; those that need a browser or a model come later."""
    text = resource.text()
    page = _parse(text)
    resolve = resolver(page, resource.final_url)
    document = _describe(page, resource, options, resolve)
    if options.wants("rawHtml"):
        document.raw_html = text
    if options.wants("html") or options.wants_markdown:
        _write(document, page, text, options, resolve)
    return document


def _parse(text: str) -> LexborHTMLParser:
    page = LexborHTMLParser(tame(text))
    fill_slots(page, text)
    return write_frames(page) if "frameset" in text.lower() else page


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
        budget = Budget("attributes")
        document.attributes = [_values(page, one, budget) for one in wanted.selectors or []]
    if options.wants("product"):
        document.product = find_product(metadata.json_ld or [], resource.final_url, resolve)
        if document.product is None:
            document.warn("The page describes no product.")
    if options.wants("branding"):
        document.branding = find_branding(metadata)
    return document


def _values(page: LexborHTMLParser, wanted: AttributeSelector, budget: Budget) -> AttributeValues:
    values = [
        value
        for node in select(page, wanted.selector, "attributes", budget)
        if (value := node.attributes.get(wanted.attribute)) is not None
    ]
    return AttributeValues(selector=wanted.selector, attribute=wanted.attribute, values=values)


def _write(
    document: Document, page: LexborHTMLParser, text: str, options: ScrapeOptions, resolve: Resolve
) -> None:
    if _clean(page, text, options):
        document.warn(HIDDEN_KEPT)
    if options.only_main_content and not options.include_tags:
        page, parts = _main_part(page, text, options, document)
    else:
        parts = _parts(page, options)
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


def _clean(page: LexborHTMLParser, text: str, options: ScrapeOptions) -> bool:
    if "math" in text or "katex" in text:
        write_formulas(page)
    return clean(page, text, options)


def _main_part(
    page: LexborHTMLParser, text: str, options: ScrapeOptions, document: Document
) -> tuple[LexborHTMLParser, list[LexborNode]]:
    """The page and its main part; with its framing, if nearly all of the text is in that."""
    if page.body is None:
        return page, []
    title, total = document.title or "", text_length(page.body)
    part = keep_main_content(page, page.body, title)
    kept = text_length(part)
    if kept >= total * MIN_KEPT_SHARE:
        return page, [part]
    # What was taken out cannot be put back: the page is parsed again.
    whole, body = _cleaned(text, options)
    prose = prose_length(body)
    if kept >= prose * MIN_KEPT_SHARE:
        return page, [part]
    document.warn(FRAMES_KEPT)
    part = keep_main_content(whole, body, title, trust_names=False)
    if text_length(part) >= prose * MIN_KEPT_SHARE:
        return whole, [part]
    whole, body = _cleaned(text, options)
    return whole, [body]


def _cleaned(text: str, options: ScrapeOptions) -> tuple[LexborHTMLParser, LexborNode]:
    page = _parse(text)
    _clean(page, text, options)
    assert page.body is not None  # noqa: S101 - the same text had one
    return page, page.body


def _parts(page: LexborHTMLParser, options: ScrapeOptions) -> list[LexborNode]:
    """What is to be written of a page that is not cut down to its main part."""
    if options.include_tags:
        return _included(page, options.include_tags)
    return [page.body] if page.body is not None else []


def _included(page: LexborHTMLParser, selectors: list[str]) -> list[LexborNode]:
    """What the selectors name, in the order of the page and nothing twice."""
    return outermost(select(page, ", ".join(selectors), "includeTags"))


def _serialise(parts: list[LexborNode]) -> str:
    return "\n".join(part.html or "" for part in parts)
