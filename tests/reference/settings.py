"""docs/reference/settings.md: every setting, as `windrow.settings` has it."""

from __future__ import annotations

import json
from dataclasses import Field, fields
from typing import Any

from tests.reference.markdown import code, needed, page, table
from windrow.settings import FILE, PREFIX, Settings

HEAD = f"""\
A setting is said in one of four places; the later ones come first: its default, `{FILE}` in the
current folder, the environment (`{PREFIX}…`), a flag of the command. `windrow init` writes a
`{FILE}` in which every setting is explained and commented out. The key there is the name of the
setting. A name that there is not is refused, so no misspelling is passed over.

Those that are secret are never printed. Whole numbers of bytes are written as numbers; true and
false are also `1` and `0`, `yes` and `no`, `on` and `off`."""


def render() -> str:
    columns = ["setting", "in the environment", "default", "what it is"]
    return page("Settings", HEAD, table(columns, [row(one) for one in fields(Settings)]))


def row(setting: Field[Any]) -> list[str]:
    names = [PREFIX + setting.name.upper(), setting.metadata["also"]]
    secret = "" if setting.repr else " (secret)"
    return [
        code(setting.name),
        ", ".join(code(name) for name in names if name),
        code(json.dumps(setting.default)) if setting.default != "" else "",
        needed(setting.metadata["doc"], setting.name) + secret,
    ]
