"""The table of changes: for each kind of expression, what may have been meant instead."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any, Final

import numpy as np

from handgrad.checking.alignment.changes import Change, Place, expressions, statements
from handgrad.checking.alignment.pieces import Function, Piece
from handgrad.checking.alignment.scope import Scope
from handgrad.checking.alignment.wording import said

#: A new node, the kind of the fault, the part concerned, and the sentence.
Variant = tuple[Any, str, str, str]
_SIGNS: Final = (ast.Add, ast.Sub)
_REDUCING: Final = ("sum", "mean", "max", "min", "prod", "var", "std", "cumsum", "concatenate")
_FUNCTIONS: Final = {
    "sum": ("mean", "cumsum"),
    "mean": ("sum",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
    "argmax": ("argmin",),
    "argmin": ("argmax",),
    "tanh": ("cosh", "sinh"),
    "sin": ("cos",),
    "cos": ("sin",),
    "exp": ("log", "expm1"),
    "log": ("exp", "log1p"),
    "sqrt": ("square",),
    "square": ("sqrt",),
    "triu": ("tril",),
    "tril": ("triu",),
    "dot": ("outer",),
    "repeat": ("tile",),
    "tile": ("repeat",),
    "zeros_like": ("ones_like",),
    "ones_like": ("zeros_like",),
    "abs": ("sign",),
    "var": ("std",),
    "std": ("var",),
    "append": (),
}
_COMPARED: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Gt: (ast.Lt, ast.GtE),
    ast.GtE: (ast.LtE, ast.Gt),
    ast.Lt: (ast.Gt, ast.LtE),
    ast.LtE: (ast.GtE, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
_SIGN: Final = "term {} has the wrong sign"
_MISSING: Final = "the factor {} is missing"


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def binary(left: ast.expr, op: ast.operator, right: ast.expr) -> ast.expr:
    return ast.BinOp(copy.deepcopy(left), op, copy.deepcopy(right))


def changes(piece: Piece, *, inserted: bool) -> Iterator[Change]:
    """All changes of a function's lines: those of what is there, or insertions."""
    for function, call in piece.regions:
        scope = Scope(function, call)
        for change in _of_function(function, scope, inserted=inserted):
            change.scope = scope
            yield change


def _of_function(function: Function, scope: Scope, *, inserted: bool) -> Iterator[Change]:
    body = function.body
    if isinstance(body, ast.expr):
        holders: list[tuple[Place | None, Any]] = [(None, function)]
    else:
        holders = list(statements(body))
    for position, (place, statement) in enumerate(holders):
        if isinstance(statement, ast.FunctionDef | ast.While | ast.ClassDef):
            continue
        if place is not None and not inserted:
            following = holders[position + 1] if position + 1 < len(holders) else None
            yield from _of_statement(place, statement, following)
        own = _header(statement)
        if inserted:
            yield from _insertions(own, statement, scope)
        else:
            yield from _replacements(own, statement, scope)


def _header(statement: Any) -> ast.AST:
    """The statement's own expressions: of a loop what it goes over, of a condition its test."""
    if isinstance(statement, ast.For):
        return _Head(statement, "iter")
    if isinstance(statement, ast.If):
        return _Head(statement, "test")
    if isinstance(statement, ast.With | ast.Try):
        return ast.Pass()
    return statement  # type: ignore[no-any-return]


class _Head(ast.AST):
    """One field of a statement as if it were all of it."""

    def __init__(self, statement: ast.AST, field: str) -> None:
        self.statement, self.name = statement, field


def _places(own: ast.AST) -> Iterator[tuple[Place, ast.expr]]:
    if isinstance(own, _Head):
        first = getattr(own.statement, own.name)
        yield Place(own.statement, own.name), first
        yield from expressions(first)
    elif isinstance(own, ast.Lambda):
        yield Place(own, "body"), own.body
        yield from expressions(own.body)
    else:
        yield from expressions(own)


def _replacements(own: ast.AST, statement: Any, scope: Scope) -> Iterator[Change]:
    for place, node in _places(own):
        if not isinstance(getattr(node, "ctx", None), ast.Store):
            for new, kind, part, phrase in _of_expression(place, node, scope):
                yield Change(place, new, kind, part, phrase.format(part), statement)


