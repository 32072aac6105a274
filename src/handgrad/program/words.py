"""A node as one line of plain text, as a person would say it: `−x̂ mean(dx̂ x̂)`.

For messages. A node with a name is called by it. Brackets stand where Python needs them; calls such
as `reshape` are left out, because they change no value.
"""

from __future__ import annotations

from typing import Any, Final

from handgrad.program.nodes import Node

#: Operations that arrange values and change none; they read as their operand.
SHAPING: Final = frozenset(
    {
        *("reshape", "expand_dims", "squeeze", "astype", "asarray", "broadcast_to", "ravel"),
        *("copy", "flatten", "contiguous", "replaced"),
    }
)
_GREEK: Final = {"alpha": "α", "beta": "β", "gamma": "γ", "eps": "ε", "sigma": "σ", "mu": "μ"}
_HAT: Final = "̂"
_TEST, _SUM, _PRODUCT, _UNARY, _ATOM = range(5)
_INFIX: Final = {
    "add": (" + ", _SUM),
    "subtract": (" − ", _SUM),
    "multiply": (" ", _PRODUCT),
    "divide": ("/", _PRODUCT),
    "matmul": (" @ ", _PRODUCT),
    "floor_divide": (" // ", _PRODUCT),
    "remainder": (" % ", _PRODUCT),
    "equal": (" == ", _TEST),
    "not_equal": (" != ", _TEST),
    "less": (" < ", _TEST),
    "less_equal": (" <= ", _TEST),
    "greater": (" > ", _TEST),
    "greater_equal": (" >= ", _TEST),
    "bitwise_and": (" & ", _TEST),
    "bitwise_or": (" | ", _TEST),
}


def symbol(name: str) -> str:
    """`dx_hat` as dx̂, `dgamma` as dγ; other names as they are."""
    short, hat = (name[: -len("_hat")], _HAT) if name.endswith("_hat") else (name, "")
    for word, letter in _GREEK.items():
        if short in (word, "d" + word):
            short = short.replace(word, letter)
    return short + hat


def words(value: Any) -> str:
    """A node by its name, or written out; a setting as it is."""
    return _write(value, _TEST)


def definition(node: Node) -> str:
    """The node written out, also where it has a name."""
    return _parts(node)[0]


def _write(value: Any, around: int) -> str:
    if not isinstance(value, Node):
        return _setting(value)
    if value.name:
        return symbol(value.name)
    written, strength = _parts(value)
    return written if strength >= around else f"({written})"


def _parts(node: Node) -> tuple[str, int]:
    """The words, and how tightly they hold together."""
    args = node.args
    if node.op in _INFIX and len(args) == 2:
        sign, strength = _INFIX[node.op]
        return _write(args[0], strength) + sign + _write(args[1], strength + 1), strength
    match node.op:
        case "input":
            return symbol(node.name) or "an input", _ATOM
        case "negative":
            return "−" + _write(args[0], _PRODUCT), _PRODUCT
        case "pow" if args[1] == 2:
            return _write(args[0], _ATOM) + "²", _ATOM
        case "pow":
            return f"{_write(args[0], _ATOM)}^{_write(args[1], _ATOM)}", _ATOM
        case "matrix_transpose":
            return _write(args[0], _ATOM) + "ᵀ", _ATOM
        case "permute_dims" if len(args) == 1 and not node.kwargs:
            return _write(args[0], _ATOM) + "ᵀ", _ATOM
        case "getitem":
            return f"{_write(args[0], _ATOM)}[{_index(args[1])}]", _ATOM
        case "store":
            return f"{_write(args[0], _ATOM)} with [{_index(args[1])}] = {words(args[2])}", _TEST
        case "bitwise_invert":
            return "~" + _write(args[0], _UNARY), _UNARY
        case "element":
            return _write(args[0], _ATOM), _ATOM
    if node.op in SHAPING and args:
        inner = args[0]
        if isinstance(inner, Node) and not inner.name:
            return _parts(inner)
        return _write(inner, _ATOM), _ATOM
    if node.op in ("sum", "mean", "max", "min", "prod"):
        return f"{node.op}({words(args[0])})", _ATOM
    inner = ", ".join(map(words, args))
    return f"{node.op}({inner})", _ATOM


def _index(index: Any) -> str:
    if isinstance(index, tuple):
        return ", ".join(map(_index, index))
    if isinstance(index, slice):
        first, last = ("" if each is None else words(each) for each in (index.start, index.stop))
        return f"{first}:{last}" + ("" if index.step is None else f":{words(index.step)}")
    return "..." if index is ... else words(index)


def _setting(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(map(words, value))})"
    return str(value).replace("-", "−")
