"""Two programs as the pair of functions that a user gets: what is kept between them, sizes, guards, and the proof."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from handgrad.deriving.reverse import substituted
from handgrad.program.emit import Emitter
from handgrad.program.node import Program
from handgrad.program.primitives.table import HELPERS
from handgrad.program.sizes import Size


@dataclass
class Derivation:
    forward: object
    backward: object
    forward_source: str
    backward_source: str
    cache: tuple[str, ...]
    fixed: dict
    programs: dict[str, Program]


def widened(nodes, w):
    """Nodes with each loop in the form that also stacks what its reverse reads."""
    swap = {}
    for n in Program([], list(nodes)).body:
        if n.op == "part" and id(n.args[0]) in w.wide:
            swap[id(n)] = w.wide[id(n.args[0])][n.attrs["index"]]
    return [substituted(n, swap) for n in nodes]


def frontier(forward: Program, gradients):
    """Nodes of the forward that the backward reads first."""
    own = {id(n) for n in forward.body} | {id(n) for n in forward.inputs}
    kept, seen = [], set()

    def look(n):
        if id(n) in seen or n.op in ("const", "table", "size"):
            return
        seen.add(id(n))
        if id(n) in own and not n.args and n.op != "input":
            return
        if id(n) in own or (n.op == "part" and id(n.args[0]) in own):
            kept.append(n)
            return
        for a in n.args:
            look(a)

    for g in gradients:
        look(g)
    return kept


def letters_from(arrays: list[tuple[str, tuple[Size, ...]]], wanted):
    """Where each letter can be read off: the text that gives it."""
    found = {}
    for l in wanted:
        for text, shape in arrays:
            for k, s in enumerate(shape):
                if s == Size.of(l):
                    found.setdefault(l, f"{text}.shape[{k}]")
        for text, shape in arrays:
            for k, s in enumerate(shape):
                if (
                    l not in found
                    and s.letters == {l}
                    and (zero := s.at({l: 0}).constant) is not None
                    and (one := s.at({l: 1}).constant) is not None
                    and s == Size.of(l) * (one - zero) + zero
                ):
                    found[l] = (
                        f"({text}.shape[{k}] - {zero}) // {one - zero}"
                        if zero
                        else f"{text}.shape[{k}] // {one}"
                    )
    return found


def assemble(
    program, chosen, cotangents, gradients, inputs, numbers, settings, parameters, w
) -> Derivation:
    everything = widened([*program.outputs, *gradients], w)
    outputs, gradients = everything[: len(program.outputs)], everything[len(program.outputs) :]
    forward = Program(program.inputs, outputs)
    kept = frontier(forward, gradients)
    e = Emitter(taken=[*parameters, *(n.name for n in program.inputs)])
    for name, value in settings.items():
        if isinstance(value, int) and not isinstance(value, bool):
            e.letters[name] = name
    for path, node in inputs.items():
        e.names[id(node)] = "_".join(map(str, path))
        if len(path) > 1:
            e.line(f"{e.names[id(node)]} = {path[0]}" + "".join(f"[{p!r}]" for p in path[1:]))
    for name, node in numbers.items():
        e.names[id(node)] = name
    head = len(e.lines)
    # A guard on values is worked out where the forward works out its own.
    conditions = [n for relation, n, *_ in w.guards if relation == "true"]
    wanted = Program(program.inputs, [*outputs, *kept, *conditions])
    e.program(wanted, keep=set(map(id, [*kept])))
    results = [e.text(o) for o in outputs]
    cache = [(e.names[id(n)] if id(n) in e.names else e.text(n), n) for n in kept]
    b = Emitter(taken=[name for name, _ in cache])
    b.zero_type = ", dy.dtype" if len(cotangents) == 1 else ", dy1.dtype"
    for name, n in cache:
        b.names[id(n)] = name
    for c in cotangents:
        b.names[id(c)] = c.name
        b.taken.add(c.name)
    back = Program([*kept, *cotangents], gradients)
    b.program(back, keep=set())
    grads = [b.text(g) for g in gradients]
    counters = {l for l in b.letters if l in w.counters}
    sources = letters_from(
        [*((name, n.shape) for name, n in cache), *((c.name, c.shape) for c in cotangents)],
        [l for l in b.letters if l not in counters],
    )
    carried = [l for l in b.letters if l not in counters and l not in sources]
    top = [f"    {b.letters[l]} = {t}" for l, t in sources.items()]
    for l in carried:
        e.letter(l)
    for letter, mask in w.masks.values():  # counted where the mask is there
        if letter in e.letters and mask.op != "table":
            own = e.letters[letter]
            used = (i for i, line in enumerate(e.lines) if re.search(rf"\b{own}\b", line))
            at = next(used, len(e.lines))
            e.lines.insert(at, f"    {own} = np.count_nonzero({e.text(mask)})")
    names = [name for name, _ in cache] + [e.letters[l] for l in carried]
    unpack = [name for name, _ in cache] + [b.letters[l] for l in carried]
    back_lines = (
        ([f"    {', '.join(unpack)}{',' if len(unpack) == 1 else ''} = cache"] if unpack else [])
        + ([f"    {', '.join(c.name for c in cotangents)} = dy"] if len(cotangents) > 1 else [])
        + top
        + b.lines
    )
    # sizes and guards at the head of the forward
    checks, value_checks = [], []
    masks = {letter for letter, _ in w.masks.values()}
    for relation, a, other, outcome in dict.fromkeys(g for g in w.guards):
        if relation == "true":
            value_checks.append(
                f"    if bool({e.text(a)}) is not {outcome}: raise ValueError('derived for a forward where this is {outcome}: line {a.line}')"
            )
            continue
        last = {l: w.counters[l] - 1 for l in (a - other).letters if l in w.counters}
        if relation == "<=" and last:
            a, other = a.at(last), other.at(last)
        if any(l in w.counters or l in masks for l in (a - other).letters) or (
            (c := (a - other).constant) is not None and c <= 0
        ):
            continue
        sign = {
            "__eq__": "==",
            "__ne__": "!=",
            "__lt__": "<",
            "__le__": "<=",
            "__gt__": ">",
            "__ge__": ">=",
        }.get(relation, relation)
        test = f"{e.size(a)} {sign} {e.size(other)}"
        checks.append(
            f"    if {'not ' if outcome else ''}({test}): raise ValueError('derived for {'' if outcome else 'not '}{test}')"
        )
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            checks.append(
                f"    if {name} != {value!r}: raise ValueError('derived for {name} = {value!r}'.replace('\"', ''))"
                if not callable(value)
                else ""
            )
    sources = letters_from(
        [(e.names[id(n)], n.shape) for n in inputs.values()],
        [l for l in e.letters if l not in settings and l not in w.counters],
    )
    defined = [f"    {e.letters[l]} = {t}" for l, t in sources.items()]
    signature = ", ".join(
        f"{p}={settings[p]!r}"
        if p in settings and not callable(settings[p])
        else f"{p}=None"
        if p in settings
        else p
        for p in parameters
    )
    helpers = lambda em: "".join(HELPERS[h]["numpy"] + "\n\n" for h in sorted(em.helpers))
    pack = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    forward_source = (
        helpers(e)
        + f"def forward({signature}):\n"
        + "\n".join(
            [
                *e.lines[:head],
                *defined,
                *filter(None, checks),
                *e.lines[head:],
                *value_checks,
                f"    return {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}, {pack}",
            ]
        )
        + "\n"
    )
    backward_source = (
        helpers(b)
        + "def backward(dy, cache):\n"
        + "\n".join([*back_lines, f"    return {', '.join(grads)}"])
        + "\n"
    )
    space = {"np": np, **e.tables, **b.tables}
    if "scipy.linalg." in forward_source + backward_source:
        import scipy.linalg

        space["scipy"] = scipy
    try:
        import scipy.special

        space["erf"] = scipy.special.erf
    except ImportError:
        pass
    exec(compile(forward_source, "<derived forward>", "exec"), space)
    exec(compile(backward_source, "<derived backward>", "exec"), space)
    return Derivation(
        space["forward"],
        space["backward"],
        forward_source,
        backward_source,
        tuple(names),
        {},
        {"forward": forward, "backward": back},
    )


def flat(y):
    return (
        [z for v in y for z in flat(v)]
        if isinstance(y, (tuple, list))
        else ([z for v in y.values() for z in flat(v)] if isinstance(y, dict) else [np.asarray(y)])
    )


def directional(function, arguments, moved, dys, h=1e-6):
    """The change of the outputs along a direction, by central differences, against a cotangent."""
    up, down = (flat(function(**moved(s * h))) for s in (1, -1))
    return sum(float((d * (a - b)).sum()) for d, a, b in zip(dys, up, down)) / (2 * h)