def _of_expression(place: Place, node: ast.expr, scope: Scope) -> Iterator[Variant]:
    match node:
        case ast.BinOp():
            yield from _of_binary(node)
        case ast.UnaryOp(ast.USub(), inner):
            yield inner, "wrong sign", said(inner), _SIGN
        case ast.UnaryOp(ast.Invert() | ast.Not(), inner):
            yield inner, "wrong branch", said(node), "the condition {} is the wrong way round"
        case ast.Constant():
            yield from _of_constant(place, node)
        case ast.Compare(left, [op], [right]):
            for other in _COMPARED.get(type(op), ()):
                new = ast.Compare(left, [other()], [right])
                part = f"{said(node)}: {said(new)} belongs there"
                yield new, "wrong branch", part, "another condition belongs there: {}"
        case ast.Call():
            yield from _of_call(node, scope)
        case ast.Attribute(inner, "T"):
            yield inner, "transposed", said(inner), "{} is transposed and should not be"
        case ast.Tuple(elements):
            for i, j in combinations(range(len(elements)), 2):
                if len(elements) <= 8 and isinstance(place.parent, ast.Return):
                    swapped = [*elements]
                    swapped[i], swapped[j] = elements[j], elements[i]
                    part = f"{said(elements[i])} and {said(elements[j])}"
                    phrase = "{} come back in each other's place"
                    yield ast.Tuple(swapped, ast.Load()), "gradients swapped", part, phrase
    yield from _of_slice(node)
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        yield from _other_names(node, scope)


def _other_names(node: ast.expr, scope: Scope) -> Iterator[Variant]:
    """Another value of the same kind; where the value is not to be had, of any."""
    own = scope.array(node)
    written = ast.unparse(node)
    if own is None and scope.value(node) is not None:
        return
    for other, value in scope.atoms:
        if ast.unparse(other) == written or (
            own is not None and (own.ndim != value.ndim or own.dtype.kind != value.dtype.kind)
        ):
            continue
        part = f"{said(other)} for {said(node)}"
        yield other, "stale variable", part, "another variable belongs there: {}"


def _of_binary(node: ast.BinOp) -> Iterator[Variant]:
    left, op, right = node.left, node.op, node.right
    if isinstance(op, _SIGNS):
        other = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
        yield binary(left, other, right), "wrong sign", said(right), _SIGN
        yield left, "extra term", said(right), "term {} is too many"
        new = right if isinstance(op, ast.Add) else ast.UnaryOp(ast.USub(), right)
        yield new, "extra term", said(left), "term {} is too many"
        if not isinstance(right, ast.Constant):
            yield (
                binary(left, ast.Mult(), right),
                "stale variable",
                said(node),
                ("a product belongs where {} stands"),
            )
        if isinstance(op, ast.Sub):
            yield binary(right, op, left), "wrong sign", said(node), _SIGN
    if isinstance(op, ast.Mult | ast.Div):
        yield left, "extra factor", said(right), _too_many(right)
        if isinstance(op, ast.Mult):
            yield right, "extra factor", said(left), _too_many(left)
            yield (
                binary(left, ast.MatMult(), right),
                "stale variable",
                said(node),
                ("a product of matrices belongs where {} stands"),
            )
            yield (
                binary(right, ast.Div(), left),
                "scale inverted",
                said(left),
                ("{} multiplies where it should divide"),
            )
        phrase = "{} multiplies where it should divide"
        if isinstance(op, ast.Div):
            phrase = "{} divides where it should multiply"
        turned: ast.operator = ast.Div() if isinstance(op, ast.Mult) else ast.Mult()
        yield binary(left, turned, right), "scale inverted", said(right), phrase
        for sign in (ast.Add(), ast.Sub()):
            yield (
                binary(left, sign, right),
                "stale variable",
                said(node),
                ("a sum belongs where the product {} stands"),
            )
    if isinstance(op, ast.MatMult | ast.Div | ast.Pow):
        yield (
            binary(right, op, left),
            "operands swapped",
            said(node),
            ("the operands of {} are exchanged"),
        )
    if isinstance(op, ast.MatMult):
        yield (
            binary(left, ast.Mult(), right),
            "stale variable",
            said(node),
            ("a product element by element belongs where {} stands"),
        )
    if isinstance(op, ast.Pow):
        yield left, "extra factor", said(node), "the power in {} should not be taken"
    # a * (b + c) and a * b + c: brackets elsewhere.
    if isinstance(left, ast.BinOp) and type(left.op) is not type(op):
        new = binary(left.left, left.op, binary(left.right, op, right))
        yield new, "brackets", said(node), "the brackets of {} belong elsewhere"
    if isinstance(right, ast.BinOp) and type(right.op) is not type(op):
        new = binary(binary(left, op, right.left), right.op, right.right)
        yield new, "brackets", said(node), "the brackets of {} belong elsewhere"


