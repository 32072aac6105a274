"""metrics.jsonl: the lines that a run logs, with the checksum of all of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from handgrad.errors import RunError
from handgrad.escaping import cut
from handgrad.io.checkpoint import changed, finite, read_file, to_json
from handgrad.io.checksums import digest, open_own
from handgrad.writing import write_all

#: The metrics before the first checkpoint, as `MetricsLog.sync` gives them.
NO_METRICS: Final = {"length": 0, "sha256": digest([])}


class MetricsLog:
    """The lines that this process wrote or found; nobody else has written to them since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Bytes that were logged.
        self.length = 0
        self._sha256 = hashlib.sha256()
        self._descriptor = -1

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one line; numbers that are not finite become null."""
        line = to_json(f"{self.path}: a record", finite(record)).encode() + b"\n"
        if self._descriptor < 0:
            self._descriptor = open_own(self.path, os.O_WRONLY | os.O_APPEND)
        write_all(self._descriptor, line)
        self._sha256.update(line)
        self.length += len(line)

    def sync(self) -> dict[str, Any]:
        """Bring the lines to the disk; their length and checksum, for a checkpoint after them."""
        if self._descriptor >= 0:
            os.fsync(self._descriptor)
        if self.length and os.stat(self.path).st_size != self.length:
            raise RunError(
                f"{self.path} was changed while the run was writing it; expected that nothing "
                "else writes to it"
            )
        return {"length": self.length, "sha256": self._sha256.hexdigest()}

    def content(self) -> bytes:
        """The bytes of all lines. Raises RunError where they are not those that were logged."""
        if not self.length and not os.path.lexists(self.path):
            return b""
        content = read_file(self.path)
        self._check(content, self.length, self._sha256.hexdigest())
        return content

    def logged_before(self, checkpoint: Path, known: Any) -> bytes | None:
        """The lines that a checkpoint knows by what `sync` gave; None where there is no file.

        Raises RunError where these are damaged, or what the checkpoint has of them.
        """
        match known:
            case {"length": int(length), "sha256": str(checksum)} if length >= 0:
                pass
            case _:
                raise RunError(f"{checkpoint} is damaged: its metrics are {cut(str(known))}")
        if not length and not os.path.lexists(self.path):
            return None
        content = read_file(self.path)
        self._check(content, length, checksum)
        return content[:length]

    def continue_after(self, content: bytes) -> None:
        """Go on behind these bytes at the start of the file; what stands after them is dropped."""
        self._descriptor = open_own(self.path, os.O_WRONLY | os.O_APPEND)
        os.ftruncate(self._descriptor, len(content))
        self._sha256.update(content)
        self.length = len(content)

    def release(self) -> int:
        """The descriptor to close, -1 where none is open; the next line opens the file again."""
        descriptor, self._descriptor = self._descriptor, -1
        return descriptor

    def _check(self, content: bytes, length: int, checksum: str) -> None:
        """Raise RunError unless the content begins with what has this length and checksum."""
        if len(content) < length:
            raise RunError(
                f"{self.path} is damaged: it has {len(content)} bytes; expected the {length} "
                "or more that it had at the last checkpoint"
            )
        found = digest([memoryview(content)[:length]])
        if found != checksum:
            raise changed(self.path, checksum, found)
