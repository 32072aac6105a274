"""The command line: `handgrad train`, `evaluate`, `predict`, `info` and `recipes`."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from handgrad.errors import HandgradError


def main() -> None:
    """The entry point of the command `handgrad`.

    An error in what the user gave is one sentence on stderr and exit code 2; Ctrl-C is 130. A
    warning is one too.
    """
    warnings.showwarning = _show_warning
    try:
        # Here, because a wrong HANDGRAD_ENGINE, _ISA or _THREADS is an error of this import.
        from handgrad.cli.app import app
    except HandgradError as error:
        print(f"handgrad: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    app()


def _show_warning(message: Warning | str, *_: Any) -> None:
    print(f"handgrad: {message}", file=sys.stderr)
