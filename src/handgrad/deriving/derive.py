"""The public face: a forward in, its backward out, proved at two sizes and two settings."""

from __future__ import annotations

import inspect

import numpy as np

from handgrad.deriving import pair
from handgrad.deriving.reverse import gradient
from handgrad.program import primitives  # noqa: F401 (fills the tables)
from handgrad.program.loops import Rebuild, escaping, tree
from handgrad.program.node import Node, Program, World, within
from handgrad.program.sizes import Size
from handgrad.program.trace import Refused, TracedInt, Tracer, unwrap
from handgrad.program.trace import run as trace_run


class NotProved(Exception):
    """What was derived does not meet central differences; nothing of it is returned."""


LENGTHS = (5, 6, 4, 7, 8, 3, 9, 10, 11, 12)  # of letters, on the first example
OTHER = (6, 7, 5, 4, 3, 8, 10, 9, 12, 11)


def leaves(tree_, path=()):
    if isinstance(tree_, dict):
        return [x for k in tree_ for x in leaves(tree_[k], path + (k,))]
    if isinstance(tree_, list) or (isinstance(tree_, tuple) and not is_shape(tree_)):
        return [x for i, v in enumerate(tree_) for x in leaves(v, path + (i,))]
    return [(path, tree_)]


def is_shape(x):
    return (
        isinstance(x, tuple)
        and all(isinstance(s, (int, str)) or any(s is t for t in (bool, int, float)) for s in x)
        and not isinstance(x, dict)
    )


def mapped(tree_, f, path=()):
    if isinstance(tree_, dict):
        return {k: mapped(v, f, path + (k,)) for k, v in tree_.items()}
    if isinstance(tree_, list) or (isinstance(tree_, tuple) and not is_shape(tree_)):
        return type(tree_)(mapped(v, f, path + (i,)) for i, v in enumerate(tree_))
    return f(path, tree_)


def derive(forward, /, *examples, wrt=None, **given) -> Derivation:
    """`given`: an example array or a tuple of letters and numbers for each array, values of settings for the rest."""
    signature = inspect.signature(forward)
    given = {**dict(zip(signature.parameters, examples)), **given}
    arrays, settings = {}, {}
    for name, p in signature.parameters.items():
        if name in given and (
            hasattr(given[name], "shape") or isinstance(given[name], (dict, list, tuple))
        ):
            arrays[name] = given[name]
        else:
            value = given.get(name, p.default)
            if value is inspect.Parameter.empty:
                raise Refused(f"{name}: neither an array nor a default")
            settings[name] = value
    letters = list(
        dict.fromkeys(
            l
            for _, s in leaves(list(arrays.values()))
            if isinstance(s, tuple)
            for part in s
            if isinstance(part, str)
            for l in Size.of(1).__class__.letters.fget(parse(part))
        )
    )
    w = World()
    lengths = dict(zip(letters, LENGTHS))
    w.lengths |= lengths
    inputs: dict[tuple, Node] = {}
    rng = np.random.default_rng(1)
    with within(w):

        def node(path, spec):
            name = "_".join(map(str, path))
            if isinstance(spec, tuple):
                kind = "f"
                if spec and isinstance(spec[-1], type):
                    kind = {bool: "b", int: "i", float: "f"}[spec[-1]]
                    spec = spec[:-1]
                shape = tuple(parse(s) if isinstance(s, str) else Size.of(s) for s in spec)
                value = sample(rng, tuple(w.length(s) for s in shape), kind, lengths)
            else:
                value = np.asarray(spec)
                kind = value.dtype.kind.replace("u", "i")
                if kind == "f":
                    value = value.astype(float)
                shape = []
                for k, s in enumerate(value.shape):
                    if s == 1:
                        shape.append(Size.of(1))
                        continue
                    letter = f"{name}_{k}"
                    w.lengths[letter] = s
                    shape.append(Size.of(letter))
            inputs[path] = Node("input", (), {}, tuple(shape), kind, value, name)
            return Tracer(inputs[path])

        arguments = {name: mapped(spec, node, (name,)) for name, spec in arrays.items()}
        numbers: dict[str, Node] = {}
        for name, value in settings.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                arguments[name] = value
            elif isinstance(value, int):
                w.lengths[name] = value
                arguments[name] = TracedInt(value, Size.of(name))
            else:
                numbers[name] = Node("input", (), {}, (), "f", value, name)
                arguments[name] = Tracer(numbers[name])
        w.events = []
        try:
            result = trace_run(forward, arguments)
        except Refused:
            raise
        except Exception as e:
            raise Refused(f"line {w.line}: {type(e).__name__}: {e}") from e
        outputs = [unwrap(v) for v in (result if isinstance(result, (tuple, list)) else [result])]
        if not all(isinstance(o, Node) for o in outputs):
            raise Refused("the forward returns something that is no array")
        events, w.events = w.events, None
        w.guards = [
            g for g in w.guards if g[0] not in ("==", "<=")
        ]  # of shapes: made again with the nodes
        items = tree(events)
        rebuild = Rebuild(escaping(items, outputs))
        rebuild.items(items, {})
        outputs = [rebuild.node(o, {}) for o in outputs]
        everything = [*inputs.values(), *numbers.values()]
        program = Program(everything, outputs)
        chosen = [n for p, n in inputs.items() if n.kind == "f" and (wrt is None or p[0] in wrt)]
        try:
            cotangents, gradients = gradient(program, chosen)
        except NotImplementedError as e:
            raise Refused(str(e)) from e
        d = pair.assemble(
            program,
            chosen,
            cotangents,
            gradients,
            inputs,
            numbers,
            settings,
            list(signature.parameters),
            w,
        )
    prove(d, forward, arrays, settings, letters, wrt)
    return d


