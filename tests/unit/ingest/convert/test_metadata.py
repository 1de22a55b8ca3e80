"""What a page says about itself (N4)."""

from __future__ import annotations

from tests.unit.ingest.convert.pages import URL, read

HEAD = """<html lang="de-AT"><head><title>
  A  title </title>
<meta name="Description" content=" What it is. "><meta name="keywords" content="a, b">
<meta name="robots" content="noindex">
<meta property="og:title" content="OG title"><meta property="og:description" content="OG text">
<meta property="og:url" content="/canonical"><meta property="og:image" content="/og.png">
<meta property="og:audio" content="/og.mp3"><meta property="og:video" content="/og.mp4">
<meta property="og:determiner" content="the"><meta property="og:locale" content="de_AT">
<meta property="og:locale:alternate" content="en_GB"><meta property="og:locale:alternate" content="fr_FR">
<meta property="og:site_name" content="Site">
<meta property="article:published_time" content="2026-01-02"><meta property="article:modified_time" content="2026-01-03">
<meta property="article:tag" content="x"><meta property="article:tag" content="y"><meta property="article:section" content="News">
<meta name="DC.date" content="2025"><meta name="dc.date.created" content="2024"><meta name="DC.Type" content="Text">
<meta name="DC.subject" content="s"><meta name="dc.description" content="d">
<meta name="DCTERMS.created" content="2023"><meta name="dcterms:type" content="t"><meta name="dcterms.audience" content="u">
<meta name="dcterms.subject" content="v"><meta name="dcterms.keywords" content="w">
<meta name="author" content="Ann"><meta name="author" content="Bob"><meta name="theme-color" content="#fff">
<meta name="statusCode" content="999"><meta name="empty" content="">
<link rel="shortcut icon" href="/favicon.ico">
<script type="application/ld+json">{"@type": "Article", "headline": "H"}</script>
<script type="application/ld+json">{broken</script>
</head><body><svg><title>Not this</title></svg><p>Text</p></body></html>"""  # noqa: E501


def test_n4_every_name_of_the_contract_is_filled() -> None:
    wire = read(HEAD, headers={"content-language": "en"}).to_wire()

    assert wire["metadata"] == {
        "title": "A title",
        "description": "What it is.",
        "language": "de-AT",
        "keywords": "a, b",
        "robots": "noindex",
        "favicon": "https://example.org/favicon.ico",
        "ogTitle": "OG title",
        "ogDescription": "OG text",
        "ogUrl": "https://example.org/canonical",
        "ogImage": "https://example.org/og.png",
        "ogAudio": "https://example.org/og.mp3",
        "ogVideo": "https://example.org/og.mp4",
        "ogDeterminer": "the",
        "ogLocale": "de_AT",
        "ogLocaleAlternate": ["en_GB", "fr_FR"],
        "ogSiteName": "Site",
        "publishedTime": "2026-01-02",
        "modifiedTime": "2026-01-03",
        "articleTag": "x, y",
        "articleSection": "News",
        "dcDate": "2025",
        "dcDateCreated": "2024",
        "dcType": "Text",
        "dcSubject": "s",
        "dcDescription": "d",
        "dcTermsCreated": "2023",
        "dcTermsType": "t",
        "dcTermsAudience": "u",
        "dcTermsSubject": "v",
        "dcTermsKeywords": "w",
        "author": ["Ann", "Bob"],
        "theme-color": "#fff",
        "jsonLd": [{"@type": "Article", "headline": "H"}],
        "url": URL,
        "sourceURL": URL,
        "statusCode": 200,
        "contentType": "text/html",
        "proxyUsed": "basic",
    }
    assert (wire["title"], wire["description"], wire["url"]) == ("A title", "What it is.", URL)


def test_a_page_without_a_head_has_what_the_server_says() -> None:
    metadata = read("", status=404, headers={"content-language": "fr"}).metadata

    assert (metadata.status_code, metadata.language, metadata.title) == (404, "fr", None)


def test_a_product_is_read_from_json_ld() -> None:
    page = """<script type="application/ld+json">{"@graph": [{"@type": "WebPage"},
    {"@type": ["Product"], "name": "Kettle", "brand": {"name": "Boil & Co"}, "sku": "K1",
     "description": "It boils.", "image": ["/k.png"], "category": "Kitchen",
     "offers": {"@type": "Offer", "price": "19.90", "priceCurrency": "EUR",
                "availability": "https://schema.org/InStock"}}]}</script><p>Kettle</p>"""
    document = read(page, {"formats": ["product"]})

    assert document.product == {
        "title": "Kettle",
        "brand": "Boil & Co",
        "category": "Kitchen",
        "url": URL,
        "description": "It boils.",
        "variants": [
            {
                "sku": "K1",
                "price": {"amount": 19.9, "currency": "EUR"},
                "availability": {"inStock": True, "text": "InStock"},
                "images": [{"url": "https://example.org/k.png"}],
            }
        ],
    }


def test_a_page_without_a_product_says_so() -> None:
    document = read("<p>Nothing for sale</p>", {"formats": ["product"]})

    assert document.product is None
    assert document.warning == "The page describes no product."


def test_a_brand_is_what_the_page_says_of_it() -> None:
    page = """<meta property="og:site_name" content="Kiln"><meta name="theme-color" content="#a40">
    <link rel="icon" href="/i.png"><script type="application/ld+json">
    {"publisher": {"@type": "Organization", "logo": {"url": "https://example.org/logo.svg"}}}
    </script>"""
    document = read(page, {"formats": ["branding", "menu"]})

    assert document.branding == {
        "brandName": "Kiln",
        "logo": "https://example.org/logo.svg",
        "colors": {"primary": "#a40"},
        "images": {"logo": "https://example.org/logo.svg", "favicon": "https://example.org/i.png"},
    }
    assert document.warning == "The format 'menu' is not available."
