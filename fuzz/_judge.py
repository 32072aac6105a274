"""The distance of a kernel from its reference, and the form of an error.

The reference is run in float64 on the very values the kernel gets. Most results agree to a few
units in the last place, or to the table's share of the largest value of the array where nothing
extreme is among the inputs. The rest is held against the bound of `handgrad.checking.rounding`: a
running error analysis of the reference's own lines. NaN and infinity stand where the reference in
float64 or in the arrays' own type has them, with four exceptions that no order of sums can avoid:

- A term whose factor is an exact 0, such as a masked pair, a padded step, another token's row, is
  NaN in the reference where its other factor is NaN or infinite; kernels may leave it out.
- The kernels of `PADDED` multiply by the zeros of padding, and attention's by those of dropout,
  where the reference does not: 0 · ∞.
- A gradient with infinities among its terms is NaN or infinite as its formula is arranged:
  g (a + b) is ∞ where g a + g b is ∞ − ∞.
- Where an input is near the largest number of its type, or its square above it, a product in
  another order may overflow, and what is decided by it turn out otherwise; where one is subnormal,
  it may count as 0, and what is infinite beside it be NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from fuzz.harness import Fault
from handgrad.checking.rounding.bounded import Bounded, closed
from handgrad.checking.rounding.model import Arithmetic
from handgrad.errors import HandgradError

_ARITHMETICS: Final = {
    "float32": Arithmetic(2.0**-24, 2.0**-126, 2.0**128 * (1 - 2.0**-24)),
    "float64": Arithmetic(2.0**-53, 2.0**-1022, 2.0**1023 * (2 - 2.0**-52)),
    "bf16": Arithmetic(2.0**-8, 2.0**-126, 2.0**128 * (1 - 2.0**-8)),
}
#: Close enough without a bound: relative to the value, and to the largest of its array.
_NEAR: Final = {"float32": 1e-6, "float64": 1e-14, "bf16": 2.0**-8}
_SHARE: Final = {"float32": 1e-5, "float64": 2e-13, "bf16": 4e-2}
#: The bound follows one way to write a formula; a kernel may round as often again.
_VARIANTS: Final = {"float32": 4.0, "float64": 8.0, "bf16": 4.0}
PADDED: Final = ("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")
_LONGEST: Final = 700
_NOT_FOR_PEOPLE: Final = re.compile(
    r"incompatible function|Invoked with|nanobind|has no attribute|object at 0x|Traceback"
)


def leaves(nested: Any) -> Iterator[Any]:
    """The leaves of nested tuples, from left to right."""
    if isinstance(nested, tuple):
        for part in nested:
            yield from leaves(part)
    else:
        yield nested


def mapped(change: Callable[[Any], Any], nested: Any) -> Any:
    if isinstance(nested, tuple):
        return tuple(mapped(change, part) for part in nested)
    return change(nested)


def check_sentence(error: HandgradError) -> None:
    """Raise Fault unless the message is one sentence for a person."""
    text = str(error)
    if not text or "\n" in text or len(text) > _LONGEST or _NOT_FOR_PEOPLE.search(text):
        raise Fault("no sentence", f"{type(error).__name__}: {text!r}")


def arithmetic_of(precision: str, skips_zeros: bool = False) -> Arithmetic:
    return _ARITHMETICS[precision]._replace(skips_zeros=skips_zeros)


def bounded(array: Any, arithmetic: Arithmetic) -> Any:
    """An array of floats as it enters the error analysis; anything else as it is."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        return array
    values = np.array(array, np.float64)
    return Bounded(values, np.zeros(values.shape), arithmetic)


def bounds_of(nested: Any, precision: str) -> list[tuple[np.ndarray, np.ndarray] | None]:
    """(value, bound) of every result of the analysis."""
    found: list[tuple[np.ndarray, np.ndarray] | None] = []
    for part in leaves(nested):
        if part is None:
            found.append(None)
            continue
        end = closed(part, _ARITHMETICS[precision])
        if isinstance(end, Bounded):
            found.append((end.value, _VARIANTS[precision] * end.error))
        else:
            found.append((np.asarray(end), np.zeros(np.shape(end))))
    return found


def extent(arrays: Iterable[np.ndarray]) -> tuple[float, float, bool]:
    """The smallest and largest finite magnitude, without zeros, and whether all are finite."""
    sizes = np.concatenate([np.abs(a).ravel().astype(np.float64) for a in arrays])
    finite = sizes[np.isfinite(sizes) & (sizes > 0)]
    all_finite = bool(np.isfinite(sizes).all())
    return float(finite.min(initial=1.0)), float(finite.max(initial=1.0)), all_finite


