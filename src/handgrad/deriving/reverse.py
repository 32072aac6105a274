"""Program → Program: the adjoint of every node, from its record; the reverse of a loop is a loop that runs backwards."""

from __future__ import annotations

import numpy as np

from handgrad.program.loops import looped
from handgrad.program.node import PRIMITIVES, Loop, Node, Program, as_node, build, world
from handgrad.program.sizes import Size


def depends(program_body, roots) -> set[int]:
    """Nodes of floats that the roots flow into."""
    live = set(map(id, roots))
    for n in program_body:
        if any(id(a) in live for a in n.args) and (n.kind in ("f", "c") or n.op in ("loop", "part") or PRIMITIVES[n.op].parts is not None):
            live.add(id(n))
    return live


def sweep(body: list[Node], adjoint: dict[int, Node], live: set[int]) -> None:
    """Adds to `adjoint` those of all nodes that matter, last to first."""

    def give(node, g):
        if g is not None and id(node) in live:
            g = as_node(g)
            if g.kind == "c" and node.kind == "f":
                g = build("real", g)
            adjoint[id(node)] = adjoint[id(node)] + g if id(node) in adjoint else as_node(g)

    loops: dict[int, dict[int, Node]] = {}
    for n in reversed(body):
        if n.op == "part" and id(n) in adjoint:
            loops.setdefault(id(n.args[0]), {})[n.attrs["index"]] = adjoint[id(n)]
        elif PRIMITIVES[n.op].parts is not None if n.op in PRIMITIVES else False:
            if id(n) in loops and id(n) in live:
                number = max(len(n.value), 1)
                gs = tuple(loops[id(n)].get(i) for i in range(number))
                for a, g in zip(n.args, PRIMITIVES[n.op].vjp(gs, n, *n.args, **n.attrs)):
                    give(a, g)
        elif n.op == "loop":
            if id(n) in loops:
                for a, g in zip(n.args, loop_vjp(n, loops[id(n)], live)):
                    give(a, g)
        elif id(n) in adjoint and id(n) in live:
            if n.name and not adjoint[id(n)].name:
                adjoint[id(n)].name = f"d{n.name}"
            vjp = PRIMITIVES[n.op].vjp
            if vjp is None:
                raise NotImplementedError(f"no derivative of {n.op}")
            outer = n.kind == "c" and PRIMITIVES[n.op].analytic
            own = build("conj", adjoint[id(n)]) if outer else adjoint[id(n)]
            for a, g in zip(n.args, vjp(own, n, *n.args, **n.attrs)):
                give(a, build("conj", g) if outer and g is not None else g)


def zeros(like: Node) -> Node:
    return build("zeros", shape=like.shape)


def loop_vjp(node: Node, given: dict[int, Node], live: set[int]):
    """Gradients of a loop's operands: carried adjoints go backwards, those of constants add up over the rounds."""
    loop: Loop = node.attrs["loop"]
    body = loop.body
    w = world()
    nc, nk = loop.constants, loop.carried
    constants, carries = body.inputs[:nc], body.inputs[nc:]
    active_c = [i for i in range(nc) if id(node.args[i]) in live and constants[i].kind == "f"]
    inside = {id(constants[i]) for i in active_c} | {id(c) for c in carries if c.kind == "f"}
    order = body.body
    live_in = set(inside)
    for n in order:
        if (
            n.op not in ("const", "table", "size")
            and any(id(a) in live_in for a in n.args)
            and (n.kind in ("f", "c") or n.op in ("loop", "part") or PRIMITIVES[n.op].parts is not None)
        ):
            live_in.add(id(n))
    saved = w.known
    w.known = {}
    w.lengths[loop.counter] = w.length(loop.count) - 1
    example = [
        Node(
            "input",
            (),
            {},
            c.shape,
            "f",
            np.ones(np.shape(c.value)),
            f"d{c.name}" if c.name else "",
        )
        for c in carries
    ]  # adjoints of this round's results
    stack_in = {
        i: Node("input", (), {}, g.shape, "f", g.value, g.name) for i, g in given.items() if i >= nk
    }
    adjoint: dict[int, Node] = {}
    for i, out in enumerate(body.outputs):
        g = (
            example[i]
            if i < nk
            else build("getitem", stack_in[i], index=(Size.of(loop.counter),))
            if i in stack_in
            else None
        )
        if g is not None and id(out) in live_in:
            adjoint[id(out)] = adjoint[id(out)] + g if id(out) in adjoint else g
    sweep(order, adjoint, live_in)
    next_carry = [adjoint.get(id(c)) or zeros(c) for c in carries]
    for k, (c, r) in enumerate(
        zip(carries, body.outputs)
    ):  # rounds that fill an array of zeros, each its own place: nothing to put out
        if (
            id(node.args[nc + k]) not in live
            and r.op == "store"
            and r.args[0] is c
            and sum(any(a is c for a in n.args) for n in order) == 1
            and fills(r.attrs["index"], loop.counter)
        ):
            next_carry[k] = example[k]
    sums = {
        i: Node(
            "input",
            (),
            {},
            constants[i].shape,
            "f",
            np.zeros(np.shape(constants[i].value)),
            f"d{constants[i].name}" if constants[i].name else "",
        )
        for i in active_c
    }
    totals = {
        i: sums[i] + adjoint[id(constants[i])] if id(constants[i]) in adjoint else sums[i]
        for i in active_c
    }
    outputs = [*next_carry, *totals.values()]
    # what the backward body takes from the forward's: saved a round each, unless a constant or cheap to find again
    forward, kept, seen = {id(n) for n in order} | set(map(id, carries)), [], set()

    def look(n):
        if id(n) in seen or n.op in ("const", "table", "size"):
            return
        seen.add(id(n))
        if id(n) in forward and n.args == () and n.op != "input":
            return
        if (id(n) in forward and not cheap(n, constants)) or (
            n.op == "part" and id(n.args[0]) in forward
        ):
            kept.append(n)
            return
        for a in n.args:
            look(a)

    for o in outputs:
        look(o)
    w.known = saved
    w.lengths.pop(loop.counter)
    return finish(
        node,
        loop,
        given,
        example,
        stack_in,
        sums,
        active_c,
        outputs,
        kept,
        order,
        carries,
        constants,
    )


