"""A recurrent decoder that looks at an encoder's states before every step.

Which states it looks at depends on its own last one, so steps run one by one. What does not depend
on it stands outside of the loop: the keys, the inputs' part of a step, and in backward every sum
over time. Within a step arrays are (N, ...); all steps together are (T, N, ...), time first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from handgrad.arrays import Array
from handgrad.errors import ShapeError
from handgrad.layers.base import Layer, Shape
from handgrad.models.decoder_cells import make_cell
from handgrad.models.decoder_scores import (
    make_score,
    products,
    rows,
    sum_over_time,
    weighted_sum,
)
from handgrad.ops.arguments import check_length_values, check_lengths
from handgrad.ops.scores import weights, within

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Memory(NamedTuple):
    """What every step looks at: the encoder's states h, their keys, and −∞ where padding stands.

    h (N, S, C), keys (N, S, A), padding (N, S) with 0 elsewhere, None where there is none.
    """

    h: Array
    keys: Array
    padding: Array | None


class Cache(NamedTuple):
    """The inputs, and of every step its state, context and weights; s has s_0 first.

    e (T, N, E), s (T + 1, N, H), c (T, N, C), alpha (T, N, S); compared and gates are what score
    and cell kept of each step.
    """

    memory: Memory
    e: Array
    s: Array
    c: Array
    alpha: Array
    compared: list[Any]
    gates: list[Any]


class AttentionDecoder(Layer):
    """α_j = softmax_i score(s_{j−1}, h_i),  c_j = Σ_i α_ji h_i,  s_j = cell([c_j; e_j], s_{j−1}).

        s, cache = decoder.forward(e, h, s0, lengths)
        (de, dh, ds0), gradients = decoder.backward(ds, cache)

    e (N, T, E) are the inputs, with E = 0 for a decoder that gets none but what it looks at;
    h (N, S, C) are the encoder's states, of which the first `lengths` (N,) count; s0 (N, H). The
    scores and cells are those of `decoder_scores` and `decoder_cells`. Parameters are `score.…` and
    `cell.…`, the columns of `cell.weight_ih` being those of c and then of e.

    Raises ArgumentError for an unknown score or cell, and for "cosine" and "dot" unless H = C.
    Source: Yamanishi (17) to (20), with one vector v; Bahdanau et al. (2015) for e.
    """

    def __init__(
        self,
        inputs: int,
        memory: int,
        hidden: int,
        *,
        rng: np.random.Generator,
        score: str = "additive",
        cell: str = "gru",
        dtype: Any = np.float32,
    ) -> None:
        self.sizes = {"e": inputs, "h": memory, "s0": hidden}
        self.score = make_score(score, hidden, memory, rng=rng, dtype=dtype)
        self.cell = make_cell(cell, memory + inputs, hidden, rng=rng, dtype=dtype)
        self.layers = {"score": self.score, "cell": self.cell}

    def remember(self, h: Float[Array, "N S C"], lengths: Int[Array, "N"] | None = None) -> Memory:
        """What is needed of the encoder's states at every step, made once."""
        padding = None
        if lengths is not None:
            check_lengths("AttentionDecoder", lengths, h.shape[0])
            check_length_values("AttentionDecoder", lengths, h.shape[1])
            padding = np.where(within(lengths, h.shape[1], axes=2), 0.0, -np.inf).astype(h.dtype)
        return Memory(h, self.score.keys(h), padding)

    def step(
        self, e: Float[Array, "N E"], s: Float[Array, "N H"], memory: Memory
    ) -> tuple[Float[Array, "N H"], Float[Array, "N S"]]:
        """s_j and the weights α_j, for decoding."""
        s_new, _, alpha, _, _ = self._step(self._inputs_part(e), s, memory)
        return s_new, alpha

    def _step(
        self, a_of_e: Float[Array, "N G"], s: Float[Array, "N H"], memory: Memory
    ) -> tuple[Array, Array, Array, Any, Any]:
        """s_j, c_j, α_j, and what score and cell keep."""
        score, compared = self.score.step(s, memory.keys)
        alpha = weights(score if memory.padding is None else score + memory.padding)
        c = weighted_sum(alpha, memory.h)
        s_new, gates = self.cell.step(c @ self._weight_c.T + a_of_e, s)
        return s_new, c, alpha, compared, gates

    def forward(  # type: ignore[override]
        self,
        e: Float[Array, "N T E"],
        h: Float[Array, "N S C"],
        s0: Float[Array, "N H"],
        lengths: Int[Array, "N"] | None = None,
        *,
        training: bool = False,
    ) -> tuple[Float[Array, "N T H"], Cache]:
        self._check(e=e, h=h, s0=s0)
        batch, steps = e.shape[:2]
        memory = self.remember(h, lengths)
        e_of_step = np.ascontiguousarray(e.transpose(1, 0, 2))
        a_of_e = self._inputs_part(e_of_step)
        s = np.empty((steps + 1, *s0.shape), dtype=s0.dtype)
        c = np.empty((steps, batch, h.shape[2]), dtype=h.dtype)
        alpha = np.empty((steps, batch, h.shape[1]), dtype=h.dtype)
        compared: list[Any] = []
        gates: list[Any] = []
        s[0] = s0
        for j in range(steps):
            s[j + 1], c[j], alpha[j], compared_j, gates_j = self._step(a_of_e[j], s[j], memory)
            compared.append(compared_j)
            gates.append(gates_j)
        y = np.ascontiguousarray(s[1:].transpose(1, 0, 2))
        return y, Cache(memory, e_of_step, s, c, alpha, compared, gates)

    def backward(
        self,
        dy: Float[Array, "N T H"],
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Any, Mapping[str, Array]]:
        """(de, dh, ds0) and the gradients of the parameters.

        From the last step to the first, through the cell to c_j, through α_j to the scores:
        ds_{j−1} = dy_{j−1} + what comes through the cell of step j and through its scores.
        """
        memory, e, s, c, alpha, compared, gates = cache
        dy_of_step = dy.transpose(1, 0, 2)
        das_input = np.empty((*c.shape[:2], len(self.cell.bias_ih)), dtype=c.dtype)
        das_state = np.empty_like(das_input)
        dc = np.empty_like(c)
        dscores = np.empty_like(alpha)
        dqueries = np.empty((*c.shape[:2], memory.keys.shape[2]), dtype=c.dtype)
        dkeys = np.zeros_like(memory.keys)
        ds = np.zeros_like(s[0])
        for j in reversed(range(len(c))):
            das_input[j], das_state[j], ds = self.cell.step_backward(
                dy_of_step[j] + ds, s[j], gates[j]
            )
            dc[j] = das_input[j] @ self._weight_c
            dalpha = products(memory.h, dc[j])
            dscores[j] = alpha[j] * (dalpha - np.sum(alpha[j] * dalpha, axis=-1, keepdims=True))
            ds_score, dqueries[j] = self.score.step_backward(
                dscores[j], compared[j], memory.keys, dkeys
            )
            ds += ds_score
        ds0 = ds

        dh, of_score = self.score.finish(dscores, dqueries, dkeys, compared, s[:-1], memory.h)
        rows_da_input, rows_da_state = rows(das_input), rows(das_state)
        of_cell = {
            "weight_ih": rows_da_input.T @ np.concatenate((rows(c), rows(e)), axis=1),
            "weight_hh": rows_da_state.T @ rows(s[:-1]),
            "bias_ih": np.sum(rows_da_input, axis=0),
            "bias_hh": np.sum(rows_da_state, axis=0),
        }
        found = {f"score.{name}": gradient for name, gradient in of_score.items()}
        found |= {f"cell.{name}": gradient for name, gradient in of_cell.items()}
        if gradients is None:
            gradients = found
        else:
            for name, gradient in found.items():
                gradients[name][...] = gradient
        if not input_gradient:
            return None, gradients
        de = (das_input @ self._weight_e).transpose(1, 0, 2)
        dh += sum_over_time(alpha, dc)
        return (de, dh, ds0), gradients

    @property
    def _weight_c(self) -> Array:
        """The columns of W_ih for the context."""
        return self.cell.weight_ih[:, : self.sizes["h"]]

    @property
    def _weight_e(self) -> Array:
        """The columns of W_ih for the inputs."""
        return self.cell.weight_ih[:, self.sizes["h"] :]

    def _inputs_part(self, e: Float[Array, "*batch E"]) -> Float[Array, "*batch G"]:
        return e @ self._weight_e.T + self.cell.bias_ih

    def _check(self, e: Array, h: Array, s0: Array) -> None:
        batch = h.shape[0]
        arrays = {"e": (e, (batch, "T")), "h": (h, (batch, "S")), "s0": (s0, (batch,))}
        for name, (array, before) in arrays.items():
            allowed = (*before, self.sizes[name])
            shape = tuple(array.shape)
            if len(shape) != len(allowed) or (shape[0], shape[-1]) != (batch, allowed[-1]):
                raise ShapeError(
                    f"AttentionDecoder: {name} has shape {shape}; "
                    f"allowed: ({', '.join(map(str, allowed))})"
                )

    def output_shape(self, input_shape: Any) -> Shape:
        """(T, H) for e and h of one example, ((T, E), (S, C))."""
        (steps, _), _ = input_shape
        return (steps, self.sizes["s0"])

    def flops(self, input_shape: Any) -> int:
        """For e and h of one example, ((T, E), (S, C)); the softmax counts 5 for every weight."""
        (steps, _), (keys, memory) = input_shape
        attention: int = steps * keys * (5 + 2 * memory)
        return self.score.flops((steps, keys)) + attention + self.cell.flops((steps,))
