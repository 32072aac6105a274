"""The proof of products with a Jacobian and a Hessian, where the pair itself was proved.

⟨dy, J t⟩ = ⟨Jᵀ dy, t⟩ for all dy and t, and Jᵀ dy is proved; what a Hessian gives along a direction
is the change of the gradients along it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any, Final

import numpy as np

from handgrad.deriving.arguments import Path, at, flat
from handgrad.deriving.beside import Trial, cotangents
from handgrad.deriving.moving import moved
from handgrad.deriving.proof import ALIKE, Proof
from handgrad.deriving.refusals import UnprovedError
from handgrad.deriving.samples import called
from handgrad.deriving.second import Second
from handgrad.deriving.traced import HeldValues
from handgrad.program.node import Program

#: The example, and other sizes or settings.
_TRIALS: Final = 3


def prove_jvp(proof: Proof, second: Second) -> None:
    """Raises UnprovedError where the product with the Jacobian is not its transpose's."""
    rng = np.random.default_rng(14)
    for trial in islice(proof.trials(), _TRIALS):
        for dys, gradients in _gradients(proof, trial, rng):
            ways = _ways(proof, trial, rng)
            found = _found(proof, second, trial, [ways])
            one = [dy * y for dy, y in zip(dys, found, strict=True)]
            other = [g * t for g, t in zip(gradients, ways.values(), strict=True)]
            size = _total(one, np.abs) + _total(other, np.abs)
            wanted = _total(other)
            if (
                np.isfinite(wanted)
                and not abs(_total(one) - wanted) <= proof.tolerances.near * size
            ):
                raise UnprovedError(
                    f"the product with the Jacobian is another than its transpose's where "
                    f"{trial.said} ({_total(one):.6g}, {wanted:.6g})"
                )


def prove_hvp(proof: Proof, second: Second) -> None:
    """Raises UnprovedError where the product with the Hessian is not the gradients' change.

    What a forward detaches is constant to a derivative, and is held where the arrays are moved.
    """
    rng = np.random.default_rng(15)
    for trial in islice(proof.trials(), _TRIALS):
        for dys, gradients in _gradients(proof, trial, rng):
            vectors, ways = _ways(proof, trial, rng), _ways(proof, trial, rng)
            found = _found(proof, second, trial, [vectors, dys])
            along = [h * w for h, w in zip(found, ways.values(), strict=True)]
            exact = _total(along)
            size = _total(along, np.abs) + _total(
                [v * g for v, g in zip(vectors.values(), gradients, strict=True)], np.abs
            )
            slopes = []
            for step in proof.tolerances.steps:
                ends = [_moved(proof, trial, dys, ways, sign * step) for sign in (1, -1)]
                if ends[0] is not None and ends[1] is not None:
                    pairs = zip(vectors.values(), ends[0], ends[1], strict=True)
                    slopes.append(_total([v * (a - b) for v, a, b in pairs]) / (2 * step))
                    if abs(slopes[-1] - exact) <= proof.tolerances.near * (abs(exact) + size):
                        break
            else:
                known = sorted(slope for slope in slopes if np.isfinite(slope))
                if any(abs(a - b) <= ALIKE * (abs(a) + abs(b)) for a, b in pairwise(known)):
                    raise UnprovedError(
                        f"the product with the Hessian differs from differences of the gradients "
                        f"where {trial.said} ({exact:.6g}, {slopes[0]:.6g})"
                    )


def _gradients(
    proof: Proof, trial: Trial, rng: np.random.Generator
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Cotangents and the gradients from them; none for arguments that the forward refuses."""
    with suppress(UnprovedError):
        y, cache, refused = proof.forward(trial)
        if not refused:
            dys = cotangents(rng, flat(y))
            yield dys, proof.backward(dys, cache, trial.said)


def _moved(
    proof: Proof, trial: Trial, dys: list[Any], ways: Mapping[Path, Any], step: float
) -> list[Any] | None:
    """The gradients at a distance; None where the forward goes another way there."""
    with suppress(UnprovedError):
        there = Trial(moved(trial.values, ways, step), trial.said)
        if proof.detaches:
            return _holding(proof, trial.values, there.values, dys)
        _, cache, refused = proof.forward(there)
        return None if refused else proof.backward(dys, cache, trial.said)
    return None


@np.errstate(all="ignore")
def _holding(
    proof: Proof, base: Mapping[str, Any], values: Mapping[str, Any], dys: list[Any]
) -> list[Any]:
    """The gradients of arrays where what is detached is as it was of others."""
    pair, held = proof.pair, HeldValues(("stop",))
    inputs = [*pair.traced.program.inputs, *pair.cotangents]
    program = Program(inputs, pair.backward.outputs)
    pair.traced.on_arrays(base, held, program, dys)
    return pair.traced.on_arrays(values, held.again(), program, dys)


def _ways(proof: Proof, trial: Trial, rng: np.random.Generator) -> dict[Path, Any]:
    shapes = {path: np.shape(at(trial.values, path)) for path in proof.pair.wanted}
    return {path: rng.standard_normal(shape) for path, shape in shapes.items()}


def _found(proof: Proof, second: Second, trial: Trial, further: list[Any]) -> list[Any]:
    """The results of a product on vectors, one bare and several in a tuple, before the arrays."""
    groups = [list(each.values()) if isinstance(each, dict) else each for each in further]
    given = [each[0] if len(each) == 1 else tuple(each) for each in groups]
    names = list(second.parameters)[: len(given)]
    values = {**dict(zip(names, given, strict=True)), **trial.values}
    try:
        return flat(called(second.function, second.parameters, values))
    except Exception as error:
        raise UnprovedError(
            f"the emitted {second.name} fails where {trial.said} ({type(error).__name__}: {error})"
        ) from error


def _total(parts: list[Any], each: Any = lambda x: x) -> float:
    return sum(float(np.sum(each(part))) for part in parts)
