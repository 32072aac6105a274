"""The command line: `handgrad train`, `evaluate`, `predict`, `info` and `recipes`."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from handgrad.cli.interrupts import INTERRUPTED, Interrupts
from handgrad.errors import HandgradError
from handgrad.streams import finish, open_streams, say, sentence_of


def main() -> None:
    """The entry point of the command `handgrad`.

    An error in what the user gave, or of the system, is one sentence on stderr and exit code 2;
    Ctrl-C is 130, SIGTERM 143 and SIGHUP 129. A warning is one sentence too. Any other exception is
    a fault of handgrad: a sentence, a report in the temporary folder, and exit code 70.
    """
    open_streams()
    if "check" in sys.argv[1:2]:
        # PyTorch compiles nothing then: lines of Python are seen and changed.
        os.environ.setdefault("PYTORCH_JIT", "0")
    warnings.showwarning = _show_warning
    interrupts = Interrupts()
    try:
        interrupts.heed()
        code = finish(_run(interrupts))
        interrupts.end(code)
    except (
        KeyboardInterrupt
    ):  # while another exception ended the command, or its output was written
        code = finish(INTERRUPTED)
        interrupts.end(code)
    sys.exit(code)


def _run(interrupts: Interrupts) -> int:
    """The exit code of the command, after the sentence where it failed."""
    try:
        # Here, because a wrong HANDGRAD_ENGINE, _ISA or _THREADS is an error of this import.
        from handgrad.cli.app import app

        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except HandgradError as error:
        say(str(error))
        return 2
    except (MemoryError, OSError) as error:  # of what is printed without a command, such as --help
        say(sentence_of(error))
        return 2
    except BaseException as error:  # some of extensions, such as a panic in Rust, are no Exception
        # Python's import system and extensions make other exceptions of a KeyboardInterrupt.
        if interrupts.heard or isinstance(error, KeyboardInterrupt):
            say("interrupted")
            return INTERRUPTED
        from handgrad.unforeseen import FAULT, report

        say(report(error))
        return FAULT
    return 0


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(str(message))
