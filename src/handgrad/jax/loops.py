"""Loops over time for XLA: a reference whose loop over steps is a `jax.lax.scan`.

XLA compiles every step of a Python loop anew, which takes minutes for a hundred steps of an LSTM.
So the program of the reference is written for JAX, with its loops as scans.
"""

from __future__ import annotations

import dis
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import jax

from handgrad.program.emit import Emitter
from handgrad.program.libraries import JAX, helper
from handgrad.program.loops import rolled
from handgrad.program.node import Node, Program, Refused, World, blank, within
from handgrad.program.sizes import Size
from handgrad.program.trace import TracedInt, Tracer, run, unwrap


@functools.cache
def scanned(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its loops over steps scanned; the function itself where it has none.

    A call that no program with a loop can be made of runs as it is written.
    """
    if all(each.opname != "FOR_ITER" for each in dis.get_instructions(reference)):
        return reference

    @functools.wraps(reference)
    def scan(*args: Any, **kwargs: Any) -> Any:
        named = dict(inspect.signature(reference).bind(*args, **kwargs).arguments)
        try:
            written, results = _written(reference, named)
        except Refused:
            return reference(*args, **kwargs)
        found = iter(written(*filter(_is_array, jax.tree.leaves(named))))

        def result(each: Any) -> Any:
            if type(each) is Tracer:
                return next(found)
            return int(each) if type(each) is TracedInt else each

        return jax.tree.map(result, results)

    return scan


def _written(reference: Callable[..., Any], named: Any) -> tuple[Callable[..., Any], Any]:
    """A function of the arrays among the arguments, and the results, with tracers for its own.

    The program is made of shapes alone: what an array holds is known when the code runs.
    """
    world = World()
    world.has_numbers = False
    inputs: list[Node] = []

    def given(each: Any) -> Any:
        if not _is_array(each):
            return each
        shape, kind = tuple(map(Size.of, each.shape)), each.dtype.kind.replace("u", "i")
        inputs.append(Node("input", (), {}, shape, kind, blank(shape, kind)))
        return Tracer(inputs[-1])

    with within(world):
        world.events = []
        results = run(reference, jax.tree.map(given, named))
        made = [unwrap(each) for each in jax.tree.leaves(results) if type(each) is Tracer]
        program = Program(inputs, rolled(made))
        if all(node.op != "loop" for node in program.body):
            raise Refused("no loop of several rounds is left")
        return _compiled(program), results


def _compiled(program: Program) -> Callable[..., Any]:
    """The program as a function of JAX, of its inputs in order."""
    e = Emitter(JAX)
    for node in program.inputs:
        e.name(node, e.names.fresh(node.name or "x"))
    parameters = ", ".join(e.variables[id(node)] for node in program.inputs)
    floats = [node for node in program.inputs if node.kind == "f"]
    e.like = e.variables[id(floats[0])] if floats else ""
    e.program(program, keep=map(id, program.outputs))
    e.line(f"return [{', '.join(map(e.text, program.outputs))}]")
    space = {e.alias: jax.numpy, e.math: math, "jax": jax}
    space |= {name: jax.numpy.asarray(table) for name, table in e.tables.items()}
    for name, own in e.helpers.items():
        exec(helper(name, JAX), space)
        space[own] = space[name]
    exec("\n".join([f"def scanned({parameters}):", *e.lines]), space)
    found: Callable[..., Any] = space["scanned"]
    return found


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")
