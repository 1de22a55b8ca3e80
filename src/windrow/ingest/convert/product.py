"""The product that a page describes in JSON-LD, as `product` of the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windrow.ingest.convert.links import Resolve

MAX_DEPTH = 20  # of objects in each other that are looked at


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
