"""What pages say in ways that markdown has none for."""

from __future__ import annotations

import pytest

from tests.unit.ingest.convert.pages import markdown, read

KATEX = (
    '<span class="katex"><span class="katex-mathml"><math><semantics><mi>x</mi>'
    '<annotation encoding="application/x-tex">x</annotation></semantics></math></span>'
    '<span class="katex-html" aria-hidden="true">x</span></span>'
)
WIKIPEDIA = (
    '<span class="mwe-math-element"><span class="mwe-math-mathml" style="display: none">'
    r'<math alttext="{\displaystyle E=mc^{2}}"><mi>E</mi></math></span><img alt="E" src="e.svg">'
    "</span>"
)


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ('<pre><code class="language-rust">x</code></pre>', "rust"),
        ('<pre class="sourceCode haskell"><code>x</code></pre>', "haskell"),
        ('<pre><code class="hljs sql">x</code></pre>', "sql"),
        ('<pre class="brush: java; gutter: false">x</pre>', "java"),
        ('<pre data-lang="go">x</pre>', "go"),
        ('<div class="highlight-python3 notranslate"><div><pre>x</pre></div></div>', "python"),
        ('<div class="highlight highlight-source-shell"><pre>x</pre></div>', "shell"),
        ('<div class="language-ts x"><div><pre><code>x</code></pre></div></div>', "typescript"),
        ('<div class="highlight-default notranslate"><pre>x</pre></div>', ""),
        ('<pre class="programlisting">x</pre>', ""),
    ],
)  # fmt: skip
def test_listings_get_the_language_that_is_written_around_them(html: str, language: str) -> None:
    assert markdown(html) == f"```{language}\nx\n```"


def test_a_listing_keeps_its_lines_and_loses_its_line_numbers() -> None:
    html = (
        '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td>'
        '<td class="code"><div class="highlight"><pre><span class="k">if</span> x:\n'
        "    y *= `z`</pre></div></td></tr></table>"
    )
    assert markdown(html) == "```\nif x:\n    y *= `z`\n```"
    lines = '<pre><code><span class="token-line">a<br></span><span>b<br></span></code></pre>'
    assert markdown(lines) == "```\na\nb\n```"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<p>So <script type="math/tex">x^2_i</script>.</p>', "So $x^2_i$."),
        ('<p><script type="math/tex; mode=display">a</script></p>', "$$a$$"),
        (f"<p>{KATEX}</p>", "$x$"),
        (f"<p>{WIKIPEDIA}</p>", "$E=mc^{2}$"),
        ("<p><math><mi>a</mi><mo>+</mo><mn>1</mn></math></p>", "a+1"),
        (r'<p>A <span class="math notranslate">\(n \times m\)</span></p>', r"A $n \times m$"),
        (r'<div class="math notranslate">\[a\]</div>', "$$a$$"),
    ],
)  # fmt: skip
def test_formulas_are_kept_as_tex(html: str, text: str) -> None:
    assert markdown(html) == text


def test_tables_keep_header_spans_and_pipes() -> None:
    html = """<table><thead><tr><th>Name</th><th colspan="2">Size</th></tr></thead>
    <tr><td>a|b</td><td>1</td><td>2</td></tr><tr><td colspan="2">both</td><td>3</td></tr></table>"""
    rows = [[cell.strip() for cell in line.split(" | ")] for line in markdown(html).splitlines()]

    assert rows[0][:2] == ["| Name", "Size"]
    assert set(rows[1][0]) <= set("| -")
    assert rows[2] == [r"| a\|b", "1", "2 |"]
    assert rows[3][0] == "| both"


def test_tables_that_only_place_things_are_opened() -> None:
    html = """<table><tr><td><h2>Left</h2><p>One.</p></td><td><table><tr><th>k</th><th>v</th></tr>
    <tr><td>1</td><td>2</td></tr></table></td></tr></table>"""

    assert markdown(html).replace("---", "-") == (
        "## Left\n\nOne.\n\n| k | v |\n| - | - |\n| 1 | 2 |"
    )


