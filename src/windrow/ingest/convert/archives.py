"""Office files are archives, and a small archive can be made to unpack to more than any memory has.
How much there is of one is found out here, a piece at a time, before anybody unpacks it whole."""

from __future__ import annotations

import copy
import io
import zipfile
import zlib
from typing import Final

from windrow.errors import ConversionError

MAGIC: Final = b"PK"
MOST_UNPACKED: Final = 100 * 1024 * 1024
MOST_MEMBERS: Final = 10_000
PIECE: Final = 1024 * 1024
TOO_MUCH: Final = f"it is too large: more than {MOST_UNPACKED} bytes unpacked"


def check_archive(body: bytes, name: str) -> None:
    """Raises ConversionError for an archive that is too much, or that cannot be looked into. One
    with a password is for the reader to refuse, who says so."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            _check_members(archive, name)
    except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, ValueError) as error:
        raise ConversionError(name, f"it is broken: {error}") from error
    except RuntimeError:
        return


def _check_members(archive: zipfile.ZipFile, name: str) -> None:
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise ConversionError(name, f"it is too large: {len(members)} files in it")
    left = MOST_UNPACKED
    for member in members:
        # What the archive says of sizes and sums may be a lie: read on until there is no more.
        unbounded = copy.copy(member)
        unbounded.file_size = left + 1
        del unbounded.CRC
        with archive.open(unbounded) as unpacked:
            while piece := unpacked.read(PIECE):
                left -= len(piece)
                if left < 0:
                    raise ConversionError(name, TOO_MUCH)
