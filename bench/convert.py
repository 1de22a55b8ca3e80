"""Conversion: CPU milliseconds per page, beside trafilatura.

    .venv/bin/python -m bench.convert [--rounds 5]

Pages of about 25 kB of four kinds are made here, the same in every run. Contestants take turns page
by page, so that whatever else the machine does falls on all of them; figures are CPU time of this
process, and the ratio is what counts. Both make markdown with links and tables, and metadata.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping

from bench.contestant import package_version
from bench.results import Measured
from windrow.ingest.convert import convert
from windrow.ingest.document import Resource
from windrow.ingest.options import ScrapeOptions

CALLS = 5  # of each contestant for each page in a round
GOAL_MS = 1.5
TRAFILATURA = "trafilatura"
_VOCABULARY = """
    river stone harbour engine winter letter bridge signal garden window copper market valley
    season paper ladder kettle storm ticket island lantern carriage orchard station mirror
"""
WORDS = _VOCABULARY.split()

Contestant = Callable[[str], str]


def main() -> None:
    pages = make_pages()
    print(as_table(pages, measure(pages, find_contestants(), _arguments().rounds)))


def run(rounds: int) -> list[Measured]:
    """Milliseconds per page, on average over the kinds of pages, one figure for each round."""
    pages = make_pages()
    contestants = find_contestants()
    found = [
        Measured(
            name=name,
            store="",
            settings="markdown with links and tables, and metadata",
            versions={name: package_version(name) or ""} if name == TRAFILATURA else {},
            jobs=len(pages) * CALLS,
            figures={"convert_ms": list(map(statistics.mean, zip(*by_page.values(), strict=True)))},
        )
        for name, by_page in measure(pages, contestants, rounds).items()
    ]
    if TRAFILATURA not in contestants:
        absent = f"not installed: {TRAFILATURA}"
        found.append(Measured(TRAFILATURA, "", "", {}, 0, absent=absent))
    return found


def find_contestants() -> dict[str, Contestant]:
    found: dict[str, Contestant] = {"windrow": _windrow, "windrow, links too": _windrow_with_links}
    try:
        import trafilatura
    except ImportError:
        print("trafilatura is not installed: pip install 'windrow[bench]'")
        return found

    def extract(page: str) -> str:
        return (
            trafilatura.extract(
                page,
                output_format="markdown",
                include_links=True,
                include_images=True,
                include_tables=True,
                include_formatting=True,
                with_metadata=True,
            )
            or ""
        )

    return {**found, TRAFILATURA: extract}


def measure(
    pages: Mapping[str, str], contestants: Mapping[str, Contestant], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """CPU milliseconds per call: contestant, page, one figure per round."""
    figures: dict[str, dict[str, list[float]]] = {
        name: {page: [] for page in pages} for name in contestants
    }
    for turn in range(rounds + 1):
        for page, html in pages.items():
            for name, run in contestants.items():
                started = time.process_time()
                for _ in range(CALLS):
                    run(html)
                spent = (time.process_time() - started) / CALLS * 1000
                if turn:  # the first round loads and fills caches
                    figures[name][page].append(spent)
    return figures


def as_table(pages: Mapping[str, str], figures: Mapping[str, Mapping[str, list[float]]]) -> str:
    own = figures["windrow"]
    lines = ["| page | kB | " + " | ".join(f"{name}, ms" for name in figures) + " | ratio |"]
    lines.append("|---" * (len(figures) + 3) + "|")
    for page, html in pages.items():
        medians = {name: statistics.median(of[page]) for name, of in figures.items()}
        cells = " | ".join(f"{value:.2f}" for value in medians.values())
        # Round by round, since each has its own neighbours on the machine.
        beside = figures.get(TRAFILATURA, {}).get(page, [])
        ratios = [theirs / ours for ours, theirs in zip(own[page], beside, strict=False)]
        ratio = f"{statistics.median(ratios):.1f} ×" if ratios else "–"
        lines.append(f"| {page} | {len(html) / 1000:.0f} | {cells} | {ratio} |")
    every = [statistics.median(own[page]) for page in pages]
    least = [min(own[page]) for page in pages]
    lines.append(
        f"\nwindrow: {statistics.mean(every):.2f} ms per page, {statistics.mean(least):.2f} in the "
        f"round that was disturbed least; the goal is ≤ {GOAL_MS}"
    )
    return "\n".join(lines)


def make_pages() -> dict[str, str]:
    """A page of each kind."""
    chance = random.Random(25)
    return {
        "article": _page(_article(chance, 38)),
        "documentation": _page(_documentation(chance, 34)),
        "shop": _page(_shop(chance, 60)),
        "forum": _page(_forum(chance, 34)),
    }


def _windrow(page: str) -> str:
    return convert(_resource(page), _MARKDOWN).markdown or ""


def _windrow_with_links(page: str) -> str:
    return convert(_resource(page), _WITH_LINKS).markdown or ""


def _resource(page: str) -> Resource:
    return Resource(_URL, _URL, 200, page.encode(), content_type="text/html", charset="utf-8")


_URL = "https://example.org/section/page.html"
_MARKDOWN = ScrapeOptions()
_WITH_LINKS = ScrapeOptions.parse({"formats": ["markdown", "links"]})


def _sentence(chance: random.Random, words: int = 14) -> str:
    chosen = chance.choices(WORDS, k=words)
    chosen[3] = (
        f'<a href="/topic/{chosen[3]}">{chosen[3]}</a>' if chance.random() < 0.3 else chosen[3]
    )
    chosen[7] = f"<strong>{chosen[7]}</strong>" if chance.random() < 0.3 else chosen[7]
    return " ".join(chosen).capitalize() + "."


def _paragraph(chance: random.Random, sentences: int = 4) -> str:
    return f"<p>{' '.join(_sentence(chance) for _ in range(sentences))}</p>"


def _article(chance: random.Random, paragraphs: int) -> str:
    parts = ["<article><header><h1>The storm and the harbour</h1><time>2 March</time></header>"]
    for number in range(paragraphs):
        if number % 6 == 0:
            parts.append(f"<h2>{' '.join(chance.choices(WORDS, k=4))}</h2>")
        parts.append(_paragraph(chance))
        if number % 9 == 4:
            parts.append(f'<figure><img src="/i/{number}.jpg" alt="A view"></figure>')
    return "".join(parts) + "</article>"


def _documentation(chance: random.Random, entries: int) -> str:
    parts = ["<section><h1>Module lantern<a class='headerlink' href='#m'>¶</a></h1>"]
    for number in range(entries):
        code = "".join(
            f'<span class="n">{word}</span> <span class="o">=</span> '
            f'<span class="mi">{number}</span>\n'
            for word in chance.choices(WORDS, k=3)
        )
        parts.append(
            f'<dl class="py function"><dt class="sig" id="f{number}"><code>lantern.f{number}</code>'
            f"(<em>kettle=None</em>)</dt><dd>{_paragraph(chance, 2)}"
            f'<div class="highlight-python"><div class="highlight"><pre>{code}</pre></div></div>'
            "</dd></dl>"
        )
    rows = "".join(f"<tr><td>{word}</td><td>{_sentence(chance, 9)}</td></tr>" for word in WORDS)
    return "".join(parts) + f"<table><tr><th>Name</th><th>Use</th></tr>{rows}</table></section>"


def _shop(chance: random.Random, products: int) -> str:
    cards = "".join(
        f'<li class="card"><a href="/p/{number}"><img src="/i/{number}.jpg" alt="{word}">'
        f'<h3>{word} no. {number}</h3><p class="text">{_sentence(chance, 12)}</p>'
        f'<span class="price">{number}.90</span></a><button>Add</button></li>'
        for number, word in enumerate(chance.choices(WORDS, k=products))
    )
    return f"<h1>Everything</h1><ul class='grid'>{cards}</ul>"


def _forum(chance: random.Random, posts: int) -> str:
    return "<h1>Which kettle?</h1>" + "".join(
        f'<div class="post" id="p{number}"><p class="author">by <b>user{number}</b></p>'
        f'<div class="content"><blockquote>{_sentence(chance)}</blockquote>'
        f"{_paragraph(chance)}</div>"
        f'<ul class="actions"><li><a href="#p{number}">Quote</a></li></ul></div>'
        for number in range(posts)
    )


def _page(content: str) -> str:
    """The content with the framing of a site around it."""
    menu = "".join(f'<li><a href="/menu/{word}">{word}</a></li>' for word in WORDS)
    meta = "".join(f'<meta property="og:{name}" content="x">' for name in ("title", "image", "url"))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>{meta}'
        '<link rel="icon" href="/i.png"><style>.a{color:red}</style>'
        f'<script>var a = 1;</script></head><body><header><nav><ul class="menu">{menu}</ul></nav>'
        f'</header><div class="cookie-banner">We use cookies</div><main>{content}</main>'
        f'<aside class="sidebar"><ul>{menu}</ul></aside><footer>Imprint</footer></body></html>'
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU time of conversion, beside trafilatura")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
