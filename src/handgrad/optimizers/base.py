"""The base of optimizers: an update rule, its state, and one sweep over the parameters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from handgrad import kernels
from handgrad.arrays import Array
from handgrad.calls import Explained
from handgrad.dispatch import get_engine
from handgrad.dispatch.values import shown
from handgrad.elsewhere import OF_OPTIMIZERS
from handgrad.errors import ArgumentError, EngineError
from handgrad.layers.flat import FlatArrays, Layout, NamedArrays, check_same_arrays, numbers
from handgrad.printing import call_text, changed_settings
from handgrad.suggestions import NoAttributeError, raise_own_error


@functools.cache
def kernel_module(name: str) -> ModuleType | None:
    """The module with the fused sweep of optimizer `name`, if it has one."""
    if kernels.native is None or find_spec(f"handgrad.kernels.{name}") is None:
        return None
    return import_module(f"handgrad.kernels.{name}")


def _kernel_for(name: str, arrays: tuple[NDArray[Any], ...]) -> ModuleType | None:
    """The fused sweep to use for these arrays under the current engine; None for the reference."""
    engine = get_engine()
    if engine == "reference":
        return None
    module = kernel_module(name)
    dtype = arrays[0].dtype
    fits = dtype.char in "fd" and dtype.isnative
    for array in arrays:
        fits = fits and array.dtype == dtype and array.flags.c_contiguous and array.flags.aligned
    if module is not None and fits:
        return module
    if engine == "kernels":
        found = "arrays of other kinds" if module is not None else "no kernel of this optimizer"
        raise EngineError(
            f"optimizers.{name}: engine 'kernels' takes C-contiguous arrays of one type, float32 "
            f"or float64; found {found}; engine 'auto' would use the reference"
        )
    return None


#: A kernel or None for the reference, and the (parameter, gradient, *slots) it updates.
_Sweep: TypeAlias = tuple[ModuleType | None, tuple[NDArray[Any], ...]]
_NOTHING: Final = (None, None, "")


def _layout(arrays: Mapping[str, Array]) -> Layout:
    if type(arrays) is FlatArrays:
        return arrays.layout
    return tuple((name, tuple(array.shape)) for name, array in arrays.items())


def _flushed(values: Array) -> Array:
    """The values, with 0 for subnormal ones."""
    return np.where(np.abs(values) < np.finfo(values.dtype).smallest_normal, 0, values)


def _real(value: Any) -> float | None:
    """A number of Python's or NumPy's as a float, also one that is not finite; None for others."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _not_negative(value: Any) -> bool:
    number = _real(value)
    return number is not None and 0 <= number < math.inf


def check_not_negative(optimizer: str, **values: float) -> None:
    """Raise ArgumentError for the first of these hyperparameters that is no number of 0 or more."""
    for name, value in values.items():
        if not _not_negative(value):
            raise ArgumentError(f"{optimizer}: {name} is {shown(value)}; allowed: 0 or more")


def check_decay_rates(optimizer: str, **values: float) -> None:
    """Raise ArgumentError for the first of these averaging rates that is outside 0 ≤ β < 1."""
    for name, value in values.items():
        if not _not_negative(value) or value >= 1:
            raise ArgumentError(
                f"{optimizer}: {name} is {shown(value)}; allowed: 0 or more, less than 1"
            )


def check_betas(optimizer: str, betas: tuple[float, float]) -> None:
    """Raise ArgumentError unless these are two averaging rates."""
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ArgumentError(f"{optimizer}: betas is {shown(betas)}; allowed: two numbers")
    check_decay_rates(optimizer, beta1=betas[0], beta2=betas[1])


def check_changeable(what: str, arrays: Mapping[str, Array]) -> None:
    """Raise ArgumentError unless these are arrays of floats of NumPy that can be written to."""
    if not isinstance(arrays, Mapping):
        raise ArgumentError(
            f"{what}: {shown(arrays)} is given; allowed: a mapping of names to arrays; write "
            "optimizer.step(model.parameters, gradients)"
        )
    for name, array in arrays.items():
        numbers(what, name, array)
        found = "" if type(array) is np.ndarray else f"is {shown(array)}"
        if not found and array.dtype.kind != "f":
            found = f"is of {array.dtype}"
        if not found and not array.flags.writeable:
            found = "is read-only"
        if found:
            raise ArgumentError(
                f"{what}: {shown(name)} {found}; allowed: an array of floats that can be written to"
            )


