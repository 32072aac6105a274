"""Tests of many rows: one item runs its function for every row, and names the rows that fail.

An item of pytest costs some milliseconds whatever it runs, and collecting it as much again. Tens of
thousands of small cases are therefore rows of few items: `@rows("case", CASES)` reads as
`pytest.mark.parametrize` does, names of several arguments and `ids` included, and several of them
are multiplied likewise. With `by`, there is an item for each value of `by` of a row, such as the
op. Fixtures are made once for an item; those that ask for a column get the tuple of its values.

`pytest --row TEXT` runs the rows whose label contains TEXT; `pytest --collect-only --rows` lists
all.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

#: Characters of a value in a label.
LONGEST = 80


@dataclass(frozen=True)
class Column:
    """The arguments that some rows give a test together: their names, and the rows."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    by: Callable[..., str] | None

    def groups(self) -> list[Any]:
        """The rows of each item, as parameters of pytest: for each name its values and labels."""
        groups: dict[Any, list[int]] = {}
        for k, row in enumerate(self.rows):
            groups.setdefault(self.by(*row) if self.by else pytest.HIDDEN_PARAM, []).append(k)
        return [
            pytest.param(
                *(
                    Values((self.rows[k][i] for k in places), [self.labels[k] for k in places])
                    for i in range(len(self.names))
                ),
                id=name,
            )
            for name, places in groups.items()
        ]


class Values(tuple[Any, ...]):
    """The values of an argument in the rows of an item, with the labels of the rows."""

    labels: Sequence[str]

    def __new__(cls, values: Iterable[Any], labels: Sequence[str]) -> Values:
        self = super().__new__(cls, values)
        self.labels = labels
        return self


def rows(
    names: str | tuple[str, ...],
    values: Iterable[Any],
    by: Callable[..., str] | None = None,
    ids: Callable[[Any], Any] | Iterable[Any] | None = None,
) -> pytest.MarkDecorator:
    """Run a test for each of the values, which it gets under these names."""
    several = not isinstance(names, str)
    named = ids if callable(ids) else lambda value: None
    table, labels = [], []
    for value in values:
        marked = isinstance(value, type(pytest.param()))
        assert not (marked and value.marks), f"a row of {names} has marks, which are an item's"
        row = value.values if marked else tuple(value) if several else (value,)
        table.append(row)
        given = value.id if marked else None
        labels.append(given or "-".join(label(each, named(each)) for each in row))
    if ids is not None and not callable(ids):
        labels = [str(each) for each in ids]
    assert len(labels) == len(table), f"{len(labels)} labels for {len(table)} rows of {names}"
    return pytest.mark.rows(Column(names if several else (names,), tuple(labels), tuple(table), by))


def columns_of(item: pytest.Item | pytest.FunctionDefinition) -> list[Column]:
    return [mark.args[0] for mark in item.iter_markers("rows")]


def label(value: Any, name: Any = None) -> str:
    """A line for a value: its name if it has one, and otherwise the beginning of its text."""
    text = str(getattr(value, "__name__", value) if name is None else name)
    return (text if text.isprintable() else ascii(text))[:LONGEST]


def rows_of(item: pytest.Function) -> Iterator[tuple[str, dict[str, Any]]]:
    """The label and the arguments of every row of an item."""
    parts = []
    for column in columns_of(item):
        values = [item.callspec.params[name] for name in column.names]
        named = [dict(zip(column.names, row, strict=True)) for row in zip(*values, strict=True)]
        parts.append(list(zip(values[0].labels, named, strict=True)))
    for chosen in itertools.product(*parts):
        arguments = {name: value for _, named in chosen for name, value in named.items()}
        yield "-".join(name for name, _ in chosen), arguments


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
