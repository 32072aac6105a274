"""Element-wise functions: a record each."""

import numpy as np

from handgrad.program.node import PRIMITIVES, Node, Primitive, as_node, build, number, world
from handgrad.program.sizes import ONE, Size

KNOWN = {}  # NumPy's function → our name


def equal(a: Size, b: Size) -> Size:
    """Two axes that the program lines up: the same size, or a guard says so."""
    if a == b:
        return a
    w = world()
    if w.length(a) != w.length(b):
        raise ValueError(f"axes of {a} and {b} do not meet")
    if (rule := ("==", a, b, True)) not in w.guards:
        w.guards.append(rule)
    return a if not (b.constant is not None) else b


def broadcast(*nodes, **_):
    rank = max(n.ndim for n in nodes)
    sizes = [ONE] * rank
    for n in nodes:
        for i, s in enumerate(n.shape, rank - n.ndim):
            if s != ONE:
                sizes[i] = s if sizes[i] == ONE else equal(sizes[i], s)
    return tuple(sizes), max((n.kind for n in nodes), key="bif".index)


def floating(*nodes, **_):
    return broadcast(*nodes)[0], "f"


def boolean(*nodes, **_):
    return broadcast(*nodes)[0], "b"


def unbroadcast(g: Node, like: Node) -> Node:
    """A gradient in the shape of the operand that was broadcast."""
    extra = g.ndim - like.ndim
    axes = tuple(
        i
        for i in range(g.ndim)
        if i < extra or (like.shape[i - extra] == ONE and g.shape[i] != ONE)
    )
    if axes:
        g = build("sum", g, axis=axes, keepdims=False)
    return g if len(g.shape) == like.ndim else build("reshape", g, shape=like.shape)


def elementwise(
    name,
    function,
    vjp=None,
    *,
    shape=floating,
    text="",
    torch="",
    precedence=9,
    domain=None,
    rewrite=None,
    aliases=(),
):
    def sweep(g, y, *args):
        return tuple(
            None if d is None else unbroadcast(as_node(d), a)
            for d, a in zip(vjp(g, y, *args), args)
        )

    def simpler(*args):
        """An operand spread to the others' shape need not be; then the record's own rule."""
        narrow = [a.args[0] if a.op == "broadcast_to" else a for a in args]
        for k, a in enumerate(args):
            trial = [narrow[j] if j == k else x for j, x in enumerate(args)]
            if narrow[k] is not a and broadcast(*trial)[0] == broadcast(*args)[0]:
                return build(name, *trial)
        return rewrite(*args) if rewrite else None

    PRIMITIVES[name] = Primitive(
        name,
        function,
        shape,
        sweep if vjp else None,
        text or f"np.{name}",
        torch,
        precedence,
        domain,
        simpler,
    )
    for f in (function, *aliases):
        KNOWN[f] = name


def constants(fold):
    """A rewriting rule that works out constants first: NumPy's own arithmetic of Python numbers is kept for arrays alone."""

    def rule(*args, rest=None):
        if all(a.op == "const" or a.op == "size" for a in args) and (
            all(a.op == "const" for a in args) or all(a.kind == "i" for a in args)
        ):
            return fold(*(number(a) if a.op == "const" else a.attrs["size"] for a in args))
        return None

    return rule


def add_rule(a, b):
    if (out := constants(lambda p, q: p + q)(a, b)) is not None:
        return out
    if number(b) == 0 and a.kind != "b":
        return a
    if number(a) == 0 and b.kind != "b":
        return b
    for x, y in ((a, b), (b, a)):  # gradients of selections add up in place
        if y.op == "zeros" and x.shape == y.shape:
            return x
        if y.op == "add_at" and y.args[0].op == "zeros" and x.shape == y.shape:
            return build("add_at", x, *y.args[1:], **y.attrs)
    if b.op == "negative":
        return a - b.args[0]


def subtract_rule(a, b):
    if (out := constants(lambda p, q: p - q)(a, b)) is not None:
        return out
    if number(b) == 0:
        return a
    if number(a) == 0:
        return -b
    if b.op == "negative":
        return a + b.args[0]


def multiply_rule(a, b):
    if (out := constants(lambda p, q: p * q)(a, b)) is not None:
        return out
    for x, y in ((a, b), (b, a)):
        if number(x) == 1 and y.kind != "b":
            return y
        if number(x) == -1 and y.kind != "b":
            return -y
        if x.op == "negative":
            return -(x.args[0] * y)
        if x.op == "ones" and y.ndim >= x.ndim and y.shape[y.ndim - x.ndim :] == x.shape:
            return y


