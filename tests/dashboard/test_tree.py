"""The pages of a crawl by their paths."""

from __future__ import annotations

from windrow.web.runs import DEEPEST, Branch, grow


def grown(*urls: str) -> list[Branch]:
    return list(grow((url, url, "404" if "bad" in url else "") for url in urls))


def test_pages_are_below_the_parts_of_their_paths() -> None:
    [site] = grown("https://a.org/", "https://a.org/docs/one", "https://a.org/docs/bad")
    [docs] = site.branches
    assert (site.name, site.job, site.pages, site.troubled) == ("a.org", "https://a.org/", 3, 1)
    assert (docs.name, docs.path, docs.pages) == ("/docs", "a.org/docs", 2)
    assert [one.name for one in docs.branches] == ["/bad", "/one"]


def test_a_part_that_leads_to_one_other_only_is_written_with_it() -> None:
    [site] = grown("https://a.org/blog/2025/05/hay", "https://a.org/blog/2025/05/rain")
    assert (site.name, [one.name for one in site.branches]) == (
        "a.org/blog/2025/05",
        ["/hay", "/rain"],
    )


def test_a_page_may_have_others_below_it() -> None:
    [site] = grown("https://a.org/docs", "https://a.org/docs/one?page=2", "https://a.org")
    [docs] = site.branches
    assert site.job == "https://a.org"
    assert docs.job == "https://a.org/docs"
    assert [one.name for one in docs.branches] == ["/one?page=2"]


def test_the_deepest_path_is_no_deeper_than_that() -> None:
    [site] = grown("https://a.org/", "https://a.org" + "/x" * 5000)
    depth, at = 0, site
    while at.below:
        depth, at = depth + 1, at.branches[-1]
    assert depth <= DEEPEST + 1
    assert site.pages == 2


def test_what_is_no_address_is_shown_too() -> None:
    assert [one.pages for one in grown("", "nonsense", "http://")] == [1]