def _too_many(node: ast.expr) -> str:
    return f"the {'scale' if isinstance(node, ast.Constant) else 'factor'} {{}} is too many"


def _of_constant(place: Place, node: ast.Constant) -> Iterator[Variant]:
    value: Any = node.value
    phrase = "another number belongs there: {}"
    if isinstance(value, bool):
        yield ast.Constant(not value), "wrong axis", f"{not value} for {value}", phrase
        return
    if value is None or isinstance(value, str):
        if isinstance(value, str) and "->" in value:
            yield from _of_letters(value)
        if value is None:
            for axis in (0, 1, -1):
                yield ast.Constant(axis), "wrong axis", f"{axis} for None", phrase
        return
    if not isinstance(value, int | float):
        return
    kind = "scaled"
    if isinstance(place.parent, ast.keyword) and place.parent.arg in ("axis", "axes"):
        kind = "wrong axis"
        new = ast.Constant(None)
        yield new, kind, f"None for {value}", "another axis belongs there: {}"
        for axes in ((0, 1), (0, 2), (1, 2), (0, 2, 3), (0, 1, 2)):
            listed = ast.Tuple([ast.Constant(each) for each in axes], ast.Load())
            yield listed, kind, f"{axes} for {value}", "another axis belongs there: {}"
    if isinstance(place.parent, ast.BinOp) and isinstance(place.parent.op, ast.Pow):
        kind = "term scaled"
        phrase = "another exponent, that is another power, belongs there: {}"
    elif kind == "scaled" and isinstance(place.parent, ast.BinOp):
        phrase = "the factor or number is wrong: {}"
    elif kind == "scaled":
        kind, phrase = "shifted", "another number, index or axis belongs there: {}"
    values: list[Any] = [value + 1, value - 1, -value, 2 * value]
    if isinstance(value, float) or isinstance(place.parent, ast.BinOp):
        values += [
            value / 2,
            value / 4,
            4 * value,
            0.5,
            1,
            2,
            3,
            0,
            *([1 / value] if value else []),
        ]
        values += [1.5, -0.5, value + 0.5, value - 0.5]
    else:
        values += [0, 1, 2, value + 2, value - 2]
    for each in dict.fromkeys(v for v in values if v != value):
        text = f"{each:g} for {value:g}".replace("-", "−")
        yield parsed(repr(each)), kind, text, phrase


def _of_letters(value: str) -> Iterator[Variant]:
    """The letters of einsum: of one operand or of the result in another order."""
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
                yield (
                    ast.Constant(text),
                    "axes permuted",
                    f"{text} for {value}",
                    ("other letters belong there, the axes are swapped: {}"),
                )