def test_lists_are_nested_and_terms_stand_before_their_meaning() -> None:
    html = "<ul><li>a<ol><li>b<ul><li>c</li></ul></li></ol></li></ul><dl><dt>T</dt><dd>D</dd></dl>"
    lines = [line for line in markdown(html).splitlines() if line.strip()]

    assert [line.strip().split(" ")[-1] for line in lines] == ["a", "b", "c", "T", "D"]
    indents = [len(line) - len(line.lstrip()) for line in lines[:3]]
    assert indents == sorted(set(indents))


def test_a_page_of_frames_leads_to_them() -> None:
    page = """<html><head><title>F</title></head><frameset cols="20%,80%"><frame src="nav.html"
    name="menu"><frame src="start.html"><noframes><p>Old <b>text</b></p></noframes></frameset>"""
    document = read(page, {"formats": ["markdown", "links"]})

    assert document.title == "F"
    assert document.links == [
        "https://example.org/docs/nav.html",
        "https://example.org/docs/start.html",
    ]
    assert "[menu](https://example.org/docs/nav.html)" in (document.markdown or "")
    assert "Old **text**" in (document.markdown or "")


def test_inner_frames_are_links() -> None:
    assert markdown('<p>See</p><iframe src="/video" title="A film"></iframe>') == (
        "See\n\n[A film](https://example.org/video)"
    )


def test_links_that_lead_nowhere_are_only_text() -> None:
    html = (
        '<p><a href="javascript:void(0)">Open</a> <a href="#x"></a><a href="/y" title="T">Y</a></p>'
    )

    assert markdown(html) == "Open [Y](https://example.org/y)"


def test_relative_addresses_follow_the_base_of_the_page() -> None:
    page = '<base href="/other/"><p><a href="x">x</a> <a href="#f">f</a> <img src="i.png"></p>'
    document = read(page, {"formats": ["markdown", "links", "images", "html"]})

    assert document.links == ["https://example.org/other/x"]
    assert document.images == ["https://example.org/other/i.png"]
    assert "[f](https://example.org/other/#f)" in (document.markdown or "")
    assert 'src="https://example.org/other/i.png"' in (document.html or "")


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>SECRET</p>",
        '<div style="color:red; display: none">SECRET</div>',
        '<span aria-hidden="true">SECRET</span>',
        "<template><p>SECRET</p></template>",
        "<script>SECRET</script><style>SECRET</style>",
        "<noscript>SECRET</noscript>",
        "<svg><text>SECRET</text></svg>",
        '<ins class="adsbygoogle">SECRET</ins>',
        "<!-- SECRET -->",
        "<select><option>SECRET</option></select>",
    ],
)
def test_what_nobody_sees_is_not_in_the_text(hidden: str) -> None:
    seen = "This is the text of a page that is long enough to be the text of a page, and goes on."

    assert markdown(f"<main><p>{seen}</p>{hidden}</main>") == seen


def test_what_a_script_would_show_is_shown() -> None:
    assert markdown('<body style="visibility:hidden"><main hidden><p>Text</p></main>') == "Text"
    assert markdown("<div id=root></div><noscript><p>Please enable it.</p></noscript>") == (
        "Please enable it."
    )
    shadow = '<my-card><template shadowrootmode="open"><p>In the shadow</p></template></my-card>'
    assert markdown(shadow) == "In the shadow"


def test_images_that_load_late_are_there() -> None:
    page = '<p><img alt="A" src="data:image/gif;base64,R0" data-src="a.png"><img srcset="b.png 2x">'
    document = read(page, {"formats": ["markdown", "images"]})

    assert document.images == [
        "https://example.org/docs/a.png",
        "https://example.org/docs/b.png",
    ]
    assert "![A](https://example.org/docs/a.png)" in (document.markdown or "")