def fills(index, counter):
    return any(isinstance(i, Size) and counter in i.letters for i in index)


def cheap(n, constants):
    """Found again rather than kept: selections from constants, and what depends on the counter alone."""
    return (
        n.op not in ("contract", "loop", "part")
        and all(
            a.op in ("const", "table", "size")
            or any(a is c for c in constants)
            or cheap(a, constants)
            for a in n.args
        )
        and n.op != "input"
    )


def finish(
    node, loop, given, example, stack_in, sums, active_c, outputs, kept, order, carries, constants
):
    nc, nk = loop.constants, loop.carried
    saves = kept
    # the forward loop with what is kept stacked as well: the same node, told more
    extra = [n for n in saves if n not in loop.body.outputs[nk:]]
    wide = Loop(
        Program(loop.body.inputs, [*loop.body.outputs, *extra]),
        loop.counter,
        loop.count,
        nc,
        nk,
        loop.reverse,
    )
    parts = looped(wide, node.args)
    world().wide[id(node)] = parts
    stacks = {id(n): parts[wide.body.outputs.index(n, nk)] for n in saves}
    for n in saves:
        stacks[id(n)].name = stacks[id(n)].name or (
            n.name + ("_before" if n in carries else "_all") if n.name else ""
        )
    w = world()
    saved = w.known
    w.known = {}
    w.lengths[loop.counter] = w.length(loop.count) - 1
    stack_nodes = {
        id(n): Node(
            "input", (), {}, stacks[id(n)].shape, n.kind, stacks[id(n)].value, stacks[id(n)].name
        )
        for n in saves
    }
    swap = {
        id(n): build("getitem", stack_nodes[id(n)], index=(Size.of(loop.counter),)) for n in saves
    }
    for n in saves:
        swap[id(n)].name = n.name
    const_in = {id(c): Node("input", (), {}, c.shape, c.kind, c.value, c.name) for c in constants}
    swap |= const_in
    rebuilt = [substituted(o, swap) for o in outputs]
    used_constants = [i for i, c in enumerate(constants)]
    inputs = [
        *(const_in[id(constants[i])] for i in used_constants),
        *stack_nodes.values(),
        *stack_in.values(),
        *example,
        *sums.values(),
    ]
    w.known = saved
    w.lengths.pop(loop.counter)
    back = Loop(
        Program(inputs, rebuilt),
        loop.counter,
        loop.count,
        len(used_constants) + len(stack_nodes) + len(stack_in),
        nk + len(sums),
        not loop.reverse,
    )
    starts = [given.get(i) or zeros(c) for i, c in enumerate(carries)]
    operands = [
        *(node.args[i] for i in used_constants),
        *(stacks[k] for k in stack_nodes),
        *(given[i] for i in stack_in),
        *starts,
        *(zeros(constants[i]) for i in active_c),
    ]
    out = looped(back, operands)
    result = [None] * (nc + nk)
    for i, g in zip(active_c, out[nk:]):
        result[i] = g
    for k in range(nk):
        result[nc + k] = out[k]
    return result


def substituted(node, swap):
    """A node with others in the place of some, built again."""
    if id(node) in swap:
        return swap[id(node)]
    if not node.args:
        return node
    args = [substituted(a, swap) for a in node.args]
    out = (
        node
        if all(a is b for a, b in zip(args, node.args))
        else build(node.op, *args, **node.attrs)
    )
    out.name = out.name or node.name
    swap[id(node)] = out
    return out


def gradient(program: Program, wrt: list[Node]):
    """The forward and backward of a program: adjoints of `wrt` from adjoints of its outputs, and the inputs that stand for the latter."""
    cotangents = [
        Node(
            "input",
            (),
            {},
            o.shape,
            "f",
            np.random.default_rng(7).standard_normal(np.shape(o.value)),
            "dy" if len(program.outputs) == 1 else f"dy{i + 1}",
        )
        for i, o in enumerate(program.outputs)
    ]
    body = program.body
    live = set(map(id, wrt))
    adjoint: dict[int, Node] = {}
    for n in body:
        if (
            n.op not in ("const", "table", "size")
            and any(id(a) in live for a in n.args)
            and (n.kind in ("f", "c") or n.op in ("loop", "part") or PRIMITIVES[n.op].parts is not None)
        ):
            live.add(id(n))
    for o, g in zip(program.outputs, cotangents):
        if id(o) in live:
            adjoint[id(o)] = adjoint[id(o)] + g if id(o) in adjoint else g
    sweep(body, adjoint, live)
    for x in wrt:
        if id(x) in adjoint and not adjoint[id(x)].name:
            adjoint[id(x)].name = f"d{x.name}"
    return cotangents, [adjoint.get(id(x)) or zeros(x) for x in wrt]
