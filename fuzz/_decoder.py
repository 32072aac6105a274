"""The attention decoder's loop: its kernel against its Python, and malformed calls."""

from __future__ import annotations

from typing import Any

import numpy as np

import handgrad as hg
from fuzz._judge import check_sentence
from fuzz._operands import Operand, evaluated, junk, random_layout
from fuzz.harness import Case, Fault
from handgrad.errors import HandgradError
from handgrad.models.attention_decoder import AttentionDecoder
from handgrad.models.decoder_cells import CELLS
from handgrad.models.decoder_scores import SCORES

_SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 9, 17)


def draw(rng: np.random.Generator) -> Case:
    score = list(SCORES)[int(rng.integers(len(SCORES)))]
    cell = list(CELLS)[int(rng.integers(len(CELLS)))]
    batch, steps, keys, inputs = (_SIZES[int(i)] for i in rng.integers(0, len(_SIZES), 4))
    memory, hidden = (int(n) for n in rng.integers(1, 10, 2))
    if score != "additive":
        memory = hidden
    dtype = np.dtype(np.float32 if rng.random() < 0.7 else np.float64)
    decoder = AttentionDecoder(inputs, memory, hidden, rng=rng, score=score, cell=cell, dtype=dtype)
    shapes = {"e": (batch, steps, inputs), "h": (batch, keys, memory), "s0": (batch, hidden)}
    operands = {n: Operand(rng.standard_normal(s).astype(dtype)) for n, s in shapes.items()}
    if rng.random() < 0.6:
        operands["lengths"] = Operand(rng.integers(0, keys + 1, batch))
    for operand in operands.values():
        if rng.random() < 0.3:
            operand.lay(random_layout(rng))
    dy = Operand(rng.standard_normal((batch, steps, hidden)).astype(dtype))
    wrong = None
    if rng.random() < 0.25:
        names = [*shapes, "lengths"]
        name = names[int(rng.integers(len(names)))]
        values = operands[name].values if name in operands else None
        wrong = name, junk(rng, values)

    def run() -> None:
        with np.errstate(all="ignore"):
            attempt()

    def attempt() -> None:
        if wrong is not None:
            _malformed(decoder, operands, *wrong)
        else:
            _compare(decoder, operands, dy)

    sizes = f"batch {batch}, steps {steps}, keys {keys}, inputs {inputs}, memory {memory}"
    text = (
        f"# AttentionDecoder({inputs}, {memory}, {hidden}, score={score!r}, cell={cell!r}), {sizes}"
    )
    layouts = {name: operand.layout for name, operand in operands.items()}
    where = f"decoder {score} {cell}" if wrong is None else f"decoder: {wrong[0]}"
    return Case(where, run, f"{text}, {dtype}, {layouts}, wrong: {wrong}")


def _results(
    decoder: AttentionDecoder, operands: dict[str, Operand], dy: Operand, engine: str
) -> dict[str, np.ndarray]:
    with hg.engine(engine):
        y, cache = decoder.forward(**{name: o.array() for name, o in operands.items()})
        (de, dh, ds0), gradients = decoder.backward(dy.array(), cache)
    found = {"y": y, "alpha": cache.alpha, "de": de, "dh": dh, "ds0": ds0, **gradients}
    return {name: array for name, array in found.items() if array is not None}


def _in_the_last_digit(operands: dict[str, Operand]) -> dict[str, Operand]:
    """Other operands that round to nearly the same."""
    rng = np.random.default_rng(0)

    def changed(values: np.ndarray) -> np.ndarray:
        if values.dtype.kind != "f":
            return values
        relative = rng.choice((-1, 1), values.shape) * np.finfo(values.dtype).eps
        return values * (1 + relative).astype(values.dtype)

    return {name: Operand(changed(operand.values)) for name, operand in operands.items()}


def _compare(decoder: AttentionDecoder, operands: dict[str, Operand], dy: Operand) -> None:
    """The kernel is off by what the table allows, or by what a last digit of the inputs changes."""
    try:
        found = _results(decoder, operands, dy, "auto")
    except HandgradError as error:
        check_sentence(error)
        try:
            _results(decoder, operands, dy, "reference")
        except HandgradError:
            return
        raise Fault("engines disagree", f"kernels: {error}; the reference takes it") from None
    right = _results(decoder, operands, dy, "reference")
    beside = _results(decoder, _in_the_last_digit(operands), dy, "reference")
    if found.keys() != right.keys():
        raise Fault("silent mismatch", f"{sorted(found)} and {sorted(right)}")
    share = 1e-4 if dy.values.dtype == np.float32 else 1e-12
    for name, array in right.items():
        if found[name].shape != array.shape:
            raise Fault("wrong shape", f"{name}: {found[name].shape}, right: {array.shape}")
        scale = max(float(np.abs(array).max(initial=0.0)), 0.1)
        allowed = share * scale + 16 * np.abs(array - beside[name]).max(initial=0.0)
        if not np.all(np.abs(found[name] - array) <= allowed):
            raise Fault("silent mismatch", name)


def _malformed(
    decoder: AttentionDecoder, operands: dict[str, Operand], name: str, code: str
) -> None:
    given: dict[str, Any] = {key: operand.array() for key, operand in operands.items()}
    given[name] = evaluated(code, given.get(name))
    try:
        decoder.forward(**given)
    except HandgradError as error:
        check_sentence(error)
    except MemoryError:  # of a huge array that was given on purpose
        return
