"""Rewritings of element-wise nodes as they are built: exact, and towards forms stable at extremes.

Each rule takes the operands and gives a simpler node or number, or None.
"""

from collections.abc import Callable
from typing import Any

from handgrad.program.node import Node, as_node, build, number

Simpler = Node | float | None


def folded(fold: Callable[..., Any], *args: Node) -> Any:
    """Constants and sizes worked out at once; NumPy's own arithmetic is kept for arrays alone."""
    constants = all(a.op == "const" for a in args)
    sizes = all(a.op in ("const", "size") and a.kind == "i" for a in args)
    if constants or sizes:
        return fold(*(number(a) if a.op == "const" else a.attrs["size"] for a in args))
    return None


def swapped(a: Node, b: Node) -> tuple[tuple[Node, Node], tuple[Node, Node]]:
    """Both orders of two operands."""
    return (a, b), (b, a)


def other_than(node: Node, op: str, value: float) -> Node | None:
    """The operand u of u ∘ value, in either order."""
    if node.op != op:
        return None
    return next((u for u, v in swapped(*node.args) if number(v) == value), None)


def exp_beside_one(node: Node) -> Node | None:
    """The u of 1 + exp(u)."""
    e = other_than(node, "add", 1)
    return e.args[0] if e is not None and e.op == "exp" and e.kind == "f" else None


def add_rule(a: Node, b: Node) -> Simpler:
    """x + 0, x + (−y); gradients of selections add up in place; max(x, 0) + log(1 + exp(−|x|))."""
    if (out := folded(lambda p, q: p + q, a, b)) is not None:
        return as_node(out)
    for x, y in swapped(a, b):
        if number(y) == 0 and x.kind != "b":
            return x
        if y.op == "zeros" and x.shape == y.shape:
            return x
        if y.op == "add_at" and y.args[0].op == "zeros" and x.shape == y.shape:
            return build("add_at", x, *y.args[1:], **y.attrs)
    if b.op == "negative":
        return build("subtract", a, b.args[0])
    for x, y in swapped(a, b):
        if (u := half_of_softplus(y)) is not None:
            return with_softplus(x, u, "maximum")
    return None


def half_of_softplus(node: Node) -> Node | None:
    """The x of log(1 + exp(−|x|)), a half of softplus(x) and of softplus(−x)."""
    if node.op == "softplus" and (u := node.args[0]).op == "negative" and u.args[0].op == "abs":
        return u.args[0].args[0]
    return None


def with_softplus(sum_: Node, x: Node, extreme: str) -> Node | None:
    """A sum with softplus(x) or softplus(−x) for its term max(x, 0) or max(−x, 0).

    Of min(x, 0) it is −softplus(−x), and of min(−x, 0) −softplus(x).
    """
    for u in (x, -x):
        whole = build("softplus", u) if extreme == "maximum" else -build("softplus", -u)
        if (found := with_other_half(sum_, extreme, u, whole)) is not None:
            return found
    return None


def half_line(node: Node, extreme: str) -> Node | None:
    """The u of max(u, 0) or min(u, 0), also where it is chosen by the sign of u or of −u."""
    if node.op != "where":
        return other_than(node, extreme, 0)
    c, a, b = node.args
    if is_other := number(a) == 0 or a.op == "zeros":
        a, b = b, a
    if not (number(b) == 0 or b.op == "zeros") or (compared := compared_with_zero(c)) is None:
        return None
    is_larger = c.op.startswith("greater") != is_other
    if a is not compared:
        is_larger = not is_larger
    is_line = a is compared or are_opposite(a, compared)
    return a if is_line and is_larger == (extreme == "maximum") else None


def compared_with_zero(c: Node) -> Node | None:
    """The x of x > 0, x ≥ 0, x < 0 or x ≤ 0."""
    is_ordered = c.op in ("greater", "less", "greater_equal", "less_equal")
    return c.args[0] if is_ordered and number(c.args[1]) == 0 else None


def with_other_half(sum_: Node, extreme: str, x: Node, whole: Node) -> Node | None:
    """A sum with `whole` for its term max(x, 0) or min(x, 0), whose kink the other half undoes."""
    if half_line(sum_, extreme) is x:
        return whole
    if sum_.op not in ("add", "subtract"):
        return None
    a, b = sum_.args
    if (left := with_other_half(a, extreme, x, whole)) is not None:
        return build(sum_.op, left, b)
    if sum_.op == "add" and (right := with_other_half(b, extreme, x, whole)) is not None:
        return build("add", a, right)
    return None


def subtract_rule(a: Node, b: Node) -> Simpler:
    """x − 0, 0 − x, x − (−y)."""
    if (out := folded(lambda p, q: p - q, a, b)) is not None:
        return as_node(out)
    if number(b) == 0 and a.kind != "b":
        return a
    if number(a) == 0:
        return build("negative", b)
    if b.op == "negative":
        return build("add", a, b.args[0])
    if (u := half_of_softplus(b)) is not None:
        return with_softplus(a, u, "minimum")
    return None


