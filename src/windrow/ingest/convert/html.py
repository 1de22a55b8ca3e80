"""A page: parsed once, asked about as it was, then cleaned, cut down and written as asked."""

from __future__ import annotations

import re

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.ingest.convert.clutter import (
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
from windrow.ingest.convert.markup import (
    name_languages,
    open_tables,
    tidy_links,
    write_formulas,
    write_frames,
    write_powers,
)
from windrow.ingest.convert.metadata import find_branding, find_product, read_metadata
from windrow.ingest.convert.repair import fill_slots, flatten, tame
from windrow.ingest.convert.selectors import select
from windrow.ingest.document import AttributeValues, Document, Resource
from windrow.ingest.options import AttributeSelector, ScrapeOptions
from windrow.patterns import Budget

FRAMES_KEPT = "More than nine tenths of the text looked like framing: it was kept."
HIDDEN_KEPT = "Nearly all of the text is hidden until a script runs: it was kept."

# The library leaves out what is deeper than 1,024; a level of a table is four elements.
MOST_NESTED = 200

_INLINE_IMAGE = re.compile(r"!\[([^\]]*)\]\(<?data:[^)>]*>?(?:\s+\"[^\"]*\")?\)")
_AS_IT_IS = PreprocessingOptions(enabled=False)


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


def to_markdown(html: str, base_url: str, *, remove_inline_images: bool) -> str:
    """The HTML as markdown, with absolute links."""
    options = ConversionOptions(
        base_url=base_url,
        preprocessing=_AS_IT_IS,
        extract_metadata=False,
        compact_tables=True,  # no spaces to make columns even: a wide table is mostly these
        highlight_style="none",
        hidden_content="all",  # what is hidden was removed before, where it should be
    )
    result = convert(html, options)
    if any("depth limit" in warning.message for warning in result.warnings):
        result = convert(flatten(html, MOST_NESTED), options)
    markdown = result.content or ""
    if (remove_inline_images and "](data:" in markdown) or "](<data:" in markdown:
        markdown = _INLINE_IMAGE.sub(_without_data, markdown)
    return markdown.strip("\n")


def _without_data(match: re.Match[str]) -> str:
    return f"![{match[1]}](<Base64-Image-Removed>)" if match[1].strip() else ""
