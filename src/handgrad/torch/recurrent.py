"""PyTorch's recurrent modules on handgrad's kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from handgrad.torch import recurrent_ops
from handgrad.torch.operands import operands
from handgrad.torch.packed import Padding

Parts = Sequence[Tensor]


class _Recurrent(torch.nn.RNNBase):  # type: ignore[misc, unused-ignore]
    """A module of PyTorch with another forward; all else, its parameters too, is PyTorch's.

    Arguments that do not fit go to PyTorch's forward, which has the words for it; those that do and
    that kernels cannot take go there with a warning.
    """

    operator: ClassVar[Callable[..., tuple[Tensor, ...] | None]]
    #: The parts of a state, and the gates, each of hidden_size rows of a weight.
    states: ClassVar[int] = 1
    gates: ClassVar[int] = 1

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: Tensor | tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor | PackedSequence, Tensor | tuple[Tensor, Tensor]]:
        # The compiler leaves PyTorch's recurrent modules, and so these, out of its graphs, unless
        # torch._dynamo.config.allow_rnn says otherwise; then the pieces below are none for it too.
        compiling = torch.compiler.is_compiling()
        return self._output(input, hx) if compiling else self._eager_output(input, hx)

    def _output(self, input: Any, hx: Any) -> Any:
        self._update_flat_weights()
        packed = input if isinstance(input, PackedSequence) else None
        data = input if packed is None else packed.data
        states: Parts = () if hx is None else tuple(hx) if self.states == 2 else (hx,)
        autocasts = torch.is_autocast_enabled("cpu")
        fits = self._settings_fit() and self._fits(data, packed, states, autocasts)
        if not fits:
            return super().forward(input, hx)
        given = operands(type(self).__name__, data, *states, *self._flat_weights)
        if given is None:
            return super().forward(input, hx)
        (data, *others), end = given.tensors, len(states)
        states, weights = others[:end], others[end:]
        if packed is not None:
            found = self._of_packed(data, packed, states, weights, given.bf16)
        else:
            found = self._of_tensor(data, states, weights, given.bf16)
        if found is None:
            return super().forward(input, hx)
        y, final = given.result(found[0]), [given.result(part) for part in found[1]]
        output = y if packed is None else packed._replace(data=y)
        return output, tuple(final) if self.states == 2 else final[0]

    _eager_output = torch.compiler.disable(_output)

    def _of_packed(
        self, data: Tensor, packed: PackedSequence, states: Parts, weights: Parts, bf16: bool
    ) -> tuple[Tensor, Parts] | None:
        padding = Padding.of(packed.batch_sizes)
        if packed.sorted_indices is not None:
            states = [part.index_select(1, packed.sorted_indices) for part in states]
        x = padding.padded(data)
        found = self._layers(x, states, weights, padding.lengths, data.shape[0], bf16)
        if found is None:
            return None
        y, final = found
        if packed.unsorted_indices is not None:
            final = [part.index_select(1, packed.unsorted_indices) for part in final]
        return padding.packed(y), final

    def _of_tensor(
        self, data: Tensor, states: Parts, weights: Parts, bf16: bool
    ) -> tuple[Tensor, Parts] | None:
        if data.dim() == 2:
            found = self._layers(
                data[None], [part[:, None] for part in states], weights, None, data.shape[0], bf16
            )
            if found is None:
                return None
            return self._apart(found[0][0]), [part[:, 0] for part in found[1]]
        x = data if self.batch_first else data.transpose(0, 1)
        rows = x.shape[0] * x.shape[1]
        found = self._layers(x.contiguous(), states, weights, None, rows, bf16)
        if found is None:
            return None
        y, final = found
        return self._apart(y if self.batch_first else y.transpose(0, 1)), final

    def _layers(
        self,
        x: Tensor,
        states: Parts,
        weights: Parts,
        lengths: Tensor | None,
        rows: int,
        bf16: bool,
    ) -> tuple[Tensor, Parts] | None:
        """All layers and directions on x (N, T, D): y of the last one, and all final states.

        None where the operator does not take them.
        """
        directions = 2 if self.bidirectional else 1
        count = len(weights) // (self.num_layers * directions)
        finals = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                number = layer * directions + direction
                results = self.operator(
                    x,
                    *self._arguments(weights[number * count : (number + 1) * count]),
                    *([part[number] for part in states] or [None] * self.states),
                    lengths,
                    rows,
                    *self._constants(),
                    direction == 1,
                    bf16,
                )
                if results is None:
                    return None
                outputs.append(results[0])
                finals.append(results[1 : 1 + self.states])
            x = outputs[0] if directions == 1 else torch.cat(outputs, dim=-1)
            if self.dropout > 0 and self.training and layer + 1 < self.num_layers:
                x = dropout(x, self.dropout)
        if len(finals) == 1:
            return x, [part[None] for part in finals[0]]
        return x, [torch.stack(parts) for parts in zip(*finals, strict=True)]

    def _apart(self, y: Tensor) -> Tensor:
        """y in memory of its own, which the caller may write over: backward reads the operator's.

        Those of two directions are in one copy already.
        """
        if self.bidirectional or not y.requires_grad:
            return y.contiguous()
        return y.clone(memory_format=torch.contiguous_format)

    def _arguments(self, weights: Parts) -> list[Tensor | None]:
        """The weights of one direction with None for those that this module has not."""
        biases = weights[2:4] if self.bias else (None, None)
        return [*weights[:2], *biases]

    def _constants(self) -> tuple[bool, ...]:
        return ()

    def _settings_fit(self) -> bool:
        """Return whether PyTorch would take the settings, which may have been changed since."""
        flags = (self.bias, self.batch_first, self.bidirectional, self.training)
        return (
            all(type(flag) is bool for flag in flags)
            and 0 <= self.dropout <= 1
            and all(each is not None for each in self._flat_weights)
        )

    def _fits(
        self, data: Tensor, packed: PackedSequence | None, states: Parts, autocasts: bool
    ) -> bool:
        """Return whether PyTorch would take these arguments."""
        weight = self._flat_weights[0]
        dims = (2,) if packed is not None else (2, 3)
        if data.dim() not in dims or data.shape[-1] != self.input_size:
            return False
        if data.dtype != weight.dtype and not autocasts:
            return False
        batch: tuple[int, ...] = ()
        if packed is not None:
            sizes = packed.batch_sizes
            if sizes.dtype is not torch.int64 or sizes.dim() != 1 or int(sizes.sum()) != len(data):
                return False
            batch = (int(sizes[0]),)
        elif data.dim() == 3:
            batch = (data.shape[0 if self.batch_first else 1],)
            if data.shape[1 if self.batch_first else 0] == 0:
                return False
        numbers = self.num_layers * (2 if self.bidirectional else 1)
        each = 2 + (2 if self.bias else 0) + (1 if self.proj_size > 0 else 0)
        size = self.proj_size or self.hidden_size
        weights: Any = self._flat_weights
        recurrent = (self.gates * self.hidden_size, size)
        if len(weights) != numbers * each or weights[1].shape != recurrent:
            return False
        sizes = (size, self.hidden_size)[: self.states]
        expected = [(numbers, *batch, size) for size in sizes]
        return not states or [tuple(part.shape) for part in states] == expected


class LSTM(_Recurrent, torch.nn.LSTM):  # type: ignore[misc, unused-ignore]
    """`torch.nn.LSTM` on handgrad's kernels: the same arguments, parameters and results."""

    operator = staticmethod(recurrent_ops.lstm)
    states = 2
    gates = 4

    def _arguments(self, weights: Parts) -> list[Tensor | None]:
        return [*super()._arguments(weights), weights[-1] if self.proj_size > 0 else None]


class GRU(_Recurrent, torch.nn.GRU):  # type: ignore[misc, unused-ignore]
    """`torch.nn.GRU` on handgrad's kernels: the same arguments, parameters and results."""

    operator = staticmethod(recurrent_ops.gru)
    gates = 3


class RNN(_Recurrent, torch.nn.RNN):  # type: ignore[misc, unused-ignore]
    """`torch.nn.RNN` on handgrad's kernels: the same arguments, parameters and results."""

    operator = staticmethod(recurrent_ops.rnn)

    def _constants(self) -> tuple[bool, ...]:
        return (self.mode == "RNN_RELU",)

    def _fits(self, *arguments: Any) -> bool:
        return self.mode in ("RNN_RELU", "RNN_TANH") and super()._fits(*arguments)
