"""The console of rich that everything in colours goes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment
from rich.text import Text

from handgrad.escaping import printable
from handgrad.streams import unescaped_output


class Console(rich.console.Console):
    """One that colours as its markup says, and shows escaped what else would act on a terminal."""

    def __init__(self, **settings: Any) -> None:
        # The stream would escape the colours too.
        super().__init__(**{"file": unescaped_output(), **settings})

    def on_broken_pipe(self) -> None:
        # Rich would end the program with exit code 1, as if something had been found wrong.
        raise BrokenPipeError

    def render_str(self, text: str, **settings: Any) -> Text:
        # Before it is measured and laid out, because an escape takes more columns.
        return super().render_str(printable(text), **settings)

    def render(self, *args: Any, **settings: Any) -> Iterable[Segment]:
        for text, style, control in super().render(*args, **settings):
            yield Segment(text if control else printable(text), style, control)