def _of_call(node: ast.Call, scope: Scope) -> Iterator[Variant]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = node.func.id if isinstance(node.func, ast.Name) else name
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_method = owner is not None and scope.array(owner) is not None
    operand = owner if is_method else node.args[0] if node.args else None
    for other in _FUNCTIONS.get(name, ()):
        func = copy.deepcopy(node.func)
        if isinstance(func, ast.Attribute):
            func.attr = other
        new = ast.Call(func, node.args, node.keywords)
        if {name, other} == {"sum", "mean"}:
            kind = "sum for mean" if name == "sum" else "mean for sum"
            yield new, kind, said(node), f"{{}} should be a {other}"
        else:
            yield new, "stale variable", f"{other} for {name}", "another function belongs there: {}"
    if operand is not None and not isinstance(operand, ast.Starred):
        phrase = "{} should not be applied"
        yield operand, "extra factor", said(node), phrase
    if name in ("T", "transpose") and operand is not None:
        yield operand, "transposed", said(operand), "{} is transposed and should not be"
    if name in _REDUCING and not any(k.arg == "axis" for k in node.keywords):
        for axis in (0, 1, -1):
            new = ast.Call(node.func, node.args, [*node.keywords, _keyword("axis", axis)])
            yield new, "wrong axis", said(node), f"{{}} is to be taken along axis {axis} alone"
    if name in _REDUCING:
        kept = [k for k in node.keywords if k.arg != "keepdims"]
        if len(kept) == len(node.keywords):
            kept.append(_keyword("keepdims", True))
        new = ast.Call(node.func, node.args, kept)
        yield new, "wrong axis", said(node), "keepdims of {} makes another axis broadcast"
        for keyword in node.keywords:
            if keyword.arg == "axis":
                others = [k for k in node.keywords if k is not keyword]
                new = ast.Call(node.func, node.args, others)
                yield new, "wrong axis", said(node), "{} is to be taken over all axes"
                if isinstance(keyword.value, ast.Tuple):
                    yield from _of_axes(node, keyword, others)
    if name == "where" and len(node.args) == 3:
        a, b, c = node.args
        part = said(node)
        new = ast.Call(node.func, [a, c, b], node.keywords)
        yield new, "wrong branch", part, "the branches of {} are exchanged"
    elif len(node.args) == 2:
        new = ast.Call(node.func, node.args[::-1], node.keywords)
        yield new, "operands swapped", said(node), "the operands of {} are exchanged"
    if name == "dot" and is_method and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        func = ast.Attribute(node.args[0], "dot", ast.Load())
        new = ast.Call(func, [copy.deepcopy(node.func.value)], [])
        yield new, "operands swapped", said(node), "the operands of {} are exchanged"
    if name == "pop":
        choices: tuple[list[ast.expr], ...] = ([], [ast.Constant(0)])
        for args in choices:
            if len(args) != len(node.args):
                new = ast.Call(node.func, args, [])
                yield (
                    new,
                    "stale variable",
                    said(new),
                    ("another element belongs there, first and last are swapped in order: {}"),
                )
    if name == "reversed" and operand is not None:
        yield operand, "flipped", said(node), "the order of {} is reversed and should not be"
    if name == "range":
        func = ast.Name("reversed", ast.Load())
        new = ast.Call(func, [node], [])
        yield new, "flipped", said(node), "the order of {} should be reversed"


def _of_axes(node: ast.Call, keyword: ast.keyword, others: list[ast.keyword]) -> Iterator[Variant]:
    axes = keyword.value.elts if isinstance(keyword.value, ast.Tuple) else []
    smaller: list[Any] = [[e for e in axes if e is not each] for each in axes]
    larger: list[Any] = [[*axes, ast.Constant(k)] for k in range(4)]
    for each in (*smaller, *larger):
        value = each[0] if len(each) == 1 else ast.Tuple(each, ast.Load())
        new = ast.Call(node.func, node.args, [*others, ast.keyword("axis", value)])
        part = f"{said(node)}: {ast.unparse(value)} for {ast.unparse(keyword.value)}"
        yield new, "wrong axis", part, "other axes belong there: {}"


def _keyword(name: str, value: Any) -> ast.keyword:
    return ast.keyword(name, ast.Constant(value))


def _of_slice(node: ast.expr) -> Iterator[Variant]:
    if isinstance(node, ast.Slice):
        phrase = "elements are taken one position away, by another slice: {}"
        bounds = (node.lower, node.upper)
        for lower, upper in (("1", None), (None, "-1"), (None, None), ("1", "-1")):
            new = ast.Slice(
                parsed(lower) if lower else None, parsed(upper) if upper else None, node.step
            )
            if ast.dump(new) != ast.dump(node) and all(
                each is None or isinstance(each, ast.Constant | ast.UnaryOp) for each in bounds
            ):
                yield new, "shifted", f"{ast.unparse(new)} for {ast.unparse(node)}", phrase
        step = None if node.step is not None else parsed("-1")
        new = ast.Slice(node.lower, node.upper, step)
        yield new, "flipped", ast.unparse(node), "{} is to be taken the other way round"
    if isinstance(node, ast.Subscript):
        index = node.slice
        phrase = "another index belongs there, one element further or before: {}"
        is_number = isinstance(index, ast.Name | ast.BinOp)
        for op in (ast.Add(), ast.Sub()) if is_number else ():
            moved = ast.Subscript(node.value, binary(index, op, ast.Constant(1)), node.ctx)
            yield moved, "shifted", f"{ast.unparse(moved)} for {ast.unparse(node)}", phrase
        yield node.value, "extra factor", said(node), "the index of {} does not belong there"


