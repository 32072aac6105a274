"""`hg.matmul`: with `out=`, with a precision, on views, and malformed."""

from __future__ import annotations

from typing import Any

import numpy as np

import handgrad as hg
from fuzz._judge import check_sentence
from fuzz._operands import Operand, evaluated, junk, random_layout, sprinkle
from fuzz.harness import Case, Fault
from handgrad import kernels
from handgrad.errors import HandgradError

_SIZES = (0, 1, 1, 2, 3, 5, 7, 8, 15, 16, 17, 33, 49, 65)
_BATCHES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((), ()),
    ((3,), (3,)),
    ((2, 1), (3,)),
    ((0,), (1,)),
    ((), (2,)),
)
_UNITS = {"float32": 2.0**-24, "float64": 2.0**-53, "bf16": 2.0**-8}


def draw(rng: np.random.Generator) -> Case:
    m, k, n = (_SIZES[int(i)] for i in rng.integers(0, len(_SIZES), 3))
    left, right = _BATCHES[int(rng.integers(len(_BATCHES)))]
    dtype = np.dtype(np.float32 if rng.random() < 0.7 else np.float64)
    shapes = [(*left, m, k), (*right, k, n)]
    if rng.random() < 0.1:
        shapes[0] = (k,)
    if rng.random() < 0.1:
        shapes[1] = (k,)
    operands = []
    for shape in shapes:
        values = rng.standard_normal(shape).astype(dtype)
        operand = Operand(sprinkle(values, rng) if rng.random() < 0.1 else values)
        if rng.random() < 0.5:
            operand.lay(random_layout(rng))
        operands.append(operand)
    bf16 = dtype == np.float32 and kernels.native is not None and rng.random() < 0.2
    precision = "bf16" if bf16 and kernels.native.bf16_unit != "none" else None
    way = ("none", "none", "array", "layout", "overlap")[int(rng.integers(5))]
    layout = random_layout(rng)
    wrong = None
    if rng.random() < 0.25:
        name = ("a", "b", "out", "precision")[int(rng.integers(4))]
        wrong = name, junk(rng, operands[0].values if name in ("a", "b", "out") else None)

    def run() -> None:
        with np.errstate(all="ignore"):
            attempt()

    def attempt() -> None:
        if wrong is not None:
            _malformed(operands, precision, *wrong)
        else:
            _compare(operands, precision, way, layout)

    def program() -> str:
        a, b = (operand.code() for operand in operands)
        last = f"# precision={precision!r}, out: {way} {layout}, wrong: {wrong}"
        imports = "import numpy as np\nimport handgrad as hg\nimport fuzz._operands\n"
        return f"{imports}a = {a}\nb = {b}\nhg.matmul(a, b)  {last}"

    return Case("hg.matmul" + ("" if wrong is None else f": {wrong[0]}"), run, program)


def _compare(operands: list[Operand], precision: str | None, way: str, layout: str) -> None:
    a, b = (operand.array() for operand in operands)
    before = a.tobytes(), b.tobytes()
    wide = [operand.values.astype(np.float64) for operand in operands]
    exact = np.matmul(*wide)
    out: Any = None
    if way == "array":
        out = np.full(exact.shape, 7.0, a.dtype)
    elif way == "layout" and exact.size:
        buffer = Operand(np.full(exact.shape, 7.0, a.dtype))
        buffer.lay(layout)
        out = buffer.array()
        if not out.flags.writeable or 0 in out.strides or layout == "overlapping":
            out = None
    elif way == "overlap" and a.shape == exact.shape and operands[0].layout == "C":
        out = a
    options: dict[str, Any] = {} if precision is None else {"precision": precision}
    try:
        found = hg.matmul(a, b, out=out, **options)
    except HandgradError as error:
        check_sentence(error)
        odd = {operand.layout for operand in operands} | {layout if out is not None else ""}
        if out is a or odd & {"big-endian", "misaligned"}:
            return
        raise Fault("refused", str(error)) from None
    if out is not None and found is not out:
        raise Fault("silent mismatch", "out= is not what came back")
    if (a.tobytes(), b.tobytes()) != before and out is not a:
        raise Fault("modified input", "an operand was changed")
    if found.shape != exact.shape or found.dtype != operands[0].values.dtype:
        raise Fault("wrong shape", f"{found.dtype} {found.shape}")
    unit = _UNITS[precision or operands[0].values.dtype.name]
    depth = wide[0].shape[-1]
    size = np.matmul(*(np.abs(array) for array in wide))
    error = np.abs(found - exact)
    smallest = float(np.finfo(found.dtype).tiny)
    largest = float(np.finfo(found.dtype).max)
    sizes = np.concatenate([np.abs(w).ravel() for w in wide])
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    small = float(sizes.min(initial=1.0))
    lost = depth * smallest * float(sizes.max(initial=1.0))
    good = error <= (depth + 4) * 2 * unit * size + depth * smallest
    good |= (found == exact) | (np.isnan(found) & np.isnan(exact)) | (size * 4 > largest)
    if small < smallest * 16:
        good |= error <= lost
    good |= ~np.isfinite(exact) & ~np.isfinite(found) & (depth > 1)
    if not good.all():
        at = tuple(int(i) for i in np.argwhere(~good)[0])
        raise Fault("silent mismatch", f"c{list(at)} is {found[at]!r}; right: {exact[at]!r}")


def _malformed(operands: list[Operand], precision: str | None, name: str, code: str) -> None:
    given: dict[str, Any] = {"a": operands[0].array(), "b": operands[1].array()}
    options: dict[str, Any] = {} if precision is None else {"precision": precision}
    given |= options
    given[name] = evaluated(code, operands[name == "b"].values)
    try:
        hg.matmul(**given)
    except HandgradError as error:
        check_sentence(error)
    except MemoryError:  # of a huge array that was given on purpose
        return
