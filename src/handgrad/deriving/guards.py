"""Lines at the head of an emitted forward that refuse what it is not derived for."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from handgrad.deriving.arguments import Arguments, is_bare, parts_of
from handgrad.program.arithmetic import COMPARISONS
from handgrad.program.emit import Emitter
from handgrad.program.node import World
from handgrad.program.sizes import Size

if TYPE_CHECKING:
    from handgrad.program.node import Node

_SIGNS: Final = {f"__{each.method}__": each.text for each in COMPARISONS}
_OPPOSITE: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def size_rules(world: World) -> Iterator[tuple[str, Size, Size]]:
    """Relations of sizes that hold where the derivation does, each once."""
    seen = set()
    for relation, left, right, outcome in world.guards:
        if relation == "true":
            continue
        sign = _SIGNS.get(relation, relation)
        last = {x: world.counters[x] - 1 for x in (left - right).letters if x in world.counters}
        if sign == "<=" and last:  # of an index in a loop: its last round is the one to ask
            left, right = left.at(dict(last)), right.at(dict(last))
        sign = sign if outcome else _OPPOSITE[sign]
        rest = left - right
        masks = {each.letter for each in world.masks.values()}
        of_rounds = any(x in world.counters or x in masks for x in rest.letters)
        if of_rounds or rest.constant is not None:
            continue
        rule = (sign, left, right)
        if str(rule) not in seen:
            seen.add(str(rule))
            yield rule


def open_rules(world: World, arguments: Arguments) -> Iterator[tuple[str, Size, Size]]:
    """Those relations that do not hold whatever the lengths are."""
    for sign, left, right in size_rules(world):
        if sign != "<=" or not _always(right - left, arguments.letters):
            yield sign, left, right


def holds(rule: tuple[str, Size, Size], lengths: Mapping[str, int]) -> bool:
    sign, left, right = rule
    method = next(each.method for each in COMPARISONS if each.text == sign)
    return bool(getattr(operator, method)(left.number(lengths), right.number(lengths)))


def fixed_letters(world: World) -> dict[str, int]:
    """Letters that one length alone is allowed for."""
    found = {}
    for sign, left, right in size_rules(world):
        rest = left - right
        if sign != "==" or len(rest.letters) != 1:
            continue
        (letter,) = rest.letters
        if not (slope := rest.slope(letter)):
            continue
        start = (rest - Size.of(letter) * slope).constant
        if start is not None and start % slope == 0:
            found[letter] = -start // slope
    return found


def checks(
    e: Emitter, arguments: Arguments, world: World, names: dict[str, str], letters: Collection[str]
) -> Iterator[str]:
    """Statements that raise a ValueError with one sentence.

    names: the arrays' variables. letters: those that the arguments tell.
    """
    for setting in arguments.settings:
        if setting.letter or setting.is_free:
            continue
        kind = arguments.parameters[str(setting.path[0])].kind
        if kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        place, own = arguments.text(setting.path), written(setting.value)
        if own is None:
            shown, known, own = _known_by(setting.value, place)
            test = f"{place} is not None and {shown} != {known!r}"
        else:
            test = f"{place} {'is not' if own in ('None', 'True', 'False') else '!='} {own}"
        yield _raising(test, place, own)
    given = {setting.letter for setting in arguments.settings if setting.letter}
    for spec in arguments.specs:
        for k, size in enumerate(spec.shape):
            if (size != Size.of(str(size)) or str(size) in given) and size.letters <= set(letters):
                place = f"{names[spec.name]}.shape[{k}]"
                yield _raising(f"{place} != {e.size(size)}", place, f"{e.size(size)}")
    for sign, left, right in open_rules(world, arguments):
        if left.constant is not None:
            sign = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(sign, sign)
            left, right = right, left
        one, other = e.size(left), e.size(right)
        allowed = other if sign == "==" else f"{one} {sign} {other}"
        yield _raising(f"{one} {_OPPOSITE[sign]} {other}", one, allowed)


def _always(size: Size, lengths: Collection[str]) -> bool:
    """Return whether a size is at least 0 whatever the lengths are."""
    return all(c > 0 and all(atom in lengths for atom in atoms) for atoms, c in size.terms)


def is_of_few(rule: tuple[str, Size, Size]) -> bool:
    """Return whether a relation holds for all lengths that are no smaller than 2."""
    sign, left, right = rule
    if sign not in ("<", "<=", ">", ">="):
        return False
    rest = (right - left if sign in ("<", "<=") else left - right) - (sign in ("<", ">"))
    return _always(rest.at({x: Size.of(x) + 2 for x in rest.letters}), rest.letters)


class ValueGuards:
    """Branches on values: the emitted function is for the way that the example took.

    Each is written where its node is: what follows may fail where it does not hold.
    """

    def __init__(self, e: Emitter, world: World) -> None:
        self.e = e
        self.nodes = [node for relation, node, _, _ in world.guards if relation == "true"]
        self._outcomes = {id(g[1]): g[3] for g in world.guards if g[0] == "true"}
        self._seen: set[str] = set()

    def __call__(self, node: Node) -> None:
        if id(node) not in self._outcomes:
            return
        outcome = self._outcomes[id(node)]
        text, precedence = self.e.expression(node)
        if text in self._seen:
            return
        self._seen.add(text)
        shown = text if precedence == 9 else f"({text})"
        line = f"line {node.line}" if node.line else "the forward"
        what = text.replace('"', "'").replace("\\", "").replace("{", "").replace("}", "")
        self.e.line(f"if {f'not {shown}' if outcome else shown}:")
        self.e.line(
            f'    raise ValueError("{what} is {not outcome} at {line}; allowed: {outcome}")'
        )


def _raising(test: str, what: str, allowed: str) -> str:
    quoted = allowed.replace('"', "'").replace("{", "{{").replace("}", "}}")
    return (
        f"    if {test}:\n"
        f'        raise ValueError(f"{what.replace(chr(34), chr(39))} is {{{what}}}; '
        f'allowed: {quoted}")'
    )


def _known_by(value: Any, given: str) -> tuple[str, Any, str]:
    """An expression that tells an object such as a function from others, its value of it, and
    words for it.
    """
    code = getattr(value, "__code__", None)
    if code is not None and value.__name__ == "<lambda>":
        line, shown = code.co_firstlineno, f"getattr({given}, '__code__', None)"
        return f"getattr({shown}, 'co_firstlineno', 0)", line, f"the lambda of line {line}"
    if hasattr(value, "__name__"):
        return f"getattr({given}, '__name__', None)", value.__name__, value.__name__
    if is_bare(type(value)):
        name = type(value).__name__
        return f"type({given}).__name__", name, name
    return f"str({given})", str(value), str(value)


def written(value: Any) -> str | None:
    """A setting as it is written in a signature; None where it has no such form."""
    if isinstance(value, bool | int | float | str | None):
        text = repr(value)
        return f"float({text!r})" if text.lstrip("-") in ("inf", "nan") else text
    if isinstance(value, dict):
        items = {key: written(each) for key, each in value.items()}
        shown = ", ".join(f"{key!r}: {text}" for key, text in items.items())
        return None if None in items.values() else f"{{{shown}}}"
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        parts = [found for each in value if (found := written(each)) is not None]
        joined = ", ".join(parts) + ("," if type(value) is tuple and len(parts) == 1 else "")
        whole = f"[{joined}]" if isinstance(value, list) else f"({joined})"
        return whole if len(parts) == len(value) else None
    if (held := parts_of(value)) is None:
        return None
    inside = {name: written(each) for name, each in held.items()}
    texts = ", ".join(f"{name}={text}" for name, text in inside.items())
    return None if None in inside.values() else f"types.SimpleNamespace({texts})"


def written_default(value: Any) -> str:
    """A setting as it is written in a signature, and None for what has no such form."""
    return written(value) or "None"
