"""All ops: kernels against references, malformed calls, and caches that were tampered with."""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

import handgrad as hg
from fuzz import _decoder, _optimizers, _products
from fuzz._calls import Call, draw_call, parameters
from fuzz._judge import (
    PADDED,
    Judge,
    arithmetic_of,
    bounded,
    bounds_of,
    check_sentence,
    extent,
    leaves,
    mapped,
)
from fuzz._operands import Operand, evaluated, junk, random_layout, sprinkle
from fuzz.harness import Case, Fault
from handgrad import kernels
from handgrad.errors import HandgradError
from handgrad.ops.samples import gradient_names

PATIENCE = 10.0
MEMORY = 1024

_HAS_BF16: Final = kernels.native is not None and kernels.native.bf16_unit != "none"
#: Arguments of attentions that are factors of a score's gradient.
_FACTORS: Final = ("q", "k", "v", "s", "h")
_IMPORTS: Final = "import numpy as np\nimport handgrad as hg\nimport fuzz._operands\n\n"


def draw(rng: np.random.Generator) -> Case:
    modes = (_well_formed, _malformed, _tampered, _optimizers.draw, _products.draw, _decoder.draw)
    return modes[int(rng.choice(6, p=(0.54, 0.18, 0.14, 0.05, 0.06, 0.03)))](rng)


def _code(call: Call, rest: str) -> str:
    arrays = "".join(f"{name} = {o.code()}\n" for name, o in call.operands.items())
    given = ", ".join([*(f"{name}={name}" for name in call.operands), *call.settings_code()])
    return f"{_IMPORTS}{arrays}y, cache = hg.ops.{call.op}.forward({given})\n{rest}"


def _forward(call: Call, arrays: dict[str, Any]) -> Any:
    return call.module.forward(**arrays, **call.settings())


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def _bits(nested: Any) -> list[bytes | None]:
    """The bytes of every array, all NaN alike."""
    return [
        None if part is None else _one_nan(np.asarray(part)).tobytes() for part in leaves(nested)
    ]


def _one_nan(array: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(array), np.nan, array) if array.dtype.kind == "f" else array


# Well-formed calls: the kernel gives what the reference gives.


def _draw_dy(rng: np.random.Generator, y: Any, dtype: Any) -> tuple[Any, bool]:
    """A gradient for every output, nested as they are, in some layout; whether it is ordinary."""
    extreme = rng.random() < 0.12
    lies = rng.random() < 0.25
    number = 0

    def one(output: Any) -> Operand | None:
        nonlocal number
        number += 1
        if number > 1 and rng.random() < 0.15:
            return None
        values = np.asarray(rng.standard_normal(np.shape(output))).astype(dtype)
        operand = Operand(sprinkle(values, rng) if extreme else values)
        if lies:
            operand.lay(random_layout(rng))
        return operand

    return mapped(one, y), not extreme


def _made(nested: Any) -> Any:
    return mapped(lambda operand: None if operand is None else operand.array(), nested)


def _dy_code(nested: Any) -> str:
    if isinstance(nested, tuple):
        return f"({', '.join(map(_dy_code, nested))},)"
    return "None" if nested is None else nested.code()


def _well_formed(rng: np.random.Generator) -> Case:
    call = draw_call(rng)
    later = np.random.default_rng(int(rng.integers(2**63)))  # what hangs on the shape of y
    bf16 = _HAS_BF16 and call.dtype == np.float32 and rng.random() < 0.1
    precision = "bf16" if bf16 else call.dtype.name
    engine = "auto" if rng.random() < 0.8 else "kernels"
    lines: list[str] = []

    def run() -> None:
        with _quiet(), hg.precision("bf16" if bf16 else "float32"), hg.engine(engine):
            _compare(call, later, precision, lines)

    head = "" if not bf16 else "hg.set_precision('bf16')\n"
    return Case(call.op, run, lambda: _code(call, "".join(lines)).replace("\n\n", f"\n{head}\n", 1))


