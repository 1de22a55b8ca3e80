"""Modules that a worker takes handlers from. What is wrong with one is an error of one line, with
its name, file and line."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import sysconfig
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Final

from windrow.errors import ConfigError, MissingExtra
from windrow.extras import find_missing
from windrow.logging import event
from windrow.queue.lease import safe_message
from windrow.worker.registry import Handler, by_kind

logger = logging.getLogger(__name__)

# Handlers of Windrow's own kinds of jobs, named like modules, and the extra that each needs.
OWN_EXTRAS: Final = {
    "web": "web",
    "nuq": "web",
    "knowledge": "knowledge",
    "video": "knowledge",
    "calls": "knowledge",
    "index": "knowledge",
}
OWN_HANDLERS: Final = tuple(OWN_EXTRAS)
# Where the code is that is not the user's.
_LIBRARIES: Final = tuple(
    {str(Path(__file__).parents[1]), *map(sysconfig.get_path, ("stdlib", "purelib", "platlib"))}
)


def installed_handlers(names: Sequence[str] = OWN_HANDLERS) -> list[str]:
    """Those of Windrow's own handlers whose extras are installed. The log names the others."""
    missing = [name for name in names if find_missing(OWN_EXTRAS[name])]
    if 0 < len(missing) < len(names):
        extras = sorted({OWN_EXTRAS[name] for name in missing})
        logger.info(
            "no handlers for %s here: pip install 'windrow[%s]'",
            ", ".join(missing),
            ",".join(extras),
            extra=event("worker.handlers_missing", handlers=missing, extras=extras),
        )
    return [name for name in names if name not in missing]


def import_handlers(names: Sequence[str]) -> list[ModuleType]:
    """Import these modules, those of the current folder too. Raises ConfigError, also if one has no
    handler, if two handlers have the same kind, or if there is nothing to import."""
    if not names:
        raise ConfigError(
            "there are no handlers to run: name the module they are in (windrow worker "
            "myapp.handlers), or install Windrow's own: pip install 'windrow[web,knowledge]'"
        )
    for name in names:
        if find_missing(extra := OWN_EXTRAS.get(name, "")):
            raise MissingExtra(extra, f"the handlers {name!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    modules = [_import_module(name) for name in names if name not in OWN_HANDLERS]
    if modules:
        by_kind(modules)
    return modules


def _import_module(name: str) -> ModuleType:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if f"{name}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"there is no module {name!r} to take handlers from{_suggestion(name)}"
            ) from error
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:  # a module can raise anything
        raise _broken(name, error) from error
    if not any(isinstance(value, Handler) for value in vars(module).values()):
        file = getattr(module, "__file__", None) or "built in"
        raise ConfigError(
            f"module {name!r} ({_short(file)}) has no @handler: decorate a function with "
            "@handler('kind')"
        )
    return module


def _broken(name: str, error: BaseException) -> ConfigError:
    # The text of a SyntaxError has its place already.
    why = error.msg if isinstance(error, SyntaxError) else safe_message(error)
    what = f"{type(error).__name__}: {' '.join(why.split())}".rstrip(": ")
    return ConfigError(f"module {name!r} cannot be imported: {what}{_place(error)}")


def _place(error: BaseException) -> str:
    """The user's line that led to the error, or that is no Python."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({_short(error.filename)}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if not frame.filename.startswith("<") and not frame.filename.startswith(_LIBRARIES)
    ]
    return f" ({_short(own[-1].filename)}, line {own[-1].lineno})" if own else ""


def _short(file: str) -> str:
    """A file of the current folder by its relative path."""
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir) else relative


def _suggestion(name: str) -> str:
    if name.endswith(".py"):
        module = name.removesuffix(".py").replace("/", ".").strip(".")
        return f": name it as in an import, {module}"
    known = [*OWN_HANDLERS, *(path.stem for path in Path.cwd().glob("*.py"))]
    similar = get_close_matches(name, known, n=1)
    return f"; did you mean {similar[0]!r}?" if similar else ""
