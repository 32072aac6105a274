"""Tests of many rows: one item runs its function for every row, and names the rows that fail.

An item of pytest costs some milliseconds whatever it runs, and collecting it as much again. Tens of
thousands of small cases are therefore rows of few items: `@rows("case", CASES)` reads as
`pytest.mark.parametrize` does, and several of them are multiplied likewise. With `by`, there is an
item for each value of `by(row)`, such as the op. Fixtures are made once for an item; those that ask
for a column get the tuple of its values.

`pytest --row TEXT` runs the rows whose label contains TEXT; `pytest --collect-only --rows` lists
all.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Column:
    name: str
    values: tuple[Any, ...]
    by: Callable[[Any], str] | None

    def groups(self) -> list[Any]:
        """The values of each item, as parameters of pytest."""
        if self.by is None:
            return [pytest.param(self.values, id=pytest.HIDDEN_PARAM)]
        groups: dict[str, list[Any]] = {}
        for value in self.values:
            groups.setdefault(self.by(value), []).append(value)
        return [pytest.param(tuple(values), id=name) for name, values in groups.items()]


def rows(
    name: str, values: Iterable[Any], by: Callable[[Any], str] | None = None
) -> pytest.MarkDecorator:
    """Run a test for each of the values, which it gets as `name`."""
    return pytest.mark.rows(Column(name, tuple(values), by))


def columns_of(item: pytest.Item | pytest.FunctionDefinition) -> list[Column]:
    return [mark.args[0] for mark in item.iter_markers("rows")]


def label(value: Any) -> str:
    return value.__name__ if isinstance(value, type) or callable(value) else str(value)


def rows_of(item: pytest.Function) -> Iterator[tuple[str, dict[str, Any]]]:
    """The label and the arguments of every row of an item."""
    columns = columns_of(item)
    for values in itertools.product(*(item.callspec.params[each.name] for each in columns)):
        arguments = {each.name: value for each, value in zip(columns, values, strict=True)}
        yield "-".join(label(value) for value in values), arguments


def run(item: pytest.Function, wanted: str) -> None:
    """Run every row; raise the error of the first that fails, with the names of all that do."""
    taken = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    failures: list[tuple[str, BaseException]] = []
    skips: list[BaseException] = []
    chosen = [(name, arguments) for name, arguments in rows_of(item) if wanted in name]
    for name, arguments in chosen:
        try:
            item.obj(**{**taken, **arguments})
        except pytest.skip.Exception as skip:
            skips.append(skip)
        except (Exception, pytest.fail.Exception) as error:
            failures.append((name, error))
    for name, error in failures[1:4]:
        print(f"\nrow {name}:\n{''.join(traceback.format_exception(error))}")
    if failures:
        names = ", ".join(name for name, _ in failures[:20])
        name, error = failures[0]
        error.add_note(f"row {name}; {len(failures)} of {len(chosen)} rows fail: {names}")
        raise error
    if len(skips) == len(chosen):
        raise skips[0] if skips else pytest.skip.Exception(f"no row with {wanted!r}")