def divide_rule(a, b):
    if number(b) == 1 and a.kind == "f":
        return a
    if a.op == "negative":
        return -(a.args[0] / b)
    if b.op == "add":  # a / (1 + exp(u)) is a times the logistic function of -u
        for one, e in (b.args, b.args[::-1]):
            if number(one) == 1 and e.op == "exp":
                if a is e:
                    return build("sigmoid", e.args[0])
                s = build("sigmoid", -e.args[0])
                return s if number(a) == 1 else a * s


def power_rule(a, b):
    if number(b) == 1:
        return a
    if number(b) == 0.5:
        return build("sqrt", a)
    if number(b) == 0:
        return 1.0
    if number(b) == 2 and a.op == "sqrt":
        return a.args[0]


def log_rule(a):
    if a.op == "add":  # log(1 + exp(u)) is softplus(u)
        for one, e in (a.args, a.args[::-1]):
            if number(one) == 1 and e.op == "exp":
                return build("softplus", e.args[0])


def power_vjp(g, y, x, p):
    return g * (p * x ** (p - 1)), None if p.op == "const" else g * y * build(
        "log", build("where", x > 0, x, 1.0)
    )


def max_vjp(g, y, a, b):
    """A tie goes to the first operand that is an array, none to a constant: max(x, 0) has slope 0 at 0."""
    first = build("greater", a, b) if b.op == "const" else build("greater_equal", a, b)
    return build("where", first, g, 0.0), build("where", first, 0.0, g)


def min_vjp(g, y, a, b):
    first = build("less", a, b) if b.op == "const" else build("less_equal", a, b)
    return build("where", first, g, 0.0), build("where", first, 0.0, g)


def sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


def softplus(x):
    return np.logaddexp(0, x)


positive = lambda rng: rng.uniform(0.5, 2, (3, 2))
inside = lambda rng: rng.uniform(-0.9, 0.9, (3, 2))

