"""One trace: a function is run once on tracers, and what it does becomes nodes and events.

Nothing is patched: a copy of the function runs whose globals show tracing stand-ins for numpy,
math and a few builtins.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from handgrad.program.integers import is_whole
from handgrad.program.node import FIXED, ByChance, Refused, world
from handgrad.program.rebinding import Rebinder
from handgrad.program.rounds import Mark
from handgrad.program.tensors.parameters import library_module
from handgrad.program.tracer import TracedInt, Tracer, call, traced, unwrap, wrap

__all__ = [
    "Mark",
    "Refused",
    "TracedInt",
    "Tracer",
    "call",
    "invoke",
    "is_whole",
    "run",
    "traced",
    "unwrap",
    "wrap",
]


def invoke(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    signature: inspect.Signature | None = None,
) -> Any:
    """A call by the names of parameters, however the signature wants them; its own by default.

    What `*args` takes is one tuple under its name, what `**kwargs` takes one dict.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    by_place = True  # as long as no parameter was left to its default
    for name, p in (signature or inspect.signature(function)).parameters.items():
        if name not in arguments:
            by_place = by_place and p.kind is p.VAR_POSITIONAL
        elif p.kind is p.VAR_POSITIONAL:
            positional += arguments[name]
        elif p.kind is p.VAR_KEYWORD:
            keywords |= arguments[name]
        elif p.kind is p.KEYWORD_ONLY or not by_place:
            keywords[name] = arguments[name]
        else:
            positional.append(arguments[name])
    return function(*positional, **keywords)


def run(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The function's result on tracers; nodes get the names of the variables that hold them."""
    rebinder = Rebinder()
    signature = inspect.signature(function)  # also that of a wrapper, whose own takes anything
    copy = rebinder.shown(function)
    w = world()

    def watch(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code not in rebinder.codes:
            return None
        for name, value in frame.f_locals.items():
            if type(value) is Tracer and not value.held.name and value.held.op not in FIXED:
                value.held.name = name
        if event == "line":
            w.line = frame.f_lineno
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        result = invoke(copy, arguments, signature)
    except Refused:
        raise
    except Exception as e:
        if w.refusal is None:
            why = f"{type(e).__name__}: {e}"
            if (name := library_module(e)) is not None:
                why = f"{name} of PyTorch is not known to derive"
            # Of places that are drawn others may be inside, where a library leaves out the rest.
            kind = ByChance if isinstance(e, IndexError) else Refused
            raise kind(w.at_line(why)) from e
    finally:
        sys.settrace(before)
    if w.refusal is not None:  # the function caught it and went on without
        raise w.refusal
    return result
