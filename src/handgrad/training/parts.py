"""The gradients of one optimizer step from parts of its batch, which several processes share.

Each of the `accumulate` batches of a step is cut into `parts` pieces, whatever the number of ranks,
and every rank computes neighbouring ones. Random numbers belong to the piece: the generators of
augmentation and layers are seeded by `seed`, the step and the piece, so that a piece is
the same wherever it is computed. Batch normalisation takes its statistics over a piece, unless they
are synchronised, and its running ones move by the mean over all pieces.

Where nothing of this is in a model, the pieces of a rank are one batch, and the sum over the ranks
begins while its backward pass is still running. With `exact` every piece has a gradient of its own,
and these are added in one fixed tree, to the same bits on any number of ranks.

Source: Hoffer, Hubara, Soudry, Train longer, generalize better: closing the generalization gap in
large batch training of neural networks (2017), section 4, for statistics of parts of a batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, fields
from itertools import pairwise
from typing import Any, Final

import numpy as np

from handgrad.arrays import Array
from handgrad.data.sources import Source
from handgrad.layers.base import Layer, walk
from handgrad.layers.flat import FlatArrays
from handgrad.training.gradients import BatchGradient
from handgrad.training.metrics import Sums
from handgrad.training.replicas import tree_sum
from handgrad.training.state import TrainState

_COUNTED: Final = tuple(field.name for field in fields(Sums))


class PartGradients:
    """`gradients_of(source, index, sums)`: as `StepGradients`, of the pieces of all ranks."""

    def __init__(self, state: TrainState, augmenting: np.random.Generator) -> None:
        self._state = state
        self._replicas = state.replicas
        self._pieces = state.parts * state.accumulate
        self._gradient_of = BatchGradient(state, augmenting)
        self._generators = [*state.model.generators.values()]
        if state.augment is not None:
            self._generators.append(augmenting)
        self._moving = [] if state.sync_batch_norm else _moving_buffers(state.model)
        draws = bool(self._generators or self._moving) and not state.sync_batch_norm
        self._one_by_one = state.exact or draws
        size = self._replicas.size
        several = state.accumulate > 1 or (self._one_by_one and state.parts > size)
        own = self._gradient_of.flat
        #: The sum over the batches of this rank, where one of the ranks has several.
        self._total = own.zeros_like() if several or state.exact else own
        self._sum = self._replicas.reduction(self._total)

    def __call__(self, source: Source, index: Array, sums: Sums) -> FlatArrays:
        """The gradients of all examples at `index`, on every rank."""
        self._source = source
        self._rows = np.zeros((self._pieces, len(_COUNTED)))
        self._statistics = np.zeros((self._pieces, sum(each.size for each in self._moving)))
        self._start = [each.copy() for each in self._moving]
        chunks = self._chunks(index)
        if self._state.exact:
            gradients = self._in_a_tree(dict(chunks))
        elif self._total is self._gradient_of.flat:
            gradients = self._while_backward_runs(*chunks[0])
        else:
            gradients = self._one_after_another(chunks)
        sums.add(self._rows)
        self._move_statistics()
        return gradients

    def _chunks(self, index: Array) -> list[tuple[int, Array]]:
        """The batches of this rank, each with the number of its first piece."""
        parts, size = self._state.parts, self._state.batch_size
        own = self._replicas.own(parts)
        cuts = [*own, own.stop] if self._one_by_one else [own.start, own.stop]
        chunks = []
        for number in range(self._state.accumulate):
            batch = index[number * size : (number + 1) * size]
            for first, last in pairwise(cuts):
                examples = batch[len(batch) * first // parts : len(batch) * last // parts]
                chunks.append((number * parts + first, examples))
        return chunks

    def _of_chunk(
        self, piece: int, index: Array, factor_of: Callable[[float], float] = float
    ) -> Array:
        """The gradients of one batch, with the random numbers of its first piece.

        They count times what the batch weighs, or the factor that `factor_of` makes of that behind
        the forward pass.
        """
        if not len(index) and not self._state.sync_batch_norm:
            factor_of(0.0)
            self._gradient_of.flat.buffer[:] = 0
            return self._gradient_of.flat.buffer
        for i, generator in enumerate(self._generators):
            stream = np.random.SeedSequence((self._state.seed, self._state.step, piece, i))
            kind: Any = type(generator.bit_generator)
            generator.bit_generator.state = kind(stream).state
        for buffer, start in zip(self._moving, self._start, strict=True):
            buffer[...] = start
        counted = Sums()

        def seen() -> float:
            self._rows[piece] = astuple(counted)
            return factor_of(1.0 if self._gradient_of.is_sum else counted.weight)

        self._gradient_of(self._source, index, counted, seen)
        if self._moving:
            own = [each.ravel() for each in self._moving]
            self._statistics[piece] = counted.examples * np.concatenate(own)
        return self._gradient_of.flat.buffer

    def _weight(self) -> float:
        """What all ranks' means were taken over, once their rows are here."""
        self._replicas.add(self._rows)
        weight = float(self._rows[:, _COUNTED.index("weight")].sum())
        return 1.0 if self._gradient_of.is_sum or weight == 0 else weight

    def _while_backward_runs(self, piece: int, index: Array) -> FlatArrays:
        """Σ w g/Σ w over the ranks, one batch each; buckets of the sum leave while g is written."""

        def factor_of(own: float) -> float:
            factor = own / self._weight()
            self._sum.begin()
            return factor

        self._sum.prepare()
        self._of_chunk(piece, index, factor_of)
        self._sum.finish()
        return self._gradient_of.flat

    def _one_after_another(self, chunks: list[tuple[int, Array]]) -> FlatArrays:
        """The same with several batches a rank, which it adds before the sum over the ranks."""
        total = self._total.buffer
        total[:] = 0
        for piece, index in chunks:
            total += self._of_chunk(piece, index)
        total /= self._weight()
        self._sum.finish()
        return self._total

    def _in_a_tree(self, chunks: dict[int, Array]) -> FlatArrays:
        """The same, every piece for itself, added in an order that the ranks do not change."""
        owners = self._replicas.owners(self._state.parts) * self._state.accumulate
        tree_sum(
            self._replicas,
            owners,
            lambda piece: self._of_chunk(piece, chunks[piece]).copy(),
            self._total.buffer,
        )
        self._total.buffer /= self._weight()
        return self._total

    def _move_statistics(self) -> None:
        """Running statistics: the mean over the pieces, by examples, in their order."""
        if not self._moving:
            return
        self._replicas.add(self._statistics)
        examples = max(self._rows[:, _COUNTED.index("examples")].sum(), 1)
        moved = self._statistics.sum(axis=0) / examples
        ends = np.cumsum([each.size for each in self._moving])[:-1]
        for buffer, values in zip(self._moving, np.split(moved, ends), strict=True):
            buffer[...] = values.reshape(buffer.shape)


def _moving_buffers(model: Layer) -> list[Array]:
    """The buffers that forward changes in training."""
    return [
        array
        for _, layer in walk(model)
        for name in layer.buffer_names
        if name not in layer.constant_names and (array := getattr(layer, name)) is not None
    ]