def prove(d, forward, arrays, settings, letters, wrt):
    """Differences along a random direction, at the example's sizes and at others, at the settings given and at others."""
    rng = np.random.default_rng(3)
    trials = [(dict(zip(letters, LENGTHS)), settings)]
    if letters:
        trials.append((dict(zip(letters, OTHER)), settings))
    for name, v in settings.items():
        if isinstance(v, (int, float)) and not isinstance(v, bool):
            trials.append(
                (
                    dict(zip(letters, LENGTHS)),
                    {**settings, name: v + 1 if isinstance(v, int) else v * 1.25},
                )
            )
    for trial, (lengths, values) in enumerate(trials):

        def made(path, spec):
            if not isinstance(spec, tuple):
                return (
                    np.asarray(spec, float)
                    if np.asarray(spec).dtype.kind == "f"
                    else np.asarray(spec)
                )
            kind = (
                {bool: "b", int: "i"}.get(spec[-1], "f")
                if spec and isinstance(spec[-1], type)
                else "f"
            )
            return sample(
                rng,
                [
                    int(parse(s).at(lengths).constant) if isinstance(s, str) else s
                    for s in spec
                    if not isinstance(s, type)
                ],
                kind,
                lengths,
            )

        arguments = {name: mapped(spec, made, (name,)) for name, spec in arrays.items()}
        try:
            want = pair.flat(forward(**{k: copied(v) for k, v in arguments.items()}, **values))
        except Exception:
            if trial:
                continue
            raise
        try:
            y, cache = d.forward(**arguments, **values)
        except ValueError as e:
            if trial and "derived for" in str(e):
                continue
            raise NotProved(f"the derived forward fails: {e}") from e
        got = pair.flat(y)
        if any(
            not np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
            for a, b in zip(got, want, strict=True)
        ):
            raise NotProved(f"the derived forward is off at {lengths} {values}")
        dys = [rng.standard_normal(v.shape) for v in want]
        grads = pair.flat(d.backward(tuple(dys) if len(dys) > 1 else dys[0], cache))
        points = [
            (p, v)
            for p, v in leaves(arguments)
            if np.asarray(v).dtype.kind == "f" and (wrt is None or p[0] in wrt)
        ]
        if any(np.shape(g) != np.shape(v) for g, (_, v) in zip(grads, points, strict=True)):
            raise NotProved("a gradient has another shape than its array")
        us = {p: rng.standard_normal(np.shape(v)) for p, v in points}

        def moved(h):
            return {
                **{
                    k: mapped(v, lambda p, a: np.asarray(a) + h * us[p] if p in us else a, (k,))
                    for k, v in arguments.items()
                },
                **values,
            }

        exact = sum(float((g * us[p]).sum()) for g, (p, _) in zip(grads, points))
        scale = sum(float(np.abs(g * us[p]).sum()) for g, (p, _) in zip(grads, points)) + 1e-3
        if not any(
            abs(exact - pair.directional(forward, arguments, moved, dys, h)) < 1e-4 * scale
            for h in (1e-6, 1e-4, 1e-8)
        ):
            raise NotProved(
                f"the gradient is {exact:.6g} where differences give {pair.directional(forward, arguments, moved, dys):.6g}, at {lengths} {values}"
            )


def copied(v):
    return (
        {k: copied(x) for k, x in v.items()}
        if isinstance(v, dict)
        else type(v)(map(copied, v))
        if isinstance(v, (list, tuple))
        else np.array(v)
    )


def parse(text: str) -> Size:
    import ast

    def of(node):
        if isinstance(node, ast.BinOp):
            a, b = of(node.left), of(node.right)
            return {
                ast.Add: a.__add__,
                ast.Sub: a.__sub__,
                ast.Mult: a.__mul__,
                ast.FloorDiv: a.__floordiv__,
                ast.Div: a.__floordiv__,
            }[type(node.op)](b)
        return Size.of(node.id if isinstance(node, ast.Name) else node.value)

    return of(ast.parse(text, mode="eval").body)


def sample(rng, shape, kind, lengths):
    if kind == "b":
        return rng.random(shape) < 0.6
    if kind == "i":
        return rng.integers(0, max(1, min(lengths.values(), default=2)), shape)
    return rng.standard_normal(shape)