def _of_statement(
    place: Place, statement: ast.stmt, following: tuple[Place | None, Any] | None
) -> Iterator[Change]:
    """Other statements: += for =, an update that repeats indices, none at all."""

    def change(new: Any, kind: str, part: str, phrase: str) -> Change:
        return Change(place, new, kind, part, phrase.format(part), statement)

    if isinstance(statement, ast.AugAssign):
        target = copy.deepcopy(statement.target)
        part = said(target)
        new: ast.stmt = ast.Assign([target], statement.value)
        yield change(new, "extra term", part, "{} is added to where it should be set")
        for op, signs in ((ast.Add, ast.Sub), (ast.Sub, ast.Add), (ast.Mult, ast.Div)):
            if isinstance(statement.op, op):
                other = ast.AugAssign(statement.target, signs(), statement.value)
                yield change(other, "wrong sign", said(statement.value), _SIGN)
        if isinstance(statement.target, ast.Subscript):
            call = ast.parse("np.add.at()").body[0]
            assert isinstance(call, ast.Expr)
            assert isinstance(call.value, ast.Call)
            array = copy.deepcopy(statement.target.value)
            array.ctx = ast.Load()  # type: ignore[attr-defined]
            call.value.args = [array, statement.target.slice, statement.value]
            phrase = "repeated, duplicate indices of {} count once: np.add.at belongs there"
            yield change(call, "term missing", part, phrase)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        held = statement.targets[0]
        phrase = "{} is overwritten where a sum over every step belongs (+=): the last one counts"
        if isinstance(held, ast.Name | ast.Subscript | ast.Attribute):
            for added in (ast.Add(), ast.Sub()):
                new = ast.AugAssign(held, added, statement.value)
                yield change(new, "term missing", said(held), phrase)
    if isinstance(statement, ast.AugAssign | ast.Expr | ast.Assign):
        yield change(ast.Pass(), "extra term", ast.unparse(statement), "{} is too many")
    after: Place | None = following[0] if following is not None else None
    later: Any = following[1] if following is not None else None
    if after is not None:
        same = after.get() is later and getattr(after.parent, "body", 0) is getattr(
            place.parent, "body", 1
        )
        simple = isinstance(later, ast.Assign | ast.AugAssign | ast.Expr)
        if same and simple and isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
            part = f"{ast.unparse(later)} before {ast.unparse(statement)}"
            phrase = f"the order of two lines is wrong: {part}"
            swap = ((after, statement),)
            yield Change(place, later, "stale variable", part, phrase, statement, swap)


def _insertions(own: ast.AST, statement: Any, scope: Scope) -> Iterator[Change]:
    """What was left out at an expression: a sign, a factor, a term, a sum, an axis."""
    for place, node in _places(own):
        if not _takes_insertions(place, node):
            continue
        array = scope.array(node)
        if array is None and (scope.value(node) is not None or _is_owner(place, node)):
            continue
        if array is not None and array.dtype.kind == "i" and not array.ndim:
            continue
        for new, kind, part, phrase in _inserted(node, array, scope):
            yield Change(place, new, kind, part, phrase.format(part), statement)


def _is_owner(place: Place, node: ast.expr) -> bool:
    """Return whether a name stands before a dot, as that of a module or an object does."""
    return isinstance(place.parent, ast.Attribute) and isinstance(node, ast.Name)


def _takes_insertions(place: Place, node: ast.expr) -> bool:
    if isinstance(getattr(node, "ctx", None), ast.Store) or isinstance(
        node, ast.Constant | ast.Slice | ast.Tuple | ast.List | ast.Dict | ast.Starred
    ):
        return False
    if place.field in ("slice", "func", "lower", "upper", "step"):
        return False
    return not isinstance(place.parent, ast.keyword)


