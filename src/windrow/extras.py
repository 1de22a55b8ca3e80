"""Extras: what `pip install 'windrow[NAME]'` adds, and which of them are installed.

Read from the metadata of the installed package, so pyproject.toml is the only list.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires
from typing import Final

from windrow.errors import MissingExtra

# Extras for the development of Windrow.
_DEVELOPMENT: Final = frozenset({"bench", "dev", "docs"})
_REQUIREMENT: Final = re.compile(r"([\w.-]+)(?:\[([\w,.-]+)\])?[^;]*(?:;(.*))?")
_EXTRA: Final = re.compile(r"""extra == ['"]([\w-]+)['"]""")
# Modules whose names are not those of their distributions, or that come with another one.
_DISTRIBUTIONS: Final = {
    "backports": "backports-zstd",
    "botocore": "boto3",
    "markupsafe": "jinja2",
    "mcp_types": "mcp",
    "multidict": "aiohttp",
    "multipart": "python-multipart",
    "pydantic_core": "pydantic",
    "re2": "google-re2",
    "redis": "bullmq",
    "starlette": "fastapi",
    "yarl": "aiohttp",
}


@cache
def list_extras() -> Mapping[str, frozenset[str]]:
    """The distributions that each extra needs, beside those of a bare installation."""
    needed: dict[str, set[str]] = defaultdict(set)
    included: dict[str, set[str]] = defaultdict(set)
    for line in _requirements():
        found = _REQUIREMENT.match(line)
        extra = _EXTRA.search(line)
        if found is None or extra is None or extra[1] in _DEVELOPMENT:
            continue
        name, others, marker = found.groups()
        if _canonical(name) == "windrow":
            included[extra[1]].update(others.split(","))
        elif "python_version" not in marker:  # else the interpreter may have it built in
            needed[extra[1]].add(_canonical(name))
    for extra_name in included:
        for other in _closure(extra_name, included):
            needed[extra_name] |= needed[other]
    return {name: frozenset(all_of_it) for name, all_of_it in sorted(needed.items())}


def find_missing(extra: str) -> list[str]:
    """The distributions of an extra that are not installed."""
    needed = list_extras().get(extra, frozenset())
    return sorted(name for name in needed if not _is_installed(name))


def explain_import(
    error: ModuleNotFoundError, wanted: str = "", why: str = ""
) -> MissingExtra | None:
    """The error to show in place of a failed import: the extra to install, preferably the `wanted`
    one. None if the module belongs to no extra."""
    module = (error.name or "").partition(".")[0]
    distribution_name = _canonical(_DISTRIBUTIONS.get(module, module))
    having = [name for name, needed in list_extras().items() if distribution_name in needed]
    if not having or _is_installed(distribution_name):
        return None
    smallest = min(having, key=lambda name: len(list_extras()[name]))
    return MissingExtra(wanted if wanted in having else smallest, why)


def _requirements() -> Iterable[str]:
    try:
        return requires("windrow") or ()
    except PackageNotFoundError:  # run from its source, without an installation
        return ()


def _closure(extra: str, included: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [extra]
    while waiting:
        for other in included.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
