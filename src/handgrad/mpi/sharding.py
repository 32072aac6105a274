"""The optimizer's state cut over the ranks, each of which moves its share of the parameters.

Source: Rajbhandari et al., ZeRO: memory optimizations toward training trillion
parameter models (2020), stage 1.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from handgrad.arrays import Array
from handgrad.layers.flat import FlatArrays
from handgrad.optimizers import Optimizer

#: Shares begin on a cache line.
_ALIGNMENT: Final = 16
_SHARE: Final = "share"


class ShardedOptimizer:
    """The steps, the state and the rule of `optimizer`, with slots for this rank's share alone.

    `step` moves the share and then gathers the parameters of all; `state` gathers the slots on rank
    0, where a checkpoint is written. Both are called by all ranks.
    """

    def __init__(
        self, optimizer: Optimizer, parameters: FlatArrays, communicator: Any, in_place: Any
    ) -> None:
        self._communicator = communicator
        self._in_place = in_place
        self._layout = parameters.layout
        rank, ranks = communicator.Get_rank(), communicator.Get_size()
        size = parameters.buffer.size
        cuts = [min(size, -(-size * i // (ranks * _ALIGNMENT)) * _ALIGNMENT) for i in range(ranks)]
        self._cuts = [*cuts, size]
        self._counts = np.diff(self._cuts).tolist()
        self._share = slice(self._cuts[rank], self._cuts[rank + 1])
        self._parameters = parameters
        self._own_parameters = self._part(parameters.buffer)
        self._own_gradients: tuple[FlatArrays, FlatArrays] | None = None
        self._optimizer = copy.copy(optimizer)

    def _part(self, buffer: NDArray[Any]) -> FlatArrays:
        share = buffer[self._share]
        return FlatArrays(((_SHARE, share.shape),), share)

    def step(
        self,
        parameters: FlatArrays,
        gradients: FlatArrays,
        lr: float | None = None,
        *,
        scale: float = 1.0,
    ) -> None:
        """One update of this rank's share, and then the parameters of all ranks."""
        if self._own_gradients is None or self._own_gradients[0] is not gradients:
            self._own_gradients = (gradients, self._part(gradients.buffer))
        self._optimizer.step(self._own_parameters, self._own_gradients[1], lr, scale=scale)
        self._communicator.Allgatherv(self._in_place, self._whole(self._parameters.buffer))

    def _whole(self, buffer: NDArray[Any]) -> list[Any]:
        """A buffer of all shares, as mpi4py takes it."""
        return [buffer, (self._counts, self._cuts[:-1])]

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """The whole state on rank 0, as `Optimizer.state`; the steps alone on others."""
        own = self._optimizer.state
        found = {"step": own["step"]}
        for slot in self._optimizer.slots:
            share = own.get(f"{slot}.{_SHARE}")
            if share is None:
                continue
            whole = self._parameters.zeros_like() if self._communicator.Get_rank() == 0 else None
            self._communicator.Gatherv(share, None if whole is None else self._whole(whole.buffer))
            for name, array in (whole or {}).items():
                found[f"{slot}.{name}"] = array
        return found

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Keep this rank's share of a whole state."""
        own: dict[str, Array] = {"step": state["step"]}
        for slot in self._optimizer.slots:
            arrays = {name: state.get(f"{slot}.{name}") for name, _ in self._layout}
            known = {name: array for name, array in arrays.items() if array is not None}
            if known:
                whole = FlatArrays.of(known)
                own[f"{slot}.{_SHARE}"] = whole.buffer[self._share]
        self._optimizer.load_state(own)
