"""The command line: `handgrad train`, `evaluate`, `predict`, `info` and `recipes`."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from handgrad.cli.streams import finish, open_streams, say, sentence_of
from handgrad.errors import HandgradError


def main() -> None:
    """The entry point of the command `handgrad`.

    An error in what the user gave, or of the system, is one sentence on stderr and exit code 2;
    Ctrl-C is 130, SIGTERM 143 and SIGHUP 129. A warning is one sentence too. Any other exception is
    a fault of handgrad: a sentence, a report in the temporary folder, and exit code 70.
    """
    open_streams()
    warnings.showwarning = _show_warning
    try:
        # Here, because a wrong HANDGRAD_ENGINE, _ISA or _THREADS is an error of this import.
        from handgrad.cli.app import app

        app()
        code: int | str | None = 0
    except SystemExit as ended:
        code = ended.code
    except HandgradError as error:
        say(str(error))
        code = 2
    except KeyboardInterrupt:
        code = 130
    except (MemoryError, OSError) as error:  # of what is printed without a command, such as --help
        say(sentence_of(error))
        code = 2
    except BaseException as error:  # some of extensions, such as a panic in Rust, are no Exception
        from handgrad.cli.unforeseen import FAULT, report

        say(report(error))
        code = FAULT
    sys.exit(finish(code if isinstance(code, int) else 0 if code is None else 1))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(str(message))
