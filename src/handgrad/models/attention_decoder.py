"""A recurrent decoder that looks at an encoder's states before every step.

Which states it looks at depends on its own last one, so steps run one by one, in `decoder_loop`.
What does not depend on it stands here, outside of that loop: the keys, the inputs' part of a step,
and the context's: W_c c_j = Σ_i α_ji W_c h_i, so that W_c meets every h_i once, and no step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import DTypeLike

from handgrad.arrays import Array
from handgrad.dispatch import SKIP, loop_backward, loop_forward
from handgrad.dispatch.gradients import as_gradient, readable
from handgrad.dispatch.signature import FLOATS, GENERATOR, INTEGER, settled
from handgrad.dispatch.values import library, shown
from handgrad.errors import ArgumentError, ShapeError
from handgrad.layers.base import Layer, Shape
from handgrad.layers.construction import FROM_SEED
from handgrad.layers.inputs import in_own_type
from handgrad.layers.lengths import settled_lengths
from handgrad.models import decoder_loop
from handgrad.models.decoder_cells import make_cell
from handgrad.models.decoder_scores import make_score
from handgrad.ops import linear
from handgrad.ops.arguments import check_integer

if TYPE_CHECKING:
    from jaxtyping import Float, Int


_OP: Final = "AttentionDecoder"


class Memory(NamedTuple):
    """The memory that every step reads, made once of the encoder's states h.

    keys (N, S, A) are compared with the decoder's state, values (N, S, G) are W_c h_i, the columns
    of W_ih for the context times h. The first lengths (N,) count, all where they are None; they
    are a copy.
    """

    keys: Array
    values: Array
    lengths: Array | None


class Cache(NamedTuple):
    """h, and the caches of the inputs' part, of keys and values, and of the steps.

    `like` is the shape and type of y, and so of its gradient.
    """

    h: Array
    inputs: Any
    memory: Any
    steps: Any
    like: tuple[Shape, Any]

    @property
    def alpha(self) -> Float[Array, "T N S"]:
        """The weights of every step."""
        return self.steps.alpha

    @property
    def c(self) -> Float[Array, "T N C"]:
        """The contexts, which no step needs: computed now."""
        return (self.alpha.transpose(1, 0, 2) @ self.h).transpose(1, 0, 2)


class AttentionDecoder(Layer):
    """α_j = softmax_i score(s_{j−1}, h_i),  c_j = Σ_i α_ji h_i,  s_j = cell([c_j; e_j], s_{j−1}).

        s, cache = decoder.forward(e, h, s0, lengths)
        (de, dh, ds0), gradients = decoder.backward(ds, cache)

    e (N, T, E) are the inputs, with E = 0 for a decoder that gets none but what it looks at;
    h (N, S, C) are the encoder's states, of which the first `lengths` (N,) count; s0 (N, H). The
    scores and cells are those of `decoder_scores` and `decoder_cells`. Parameters are `score.…` and
    `cell.…`, the columns of `cell.weight_ih` being those of c and then of e.

    Raises ArgumentError for sizes below 1 (0 inputs are fine), an unknown score or cell, and for
    "cosine" and "dot" unless H = C; with arrays, ShapeError where they do not fit and ArgumentError
    where they are not of the parameters' type or lengths lie outside of 0 to S.
    Source: Yamanishi, DNN, CNN, RNN, LSTM, Attn, and Transformer (2020), equations 17 to 20, with
    one vector v; Bahdanau, Cho, Bengio, Neural machine translation by jointly learning to align and
    translate (2015), for e.
    """

    def __init__(
        self,
        inputs: int,
        memory: int,
        hidden: int,
        *,
        rng: np.random.Generator = FROM_SEED,
        score: str = "additive",
        cell: str = "gru",
        dtype: DTypeLike = np.float32,
    ) -> None:
        sizes = {"inputs": inputs, "memory": memory, "hidden": hidden}
        for name, size in sizes.items():
            least = 0 if name == "inputs" else 1
            check_integer(_OP, name, settled(_OP, name, size, INTEGER), least, 2**31 - 1)
        settled(_OP, "rng", rng, GENERATOR)
        inputs, memory, hidden = map(int, sizes.values())
        self.sizes = {"e": inputs, "h": memory, "s0": hidden}
        self.score = make_score(score, hidden, memory, rng=rng, dtype=dtype)
        self.cell = make_cell(cell, memory + inputs, hidden, rng=rng, dtype=dtype)
        self.layers = {"score": self.score, "cell": self.cell}

    def remember(self, h: Float[Array, "N S C"], lengths: Int[Array, "N"] | None = None) -> Memory:
        """The memory of the encoder's states that every step reads, made once."""
        memory, _ = self._remember(self._array("h", h, ("N", "S")), lengths)
        return memory

    def step(
        self, e: Float[Array, "N E"], s: Float[Array, "N H"], memory: Memory
    ) -> tuple[Float[Array, "N H"], Float[Array, "N S"]]:
        """s_j and the weights α_j, for decoding."""
        batch = memory.keys.shape[0]
        e, s = self._array("e", e, (batch,)), self._array("s0", s, (batch,))
        a, _ = self._inputs_part(e[:, None])
        y, steps = self._run(a, s, memory)
        return y[:, 0], steps.alpha[0]

    @in_own_type
    def forward(  # type: ignore[override]
        self,
        e: Float[Array, "N T E"],
        h: Float[Array, "N S C"],
        s0: Float[Array, "N H"],
        lengths: Int[Array, "N"] | None = None,
        *,
        training: bool = False,
    ) -> tuple[Float[Array, "N T H"], Cache]:
        h = self._array("h", h, ("N", "S"))
        e, s0 = self._array("e", e, (len(h), "T")), self._array("s0", s0, (len(h),))
        memory, of_memory = self._remember(h, lengths)
        a, inputs = self._inputs_part(e)
        y, steps = self._run(a, s0, memory)
        return y, Cache(h, inputs, of_memory, steps, (y.shape, y.dtype))

    def backward(
        self,
        dy: Float[Array, "N T H"],
        cache: Cache,
        *,
        gradients: Mapping[str, Array] | None = None,
        input_gradient: bool = True,
    ) -> tuple[Any, Mapping[str, Array]]:
        """(de, dh, ds0) and the gradients of the parameters: of the steps, then of what they use.

        dW_ih = [dW_c dW_e] with dW_c = Σ dm_i h_iᵀ, m_i = W_c h_i.
        """
        if not isinstance(cache, Cache):
            raise ArgumentError(
                f"{_OP}: the cache is {shown(cache)}; allowed: one that forward returned"
            )
        dy = readable(as_gradient(_OP, dy, cache.like, library(cache.h)))
        da, dmemory, ds0, found = loop_backward(decoder_loop, dy, cache.steps)
        de, dweight_e = self._inputs_backward(da, cache.inputs)
        dh, dweight_c, of_keys = self.score.memory_backward(dmemory, cache.memory)
        found |= {f"score.{name}": gradient for name, gradient in of_keys.items()}
        xp = array_namespace(dy)
        found["cell.weight_ih"] = xp.concat((dweight_c, dweight_e), axis=1)
        if gradients is None:
            gradients = {name: found[name] for name in self.parameters}
        else:
            for name, gradient in gradients.items():
                gradient[...] = found[name]
        if not input_gradient:
            return None, gradients
        return (de, dh, ds0), gradients

    def _remember(self, h: Array, lengths: Array | None) -> tuple[Memory, Any]:
        """The memory, and its cache."""
        if h.shape[1] == 0:
            raise ShapeError(f"{_OP}: h has shape {h.shape}; allowed: (N, S, C) with S at least 1")
        lengths = settled_lengths(_OP, lengths, *h.shape[:2])
        if lengths is not None:
            lengths = array_namespace(lengths).asarray(lengths, copy=True)
        keys, values, kept = self.score.memory(h, self._weight_c)
        return Memory(keys, values, lengths), kept

    def _run(self, a: Array, s0: Array, memory: Memory) -> tuple[Array, Any]:
        """The states of all steps, and what their backward needs."""
        deciding = a, s0, memory.keys, memory.values
        arguments = a, memory.keys, memory.values, s0, memory.lengths
        return loop_forward(decoder_loop, deciding, self.score, self.cell, *arguments)

    @property
    def _weight_c(self) -> Array:
        """The columns of W_ih for the context."""
        return self.cell.weight_ih[:, : self.sizes["h"]]

    @property
    def _weight_e(self) -> Array:
        """The columns of W_ih for the inputs."""
        return self.cell.weight_ih[:, self.sizes["h"] :]

    def _inputs_part(self, e: Float[Array, "N T E"]) -> tuple[Float[Array, "N T G"], Any]:
        """W_e e + b_ih, and its cache. Without inputs that is b_ih for all steps, as a view."""
        bias = self.cell.bias_ih
        if self.sizes["e"] == 0:
            xp = array_namespace(bias)
            return xp.broadcast_to(bias, (*e.shape[:2], bias.shape[0])), None
        return linear.forward(e, self._weight_e, bias)

    def _inputs_backward(
        self, da: Float[Array, "N T G"], cache: Any
    ) -> tuple[Float[Array, "N T E"], Float[Array, "G E"]]:
        """de and dW_e; the steps have the gradient of b_ih."""
        if cache is None:
            xp = array_namespace(da)
            nothing = (*da.shape[:2], 0), (da.shape[2], 0)
            de, dweight_e = (xp.empty(shape, dtype=da.dtype) for shape in nothing)
            return de, dweight_e
        de, dweight_e, _ = linear.backward(  # type: ignore[call-arg]
            da, cache, out=(None, None, SKIP)
        )
        return de, dweight_e

    def _array(self, name: str, given: Any, before: tuple[Any, ...]) -> Array:
        """The argument in C order, of the parameters' type and of shape (*before, its size).

        Words in `before` are lengths that may be any.
        """
        array = settled(_OP, name, given, FLOATS)
        dtype = self.cell.bias_ih.dtype
        if array.dtype != dtype:
            raise ArgumentError(
                f"{_OP}: {name} is {shown(array)}; allowed: an array of {dtype}, as the parameters"
            )
        allowed = (*before, self.sizes[name])
        fits = len(array.shape) == len(allowed) and all(
            isinstance(wanted, str) or found == wanted
            for found, wanted in zip(array.shape, allowed, strict=True)
        )
        if not fits:
            raise ShapeError(
                f"{_OP}: {name} has shape {array.shape}; allowed: ({', '.join(map(str, allowed))})"
            )
        return readable(array)

    def output_shape(self, input_shape: Any) -> Shape:
        """(T, H) for e and h of one example, ((T, E), (S, C))."""
        (steps, _), _ = input_shape
        return (steps, self.sizes["s0"])

    def flops(self, input_shape: Any) -> int:
        """For e and h of one example, ((T, E), (S, C)); the softmax counts 5 for every weight."""
        (steps, _), (keys, memory) = input_shape
        attention: int = steps * keys * (5 + 2 * memory)
        return self.score.flops((steps, keys)) + attention + self.cell.flops((steps,))

    def input_flops(self, input_shape: Any) -> int:
        """None: backward has the gradients of e and h on its way to others."""
        return 0