def multiply_rule(a: Node, b: Node) -> Simpler:
    """1 · x, −1 · x, (−x) · y; ones that add no axis; exp(u) σ(−u), which is σ(u)."""
    if (out := folded(lambda p, q: p * q, a, b)) is not None:
        return as_node(out)
    for x, y in swapped(a, b):
        if number(x) == 1 and y.kind != "b":
            return y
        if number(x) == -1 and y.kind != "b":
            return build("negative", y)
        if x.op == "negative":
            return build("negative", build("multiply", x.args[0], y))
        if x.op == "ones" and y.ndim >= x.ndim and y.shape[y.ndim - x.ndim :] == x.shape:
            return y
        if x.op == "exp" and y.op == "sigmoid" and are_opposite(x.args[0], y.args[0]):
            return build("sigmoid", x.args[0])
    return None


def are_opposite(a: Node, b: Node) -> bool:
    """Return whether one array is another with its sign turned."""
    return any(x.op == "negative" and x.args[0] is y for x, y in swapped(a, b))


def divide_rule(a: Node, b: Node) -> Simpler:
    """x / 1, (−x) / y; x / (1 + exp(u)) by the logistic function, whose derivative has no ∞ · 0."""
    if number(b) == 1 and a.kind == "f":
        return a
    if a.op == "negative":
        return build("negative", build("divide", a.args[0], b))
    if (u := exp_beside_one(b)) is not None:
        curve = build("sigmoid", build("negative", u))
        if a.op == "where" and any(each.op == "exp" and each.args[0] is u for each in a.args[1:]):
            condition, *pieces = a.args
            return build("where", condition, *(build("multiply", each, curve) for each in pieces))
        return build("multiply", a, curve)
    return None


def where_rule(c: Node, a: Node, b: Node) -> Simpler:
    """A choice among equals; f(|x|) for x ≥ 0 and f(−|x|) below, which is f(x)."""
    if a is b and c.ndim <= a.ndim and a.shape[a.ndim - c.ndim :] == c.shape:
        return a
    if (x := compared_with_zero(c)) is None:
        return None
    above, below = (a, b) if c.op.startswith("greater") else (b, a)
    if len(above.args) != 1 or (above.op, above.attrs) != (below.op, below.attrs):
        return None
    size = above.args[0]
    is_size = size.op == "abs" and size.args[0] is x and x.kind == "f"
    return (
        build(above.op, x, **above.attrs) if is_size and are_opposite(size, *below.args) else None
    )


def guarded_sum(c: Node, a: Node, b: Node) -> Node | None:
    """The total of `where(total == 0, 1, total)` or `where(total > 0, total, 1)`, a sum of
    exponentials, all of which are 0 where it is.
    """
    if c.op in ("not_equal", "greater"):
        a, b = b, a
    elif c.op != "equal":
        return None
    is_guard = c.args[0] is b and number(c.args[1]) == 0 and (a.op == "ones" or number(a) == 1)
    adds = b.op == "sum" and b.args[0].op == "exp" and b.args[0].kind == "f"
    return b if is_guard and adds else None


def power_rule(a: Node, b: Node) -> Simpler:
    """x¹, x⁰, x^½, x⁻¹, (√x)²."""
    p = number(b)
    if p is None or isinstance(p, bool):
        return None
    if p == 1 and (a.kind == "f" or isinstance(p, int)):
        return a
    if p == 0 and a.kind == "f":
        return build("ones", shape=a.shape) if a.ndim else as_node(1.0)
    if p == 0.5:
        return build("sqrt", a)
    if p == -1 and a.kind == "f":
        return build("divide", 1.0, a)
    if p == 2 and a.op == "sqrt":
        return a.args[0]
    return None


def negative_rule(a: Node) -> Simpler:
    """−(−x), and the number's own."""
    if a.op == "negative":
        return a.args[0]
    if (out := folded(lambda p: -p, a)) is not None:
        return as_node(out)
    return None


def log_rule(a: Node) -> Simpler:
    """log(1 + exp(u)), log σ(u) and log(1 − σ(u)) by softplus, which is finite."""
    if (u := exp_beside_one(a)) is not None:
        return build("softplus", u)
    if a.op == "sigmoid":
        return -build("softplus", -a.args[0])
    if a.op == "subtract" and number(a.args[0]) == 1 and a.args[1].op == "sigmoid":
        return -build("softplus", a.args[1].args[0])
    return None


def log1p_rule(a: Node) -> Simpler:
    """log(1 + exp(u)) by softplus, log(1 − σ(u)) too."""
    if a.op == "exp" and a.kind == "f":
        return build("softplus", a.args[0])
    if a.op == "negative" and a.args[0].op == "sigmoid":
        return -build("softplus", a.args[0].args[0])
    return None


def logaddexp_rule(a: Node, b: Node) -> Simpler:
    """log(exp(0) + exp(u)) is softplus(u)."""
    return next((build("softplus", u) for u, v in swapped(a, b) if number(v) == 0), None)