def _inserted(node: ast.expr, array: np.ndarray | None, scope: Scope) -> Iterator[Variant]:
    part = said(node)
    yield ast.UnaryOp(ast.USub(), node), "wrong sign", part, _SIGN
    dimensions = 2 if array is None else array.ndim
    if dimensions >= 2:
        new: ast.expr = ast.Attribute(node, "T", ast.Load())
        if dimensions > 2:
            new = _method(node, "swapaxes", ast.Constant(-1), ast.Constant(-2))
        yield new, "transpose missing", part, "{} should be transposed"
    for number in ("2", "0.5", "3"):
        new = binary(parsed(number), ast.Mult(), node)
        yield new, "scale missing", f"{number} {part}", f"the scale {number} is missing in {part}"
    for axis in range(dimensions):
        for keywords in ([], [_keyword("keepdims", True)]):
            new = _method(node, "sum", keywords=[_keyword("axis", axis), *keywords])
            yield new, "not reduced", part, f"a sum over axis {axis} of {{}} is missing"
        index = [ast.Slice()] * axis + [ast.Slice(None, None, parsed("-1"))]
        sliced = index[0] if len(index) == 1 else ast.Tuple([*index], ast.Load())
        new = ast.Subscript(node, sliced, ast.Load())
        yield new, "flipped", part, "{} should be flipped, in the reverse order"
    if dimensions:
        yield _method(node, "sum"), "not reduced", part, "a sum over all of {} is missing"
    if dimensions > 2:
        for axes in ((0, 1), (0, 2), (1, 2), (0, 2, 3), (0, 1, 2)):
            listed = ast.Tuple([ast.Constant(each) for each in axes], ast.Load())
            new = _method(node, "sum", keywords=[ast.keyword("axis", listed)])
            yield new, "not reduced", part, f"a sum over axes {axes} of {{}} is missing"
    yield from _with_names(node, array, scope)


def _with_names(node: ast.expr, array: np.ndarray | None, scope: Scope) -> Iterator[Variant]:
    part = said(node)
    for other, value in scope.atoms:
        if not _spreads(value, array):
            continue
        name = said(other)
        if value.dtype.kind in "iu" and value.ndim:
            continue
        kind, phrase = "factor missing", _MISSING + f" in {part}"
        if value.dtype.kind == "b":
            kind, phrase = "mask forgotten", f"the mask {{}} is forgotten in {part}"
        elif not value.ndim:
            kind, phrase = "scale missing", f"the scale {{}} is missing in {part}"
        yield binary(node, ast.Mult(), other), kind, name, phrase
        if value.dtype.kind == "b":
            yield (
                binary(node, ast.Mult(), ast.UnaryOp(ast.Invert(), other)),
                kind,
                f"~{name}",
                phrase,
            )
            continue
        inverse = binary(node, ast.Div(), other)
        yield inverse, kind, f"1/{name}", phrase
        if value.dtype.kind in "iu":
            continue
        one = ast.Constant(1)
        for new, label in (
            (binary(one, ast.Sub(), other), f"(1 − {name})"),
            (binary(one, ast.Sub(), binary(other, ast.Pow(), ast.Constant(2))), f"(1 − {name}²)"),
            (binary(other, ast.Mult(), binary(one, ast.Sub(), other)), f"{name} (1 − {name})"),
            (ast.Compare(other, [ast.Gt()], [ast.Constant(0)]), f"({name} > 0)"),
        ):
            kind = "activation derivative forgotten"
            phrase = f"the derivative of the activation, the factor {{}}, is forgotten in {part}"
            if label.endswith("> 0)"):
                kind, phrase = "mask forgotten", f"the mask {{}} is forgotten in {part}"
            yield binary(node, ast.Mult(), new), kind, label, phrase
        if value.ndim or array is None or not array.ndim:
            for op, sign in ((ast.Add(), ""), (ast.Sub(), "−")):
                phrase = f"the term {{}} is missing beside {part}"
                yield binary(node, op, other), "term missing", f"{sign}{name}", phrase
    yield from _with_products(node, array, scope)


def _with_products(node: ast.expr, array: np.ndarray | None, scope: Scope) -> Iterator[Variant]:
    """A product of matrices of names as a further term, or with one as a further factor."""
    if array is None or array.ndim != 2 or not isinstance(node, ast.Name | ast.BinOp):
        return
    matrices = [(other, value) for other, value in scope.atoms if value.ndim == 2]
    for other, value in matrices:
        for factor in (other, ast.Attribute(other, "T", ast.Load())):
            shape = value.shape if factor is other else value.shape[::-1]
            if shape == (array.shape[1], array.shape[1]):
                new = binary(node, ast.MatMult(), factor)
                yield new, "factor missing", said(factor), _MISSING


def _method(
    node: ast.expr, name: str, *args: ast.expr, keywords: list[ast.keyword] | None = None
) -> ast.expr:
    return ast.Call(ast.Attribute(node, name, ast.Load()), list(args), keywords or [])


def _spreads(value: np.ndarray, array: np.ndarray | None) -> bool:
    """Return whether a value broadcasts to the array's shape; true where that is not known."""
    if array is None:
        return True
    try:
        return np.broadcast_shapes(value.shape, array.shape) == array.shape
    except ValueError:
        return False
