"""Sample inputs of `ops.leaky_rnn`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from handgrad.ops.samples._makers import between, extreme, pick, uniform
from handgrad.ops.samples._recurrent import (
    NO_SIZE,
    RNN_SMALL,
    each_alone,
    sequences,
    small_cotangent,
    whole,
)
from handgrad.ops.samples._table import Maker, OpSamples, SampleRow, row


def _leaky(
    batch: int,
    steps: int,
    features: int,
    hidden: int,
    *,
    bias: bool = True,
    states: bool = True,
    rates: bool = False,
    lengths: Sequence[int] | None = None,
) -> dict[str, Maker]:
    biases = ("bias_ih",) if bias else ()
    given = None if lengths is None else whole(lengths)
    made = sequences(
        batch, steps, features, hidden, gates=1, bias=biases, states=states, lengths=given
    )
    made["alpha"] = uniform(hidden)
    wanted = ("x", "weight_ih", "bias_ih", "h0", *(("alpha",) if rates else ()), "lengths")
    return {name: made[name] for name in wanted if name in made}


_ROWS: Final = (
    row("usual", "usual", _leaky(2, 3, 3, 4), alpha=0.7),
    row("square", "usual", _leaky(3, 3, 3, 3), alpha=0.4),
    row("one sequence", "one row", _leaky(1, 3, 2, 4), alpha=0.7),
    row("one step", "one row", _leaky(3, 1, 2, 4), alpha=0.7),
    row("prime sizes", "prime sizes", _leaky(3, 5, 2, 7), alpha=0.7),
    row("no sequences", "empty", _leaky(0, 3, 2, 4), alpha=0.7),
    row("reverse", "option", _leaky(2, 3, 3, 4), alpha=0.7, reverse=True),
    row("a rate per unit", "option", _leaky(2, 3, 3, 4, rates=True)),
    row("no memory", "option", _leaky(2, 3, 3, 4), alpha=0.0),
    row("memory only", "option", _leaky(2, 3, 3, 4), alpha=1.0),
    row("no states", "option", _leaky(2, 3, 3, 4, states=False), alpha=0.7),
    row("no bias", "option", _leaky(2, 3, 3, 4, bias=False), alpha=0.7),
    row("lengths", "masked rows", _leaky(3, 4, 2, 3, lengths=[4, 1, 3]), smooth=True, alpha=0.7),
    row(
        "lengths of 0, reverse",
        "masked rows",
        _leaky(3, 4, 2, 3, rates=True, lengths=[2, 0, 4]),
        smooth=True,
        reverse=True,
    ),
    row(
        "large and small values",
        "extreme values",
        {"x": extreme(2, 3, 3), "weight_ih": extreme(4, 3), "bias_ih": extreme(4)},
        alpha=0.7,
    ),
)


def _random(rng: np.random.Generator) -> SampleRow:
    batch, steps = between(rng, 1, 4), between(rng, 1, 6)
    rates = pick(rng, True, False)
    makers = _leaky(
        batch,
        steps,
        between(rng, 1, 5),
        between(rng, 1, 6),
        bias=pick(rng, True, True, False),
        states=pick(rng, True, True, False),
        rates=rates,
        lengths=pick(rng, None, rng.integers(0, steps + 1, batch).tolist()),
    )
    options: dict[str, Any] = {} if rates else {"alpha": float(rng.uniform())}
    return row("random", "usual", makers, reverse=pick(rng, False, True), **options)


_LEAKY_SMALL: Final = {name: RNN_SMALL[name] for name in ("x", "weight_ih", "bias_ih", "h0")}


def _in_torch(F: Any, arrays: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    torch, x, weight = F.torch, arrays["x"], arrays["weight_ih"]
    alpha = arrays.get("alpha", options.get("alpha"))
    h0 = arrays.get("h0", torch.zeros((len(x), len(weight)), dtype=x.dtype))

    def cell(sequence: Any, states: tuple[Any, ...]) -> Any:
        (h,), ys = states, []
        for a in F.linear(sequence, weight, arrays.get("bias_ih")).unbind(1):
            h = alpha * h + (1 - alpha) * torch.tanh(a)
            ys.append(h)
        return torch.stack(ys, dim=1), (h,)

    y, final = each_alone(cell, arrays, (h0,), options, torch)
    return y, final[0]


SAMPLES: Final = OpSamples(
    gradients=("x", "weight_ih", "bias_ih", "h0"),
    rows=_ROWS,
    awkward=(
        row("one unit", "one row", _leaky(1, 1, 1, 1), alpha=0.7),
        row("awkward", "prime sizes", _leaky(3, 5, 13, 7), alpha=0.7),
        row("no features", "empty", _leaky(2, 3, 0, 5), alpha=0.7, not_in_torch=NO_SIZE),
        row("no units", "empty", _leaky(2, 3, 4, 0), alpha=0.7, not_in_torch=NO_SIZE),
        row(
            "rates, lengths, reverse",
            "masked rows",
            _leaky(3, 5, 3, 4, rates=True, lengths=[3, 5, 1]),
            smooth=True,
            reverse=True,
        ),
        row(
            "large",
            "masked rows",
            _leaky(17, 23, 31, 29, lengths=range(7, 24)),
            smooth=True,
            alpha=0.9,
            large=True,
        ),
    ),
    small=row("small", "usual", _LEAKY_SMALL, alpha=0.5),
    small_cotangent=small_cotangent,
    random=_random,
    torch=_in_torch,
    open_nonfinite=("alpha",),
    saturates=True,
)
