"""A run that is watched: numbers know whether they come from values, sizes or settings.

A branch on one of them is part of the run and of no formula, so what was derived from the run may
be wrong where the branch goes the other way.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from handgrad.deriving.source import UnreadableError
from handgrad.program import Program, Recorder, Site, leaves, mapped
from handgrad.program.functions import is_array
from handgrad.program.recorder import Operation

#: Functions of arrays that ask for their lengths, and those that ask for nothing that varies.
_LENGTHS: Final = frozenset({"len", "shape", "size", "broadcast_shapes"})
_KINDS: Final = frozenset(
    {
        *("isinstance", "hasattr", "callable", "type", "id", "ndim", "issubdtype", "result_type"),
        *("iscomplexobj", "isrealobj", "isscalar", "can_cast", "repr", "str", "format", "print"),
        *("shares_memory", "may_share_memory"),
    }
)


#: Operations of a run; one of more is a loop over sizes that no one would write out.
_MOST_OPERATIONS: Final = 3000
_COMPARISONS: Final = frozenset({"equal", "not_equal", "less", "less_equal", "greater"})


class Origin(NamedTuple):
    """The kind of a number's origin, "value", "size", "round" or "setting", and which it is."""

    kind: str
    which: Any


class Decision(NamedTuple):
    """A condition that the run decided, by something other than a constant."""

    site: Site
    origin: Origin


class _Int(int):
    origins: frozenset[Origin] = frozenset()


class _Flag(_Int):
    """A bool, which Python lets no class be."""


class _Float(float):
    origins: frozenset[Origin] = frozenset()