class Judge:
    """Holds results of one call against what they should be.

    `zeros` says that the kernel multiplies by zeros where the reference does not. The first
    `outputs` results are those of forward, the others gradients. Functions give what is seldom
    needed, or None where they cannot: `own` the reference's results in the arrays' own type;
    `bounds` those with bounds, where asked without terms that have an exact 0 for a factor; `floor`
    the size of the terms that cancel in a kernel's formula for one result and not in the
    reference's; `extent` what the function of this name says of the inputs.
    """

    def __init__(
        self,
        zeros: bool,
        outputs: int,
        precision: str,
        ordinary: bool,
        own: Callable[[], Sequence[Any] | None],
        bounds: Callable[[bool], Sequence[Any] | None],
        floor: Callable[[int], float],
        extent: Callable[[], tuple[float, float, bool]],
    ) -> None:
        self.zeros = zeros
        self.outputs = outputs
        self.precision = precision
        self.ordinary = ordinary
        self._own, self._bounds, self._floor = own, bounds, floor
        self._extent = extent

    def compare(self, index: int, name: str, found: Any, exact: Any) -> None:
        """Raise Fault unless result `index` of the call is right."""
        if exact is None or found is None:
            if (exact is None) != (found is None):
                raise Fault("silent mismatch", f"{name} is {found!r}; right: {exact!r}")
            return
        found, exact = np.asarray(found), np.asarray(exact)
        if found.shape != exact.shape:
            raise Fault("wrong shape", f"{name}: {found.shape}, right: {exact.shape}")
        got = found.astype(np.float64)
        near = _NEAR[self.precision]
        tiny = _ARITHMETICS[self.precision].smallest
        with np.errstate(all="ignore"):
            error = np.abs(got - exact)
            size = np.abs(exact)
            good = error <= near * size + tiny
            if good.all():
                return
            good |= (got == exact) | (np.isnan(got) & np.isnan(exact))
            if good.all():
                return
            finite = np.isfinite(exact)
            if self.ordinary and finite.any():
                scale = float(size[finite].max())
                good |= error <= _SHARE[self.precision] * scale
                if good.all():
                    return
        good |= self._within_bounds(index, got, False)
        if good.all():
            return
        good |= self._as_own(index, got)
        if not good.all():
            with np.errstate(all="ignore"):
                good |= self._within_bounds(index, got, True)
                good |= self._excepted(index, got, exact)
        if not good.all():
            at = tuple(int(i) for i in np.argwhere(~good)[0])
            raise Fault(
                self._kind(got[~good], exact[~good]),
                f"{name}{list(at)} is {got[at]!r}; right: {exact[at]!r} "
                f"({int((~good).sum())} of {good.size} values are off; {self.precision})",
            )

    @staticmethod
    def _kind(got: np.ndarray, exact: np.ndarray) -> str:
        if (np.isfinite(exact) & np.isfinite(got)).any():
            return "silent mismatch"
        return "other positions of NaN or infinity"

    def _within_bounds(self, index: int, got: np.ndarray, skips_zeros: bool) -> Any:
        bounds = self._bounds(skips_zeros)
        if bounds is None or index >= len(bounds) or bounds[index] is None:
            return False
        value, bound = bounds[index]
        if value.shape != got.shape:
            return False
        bound = bound + _SHARE[self.precision] * self._floor(index)
        with np.errstate(all="ignore"):
            near = (np.abs(got - value) <= bound) | np.isinf(bound)
        return near | (got == value) | (np.isnan(got) & np.isnan(value))

    def _excepted(self, index: int, got: np.ndarray, exact: np.ndarray) -> Any:
        """The elements for which one of the exceptions above holds."""
        arithmetic = _ARITHMETICS[self.precision]
        smallest, largest, all_finite = self._extent()
        # A product of two such inputs overflows, where a third may have made it small before.
        large = np.fmax(np.abs(exact), largest) > np.sqrt(arithmetic.largest)
        good: Any = large & ~np.isfinite(got)
        if largest > arithmetic.largest / 16 and index >= self.outputs:
            return np.True_
        subnormal = smallest < arithmetic.smallest * 16
        if subnormal:
            lost = 64 * arithmetic.smallest * max(largest, 1.0) ** 2
            good |= np.abs(got - exact) <= np.abs(exact) + lost
        if index >= self.outputs:  # the sum may have been arranged otherwise
            good |= ~np.isfinite(exact) & ~np.isfinite(got)
        if subnormal and not all_finite:  # ∞ times what may count as 0
            return np.True_
        if self.zeros and index >= self.outputs:  # NaN may have closed a gate, or not
            return np.True_
        if self.zeros or subnormal:
            good |= np.isnan(got)
        return good

    def _as_own(self, index: int, got: np.ndarray) -> Any:
        """The elements where the reference in the arrays' own type gives the same or nearly so.

        Its rounding is of the same kind, so where extremes are involved both may be as far off.
        """
        own = self._own()
        if own is None or own[index] is None:
            return False
        value = np.asarray(own[index]).astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(got - value) <= 64 * _NEAR[self.precision] * np.abs(value)
        return near | (got == value) | (np.isnan(got) & np.isnan(value))
