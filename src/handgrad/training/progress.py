"""Live progress: a bar in a terminal, plain lines anywhere else, or nothing.

The trainer asks `now >= display.due` after each step, which costs nothing, and calls `update` only
then. Nothing here runs in a thread of its own, so the bar never takes a core from the training.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from handgrad.errors import ArgumentError, RunError
from handgrad.escaping import printable


class DisplayError(RunError):
    """The display cannot be written to, as when a pipe was closed or a disk is full."""


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # a closed file is a ValueError
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DisplayError(f"progress cannot be written to standard output: {reason}") from None


class Display(Protocol):
    due: float

    def start(self, epoch: int, done: int, examples: int) -> None: ...
    def update(self, now: float, done: int, loss: float, accuracy: float | None) -> None: ...
    def end_epoch(self, record: Mapping[str, Any]) -> None: ...
    def close(self) -> None: ...


def display_for(choice: str, epochs: int) -> Display:
    """The display called "bar", "lines" or "off"; "auto" is a bar exactly where one can be seen."""
    if choice == "auto":
        choice = "bar" if sys.stdout.isatty() else "lines"
    if choice not in ("bar", "lines", "off"):
        raise ArgumentError(f"progress is {choice!r}; allowed: auto, bar, lines, off")
    return {"bar": Bar, "lines": LineDisplay, "off": Off}[choice](epochs)


def clock(seconds: float) -> str:
    """0:07, 12:30 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def fitted(parts: Sequence[tuple[int, str]], width: int | None) -> str:
    """The texts in their order, beside one another; in so many columns those of the lowest ranks.

    Those of rank 0 are always there. A width of None has room for all.
    """
    kept: dict[int, str] = {}
    for i, (rank, text) in sorted(enumerate(parts), key=lambda each: each[1][0]):
        taken = sum(len(each) + 2 for each in kept.values())
        if rank == 0 or width is None or taken + len(text) <= width:
            kept[i] = text
    return "  ".join(kept[i] for i in sorted(kept))


def epoch_line(record: Mapping[str, Any], epochs: int, width: int | None = None) -> str:
    """One epoch in words: "epoch  3/20  loss 0.1234  accuracy 96.42 %  ..."."""
    digits = len(str(epochs))
    parts = [(0, f"epoch {record['epoch']:>{digits}}/{epochs}")]
    for key, value in record.items():
        if value is None:
            continue
        name = key.replace("_", " ")
        if key.endswith("loss"):
            parts.append((0 if key == "loss" else 1, f"{name} {value:.4f}"))
        elif key.endswith("accuracy"):
            parts.append((2, f"{name} {100 * value:6.2f} %"))
    parts.append((3, f"{record['examples_per_second']:,.0f} examples/s"))
    return fitted(parts, width)


class _Pace:
    """Examples per second and the time left, from this process' own steps."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.epoch = 0
        self.examples = 0
        self._counted = 0
        self._last = 0
        self._began = time.perf_counter()

    def start(self, epoch: int, done: int, examples: int) -> None:
        self.epoch, self.examples, self._last = epoch, examples, done

    def measure(self, now: float, done: int) -> tuple[float, float]:
        self._counted += done - self._last
        self._last = done
        rate = self._counted / max(now - self._began, 1e-9)
        ahead = (self.epochs - self.epoch) * self.examples - done
        return rate, ahead / max(rate, 1e-9)


class Off:
    """No display."""

    due = float("inf")

    def __init__(self, epochs: int) -> None:
        pass

    def start(self, epoch: int, done: int, examples: int) -> None:
        pass

    def update(self, now: float, done: int, loss: float, accuracy: float | None) -> None:
        pass

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


class LineDisplay(Off):
    """One line an epoch, and one every ten seconds within a long one."""

    every = 10.0

    def __init__(self, epochs: int) -> None:
        self.pace = _Pace(epochs)
        self.due = time.perf_counter() + self.every

    def start(self, epoch: int, done: int, examples: int) -> None:
        self.pace.start(epoch, done, examples)
        self.due = time.perf_counter() + self.every

    def update(self, now: float, done: int, loss: float, accuracy: float | None) -> None:
        self.due = now + self.every
        rate, left = self.pace.measure(now, done)
        reached = "" if accuracy is None else f"  accuracy {100 * accuracy:.2f} %"
        with _writing():
            print(
                f"epoch {self.pace.epoch + 1}/{self.pace.epochs}  {done:,}/{self.pace.examples:,}  "
                f"loss {loss:.4f}{reached}  {rate:,.0f} examples/s  {clock(left)} left",
                flush=True,
            )

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        self.pace.measure(time.perf_counter(), self.pace.examples)
        with _writing():
            print(printable(epoch_line(record, self.pace.epochs)), flush=True)


class Bar(Off):
    """A rich progress bar, drawn at most ten times a second, above it a line for each epoch.

    A narrow terminal has a short bar and fewer numbers: loss and time left are always there.
    """

    every = 0.1
    #: The columns of the bar, and the width from which the word "epoch" has room.
    shortest, longest = 8, 28
    wide = 60

    def __init__(self, epochs: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        from handgrad.console import Console

        console = Console(markup=False, emoji=False)
        self.pace = _Pace(epochs)
        self.due = 0.0
        self._bar = BarColumn(bar_width=self.longest)
        self._progress = Progress(
            TextColumn("{task.fields[epoch]}"),
            self._bar,
            TextColumn("{task.fields[numbers]}"),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=1, epoch="", numbers="")
        with _writing():
            self._progress.start()

    def start(self, epoch: int, done: int, examples: int) -> None:
        self.pace.start(epoch, done, examples)
        word = "epoch " if self._progress.console.width >= self.wide else ""
        reached = f"{word}{epoch + 1}/{self.pace.epochs}"
        self._progress.update(self._task, epoch=reached, total=examples, completed=done)

    def update(self, now: float, done: int, loss: float, accuracy: float | None) -> None:
        self.due = now + self.every
        rate, left = self.pace.measure(now, done)
        parts = [(0, f"loss {loss:.4f}")]
        parts += [] if accuracy is None else [(1, f"accuracy {100 * accuracy:.2f} %")]
        parts += [(2, f"{rate:,.0f} examples/s"), (0, f"{clock(left)} left")]
        # Beside the numbers stand the epoch and the bar, with a space behind each.
        room = self._progress.console.width - len(self._progress.tasks[0].fields["epoch"]) - 2
        numbers = fitted(parts, room - self.shortest)
        self._bar.bar_width = min(max(room - len(numbers), 1), self.longest)
        self._progress.update(self._task, completed=done, numbers=numbers)
        with _writing():
            self._progress.refresh()

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        self.pace.measure(time.perf_counter(), self.pace.examples)
        with _writing():
            width = self._progress.console.width
            self._progress.print(epoch_line(record, self.pace.epochs, width), highlight=False)

    def close(self) -> None:
        with suppress(OSError, ValueError):  # the failure has been reported already
            self._progress.stop()