class Watching(Recorder):
    """A recorder that notes decisions. Raises UnreadableError for one on the value of an array."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[Decision] = []
        #: True once a length was compared with 0; no run here has empty arrays.
        self.asks_for_empty = False

    # Numbers

    def operate(self, site: Site, name: str, *operands: Any) -> Any:
        found = super().operate(site, name, *operands)
        if any(map(self._is_value, operands)):
            return found
        origins = _origins(operands)
        if name in _COMPARISONS and 0 in operands and {each.kind for each in origins} == {"size"}:
            self.asks_for_empty = True
            return found
        return _with(found, origins)

    def augment(self, site: Site, name: str, old: Any, value: Any) -> Any:
        found = super().augment(site, name, old, value)
        return found if self._is_value(found) else _with(found, _origins((old, value)))

    def attribute(self, site: Site, owner: Any, name: str) -> Any:
        found = super().attribute(site, owner, name)
        return _lengths(found) if is_array(owner) and name in ("shape", "size", "nbytes") else found

    def contains(self, site: Site, item: Any, items: Any) -> bool:
        found = super().contains(site, item, items)
        seen = self._seen((item, items))
        return _with(found, _origins((item, items)) | seen)  # type: ignore[no-any-return]

    def _kept(self, value: Any, lifted: Any) -> Any:
        """A bool as an array, which has a node: NumPy has but two of them."""
        is_made = isinstance(value, np.bool_) and next(leaves(lifted), None) is not None
        return np.asarray(value) if is_made else value

    def lift(self, value: Any) -> Any:
        return super().lift(_plain(value))

    def _seen(self, operands: Any) -> frozenset[Origin]:
        """The origin of what Python makes of arrays."""
        is_made = next(leaves(self.lift(operands)), None) is not None
        return frozenset({Origin("value", None)}) if is_made else frozenset()

    def _apply(self, operation: Operation) -> Any:
        made = len(self._nodes)
        if made > _MOST_OPERATIONS:
            raise _refused(
                operation.site, f"the loop around it has more than {_MOST_OPERATIONS} operations"
            )
        origins = _origins((operation.args, dict(operation.kwargs)))
        value = super()._apply(operation)
        if len(self._nodes) > made:
            if any(each.kind == "value" for each in origins):
                raise _refused(operation.site, "the value of an array is taken as a number")
            return value
        if self._is_value(value):
            return value
        if operation.op in _LENGTHS:
            return _lengths(value)
        if operation.op not in _KINDS and not operation.op.startswith("is_"):
            origins |= self._seen((operation.args, dict(operation.kwargs)))
        return _with(value, origins)

    def _library(
        self, site: Site, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if function is range:
            for each in args:
                self._decide(site, each, {"value", "setting"})
            items = range(*args)
            if not any(map(_origins, args)):
                return items
            return [_with(i, frozenset({Origin("round", len(items))})) for i in items]
        found = super()._library(site, function, args, kwargs)
        if function is enumerate:
            pairs = list(found)
            origin = frozenset({Origin("round", len(pairs))})
            return [(_with(i, origin), each) for i, each in pairs]
        if function is len and isinstance(args[0], list):
            return _with(int(found), frozenset({Origin("round", int(found))}))
        return found

    # Decisions

    def test(self, site: Site, value: Any) -> bool:
        self._decide(site, value)
        return super().test(site, value)

    def decided(self, site: Site, value: Any) -> Any:
        self._decide(site, value)
        return value

    def _decide(
        self,
        site: Site,
        value: Any,
        kinds: Iterable[str] = ("value", "size", "round", "setting"),
    ) -> None:
        origins = _origins(value) | (self._seen(value) if is_array(value) else frozenset())
        found = [each for each in origins if each.kind in kinds]
        if not found or _only_raises(self._frame.function, site):
            return
        if any(each.kind == "value" for each in found):
            raise _refused(site, "a branch on the value of an array")
        self.decisions += [Decision(site, each) for each in found]


def watched(
    function: Callable[..., Any], arguments: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[Program, Watching]:
    """The program of a call, and the recorder with its decisions.

    `settings` are the arguments that are given by a value, not by a letter of a size.
    Raises what the function raises, and UnreadableError for a branch on the value of an array.
    """
    recorder = Watching()
    given = {
        name: value
        if isinstance(value, bool) or not isinstance(value, int | float)
        else _with(
            value,
            frozenset({Origin("setting", name) if name in settings else Origin("size", value)}),
        )
        for name, value in arguments.items()
    }
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        program = recorder.run(function, **given)
    return program, recorder


def differing(first: Iterable[Decision], second: Iterable[Decision]) -> dict[str, Site]:
    """The kinds of decisions that hang on what is another number in the second run."""
    one, two = set(first), set(second)
    return {each.origin.kind: each.site for each in one ^ two}


def _refused(site: Site, why: str) -> UnreadableError:
    return UnreadableError(
        f"derive: line {site.line}: {site.text[:100]}: {why}; allowed: the same operations for "
        "all, such as np.where"
    )


def refused_size(site: Site) -> UnreadableError:
    """The error for a branch that another length may take the other way."""
    return _refused(site, "a branch on the size of an array")


def _with(value: Any, origins: frozenset[Origin]) -> Any:
    """The number with its origins, also those within plain tuples and lists."""
    if not origins:
        return value
    made: Any
    if isinstance(value, bool | np.bool_):
        made = _Flag(bool(value))
    elif type(value) in (int, float, _Int, _Float):
        made = _Float(value) if isinstance(value, float) else _Int(value)
    elif type(value) in (tuple, list):
        return type(value)(_with(each, origins) for each in value)
    else:
        return value
    made.origins = origins
    return made


def _lengths(value: Any) -> Any:
    """Lengths of axes, each with itself as the origin."""
    if isinstance(value, tuple):
        return tuple(map(_lengths, value))
    return _with(value, frozenset({Origin("size", value)})) if value != 1 else value


def _origins(nested: Any) -> frozenset[Origin]:
    if isinstance(nested, _Int | _Float):
        return nested.origins
    if isinstance(nested, tuple | list):
        return frozenset().union(*map(_origins, nested))
    if type(nested) is dict:
        return frozenset().union(*map(_origins, nested.values()))
    if isinstance(nested, slice):
        return _origins((nested.start, nested.stop, nested.step))
    return frozenset()


def _plain(nested: Any) -> Any:
    """The structure with numbers of Python, where it has others."""

    def plain(each: Any) -> Any:
        if isinstance(each, _Flag):
            return bool(each)
        return int(each) if isinstance(each, _Int) else float(each)

    if not _origins(nested):
        return nested
    return mapped(lambda each: plain(each) if isinstance(each, _Int | _Float) else each, nested)


@lru_cache(256)
def _checks(function: Callable[..., Any]) -> tuple[tuple[int, int, int, int], ...]:
    """The conditions of a function whose other way only raises: lines, and columns."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return ()
    offset = max(first, 1) - 1
    found = []
    for node in ast.walk(tree):
        is_check = isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)
        if isinstance(node, ast.If | ast.Assert) and (is_check or isinstance(node, ast.Assert)):
            test: Any = node.test
            ends = test.lineno + offset, test.col_offset, test.end_lineno + offset
            found.append((*ends, test.end_col_offset))
    return tuple(found)


def _only_raises(function: Callable[..., Any], site: Site) -> bool:
    """Return whether a condition is one of a check, which the run has passed."""
    start, end = (site.line, site.column), (site.end_line, site.end_column)
    return any(
        (line, column) <= start and end <= (last, last_column)
        for line, column, last, last_column in _checks(function)
    )
