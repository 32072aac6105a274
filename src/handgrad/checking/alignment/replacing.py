"""Other expressions: another sign, name, number, index, operation or order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations, permutations, product
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.called import is_reduction, of_call
from handgrad.checking.alignment.changes import Head, Place
from handgrad.checking.alignment.evaluating import is_pure
from handgrad.checking.alignment.scope import CallScope, distinct
from handgrad.checking.alignment.unused import unused
from handgrad.checking.alignment.variants import SIGN, Variant, binary, filled, parsed
from handgrad.checking.alignment.wording import said

_TOO_MANY: Final = "the factor {} is too many"
#: The number that leaves the other operand as it is, which nobody writes.
_NEUTRAL: Final[dict[type, int]] = {ast.Add: 0, ast.Sub: 0, ast.Mult: 1, ast.Div: 1, ast.Pow: 1}
#: Elements of a list of which two may stand the other way round.
_MOST_ELEMENTS: Final = 8
_MULTIPLIES: Final = "{} multiplies where it should divide"
_EXCHANGED: Final = "the operands of {} are exchanged"
#: Other meanings where a and b are operands: its text, the kind of fault, which of the two it
#: concerns, if not all, and the sentence.
_OTHERWISE: Final[dict[type[ast.operator], tuple[tuple[str, str, str, str], ...]]] = {
    ast.Add: (
        ("a - b", "wrong sign", "b", SIGN),
        ("a", "extra term", "b", "term {} is too many"),
        ("b", "extra term", "a", "term {} is too many"),
        ("a * b", "stale variable", "", "a product belongs where {} stands"),
    ),
    ast.Sub: (
        ("a + b", "wrong sign", "b", SIGN),
        ("a", "extra term", "b", "term {} is too many"),
        ("-b", "extra term", "a", "term {} is too many"),
        ("a * b", "stale variable", "", "a product belongs where {} stands"),
    ),
    ast.Mult: (
        ("a", "extra factor", "b", _TOO_MANY),
        ("b", "extra factor", "a", _TOO_MANY),
        ("a @ b", "stale variable", "", "a product of matrices belongs where {} stands"),
        ("a / b", "scale inverted", "b", _MULTIPLIES),
    ),
    ast.Div: (
        ("a", "extra factor", "b", _TOO_MANY),
        ("a * b", "scale inverted", "b", "{} divides where it should multiply"),
        ("b / a", "operands swapped", "", _EXCHANGED),
    ),
    ast.MatMult: (
        ("b @ a", "operands swapped", "", _EXCHANGED),
        ("a * b", "stale variable", "", "a product element by element belongs where {} stands"),
    ),
    ast.Pow: (
        ("b ** a", "operands swapped", "", _EXCHANGED),
        ("a", "extra factor", "", "the power in {} should not be taken"),
    ),
}
_COMPARED: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Gt: (ast.Lt, ast.GtE),
    ast.GtE: (ast.LtE, ast.Gt),
    ast.Lt: (ast.Gt, ast.LtE),
    ast.LtE: (ast.GtE, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}


def of_expression(place: Place, node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    match node:
        case ast.BinOp():
            yield from _of_binary(node)
            if ast.unparse(node.left) == ast.unparse(node.right):
                for new, kind, part, phrase in _other_names(node.left, scope):
                    yield binary(new, node.op, new), kind, part, phrase
        case ast.UnaryOp(ast.USub(), inner):
            yield inner, "wrong sign", said(inner), SIGN
        case ast.UnaryOp(ast.Invert() | ast.Not(), inner):
            yield inner, "wrong branch", said(node), "the condition {} is the wrong way round"
        case ast.Constant():
            yield from _of_constant(place, node)
            is_set = isinstance(place.parent, ast.Assign | ast.AugAssign)
            if is_set and type(node.value) in (int, float):
                yield from _for_number(scope)
            if isinstance(place.parent, ast.Return) and type(node.value) in (int, float):
                yield from _with_mask(node, scope)
        case ast.Compare(left, [op], [right]):
            for other in _COMPARED.get(type(op), ()):
                new = ast.Compare(left, [other()], [right])
                part = f"{said(new)} for {said(node)}"
                yield new, "wrong branch", part, "another condition belongs there: {}"
        case ast.Call():
            yield from of_call(node, scope)
        case ast.Attribute(inner, "T"):
            yield inner, "transposed", said(inner), "{} is transposed and should not be"
        case ast.Tuple(elements) | ast.List(elements):
            yield from _of_elements(place, elements, type(node))
            if isinstance(place.parent, ast.Return):
                yield from _of_returned(elements, scope)
    if not _is_widened(place):
        yield from _of_slice(node)
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        spreads = isinstance(place.parent, ast.BinOp | ast.Tuple | ast.Return)
        flows, own = _flows(place), _owner(place)
        for each in _other_names(node, scope, spreads=spreads, flows=flows):
            if own is None or ast.unparse(each[0]) != ast.unparse(own):
                yield each
        if is_branch(place):
            for number in (0, 1):
                part = f"{number} for {said(node)}"
                new = ast.Constant(number)
                yield new, "wrong branch", part, "another value belongs in this branch: {}"
    if place.field == "iter" and not isinstance(node, ast.Call):
        step = ast.Slice(None, None, parsed("-1"))
        new = ast.Subscript(node, step, ast.Load())
        yield new, "flipped", said(node), "the order of {} should be reversed"
    if isinstance(place.parent, ast.BinOp):
        yield from _other_numbers(node, scope)
    yield from other_sizes(node, scope)


def is_branch(place: Place) -> bool:
    """Return whether an expression is what `where` chooses from, or by."""
    return isinstance(place.parent, ast.Call) and ast.unparse(place.parent.func).endswith("where")


def other_sizes(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """The sizes of an array along its other axes, and of all of it."""
    match node:
        case ast.Subscript(ast.Attribute(owner, "shape"), ast.Constant(int())):
            pass
        case ast.Call(ast.Name("len"), [owner], []) | ast.Attribute(owner, "size"):
            pass
        case _:
            return
    array, name = scope.array(owner), ast.unparse(owner)
    texts = [f"{name}.shape[{axis}]" for axis in range(0 if array is None else array.ndim)]
    rows = [f"{name}[{':, ' * axis}0].size" for axis in range(len(texts))]
    more = rows[1:] if len(rows) > 2 else []  # as many as a channel has
    if array is not None and array.size and ((array == 0) | (array == 1)).all():
        more.append(f"{name}.sum()")  # as many as a mask leaves
    # One that is set again had other sizes, of which two may now be equal.
    again = sum(each.id == name for each in _stored(scope.function)) > 1
    for new in map(parsed, [*texts, f"{name}.size", *more] if texts else ()):
        if again or scope.value(new) != scope.value(node):
            part = f"{said(new)} for {said(node)}"
            yield new, "wrong axis", part, "another size belongs there: {}"


def _stored(function: ast.AST) -> Iterator[ast.Name]:
    for each in ast.walk(function):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each


def _for_number(scope: CallScope) -> Iterator[Variant]:
    """An array, whole or as one row, for a number that is assigned or added."""
    for atom, value in scope.atoms:
        row = ast.Call(ast.Attribute(atom, "ravel", ast.Load()), [], [])
        for new in (atom, row) if value.dtype.kind in "fi" and value.ndim else ():
            yield new, "factor missing", said(atom), "the factor {} is missing"


def _with_mask(node: ast.Constant, scope: CallScope) -> Iterator[Variant]:
    """A number where an array is positive, for one that comes back."""
    for atom, value in scope.atoms:
        if value.dtype.kind == "f" and value.ndim:
            mask = ast.Compare(atom, [ast.Gt()], [ast.Constant(0)])
            phrase = f"the mask, the factor {{}}, is forgotten in {said(node)}"
            yield binary(node, ast.Mult(), mask), "mask forgotten", f"({said(mask)})", phrase


def _of_elements(
    place: Place, elements: list[ast.expr], kind: type[ast.Tuple | ast.List]
) -> Iterator[Variant]:
    """Two elements the other way round; of axes one more or fewer."""
    returned = isinstance(place.parent, ast.Return)
    for i, j in combinations(range(len(elements)), 2):
        if len(elements) <= _MOST_ELEMENTS:
            swapped = [*elements]
            swapped[i], swapped[j] = elements[j], elements[i]
            new = kind(swapped, ast.Load())
            part = f"{said(elements[i])} and {said(elements[j])}"
            phrase = "{} come back in each other's place"
            name = "gradients swapped"
            if place.field == "slice":
                name, phrase = "wrong axis", "another index belongs there: {}"
                part = f"{ast.unparse(new)} for {ast.unparse(place.get())}"
            elif not returned:
                name, phrase = "operands swapped", "{} stand in each other's place, in wrong order"
            yield new, name, part, phrase
    numbers = [each.value for each in elements if isinstance(each, ast.Constant)]
    if len(numbers) != len(elements) or not all(type(each) is int for each in numbers):
        return
    fewer = [[e for e in elements if e is not each] for each in elements if len(elements) > 1]
    more = [
        [*elements[:at], ast.Constant(k), *elements[at:]]
        for k in range(5)
        if k not in numbers
        for at in (sum(n < k for n in numbers if isinstance(n, int)),)
    ]
    for each in (*fewer, *more):
        new = kind(each, ast.Load())
        part = f"{ast.unparse(new)} for {ast.unparse(kind(elements, ast.Load()))}"
        yield new, "wrong axis", part, "other axes belong there: {}"


def _of_returned(elements: list[ast.expr], scope: CallScope) -> Iterator[Variant]:
    """One that comes back fewer, or one more that is computed and never used."""
    for one in elements:
        rest = [each for each in elements if each is not one]
        new = rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load())
        yield new, "extra term", said(one), "{} comes back and is too many"
    for name in sorted(unused(scope.function)):
        for i in range(len(elements) + 1):
            more = [*elements[:i], ast.Name(name, ast.Load()), *elements[i:]]
            new = ast.Tuple(more, ast.Load())
            yield new, "term missing", said(more[i]), "{} does not come back"


def bounds(own: ast.AST) -> Iterator[tuple[Place, ast.expr]]:
    """Places of the numbers by which loops and slices begin and end."""
    whole = own.place.get() if isinstance(own, Head) else own
    for node in ast.walk(whole):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not own:
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "range":
                yield from ((Place(node, "args", i), each) for i, each in enumerate(node.args))
        elif isinstance(node, ast.Slice):
            for field in ("lower", "upper"):
                each = getattr(node, field)
                if each is not None:
                    yield Place(node, field), each


def of_bound(node: ast.expr) -> Iterator[Variant]:
    """One more or one fewer."""
    phrase = "another number of rounds, index or slice belongs there, one more or fewer: {}"
    for new in _one_off(node):
        yield new, "shifted", f"{ast.unparse(new)} for {ast.unparse(node)}", phrase


def _one_off(node: ast.expr) -> Iterator[ast.expr]:
    for op, sign in ((ast.Add, 1), (ast.Sub, -1)):
        match node:
            case ast.Constant(int(number)):
                yield parsed(str(number + sign))
            case ast.BinOp(left, other, ast.Constant(1)) if type(other) is not op:
                yield left
            case _:
                yield binary(node, op(), ast.Constant(1))


def _flows(place: Place) -> bool:
    """Return whether a gradient may stand there as it is: set, added, handed on or returned."""
    if isinstance(place.parent, ast.Call):
        return place.field == "args" and not is_pure(place.parent)
    return isinstance(place.parent, ast.Assign | ast.AugAssign | ast.Return | ast.Tuple)


def _owner(place: Place) -> ast.expr | None:
    """The node that never stands at a place: a method's object, or the other branch's value."""
    match place.parent:
        case ast.IfExp(_, then, otherwise):
            return otherwise if place.field == "body" else then
        case ast.Call(ast.Attribute(owner)):
            return owner
    return None


def _other_names(
    node: ast.expr, scope: CallScope, *, spreads: bool = False, flows: bool = False
) -> Iterator[Variant]:
    """Another value of the same kind; where the value is not to be had, of any.

    spreads: it is an operand that another one broadcasts with, or comes back, so that it may have
    more axes. flows: it may be a gradient, which no integers are.
    """
    own, whole = scope.array(node), scope.value(node)
    if own is None and whole is not None and not (flows and isinstance(whole, tuple | list)):
        return
    for other, value in scope.atoms:
        # An array of zeros stands for nothing, as a bias does that begins so.
        if not np.any(value) or ast.unparse(other) == ast.unparse(node):
            continue
        if own is not None and own.dtype.kind != value.dtype.kind:
            fits = flows and (own.dtype.kind, value.dtype.kind) == ("i", "f")
        else:
            more = spreads and own is not None and own.ndim > 0 < value.ndim
            fits = own is None or own.ndim == value.ndim or more
        if fits:
            part = f"{said(other)} for {said(node)}"
            yield other, "stale variable", part, "another variable belongs there: {}"


def _other_numbers(node: ast.expr, scope: CallScope) -> Iterator[Variant]:
    """The size of another array, where a number is computed with."""
    if isinstance(node, ast.Constant | ast.BinOp):
        return
    own = scope.array(node)
    if own is None or own.ndim:
        return
    for other, value in distinct((*scope.atoms, *scope.sizes)):
        if value != float(own):
            part = f"{said(other)} for {said(node)}"
            yield other, "scaled", part, "another factor, number or size belongs there: {}"


def _of_binary(node: ast.BinOp) -> Iterator[Variant]:
    left, op, right = node.left, node.op, node.right
    for text, kind, concerned, phrase in _OTHERWISE.get(type(op), ()):
        part = said({"a": left, "b": right}.get(concerned, node))
        if text == "a * b" and any(
            isinstance(e, ast.Constant) and e.value == 1 for e in (left, right)
        ):
            continue  # which leaves the other as it is
        yield filled(text, a=left, b=right), kind, part, phrase
    if isinstance(left, ast.Constant) and left.value == 1:
        phrase = f"{{}} belongs where {said(node)} stands"
        yield right, "stale variable", said(right), phrase
    # a * (b + c) and a * b + c: brackets elsewhere.
    phrase = "the brackets of {} belong elsewhere"
    if isinstance(left, ast.BinOp) and type(left.op) is not type(op):
        new = binary(left.left, left.op, binary(left.right, op, right))
        yield new, "brackets", said(node), phrase
    if isinstance(right, ast.BinOp) and type(right.op) is not type(op):
        new = binary(binary(left, op, right.left), right.op, right.right)
        yield new, "brackets", said(node), phrase


def _of_constant(place: Place, node: ast.Constant) -> Iterator[Variant]:
    value: Any = node.value
    phrase = "another number belongs there: {}"
    if isinstance(value, bool):
        yield ast.Constant(not value), "wrong axis", f"{not value} for {value}", phrase
        return
    if isinstance(value, str) and "->" in value:
        given = place.parent.args if isinstance(place.parent, ast.Call) else []
        yield from _of_letters(value, [said(each) for each in given[1:]])
    if not isinstance(value, int | float):
        return
    kind = "scaled"
    is_number = isinstance(place.parent, ast.BinOp | ast.UnaryOp)
    is_axis = isinstance(place.parent, ast.Call) and is_reduction(place.parent)
    if is_axis or getattr(place.parent, "arg", "") in ("axis", "axes", "dim"):
        kind = "wrong axis"
        phrase = "another axis belongs there: {}"
        for axes in (None, (0, 1), (0, 2), (1, 2), (0, 2, 3), (0, 1, 2)):
            yield parsed(f"{axes}"), kind, f"{axes} for {value}", phrase
    is_power = place.field == "right" and isinstance(getattr(place.parent, "op", None), ast.Pow)
    if is_power:
        kind = "term scaled"
        phrase = "another exponent, that is another power, belongs there: {}"
    elif kind == "scaled" and is_number:
        kind = "scale missing" if value == 1 else kind
        phrase = "the factor or number is wrong: {}"
    elif kind == "scaled":
        kind, phrase = "shifted", "another number, index or axis belongs there: {}"
    values: list[Any] = [value + 1, value - 1, -value, 2 * value]
    if isinstance(value, float) or is_number:
        values += [value / 2, value / 4, 4 * value, 0.5, 1, 2, 3, 0, 1.5, -0.5]
        values += [value + 0.5, value - 0.5, *([1 / value] if value else [])]
    else:
        values += [0, 1, 2, value + 2, value - 2]
    neutral = _NEUTRAL.get(type(getattr(place.parent, "op", None)))
    for each in dict.fromkeys(v for v in values if v not in (value, neutral)):
        text = f"{each:g} for {value:g}".replace("-", "−")
        if each == -value and kind in ("scaled", "term scaled"):
            yield parsed(repr(each)), "wrong sign", text, "the number has the wrong sign: {}"
        elif is_power and abs(each - value) == 1:
            name = "factor missing" if each > value else "extra factor"
            words = "is missing" if each > value else "is too many"
            part = f"{said(place.parent.left)}: the power {text}"  # type: ignore[attr-defined]
            yield parsed(repr(each)), name, part, f"a factor {words}, {{}}"
        else:
            yield parsed(repr(each)), kind, text, phrase


def _of_letters(value: str, names: list[str]) -> Iterator[Variant]:
    """The letters of einsum: of one of its named operands or of the result in another order."""
    inputs, _, result = value.replace(" ", "").partition("->")
    groups = [*inputs.split(","), result]
    for i, group in enumerate(groups):
        if not group.isalpha() or len(group) > 4:
            continue
        every = [*permutations(group)]
        every += [tuple(group.replace(a, b)) for a in group for b in dict.fromkeys("".join(groups))]
        for other in every:
            changed = [*groups]
            changed[i] = "".join(other)
            if changed[i] != group:
                text = f"{','.join(changed[:-1])}->{changed[-1]}"
                part, phrase = (
                    f"{text} for {value}",
                    "other letters belong there, the axes are swapped",
                )
                name = f" of {names[i]}" if i < len(names) else ""
                kind = "transpose missing" if changed[i] == group[::-1] else "axes permuted"
                yield ast.Constant(text), kind, part, f"{phrase}{name}: {{}}"


def _is_widened(place: Place) -> bool:
    """Return whether this is one of the whole axes of an array that gains axes, as `[:, None]`."""
    index = place.parent
    return isinstance(index, ast.Tuple) and any(
        isinstance(each, ast.Constant) and each.value is None for each in index.elts
    )


def _of_slice(node: ast.expr) -> Iterator[Variant]:
    if isinstance(node, ast.Slice):
        phrase = "elements are taken one position away, by another slice: {}"
        ends = (each for each in (node.lower, node.upper) if each is not None)
        is_plain = all(isinstance(each, ast.Constant | ast.UnaryOp) for each in ends)
        further, before = parsed("1"), parsed("-1")
        for lower, upper in product((None, further), (None, before)) if is_plain else ():
            new = ast.Slice(lower, upper, node.step)
            if ast.unparse(new) != ast.unparse(node):
                yield new, "shifted", f"{ast.unparse(new)} for {ast.unparse(node)}", phrase
    if isinstance(node, ast.Subscript):
        index = node.slice
        phrase = "another index belongs there, one element further or before: {}"
        for each in _one_off(index) if isinstance(index, ast.Name | ast.BinOp) else ():
            moved = ast.Subscript(node.value, each, node.ctx)
            yield moved, "shifted", f"{ast.unparse(moved)} for {ast.unparse(node)}", phrase
        if any(isinstance(each, ast.Slice) and each.step for each in ast.walk(index)):
            yield node.value, "flipped", said(node), "{} is flipped, or has steps, and should not"
        else:
            yield node.value, "extra factor", said(node), "the index of {} does not belong there"