class Optimizer(metaclass=Explained):
    """Moves parameters against their gradients, in place.

    A subclass names its module (`name`), its state arrays (`slots`, each shaped like a parameter
    and starting at 0), its update rule, and its `hyperparameters`. The rule is a pure function

        update(parameter, gradient, *slots, lr=..., <hyperparameters>) -> (parameter, *slots)

    and the fused sweep `handgrad.kernels.<name>.update` takes the same arguments, as flat arrays,
    and writes parameters and slots in place; it also multiplies the gradient by a `scale`. Both get
    `step`, counted from 1, if `counts_steps`.
    """

    name: ClassVar[str]
    slots: ClassVar[tuple[str, ...]] = ()
    counts_steps: ClassVar[bool] = False
    update: ClassVar[Callable[..., tuple[Array, ...]]]

    def __init__(self, lr: float, **hyperparameters: float | bool) -> None:
        check_not_negative(type(self).__name__, lr=lr)
        self.lr = float(lr)
        given: dict[str, Any] = hyperparameters
        self.hyperparameters: dict[str, Any] = {
            name: value.item() if isinstance(value, np.number) else value
            for name, value in given.items()
        }
        self.steps = 0
        self._slots: tuple[FlatArrays, ...] | None = None
        self._swept: tuple[FlatArrays | None, FlatArrays | None, str] = _NOTHING
        self._sweeps: list[_Sweep] = []

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise_own_error(self, name)
            raise NoAttributeError(self, name, OF_OPTIMIZERS)

    def __repr__(self) -> str:
        settings = dict(self.hyperparameters)
        if "beta1" in settings:
            settings["betas"] = (settings.pop("beta1"), settings.pop("beta2"))
        return call_text(
            type(self).__name__, (), {"lr": self.lr, **changed_settings(self, settings)}
        )

    def step(
        self,
        parameters: Mapping[str, Array],
        gradients: Mapping[str, Array],
        lr: float | None = None,
        *,
        scale: float = 1.0,
    ) -> None:
        """One update of every parameter, in place; `lr` replaces the optimizer's own this once.

        The gradients count times `scale`, such as the factor of clipping, and stay as they are.
        Two FlatArrays of one layout are updated in a single sweep over their buffers, other
        mappings array by array. Parameters and slots that become subnormal become 0: without
        gradients moments decay to such numbers, with which processors compute slowly. Raises
        ArgumentError or ShapeError, with all as it was, where a gradient is missing, unknown, no
        array of numbers or of another shape than its parameter, or a parameter is no array of
        floats that can be written to.
        """
        lr = self.lr if lr is None else lr
        if type(lr) is not float or not 0 <= lr < math.inf:
            check_not_negative(type(self).__name__, lr=lr)
            lr = float(lr)
        if type(scale) is not float:
            number = _real(scale)
            if number is None:
                raise ArgumentError(
                    f"{type(self).__name__}: scale is {shown(scale)}; allowed: a number"
                )
            scale = number
        sweeps = self._sweeps_over(parameters, gradients)
        self.steps += 1
        settings = {"lr": lr, **self.hyperparameters}
        if self.counts_steps:
            settings["step"] = self.steps
        for kernel, arrays in sweeps:
            if kernel is not None:
                kernel.update(*arrays, scale=scale, **settings)
                continue
            parameter, gradient, *slots = arrays
            scaled = gradient if scale == 1 else gradient * scale
            updated = type(self).update(parameter, scaled, *slots, **settings)
            for target, values in zip((parameter, *slots), updated, strict=True):
                target[...] = _flushed(values)

    def updated(
        self,
        parameters: Mapping[str, Array],
        gradients: Mapping[str, Array],
        slots: Mapping[str, Mapping[str, Array]],
        *,
        lr: ArrayLike,
        step: ArrayLike,
    ) -> tuple[dict[str, Array], dict[str, dict[str, Array]]]:
        """New parameters and slots by the rule, on arrays of any library; nothing here changes.

        `lr` and `step`, counted from 1, may be arrays too.
        """
        settings: dict[str, Any] = {"lr": lr, **self.hyperparameters}
        if self.counts_steps:
            settings["step"] = step
        found: dict[str, Array] = {}
        kept: dict[str, dict[str, Array]] = {slot: {} for slot in self.slots}
        for name, parameter in parameters.items():
            before = (slots[slot][name] for slot in self.slots)
            found[name], *after = type(self).update(parameter, gradients[name], *before, **settings)
            for slot, array in zip(self.slots, after, strict=True):
                kept[slot][name] = array
        return found, kept

    def _sweeps_over(
        self, parameters: Mapping[str, Array], gradients: Mapping[str, Array]
    ) -> list[_Sweep]:
        """Every sweep's kernel, or None, and its (parameter, gradient, *slots).

        They are remembered for the same two FlatArrays: a small network's step is short.
        """
        last_parameters, last_gradients, engine = self._swept
        if parameters is last_parameters and gradients is last_gradients and engine == get_engine():
            return self._sweeps
        check_changeable(f"{type(self).__name__}: parameters", parameters)
        if type(gradients) is NamedArrays:
            raise ArgumentError(
                f"{type(self).__name__}: gradients are the parameters of a layer; allowed: what "
                "backward returned; write optimizer.step(model.parameters, gradients)"
            )
        check_same_arrays(f"{type(self).__name__}: gradients", parameters, gradients)
        slots = self._slots_for(parameters)
        if (
            isinstance(parameters, FlatArrays)
            and isinstance(gradients, FlatArrays)
            and parameters.layout == gradients.layout
        ):
            buffers = (slot.buffer for slot in slots)
            self._sweeps = [self._sweep_of(parameters.buffer, gradients.buffer, *buffers)]
            self._swept = (parameters, gradients, get_engine())
            return self._sweeps
        what = f"{type(self).__name__}: gradients"
        return [
            self._sweep_of(
                parameter,
                numbers(what, name, gradients[name]),
                *(slot[name] for slot in slots),
            )
            for name, parameter in parameters.items()
        ]

    def _sweep_of(self, *arrays: NDArray[Any]) -> _Sweep:
        kernel = _kernel_for(self.name, arrays)
        return kernel, arrays if kernel is None else tuple(array.reshape(-1) for array in arrays)

    def _slots_for(self, parameters: Mapping[str, Array]) -> tuple[FlatArrays, ...]:
        """The state arrays in the parameters' own layout; zeros before the first step."""
        if not self.slots:
            return ()
        slots = self._slots
        if slots is None:
            like = FlatArrays.of(parameters)
            slots = tuple(like.zeros_like() for _ in self.slots)
        elif slots[0].layout != _layout(parameters):
            check_same_arrays(f"{type(self).__name__}: parameters", slots[0], parameters)
            like = FlatArrays.of(parameters)
            slots = tuple(like.filled_from(slot) for slot in slots)
            self._swept = _NOTHING
        self._slots = slots
        return slots

    @property
    def state(self) -> dict[str, Array]:
        """Everything that training changes: `step`, and `<slot>.<parameter>` for every slot.

        These are the arrays themselves, which the next step overwrites.
        """
        found: dict[str, NDArray[Any]] = {"step": np.asarray(self.steps, dtype=np.int64)}
        for slot_name, slot in zip(self.slots, self._slots or (), strict=False):
            for name, array in slot.items():
                found[f"{slot_name}.{name}"] = array
        return found

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Continue from a `state`, of which a copy is taken.

        Raises ArgumentError for an entry that is missing, no array of numbers, or belongs to no
        slot of this optimizer; then the state is as it was.
        """
        what = f"{type(self).__name__}.load_state"
        if not isinstance(state, Mapping) or "step" not in state:
            raise ArgumentError(f"{what}: 'step' is missing; allowed: what `state` returned")
        steps = numbers(what, "step", state["step"])
        if steps.dtype.kind not in "iu" or steps.size != 1 or not 0 <= int(steps.item()) < 2**63:
            raise ArgumentError(f"{what}: 'step' is {shown(state['step'])}; allowed: 0 or more")
        loaded: dict[str, dict[str, Array]] = {slot: {} for slot in self.slots}
        for key, array in state.items():
            slot, _, name = key.partition(".") if isinstance(key, str) else ("", "", "")
            if slot in loaded:
                loaded[slot][name] = numbers(what, key, array)
            elif key != "step":
                allowed = ", ".join(["step", *(f"{slot}.<parameter>" for slot in self.slots)])
                raise ArgumentError(f"{what}: {shown(key)} is unknown; allowed: {allowed}")
        for slot in self.slots:
            check_same_arrays(f"{what}: {slot}", loaded[self.slots[0]], loaded[slot])
        flat = tuple(FlatArrays.of(loaded[slot]) for slot in self.slots)
        self.steps = int(steps.item())
        self._slots = flat if any(flat) else None
        self._swept = _NOTHING