def _exact(call: Call, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    return {
        name: o.values.astype(dtype) if o.values.dtype.kind == "f" else o.values
        for name, o in call.operands.items()
    }


def _reference(call: Call, arrays: dict[str, Any], dy: Any) -> list[Any]:
    """The reference's outputs and gradients, one after the other."""
    with hg.precision("float32"), hg.engine("reference"):
        y, cache = call.module.forward.reference(**arrays, **call.settings())
        if dy is None:
            return list(leaves(y))
        gradients = call.module.backward.reference(dy, cache)
    return [*leaves(y), *leaves(gradients)]


def _lost(bias: np.ndarray) -> bool:
    """True for a bias beside whose rounding scores are nothing, and so the weights are lost."""
    sizes = np.abs(bias[np.isfinite(bias)])
    return bool(sizes.max(initial=0.0) * np.finfo(bias.dtype).eps > 1e-3)


def _floor(call: Call, dy: Any) -> float:
    """The size of what cancels in attention's kernel: dα − dy·y, where the reference has Σ α dα."""
    if call.op not in ("attention", "additive_attention", "cosine_attention"):
        return 0.0
    size = 1.0
    for array in (dy, *(o.values for n, o in call.operands.items() if n in _FACTORS)):
        finite = np.abs(array[np.isfinite(array)])
        size *= float(max(finite.max(initial=0.0), 1.0))
    return size


def _compare(call: Call, rng: np.random.Generator, precision: str, lines: list[str]) -> None:
    arrays = call.arrays()
    before = _bits(tuple(arrays.values()))
    try:
        y, cache = _forward(call, arrays)
    except HandgradError as error:
        check_sentence(error)
        _check_refused(call, str(error))
        return
    ordinary = call.ordinary
    names = gradient_names(call.op)
    with_backward = rng.random() < 0.9
    given, tame = _draw_dy(rng, y, call.dtype)
    ordinary = ordinary and tame
    dy = _made(given)
    lines.append(f"dy = {_dy_code(given)}\n")
    dy_before = _bits(dy)
    exact_dy = mapped(lambda o: None if o is None else o.values.astype(np.float64), given)
    exact = _reference(call, _exact(call), exact_dy if with_backward else None)
    outputs = list(leaves(y))

    def own() -> list[Any] | None:
        own_dy = mapped(lambda o: None if o is None else o.values, given)
        return _reference(call, _exact(call, call.dtype), own_dy if with_backward else None)

    def bounds(skips_zeros: bool) -> list[Any] | None:
        arithmetic = arithmetic_of(precision, skips_zeros)
        entered = {name: bounded(o.values, arithmetic) for name, o in call.operands.items()}
        dys = mapped(lambda o: None if o is None else bounded(o.values, arithmetic), given)
        try:
            found = _reference(call, entered, dys if with_backward else None)
            return bounds_of(tuple(found), precision)
        except Exception:
            return None

    def reach() -> tuple[float, float, bool]:
        given_arrays = [a for a in (*_exact(call).values(), *leaves(exact_dy)) if a is not None]
        return extent(a for a in given_arrays if a.dtype.kind == "f")

    def floor(index: int) -> float:
        bias = call.operands.get("bias")
        if call.op == "attention" and bias is not None and _lost(bias.values):
            return float("inf")
        return _floor(call, exact_dy) if index >= len(outputs) else 0.0

    zeros = call.op in PADDED or bool(call.options.get("dropout_p"))
    judge = Judge(zeros, len(outputs), precision, ordinary, own, bounds, floor, reach)
    for index, output in enumerate(outputs):
        if np.asarray(output).dtype != call.dtype:
            raise Fault("wrong dtype", f"y is of {np.asarray(output).dtype}")
        judge.compare(index, "y" if len(outputs) == 1 else f"y{index}", output, exact[index])
    y_before = _bits(y)
    _unchanged(call, arrays, before)
    if rng.random() < 0.15:
        _same_again(call, rng, arrays, y_before)
    if not with_backward:
        return
    keywords, skipped = _draw_keywords(call, rng, arrays, lines)
    lines.append("gradients = hg.ops." + call.op + ".backward(dy, cache)\n")
    try:
        gradients = call.module.backward(dy, cache, **keywords)
    except HandgradError as error:
        check_sentence(error)
        if any(o is not None and o.layout == "big-endian" for o in leaves(given)):
            return
        raise Fault("refused", str(error)) from None
    several = gradients if isinstance(gradients, tuple) else (gradients,)
    if len(several) != len(names):
        raise Fault("wrong count", f"{len(several)} gradients; right: {len(names)}")
    for index, (name, gradient) in enumerate(zip(names, several, strict=True)):
        if index in skipped:
            if gradient is not None:
                raise Fault("SKIP is not None", f"d{name} is {gradient!r}")
            continue
        right = exact[len(outputs) + index]
        if gradient is not None and np.asarray(gradient).dtype != call.dtype:
            raise Fault("wrong dtype", f"d{name} is of {np.asarray(gradient).dtype}")
        judge.compare(len(outputs) + index, f"d{name}", gradient, right)
    _unchanged(call, arrays, before)
    if _bits(dy) != dy_before:
        raise Fault("modified input", "dy was changed by backward")
    if _bits(y) != y_before:
        raise Fault("modified input", "y was changed by backward")
    _backward_again(call, rng, dy, cache, gradients, skipped)


def _draw_keywords(
    call: Call, rng: np.random.Generator, arrays: dict[str, Any], lines: list[str]
) -> tuple[dict[str, Any], set[int]]:
    """`out=` for some calls: arrays, None, SKIP; and which gradients are left out."""
    if rng.random() >= 0.25:
        return {}, set()
    names = gradient_names(call.op)
    out: list[Any] = []
    for name in names:
        kind = rng.integers(4)
        operand = call.operands.get(name)
        if kind == 0:
            out.append(hg.SKIP)
        elif kind == 1 or operand is None:
            out.append(None)
        else:
            out.append(np.full(operand.values.shape, 7.0, call.dtype))
    skipped = {i for i, entry in enumerate(out) if entry is hg.SKIP}
    lines.append(f"# with out= of {[type(entry).__name__ for entry in out]}\n")
    return {"out": tuple(out)}, skipped


def _unchanged(call: Call, arrays: dict[str, Any], before: list[bytes | None]) -> None:
    if _bits(tuple(arrays.values())) != before:
        for (name, array), bits in zip(arrays.items(), before, strict=True):
            if array.tobytes() != bits:
                raise Fault("modified input", f"{name} was changed")


def _check_refused(call: Call, message: str) -> None:
    """The reference's engine must refuse as well what kernels refuse."""
    if get_engine_is_kernels() and "engine 'kernels' takes" in message:
        return
    try:
        with hg.precision("float32"), hg.engine("reference"):
            _forward(call, call.arrays())
    except HandgradError as error:
        check_sentence(error)
        return
    raise Fault("engines disagree", f"kernels: {message}; the reference takes it")


def get_engine_is_kernels() -> bool:
    return bool(hg.get_engine() == "kernels")


def _same_again(
    call: Call, rng: np.random.Generator, arrays: dict[str, Any], before: list[bytes | None]
) -> None:
    """Forward gives the same bits again, on any number of threads."""
    count = int(rng.integers(1, 4))
    threads = hg.get_threads()
    hg.set_threads(count)
    try:
        again, _ = _forward(call, arrays)
    finally:
        hg.set_threads(threads)
    if _bits(again) != before:
        raise Fault("other bits", f"forward on {count} threads gives other bits than on {threads}")


def _backward_again(
    call: Call, rng: np.random.Generator, dy: Any, cache: Any, gradients: Any, skipped: set[int]
) -> None:
    """Backward gives the same bits again, from a copy of the cache too."""
    way = rng.random()
    if way >= 0.3:
        return
    what = "again"
    if way < 0.05:
        try:
            cache, what = pickle.loads(pickle.dumps(cache)), "with a pickled cache"
        except Exception as error:
            raise Fault("no pickle", f"{type(error).__name__}: {error}") from None
    elif way < 0.08:
        cache, what = copy.deepcopy(cache), "with a copied cache"
    elif way < 0.1:
        cache, what = copy.copy(cache), "with a shallow copy of the cache"
    again = call.module.backward(dy, cache)
    if what != "again" and any(operand.layout != "C" for operand in call.operands.values()):
        return  # a copy lies otherwise, and may be summed in another order
    pairs = zip(_bits(again), _bits(gradients), strict=True)
    if any(a != b for i, (a, b) in enumerate(pairs) if i not in skipped):
        raise Fault("other bits", f"backward {what} gives other bits")


# Malformed calls: one sentence, or the right value.


def _names_fault(error: TypeError) -> bool:
    """Return whether it is Python's own about the names and number of arguments."""
    text = str(error)
    return (
        any(
            words in text
            for words in (
                "missing",
                "unexpected keyword",
                "positional argument",
                "multiple values for",
            )
        )
        and "incompatible" not in text
    )


def _outcome(function: Callable[[], Any]) -> Any:
    """The result of a call; a HandgradError is a result, and must read like one.

    So is a MemoryError, where a huge array or setting was given on purpose.
    """
    try:
        return function()
    except HandgradError as error:
        check_sentence(error)
        return error
    except MemoryError as error:
        return error


def _malformed(rng: np.random.Generator) -> Case:
    call = draw_call(rng)
    known = parameters(call.op)
    names = [*known, "residual"]
    name = names[int(rng.integers(len(names)))]
    if rng.random() < 0.02:
        name = "unknown"
    operand = call.operands.get(name)
    code = junk(rng, None if operand is None else operand.values)
    transposed = call.op in ("conv_transpose1d", "conv_transpose2d")
    grows = "padding" in name or (transposed and name in ("stride", "dilation"))
    if grows and code == "2**28":  # hours of honest work on gigabytes of output
        code = "2**40"
    if operand is not None and rng.random() < 0.03:
        del call.operands[name]
        code = "missing"

    def arguments() -> dict[str, Any]:
        given = {**call.arrays(), **call.settings()}
        a = given.pop(name, None)
        if code != "missing":
            given[name] = evaluated(code, None if operand is None else a)
        return given

    def attempt(engine: str) -> Any:
        given = arguments()
        ordered = {key: given[key] for key in (*known, name) if key in given}

        def call_it() -> Any:
            try:
                return call.module.forward(**ordered)
            except TypeError as error:
                if (code == "missing" or name == "unknown") and _names_fault(error):
                    return error
                raise

        with hg.engine(engine):
            return _outcome(call_it)

    def bounds() -> Any:
        arithmetic = arithmetic_of(call.dtype.name)
        entered = {key: bounded(value, arithmetic) for key, value in arguments().items()}
        if entered.pop("residual", None) is not None:
            return None
        y, _ = call.module.forward.reference(**entered)
        return bounds_of(y, call.dtype.name)

    def run() -> None:
        with _quiet():
            found = attempt("auto")
            if "broadcast_to" in code:  # the reference would go over all of it
                return
            right = attempt("reference")
            if isinstance(found, Exception) or isinstance(right, Exception):
                if isinstance(found, MemoryError) or isinstance(right, MemoryError):
                    return
                if isinstance(found, Exception) != isinstance(right, Exception):
                    raise Fault(
                        "engines disagree", f"auto: {_short(found)}; reference: {_short(right)}"
                    )
                return
            _alike(found[0], right[0], bounds)

    def program() -> str:
        lines = [f"a = {operand.code()}" if operand is not None else ""]
        others = {key: o for key, o in call.operands.items() if key != name}
        lines += [f"{key} = {o.code()}" for key, o in others.items()]
        kept = [s for s in call.settings_code() if not s.startswith(f"{name}=")]
        wrong = [] if code == "missing" else [f"{name}={code}"]
        given = ", ".join([*(f"{key}={key}" for key in others), *kept, *wrong])
        return _IMPORTS + "\n".join(lines) + f"\nhg.ops.{call.op}.forward({given})"

    return Case(f"{call.op} forward: {name}", run, program)


def _short(found: Any) -> str:
    if isinstance(found, Exception):
        return f"{type(found).__name__}: {str(found)[:200]}"
    shapes = [getattr(np.asarray(part), "shape", "?") for part in leaves(found[0])]
    return f"taken, y of shape {shapes}"


def _alike(found: Any, right: Any, bounds: Callable[[], Any]) -> None:
    """Both engines gave a result; it must be about the same."""
    for index, (one, other) in enumerate(zip(leaves(found), leaves(right), strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape:
            raise Fault("silent mismatch", f"shapes {one.shape} and {other.shape}")
        if one.dtype.kind not in "fc" or other.dtype.kind not in "fc":
            if one.dtype.kind != other.dtype.kind:
                raise Fault("silent mismatch", f"of {one.dtype} and {other.dtype}")
            continue
        got, want = one.astype(complex), other.astype(complex)
        finite = np.isfinite(got) & np.isfinite(want)
        scale = float(np.abs(want[finite]).max(initial=0.0))
        off = finite & (np.abs(got - want) > 1e-3 * scale + 1e-6)
        if off.any():
            with contextlib.suppress(Exception):
                off &= np.abs(got - want) > 2 * bounds()[index][1]
        if off.any():
            at = tuple(np.argwhere(off)[0])
            raise Fault("silent mismatch", f"{got[at]} and {want[at]} at {list(map(int, at))}")


# Caches, dy and out= that do not belong to the call.


def _tampered(rng: np.random.Generator) -> Case:
    call = draw_call(rng)
    engine = "auto" if rng.random() < 0.8 else "reference"
    ways = (_foreign_cache, _changed_cache, _junk_cache, _changed_inputs, _junk_dy, _junk_out)
    ways = (*ways, _overlapping_out, _with_residual)
    way = ways[int(rng.integers(len(ways)))]
    later = np.random.default_rng(int(rng.integers(2**63)))
    lines: list[str] = []

    def run() -> None:
        with _quiet(), hg.engine(engine):
            arrays = call.arrays()
            result = _outcome(lambda: _forward(call, arrays))
            if isinstance(result, Exception):
                return
            way(call, later, arrays, *result, lines)

    label = way.__name__.strip("_").replace("_", " ")
    where = f"{call.op} backward ({engine}): {label}"
    return Case(where, run, lambda: _code(call, "".join(lines)))


def _plain_dy(rng: np.random.Generator, y: Any, dtype: Any) -> Any:
    return mapped(lambda o: np.asarray(rng.standard_normal(np.shape(o))).astype(dtype), y)


def _foreign_cache(
    call: Call, rng: np.random.Generator, arrays: Any, y: Any, cache: Any, lines: list[str]
) -> None:
    """A cache of another op."""
    other = draw_call(rng)
    result = _outcome(lambda: _forward(other, other.arrays()))
    if other.op == call.op or isinstance(result, Exception):
        return
    foreign_y, foreign = result
    dy = _plain_dy(rng, y if rng.random() < 0.5 else foreign_y, call.dtype)
    lines.append(f"# backward is given a cache of {other.op}\n")
    found = _outcome(lambda: call.module.backward(dy, foreign))
    if not isinstance(found, Exception):
        raise Fault("foreign cache", f"{call.op}.backward takes a cache of {other.op}")


def _changed_cache(
    call: Call, rng: np.random.Generator, arrays: Any, y: Any, cache: Any, lines: list[str]
) -> None:
    """One field of the cache is something else."""
    kept = getattr(cache, "kept", cache)
    if not kept._fields:
        return
    field = kept._fields[int(rng.integers(len(kept._fields)))]
    old = getattr(kept, field)
    code = junk(rng, old if isinstance(old, np.ndarray) else None)
    new = kept._replace(**{field: evaluated(code, old)})
    lines.append(f"# cache.{field} is {code}\n")
    changed = new if kept is cache else cache._replace(kept=new)
    dy = _plain_dy(rng, y, call.dtype)
    _outcome(lambda: call.module.backward(dy, changed))


def _junk_cache(
    call: Call, rng: np.random.Generator, arrays: Any, y: Any, cache: Any, lines: list[str]
) -> None:
    """No cache at all."""
    code = junk(rng, None)
    lines.append(f"hg.ops.{call.op}.backward(np.ones_like(y), {code})\n")
    dy = _plain_dy(rng, y, call.dtype)
    found = _outcome(lambda: call.module.backward(dy, evaluated(code)))
    if not isinstance(found, Exception):
        raise Fault("foreign cache", f"{call.op}.backward takes {code} for a cache")


def _changed_inputs(
    call: Call, rng: np.random.Generator, arrays: Any, y: Any, cache: Any, lines: list[str]
) -> None:
    """Inputs, or y, are overwritten before backward: whatever it gives, it gives something."""
    lines.append("# inputs or y are overwritten between forward and backward\n")
    for array in (*arrays.values(), *leaves(y)):
        if isinstance(array, np.ndarray) and array.flags.writeable and rng.random() < 0.6:
            if array.dtype.kind in "iu":
                bounds = np.iinfo(array.dtype)
                array[...] = rng.choice((bounds.min, bounds.max, 10**6, -1, 7), array.shape)
            elif array.dtype.kind == "b":
                array[...] = ~array
            else:
                array[...] = rng.standard_normal(array.shape) * 10.0 ** rng.integers(-3, 30)
    dy = _plain_dy(rng, y, call.dtype)
    _outcome(lambda: call.module.backward(dy, cache))


def _junk_dy(
    call: Call, rng: np.random.Generator, arrays: Any, y: Any, cache: Any, lines: list[str]
) -> None:
    """A gradient of the output that is none."""
    dy = _plain_dy(rng, y, call.dtype)
    whole = rng.random() < 0.5 or not isinstance(dy, tuple)
    part = dy if whole else dy[0]
    code = junk(rng, part if isinstance(part, np.ndarray) else None)
    wrong = evaluated(code, part)
    lines.append(f"# dy is {code}{'' if whole else ' in its first entry'}\n")
    given = wrong if whole else (wrong, *dy[1:])
    found = _outcome(lambda: call.module.backward(given, cache))
    if isinstance(found, Exception) or not isinstance(part, np.ndarray):
        return
    if np.shape(wrong) != part.shape:
        raise Fault("silent mismatch", f"dy = {code} is taken for one of shape {part.shape}")


def _junk_out(
    call: Call, rng: np.random.Generator, arrays: Any, y: Any, cache: Any, lines: list[str]
) -> None:
    """Buffers for the gradients that cannot take them."""
    dy = _plain_dy(rng, y, call.dtype)
    right = call.module.backward(dy, cache)
    several = right if isinstance(right, tuple) else (right,)
    out: Any = [None if g is None else np.empty_like(g) for g in several]
    i = int(rng.integers(len(out)))
    way = rng.random()
    code = junk(rng, out[i] if isinstance(out[i], np.ndarray) else None)
    if way < 0.6:
        out[i] = evaluated(code, out[i])
        if isinstance(out[i], np.ndarray) and rng.random() < 0.1:
            out[i].flags.writeable = False
        out = tuple(out)
    elif way < 0.8:
        out = evaluated(code, out[i])
        code += " for all"
    else:
        out = tuple(out[:-1]) if rng.random() < 0.5 else (*out, None)
        code = "of another count"
    lines.append(f"# out= is {code}\n")
    _outcome(lambda: call.module.backward(dy, cache, out=out))


def _overlapping_out(
    call: Call, rng: np.random.Generator, arrays: Any, y: Any, cache: Any, lines: list[str]
) -> None:
    """Buffers that share memory with an input, dy, y or each other: refused, or right."""
    dy = _plain_dy(rng, y, call.dtype)
    right = call.module.backward(dy, cache)
    several = right if isinstance(right, tuple) else (right,)
    expected = [None if g is None else np.array(g) for g in several]
    out: list[Any] = [None] * len(several)
    sources = [a for a in (*arrays.values(), *leaves(dy), *leaves(y)) if isinstance(a, np.ndarray)]
    for i, gradient in enumerate(expected):
        if gradient is None:
            continue
        fitting = [
            a
            for a in sources
            if a.size >= gradient.size > 0
            and a.dtype == gradient.dtype
            and a.flags.c_contiguous
            and a.flags.writeable
            and a.flags.aligned
        ]
        if fitting and rng.random() < 0.7:
            source = fitting[int(rng.integers(len(fitting)))].reshape(-1)
            start = int(rng.integers(0, source.size - gradient.size + 1))
            out[i] = source[start : start + gradient.size].reshape(gradient.shape)
            sources.append(out[i])
        elif rng.random() < 0.3:
            shared = np.empty(2 * gradient.size, gradient.dtype)
            sources.append(shared)
            out[i] = shared[: gradient.size].reshape(gradient.shape)
    lines.append("# out= shares memory with inputs, dy, y or itself\n")
    found = _outcome(lambda: call.module.backward(dy, cache, out=tuple(out)))
    if isinstance(found, Exception):
        return
    for one, other in zip(leaves(found), expected, strict=True):
        if (one is None) != (other is None) or (
            one is not None and np.asarray(one).tobytes() != other.tobytes()
        ):
            raise Fault("silent mismatch", "a gradient is another one where out= overlaps")


def _with_residual(
    call: Call, rng: np.random.Generator, arrays: Any, y: Any, cache: Any, lines: list[str]
) -> None:
    """`residual=` is added to y and to the first gradient."""
    if isinstance(y, tuple):
        return
    residual = Operand(np.asarray(rng.standard_normal(np.shape(y))).astype(call.dtype))
    residual.lay(random_layout(rng))
    lines.append(f"# residual= in layout {residual.layout}\n")
    found = _outcome(
        lambda: call.module.forward(**arrays, **call.settings(), residual=residual.array())
    )
    if isinstance(found, Exception):
        if residual.layout == "big-endian":
            return
        raise Fault("refused", str(found))
    _close(found[0], np.asarray(y) + residual.values, "y with residual")
    dy = _plain_dy(rng, y, call.dtype)
    gradients = call.module.backward(dy, cache)
    first = gradients[0] if isinstance(gradients, tuple) else gradients
    if first is None:
        return
    more = Operand(np.asarray(rng.standard_normal(np.shape(first))).astype(call.dtype))
    more.lay(random_layout(rng))
    added = _outcome(lambda: call.module.backward(dy, found[1], residual=more.array()))
    if isinstance(added, Exception):
        if more.layout == "big-endian":
            return
        raise Fault("refused", str(added))
    got = added[0] if isinstance(added, tuple) else added
    _close(got, np.asarray(first) + more.values, "the first gradient with residual")


def _close(found: Any, right: np.ndarray, what: str) -> None:
    found = np.asarray(found)
    if found.shape != right.shape or found.dtype != right.dtype:
        raise Fault("silent mismatch", f"{what}: {found.dtype} {found.shape}")
    finite = np.isfinite(right)
    if not np.array_equal(np.isnan(found), np.isnan(right)):
        raise Fault("other positions of NaN or infinity", what)
    scale = float(np.abs(right[finite]).max(initial=0.0))
    share = 1e-5 if right.dtype == np.float32 else 1e-13
    off = np.abs(found - right)[finite & np.isfinite(found)]
    if np.any(off > share * max(scale, 1.0)):
        raise Fault("silent mismatch", what)
