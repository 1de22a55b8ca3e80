"""Pages by their paths: what a crawl found, drawn as the folders of a site."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

DEEPEST: Final = 12  # parts of a path; what is below stays together


@dataclass(slots=True)
class Branch:
    """A part of a path. It may be a page itself (`job`) and have others below it."""

    name: str
    path: str
    job: str | None = None
    trouble: str = ""  # "failed", or the error that it answered with ("404")
    pages: int = 0  # with those below it
    troubled: int = 0  # of these
    below: dict[str, Branch] = field(default_factory=dict)

    @property
    def branches(self) -> Sequence[Branch]:
        return sorted(self.below.values(), key=lambda one: one.name)


def grow(pages: Iterable[tuple[str, str, str]]) -> Sequence[Branch]:
    """The sites that addresses are of, with their pages; each comes with its job and its trouble,
    if any. Of a page that was fetched more than once the first counts."""
    root = Branch("", "")
    for url, job, trouble in pages:
        way = [root]
        for name in _parts(url):
            at = way[-1]
            if name not in at.below:
                at.below[name] = Branch(name, at.path + name)
            way.append(at.below[name])
        if way[-1].job is None:
            way[-1].job, way[-1].trouble = job, trouble
            for at in way:
                at.pages += 1
                at.troubled += bool(trouble)
    for one in root.branches:
        _join(one)
    return root.branches


def _parts(url: str) -> Iterator[str]:
    """`example.org`, `/docs`, `/guide`, `/one?page=2`. By hand: it may be no address at all."""
    place, _, rest = url.partition("://")[2].partition("/")
    yield place or "?"
    path, mark, query = rest.partition("?")
    names = [f"/{name}" for name in path.split("/", DEEPEST)] if rest else []
    if names:
        names[-1] += mark + query
    yield from names


def _join(branch: Branch) -> None:
    """A part that is no page and leads to one other only is written with it."""
    for one in branch.below.values():
        _join(one)
    while branch.job is None and len(branch.below) == 1:
        [only] = branch.below.values()
        branch.name += only.name
        branch.path, branch.job, branch.trouble = only.path, only.job, only.trouble
        branch.below = only.below
