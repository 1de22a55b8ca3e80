"""What a page says about itself: title, `<meta>`, Open Graph, Dublin Core, JSON-LD, icon.

Names are compared without case. A name that the document has a field for goes there; any other is
passed on under its own name, as a list when the page says it more than once. `branding` is only
what the page says in so many words, the name, its pictures and the colour for the browser's frame:
fonts and the colours of the layout are known to browsers alone. `product` is read from JSON-LD.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from windrow.ingest.convert.links import Resolve
from windrow.ingest.document import Metadata, Resource, new_metadata

MAX_OTHERS = 200  # names of its own that a page may pass on
MAX_JSON_LD_CHARACTERS = 250_000

FIELDS = {
    "description": "description",
    "keywords": "keywords",
    "robots": "robots",
    "og:title": "og_title",
    "og:description": "og_description",
    "og:url": "og_url",
    "og:image": "og_image",
    "og:audio": "og_audio",
    "og:determiner": "og_determiner",
    "og:locale": "og_locale",
    "og:site_name": "og_site_name",
    "og:video": "og_video",
    "article:section": "article_section",
    "article:tag": "article_tag",
    "article:published_time": "published_time",
    "article:modified_time": "modified_time",
    "dcterms.created": "dc_terms_created",
    "dcterms.type": "dc_terms_type",
    "dcterms.audience": "dc_terms_audience",
    "dcterms.subject": "dc_terms_subject",
    "dcterms.keywords": "dc_terms_keywords",
    "dc.date.created": "dc_date_created",
    "dc.date": "dc_date",
    "dc.type": "dc_type",
    "dc.subject": "dc_subject",
    "dc.description": "dc_description",
}
# Of these a page has several on purpose; joined they are one string, as clients expect.
JOINED = frozenset({"keywords", "article_tag", "dc_subject", "dc_terms_subject"})
ADDRESSES = ("og_url", "og_image", "og_audio", "og_video")

MAX_DEPTH = 20  # of objects in each other that are looked at


def read_metadata(page: LexborHTMLParser, resource: Resource, resolve: Resolve) -> Metadata:
    """What the page and the server say."""
    metadata = new_metadata(resource)
    _read_meta_tags(page, metadata)
    _read_head(page, metadata, resolve)
    for field in ADDRESSES:
        if address := getattr(metadata, field):
            setattr(metadata, field, resolve(address))
    metadata.json_ld = find_json_ld(page) or None
    return metadata


def find_json_ld(page: LexborHTMLParser) -> list[Any]:
    """The JSON-LD blocks of a page that can be read."""
    found: list[Any] = []
    room = MAX_JSON_LD_CHARACTERS
    for node in page.css("script[type='application/ld+json' i]"):
        text = node.text().strip().removeprefix("<!--").removesuffix("-->").strip(" \n;")
        room -= len(text)
        if room < 0:
            break
        try:
            found.append(json.loads(text, strict=False))
        except (ValueError, RecursionError):  # many sites have broken ones; the page still counts
            continue
    return found


def _read_meta_tags(page: LexborHTMLParser, metadata: Metadata) -> None:
    alternates: list[str] = []
    for node in page.css("meta[content]"):
        attributes = node.attributes
        name = attributes.get("name") or attributes.get("property") or attributes.get("itemprop")
        value = (attributes.get("content") or "").strip()
        if not name or not value:
            if (attributes.get("http-equiv") or "").lower() == "content-language":
                metadata.language = value or metadata.language
            continue
        lower = name.strip().lower()
        if lower == "og:locale:alternate":
            alternates.append(value)
        elif field := FIELDS.get(lower) or FIELDS.get(lower.replace(":", ".")):
            _set(metadata, field, value)
        else:
            _pass_on(metadata.others, name.strip(), value)
    metadata.og_locale_alternate = alternates or None


def _set(metadata: Metadata, field: str, value: str) -> None:
    """The first one counts, unless there are meant to be several."""
    before = getattr(metadata, field)
    if before is None:
        setattr(metadata, field, value)
    elif field in JOINED:
        setattr(metadata, field, f"{before}, {value}")


def _pass_on(others: dict[str, str | list[str]], name: str, value: str) -> None:
    before = others.get(name)
    if before is None:
        if len(others) < MAX_OTHERS:
            others[name] = value
    elif isinstance(before, list):
        before.append(value)
    else:
        others[name] = [before, value]


def _read_head(page: LexborHTMLParser, metadata: Metadata, resolve: Resolve) -> None:
    metadata.title = _title_of(page) or metadata.og_title
    root = page.css_first("html")
    if root is not None and (
        language := root.attributes.get("lang") or root.attributes.get("xml:lang")
    ):
        metadata.language = language.strip()
    icon = page.css_first("link[rel='icon' i][href], link[rel~='icon' i][href]")
    icon = icon or page.css_first("link[rel='apple-touch-icon' i][href]")
    if icon is not None:
        metadata.favicon = resolve(icon.attributes["href"] or "")


def _title_of(page: LexborHTMLParser) -> str | None:
    # Drawings have titles of their own.
    title: LexborNode | None = page.css_first("head > title") or page.css_first("body > title")
    if title is None:
        return None
    return " ".join(title.text().split()) or None


def find_branding(metadata: Metadata) -> dict[str, Any]:
    """The parts of a brand that the page names; those that it does not are left out."""
    logo = next(_logos(metadata.json_ld), None)
    scheme = metadata.others.get("color-scheme")
    brand = {
        "brandName": metadata.og_site_name or _one(metadata.others.get("application-name")),
        "colorScheme": scheme if scheme in ("light", "dark") else None,
        "logo": logo,
        "colors": _known({"primary": _one(metadata.others.get("theme-color"))}),
        "images": _known({"logo": logo, "favicon": metadata.favicon, "ogImage": metadata.og_image}),
    }
    return _known(brand)


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _one(value: str | list[str] | None) -> str | None:
    return value[0] if isinstance(value, list) else value


def _logos(blocks: Any, depth: int = 0) -> Iterator[str]:
    """The logos of organisations in JSON-LD."""
    if depth > 4:
        return
    if isinstance(blocks, list):
        for block in blocks:
            yield from _logos(block, depth + 1)
    elif isinstance(blocks, dict):
        logo = blocks.get("logo")
        address = logo.get("url") if isinstance(logo, dict) else logo
        if isinstance(address, str):
            yield address
        for key in ("@graph", "publisher"):
            yield from _logos(blocks.get(key), depth + 1)


def find_product(blocks: list[Any], url: str, resolve: Resolve) -> dict[str, Any] | None:
    """The first product with a name, and its offers as variants."""
    for thing in _things(blocks):
        if "Product" not in _types(thing) or not isinstance(thing.get("name"), str):
            continue
        product = {
            "title": thing["name"].strip(),
            "brand": _name(thing.get("brand")),
            "category": _name(thing.get("category")),
            "url": resolve(thing["url"]) if isinstance(thing.get("url"), str) else url,
            "description": _name(thing.get("description")),
            "variants": [_variant(offer, thing, resolve) for offer in _offers(thing)],
        }
        return {key: value for key, value in product.items() if value is not None}
    return None


def _things(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _things(item, depth + 1)
    elif isinstance(value, dict):
        yield value
        for key in ("@graph", "mainEntity", "itemListElement", "item"):
            yield from _things(value.get(key), depth + 1)


def _types(thing: dict[str, Any]) -> list[str]:
    said = thing.get("@type")
    return [said] if isinstance(said, str) else said if isinstance(said, list) else []


def _offers(thing: dict[str, Any]) -> list[dict[str, Any]]:
    offers = thing.get("offers")
    if isinstance(offers, dict) and isinstance(offers.get("offers"), list):
        offers = offers["offers"]
    return [
        one for one in (offers if isinstance(offers, list) else [offers]) if isinstance(one, dict)
    ]


def _variant(offer: dict[str, Any], thing: dict[str, Any], resolve: Resolve) -> dict[str, Any]:
    stock = str(offer.get("availability") or "").rpartition("/")[2]
    images = thing.get("image")
    variant = {
        "sku": _name(offer.get("sku")) or _name(thing.get("sku")),
        "title": _name(offer.get("name")),
        "price": _price(offer),
        "availability": {"inStock": stock in ("InStock", "LimitedAvailability", "OnlineOnly")}
        | ({"text": stock} if stock else {}),
        "images": [
            {"url": resolve(address)}
            for image in (images if isinstance(images, list) else [images])
            if (address := image.get("url") if isinstance(image, dict) else image)
            and isinstance(address, str)
        ]
        or None,
    }
    return {key: value for key, value in variant.items() if value is not None}


def _price(offer: dict[str, Any]) -> dict[str, Any] | None:
    said = offer.get("price", offer.get("lowPrice"))
    try:
        amount = float(str(said).replace(" ", ""))
    except ValueError:
        return None
    currency = _name(offer.get("priceCurrency"))
    return {"amount": amount} | ({"currency": currency} if currency else {})


def _name(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("name")
    return value.strip() or None if isinstance(value, str) else None
