"""llms.txt: where it is looked for, and what it names."""

from __future__ import annotations

import pytest

from windrow.ingest.web.discovery import is_llms_txt, llms_txt_urls, read_llms_txt

WHERE = "https://example.org/docs/llms.txt"


@pytest.mark.parametrize(
    ("start", "wanted"),
    [
        (
            "https://example.org/",
            ["https://example.org/llms.txt", "https://example.org/llms-full.txt"],
        ),
        (
            "https://example.org/docs/a",
            [
                "https://example.org/docs/llms.txt",
                "https://example.org/docs/llms-full.txt",
                "https://example.org/llms.txt",
                "https://example.org/llms-full.txt",
            ],
        ),
    ],
)
def test_files_are_looked_for_beside_the_start_and_at_the_root(
    start: str, wanted: list[str]
) -> None:
    assert llms_txt_urls(start) == wanted


def test_links_are_found_once_and_in_order() -> None:
    text = """# Example
> A summary, see https://example.org/about.

- [Guide](guide.md): the guide
- [Again](guide.md)
- [Wiki](https://example.org/wiki/Row_(hay))
- [Mail](mailto:a@example.org)
- <https://example.org/angle>

```
[not](https://example.org/in-code)
```
"""
    assert read_llms_txt(text, WHERE) == [
        "https://example.org/about",
        "https://example.org/docs/guide.md",
        "https://example.org/wiki/Row_(hay)",
        "https://example.org/angle",
    ]


@pytest.mark.parametrize(
    ("content_type", "text", "wanted"),
    [
        ("text/plain", "# Example", True),
        ("", "# Example", True),
        ("text/markdown", "# Example", True),
        ("text/html", "# Example", False),
        ("text/plain", "<!DOCTYPE html><p>all pages</p>", False),
        ("text/plain", "  ", False),
    ],
)
def test_page_shown_for_everything_is_no_llms_txt(
    content_type: str, text: str, wanted: bool
) -> None:
    assert is_llms_txt(content_type, text) is wanted
