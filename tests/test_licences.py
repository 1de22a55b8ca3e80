"""What is installed may be used, and passed on, by whoever uses Windrow, going by its licences.

What Windrow needs to run, extras included, is permissive or listed below with the reason. Tools of
its development may also be under the LGPL, since nothing of them is passed on. GPL and AGPL are
refused everywhere, and so is what does not say its licence. What only the benchmarks install is run
beside Windrow to be measured, and is nobody's dependency.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
# Extras that are not for users of Windrow.
OURS = frozenset({"dev", "bench"})

PERMISSIVE = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC"),
        *("MIT", "MIT-0", "PSF-2.0", "Unlicense", "Zlib"),
    }
)
# Changed files of theirs must be given on as source; files of ours beside them need not.
WEAK = frozenset({"MPL-2.0"})
# Only for tools that run here and are not passed on.
TOOLS = frozenset({"LGPL-3.0-only"})

# How licences are spelled where they are not by their SPDX names, in small letters.
SPELLED = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "new bsd": "BSD-3-Clause",
    "python software foundation license": "PSF-2.0",
    "the mit license (mit)": "MIT",
}

# What the metadata do not say, or say too little of, and why it may be used.
KNOWN = {
    "imageio-ffmpeg": (
        "BSD-2-Clause",
        # Its wheel carries a build of ffmpeg under the GPL.
        "run as a program of its own, never linked, and only where the system has none",
    ),
}


def test_what_windrow_needs_is_permissive():
    wrong = [
        said
        for name in sorted(needed())
        if (said := complaint(distribution(name), PERMISSIVE | WEAK))
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_that_is_installed_is_under_the_gpl_or_says_nothing():
    peers = reached("bench") - reached(*extras_but("bench"))
    wrong = [
        said
        for found in distributions()
        if canonicalize_name(found.metadata["Name"]) not in peers
        and (said := complaint(found, PERMISSIVE | WEAK | TOOLS)) is not None
    ]
    assert not wrong, "\n".join(sorted(wrong))


def test_the_check_knows_what_it_looks_at():
    names = needed()
    assert {"aiohttp", "cryptography", "playwright", "starlette"} <= names
    assert not {"psycopg", "pytest"} & names


def test_a_reason_is_given_only_for_what_is_pinned():
    pinned = {canonicalize_name(name) for name in pins()}
    assert set(KNOWN) <= pinned


@pytest.mark.parametrize(
    ("licence", "may"),
    [
        ("MIT", True),
        ("mit", True),
        ("MIT License", True),
        ("Apache-2.0 OR GPL-3.0-only", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-or-later", False),
        ("AGPL-3.0-only", False),
        ("GNU Affero General Public License v3", False),
        ("Proprietary", False),
        ("", False),
    ],
)
def test_a_licence_is_read_as_it_is_meant(licence: str, may: bool):
    assert is_allowed(licence, PERMISSIVE | WEAK) is may


def needed() -> frozenset[str]:
    """What an installation with every extra for users brings."""
    return reached(*extras_but(*OURS))


def extras_but(*left_out: str) -> list[str]:
    return [name for name in project()["optional-dependencies"] if name not in left_out]


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def reached(*names: str) -> frozenset[str]:
    """The names of all that an installation with these extras brings, as far as it is here."""
    extras = project()["optional-dependencies"]
    left = [Requirement(one) for one in project()["dependencies"]]
    left += [Requirement(one) for name in names for one in extras[name]]
    found: set[tuple[str, frozenset[str]]] = set()
    while left:
        one = left.pop()
        place = (canonicalize_name(one.name), frozenset(one.extras))
        if place in found:
            continue
        try:
            asked = distribution(one.name).requires or []
        except PackageNotFoundError:
            continue  # of an extra that is not installed, or for another system
        found.add(place)
        left += [need for text in asked if is_meant(need := Requirement(text), one.extras)]
    return frozenset(name for name, _ in found)


def is_meant(need: Requirement, extras: set[str]) -> bool:
    if need.marker is None:
        return True
    return any(need.marker.evaluate({"extra": extra}) for extra in [*extras, ""])


def pins() -> Iterator[str]:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if name := re.match(r"[\w.-]+", line):
            yield name[0]


def complaint(found: Distribution, allowed: frozenset[str]) -> str | None:
    said = licences_of(found)
    if any(is_allowed(licence, allowed) for licence in said):
        return None
    return f"{found.metadata['Name']} {found.version} is under {said or 'no licence that it names'}"


def licences_of(found: Distribution) -> list[str]:
    """By the newest of the ways in which a distribution can say it; several: any of them."""
    meta = found.metadata
    if known := KNOWN.get(canonicalize_name(meta["Name"])):
        return [known[0]]
    if expressions := meta.get_all("License-Expression"):
        return [str(one) for one in expressions]
    classifiers = [
        one.rpartition(" :: ")[2] for one in meta.get_all("Classifier", []) if "OSI App" in one
    ]
    text = str((meta.get_all("License") or [""])[0]).strip().partition("\n")[0]
    # A classifier cannot say AND: where the text is an expression, it is what counts.
    return [text] if " AND " in text or not classifiers else classifiers


def is_allowed(licence: str, allowed: frozenset[str]) -> bool:
    """Whether each part of it can be had under an allowed licence."""
    known = {name.casefold() for name in allowed}
    return all(
        any(_name(choice) in known for choice in part.strip().strip("()").split(" OR "))
        for part in _spelled(licence).split(" AND ")
    )


def _spelled(licence: str) -> str:
    return SPELLED.get(licence.strip().casefold(), licence)


def _name(choice: str) -> str:
    return _spelled(choice).strip().casefold()
