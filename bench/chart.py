"""A bar chart as SVG: jobs a second by one worker process, on a scale of powers of ten."""

from __future__ import annotations

import math
from html import escape

from bench.results import Results, Spread, spread

LEFT, WIDTH, RIGHT = 240, 560, 110
ROW, TOP, BOTTOM = 24, 40, 30
COLOURS = {"floor": "#9aa5b1", "windrow": "#1f7a4d"}
PEER = "#5b7fb5"
TITLE = "Drain, jobs a second by one worker process (median; line: least to most)"
HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
    'font-family="sans-serif" font-size="12">'
)


def draw(results: Results) -> str:
    bars = [
        (one.name, found)
        for one in results.measured
        if (found := spread(results, one.name, "drain_per_second"))
    ]
    bars.sort(key=lambda bar: -bar[1].median)
    height = TOP + ROW * len(bars) + BOTTOM
    most = math.ceil(math.log10(max([10.0, *(found.most for _, found in bars)])))
    parts = [
        HEAD.format(width=LEFT + WIDTH + RIGHT, height=height),
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{TITLE}</text>',
        *(grid(power, most, height) for power in range(1, most + 1)),
        *(bar(n, name, found, most) for n, (name, found) in enumerate(bars)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def place(value: float, most: int) -> float:
    """Where a value is on the scale, which begins at 1."""
    return LEFT + WIDTH * math.log10(max(value, 1.0)) / most


def grid(power: int, most: int, height: int) -> str:
    x = place(10**power, most)
    return (
        f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - BOTTOM}" stroke="#e3e7eb"/>'
        f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle" fill="#666">{10**power:,}</text>'
    )


def bar(n: int, name: str, found: Spread, most: int) -> str:
    y, end = TOP + ROW * n, place(found.median, most)
    colour = next((c for prefix, c in COLOURS.items() if name.startswith(prefix)), PEER)
    middle = y + ROW / 2 - 2
    return (
        f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>'
        f'<rect x="{LEFT}" y="{y}" width="{end - LEFT:.1f}" height="{ROW - 6}" fill="{colour}"/>'
        f'<line x1="{place(found.least, most):.1f}" y1="{middle}" '
        f'x2="{place(found.most, most):.1f}" y2="{middle}" stroke="#222"/>'
        f'<text x="{place(found.most, most) + 6:.1f}" y="{y + 14}">{found.median:,.0f}</text>'
    )
