"""`hg.check`: is this backward the gradient of this forward, and if not, which term is wrong?"""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any
from zlib import crc32

import numpy as np

from handgrad import interop
from handgrad.checking import sample_inputs, tapes
from handgrad.checking.arguments import check_options
from handgrad.checking.attempts import noted
from handgrad.checking.checker import Checker
from handgrad.checking.functions import Structured
from handgrad.checking.given import Given, tape_data
from handgrad.checking.op_functions import op_module
from handgrad.checking.report import CheckReport
from handgrad.checking.sample_inputs import Setup
from handgrad.checking.subject import CheckedTarget
from handgrad.checking.tensors import as_arrays
from handgrad.checking.trial import raised
from handgrad.default_type import default_type
from handgrad.dispatch.values import shown
from handgrad.errors import ArgumentError, HandgradError
from handgrad.seeding import seeded
from handgrad.targets import op_of, pair_of


def check(
    target: object,
    /,
    *inputs: object,
    like: object = None,
    wrt: Sequence[str] | None = None,
    seed: int = 0,
    **options: object,
) -> CheckReport:
    """Check every gradient of `target`, and say of each wrong one what is wrong with it.

    `target` is an op (`hg.ops.layer_norm` or its name), a layer or model, a pair of functions
    (forward, backward) in the op contract, a module or class with both, a backward alone with
    `like`, a torch.autograd.Function, a torch.nn.Module, or a jax.custom_vjp function.

    `inputs` are arrays for forward, in its order; an op, and anything with `like`, needs none, and
    takes None for an optional one to be left out. Floats are taken as float64 and again as float32.
    `like` is the op that the target is meant to be: its forward is compared, and its gradients say
    what is right. `wrt` names the inputs that backward returns gradients for, where these are
    not all inputs of floats. `options` go to forward; a layer runs with training=True unless they
    say otherwise. All random numbers come from `seed`.

    An object with forward and backward of its own is judged with its parameters: arrays among its
    attributes, where backward leaves their gradients as `dw`, `grads["w"]` or the like. The first
    line of the report names those that y depends on and that have none.

    Gradients are contracted with a random cotangent along random directions and compared with
    central differences; where one fails it is compared element by element. The report's bounds come
    from the error model of the differences, and for float32 from a count of its operations.

    Raises ArgumentError for a target or inputs that are nothing of the above. What is wrong with
    the target itself is in the report, whatever it does.
    """
    meant = op_module(like)
    op = op_of(target) or meant
    if meant is not None and op is not meant:
        raise ArgumentError(f"check: like is {like!r} for an op; allowed: no other than itself")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"check: seed is {seed!r}; allowed: 0, 1, 2, ...")
    # Not the plain seed: the user's own inputs often come from default_rng(0), and a cotangent that
    # equals an input hides bugs.
    rng = np.random.default_rng((int(seed), crc32(b"handgrad.check")))
    check_options(target, op, options)
    linecache.checkcache()  # of a file that was edited, and its module loaded anew
    target, arrays = structured(*_on_tapes(target, inputs, op, options), op)
    setups = _setups(target, arrays, op, options, rng)
    subject = CheckedTarget(target, op, wrt, own_inputs=bool(inputs))
    checker = Checker(subject, seed, rng)
    quiet = (warnings.catch_warnings(), np.errstate(all="ignore"))
    with seeded(0), noted() as dropped, default_type(), quiet[0], quiet[1]:
        warnings.simplefilter("ignore")
        try:
            return replace(checker.report(setups), dropped=tuple(dropped))
        except (HandgradError, MemoryError, KeyboardInterrupt):
            raise
        except BaseException as error:  # of the target's, such as SystemExit at an import in it
            return CheckReport(
                getattr(target, "__name__", type(target).__name__),
                seed,
                None,
                tuple(checker.rows),
                tuple(checker.trials),
                (*checker.faults, raised("the check ends where something", error)),
                dropped=tuple(dropped),
                unjudged=checker.unjudged,
            )


def _on_tapes(
    target: Any, inputs: Sequence[Any], op: ModuleType | None, options: Mapping[str, Any]
) -> tuple[Any, Sequence[Any]]:
    """The target and its inputs, these as tapes where a function is meant for such."""
    has_partner = isinstance(target, str | tuple) or pair_of(target) is not None
    if op is not None or has_partner or any(_holds_arrays(value) for value in inputs):
        return target, inputs
    return tapes.taped(target, inputs, options) or (target, inputs)


def structured(
    target: Any, inputs: Sequence[Any], op: ModuleType | None
) -> tuple[Any, Sequence[Any]]:
    """The target and its arrays, where these stand in dictionaries, lists or tapes."""
    if op is not None or not any(_holds_arrays(value) for value in inputs):
        return target, inputs
    plainly = [
        value if _holds_arrays(value) or isinstance(value, str | bool | None) else np.asarray(value)
        for value in map(as_arrays, inputs)
    ]
    given = Given.of([_in_float64(value) for value in plainly])
    return Structured(target, given), given.arrays


def _holds_arrays(value: Any) -> bool:
    """Return whether an argument is a structure of arrays, or of settings beside them."""
    if isinstance(value, Mapping) or tape_data(value) is not None:
        return True
    is_nested = isinstance(value, list | tuple)
    return is_nested and any(_holds_arrays(e) or hasattr(e, "dtype") for e in value)


def _in_float64(value: Any) -> Any:
    """The same with every array of floats as float64."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind == "f" else value
    if isinstance(value, Mapping):
        return {key: _in_float64(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_in_float64(each) for each in value])
    return value


def _setups(
    target: Any,
    inputs: Sequence[Any],
    op: ModuleType | None,
    options: Mapping[str, Any],
    rng: np.random.Generator,
) -> list[Setup]:
    """The inputs to try, the user's own first."""
    known = [] if op is None else sample_inputs.of_op(op, rng)
    if not inputs:
        if not known:
            name = getattr(target, "__name__", None) or shown(target)
            raise ArgumentError(
                f"check: no inputs are given for {name}; allowed without inputs: an op, or a "
                "target with like="
            )
        if options:
            known = [replace(known[0], options={**known[0].options, **options})]
        return known
    is_foreign = interop.function_of(target) is not None
    arrays: dict[str, Any] = {
        str(i): value if _is_constant(value, op, is_foreign) else _as_array(i, value)
        for i, value in enumerate(inputs)
    }
    return [Setup("usual", "", arrays, options, smooth=True), *known]


def _is_constant(value: Any, op: ModuleType | None, is_foreign: bool) -> bool:
    """None for what an op can do without; for a framework's function also a number or the like."""
    if value is None:
        return op is not None or is_foreign
    return is_foreign and isinstance(value, bool | int | float | str | bytes)


def _as_array(position: int, value: Any) -> Any:
    """Floats as float64, integers and booleans as they are; what is no array stays."""
    try:
        array = np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)
    except Exception:
        raise ArgumentError(
            f"check: input {position} is a {type(value).__name__}; allowed: arrays"
        ) from None
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"check: input {position} is of {array.dtype}; allowed: numbers")
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            raise ArgumentError(f"check: input {position} holds NaN; allowed: numbers")
        return np.array(array, dtype=np.float64)
    return np.array(array)
