"""The packages' compiled files, kept for the next visit: compiling takes most of a first answer."""

from __future__ import annotations

import io
import os
import site
import sys
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

FOLDER: Final = Path(site.getsitepackages()[0])
#: 1980, the first date of an archive. Python takes a compiled file by its source's date.
_DATE: Final = 315_532_800


def unpack(archive: bytes) -> None:
    """Give sources the date that they have on every visit; unpack what an earlier one compiled."""
    sys.dont_write_bytecode = False
    for path in FOLDER.rglob("*.py"):
        os.utime(path, (_DATE, _DATE))
    if archive:
        ZipFile(io.BytesIO(archive)).extractall(FOLDER)


def packed() -> bytes:
    """An archive of all that is compiled by now."""
    written = io.BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for path in FOLDER.rglob("*.pyc"):
            archive.write(path, path.relative_to(FOLDER))
    return written.getvalue()


def modules() -> list[str]:
    """The modules of Python itself that are imported by now, in their order."""
    own = sys.stdlib_module_names - {"__main__"}
    return [name for name in sys.modules if name.partition(".")[0] in own]