elementwise(
    "add",
    np.add,
    lambda g, y, a, b: (g, g),
    shape=broadcast,
    text="+",
    precedence=5,
    rewrite=add_rule,
)
elementwise(
    "subtract",
    np.subtract,
    lambda g, y, a, b: (g, -g),
    shape=broadcast,
    text="-",
    precedence=5,
    rewrite=subtract_rule,
)
elementwise(
    "multiply",
    np.multiply,
    lambda g, y, a, b: (g * b, g * a),
    shape=broadcast,
    text="*",
    precedence=6,
    rewrite=multiply_rule,
)
elementwise(
    "divide",
    np.divide,
    lambda g, y, a, b: (g / b, -(g / b * y)),
    text="/",
    precedence=6,
    rewrite=divide_rule,
)
elementwise(
    "power",
    np.power,
    power_vjp,
    shape=broadcast,
    text="**",
    precedence=8,
    rewrite=power_rule,
    domain=positive,
)
elementwise(
    "negative",
    np.negative,
    lambda g, y, x: (-g,),
    shape=broadcast,
    text="-",
    precedence=7,
    rewrite=lambda a: (
        a.args[0] if a.op == "negative" else None if number(a) is None else -number(a)
    ),
)
elementwise(
    "remainder",
    np.remainder,
    lambda g, y, a, b: (g, -g * build("floor", a / b)),
    shape=broadcast,
    text="%",
    precedence=6,
)
elementwise("floor_divide", np.floor_divide, shape=broadcast, text="//", precedence=6)
elementwise("exp", np.exp, lambda g, y, x: (g * y,))
elementwise("exp2", np.exp2, lambda g, y, x: (g * y * float(np.log(2)),))
elementwise("expm1", np.expm1, lambda g, y, x: (g * (y + 1),))
elementwise("log", np.log, lambda g, y, x: (g / x,), rewrite=log_rule, domain=positive)
elementwise("log2", np.log2, lambda g, y, x: (g / (x * float(np.log(2))),), domain=positive)
elementwise("log10", np.log10, lambda g, y, x: (g / (x * float(np.log(10))),), domain=positive)
elementwise(
    "log1p",
    np.log1p,
    lambda g, y, x: (g / (1 + x),),
    rewrite=lambda a: build("softplus", a.args[0]) if a.op == "exp" else None,
    domain=positive,
)
elementwise("sqrt", np.sqrt, lambda g, y, x: (0.5 * g / y,), domain=positive)
elementwise("cbrt", np.cbrt, lambda g, y, x: (g / (3 * y * y),), domain=positive)
elementwise("square", np.square, lambda g, y, x: (g * (2 * x),), shape=broadcast)
elementwise("reciprocal", np.reciprocal, lambda g, y, x: (-(g * y * y),), domain=positive)
elementwise("sin", np.sin, lambda g, y, x: (g * build("cos", x),))
elementwise("cos", np.cos, lambda g, y, x: (-(g * build("sin", x)),))
elementwise("tan", np.tan, lambda g, y, x: (g * (1 + y * y),), domain=inside)
elementwise("tanh", np.tanh, lambda g, y, x: (g * (1 - y * y),))
elementwise("sinh", np.sinh, lambda g, y, x: (g * build("cosh", x),))
elementwise("cosh", np.cosh, lambda g, y, x: (g * build("sinh", x),))
elementwise("arcsin", np.arcsin, lambda g, y, x: (g / build("sqrt", 1 - x * x),), domain=inside)
elementwise("arccos", np.arccos, lambda g, y, x: (-(g / build("sqrt", 1 - x * x)),), domain=inside)
elementwise("arctan", np.arctan, lambda g, y, x: (g / (1 + x * x),))
elementwise("arcsinh", np.arcsinh, lambda g, y, x: (g / build("sqrt", x * x + 1),))
elementwise(
    "arccosh",
    np.arccosh,
    lambda g, y, x: (g / build("sqrt", x * x - 1),),
    domain=lambda rng: rng.uniform(1.5, 3, (3, 2)),
)
elementwise("arctanh", np.arctanh, lambda g, y, x: (g / (1 - x * x),), domain=inside)
elementwise(
    "arctan2",
    np.arctan2,
    lambda g, y, a, b: (g * b / (a * a + b * b), -(g * a / (a * a + b * b))),
    torch="torch.atan2",
)
elementwise("hypot", np.hypot, lambda g, y, a, b: (g * a / y, g * b / y), domain=positive)
elementwise(
    "abs", np.absolute, lambda g, y, x: (g * build("sign", x),), shape=broadcast, aliases=(np.fabs,)
)
elementwise("sign", np.sign, lambda g, y, x: (None,), shape=broadcast)
elementwise("floor", np.floor, lambda g, y, x: (None,))
elementwise("ceil", np.ceil, lambda g, y, x: (None,))
elementwise("degrees", np.degrees, lambda g, y, x: (g * float(180 / np.pi),), aliases=(np.rad2deg,))
elementwise("radians", np.radians, lambda g, y, x: (g * float(np.pi / 180),), aliases=(np.deg2rad,))
elementwise("maximum", np.maximum, max_vjp, shape=broadcast, aliases=(np.fmax,))
elementwise("minimum", np.minimum, min_vjp, shape=broadcast, aliases=(np.fmin,))
elementwise(
    "logaddexp", np.logaddexp, lambda g, y, a, b: (g * build("exp", a - y), g * build("exp", b - y))
)
elementwise(
    "logaddexp2",
    np.logaddexp2,
    lambda g, y, a, b: (g * build("exp2", a - y), g * build("exp2", b - y)),
)
elementwise(
    "sigmoid",
    sigmoid,
    lambda g, y, x: (g * y * (1 - y),),
    text=lambda e, n: e.call("sigmoid", n.args),
    torch="torch.sigmoid",
)
elementwise(
    "softplus",
    softplus,
    lambda g, y, x: (g * build("sigmoid", x),),
    text=lambda e, n: f"np.logaddexp(0, {e.arg(n.args[0])})",
    torch="torch.nn.functional.softplus",
)
elementwise(
    "where",
    np.where,
    lambda g, y, c, a, b: (None, build("where", c, g, 0.0), build("where", c, 0.0, g)),
    shape=lambda c, a, b: (broadcast(c, a, b)[0], broadcast(a, b)[1]),
)
for name in ["greater", "less", "greater_equal", "less_equal", "equal", "not_equal"]:
    elementwise(
        name,
        getattr(np, name),
        lambda g, y, a, b: (None, None),
        shape=boolean,
        precedence=3,
        text={
            "greater": ">",
            "less": "<",
            "greater_equal": ">=",
            "less_equal": "<=",
            "equal": "==",
            "not_equal": "!=",
        }[name],
    )
for name in ["logical_and", "logical_or", "logical_not", "isnan", "isfinite"]:
    elementwise(name, getattr(np, name), lambda g, y, *a: (None,) * len(a), shape=boolean)
