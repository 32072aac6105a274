"""E[f(z₁) f(z₂)] of two Gaussian values for a smooth f whose V-transform has no closed form.

With z = √k x, x ~ N(0, 1), f is expanded in normalized Hermite polynomials hₙ, once for each
variance: f(√k x) = Σ aₙ(k) hₙ(x). By Mehler's formula

    E[f(z₁) f(z₂)] = Σ aₙ(k₁₁) aₙ(k₂₂) ρⁿ,  ρ = k₁₂/√(k₁₁ k₂₂).

f is odd or even, so every second coefficient is 0.

Error: tanh, the hardest function here, has a pole at distance π/2 from the real line, and so aₙ²
falls as exp(−π √(n/k)). As many terms are taken as leave out `TOLERANCE` of E[f²], at most
`MOST_TERMS`, which is enough up to a variance of about 30; `error_bound` says what is left out.
Against the trapezoidal rule over both values in long double, for variances k from 1e-4 and
correlations between −1 and 1:

    largest error of         k up to 10    30         100
    tanh, V and V of slope   1e-13         1e-13      8e-12, 4e-10
    sigmoid                  1e-14         2e-14      below those of tanh
    SiLU, GELU's tanh form   2.4e-13       7.4e-13    2.5e-12 (of SiLU, where V is 50)
    their slopes             3e-14         3e-14      3e-14

Beyond, the series of tanh and its slope are too short where |ρ| is near 1 but not 1: at a variance
of 1e3 by at most 1e-4 and 5e-4.

Source: Mehler, Ueber die Entwicklung einer Function von beliebig vielen Variablen nach
Laplaceschen Functionen höherer Ordnung (1866); Boyd, Asymptotic coefficients of Hermite function
series (1984); Trefethen, Weideman, The exponentially convergent trapezoidal rule (2014).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from handgrad.ops.covariances import Values, bounded, variances

Function = Callable[[Values], Values]

#: The part of E[f²] that the series leaves out, wherever that takes no more than the most terms.
TOLERANCE: Final = 1e-13
MOST_TERMS: Final = 2048

#: Distance from the real line of the nearest pole of any function here: that of tanh.
_POLE: Final = math.pi / 2
#: exp(−x²/4), which bounds every hₙ(x) φ(x) but for a small factor, is 1e-17 at this x.
_FARTHEST: Final = 12.5
#: exp(−37) is the rounding of float64.
_DIGITS: Final = 37.0
#: Coefficients that are held at once, and elements that fit in a second-level cache with their sum.
_MOST_COEFFICIENTS: Final = 1 << 23
#: Coefficients of one expansion that is kept, and the variance below which all have one rule.
_MOST_KEPT: Final = 1 << 15
_SMALLEST: Final = 2.0**-8
_BLOCK: Final = 1 << 14


def value_of(forward: Any, x: Values, **settings: Any) -> Values:
    """f(x) by the lines of an op, whatever the engine is."""
    y: Values = forward.reference(x, **settings)[0]
    return y


def slope_of(forward: Any, backward: Any, x: Values, **settings: Any) -> Values:
    """f′(x) by the lines of an op, whatever the engine is."""
    _, cache = forward.reference(x, **settings)
    dx: Values = backward.reference(np.ones_like(x), cache)
    return dx


class _Rule(NamedTuple):
    """Nodes x ≥ 0, weights of E[f(x)] for even f, and root = √φ(x), φ the density of N(0, 1)."""

    x: Values
    weight: Values
    root: Values


def _terms(variance: float) -> int:
    """The number of terms, every second n, that `TOLERANCE` takes at this variance."""
    root = -math.log(TOLERANCE) / (2.0 * _POLE) * math.sqrt(variance)
    return min(16 + math.ceil(0.7 * root * root), MOST_TERMS)


@lru_cache(maxsize=16)
def _rule(variance: float, terms: int) -> _Rule:
    """The trapezoidal rule in u, x = width · sinh u.

    Nodes are as close as f(√k x) needs around 0, where it bends, and as hₙ needs far out, where its
    waves are √n to a unit.
    """
    width = 1.0 / max(math.sqrt(variance), 0.5)
    last = math.asinh(_FARTHEST / width)
    frequency = 4.0 / math.pi * _DIGITS + _FARTHEST * math.sqrt(2.0 * terms)
    count = math.ceil(last * frequency / (2.0 * math.pi)) + 1
    u, step = np.linspace(0.0, last, count, retstep=True)
    weight = 2.0 * float(step) * width * np.cosh(u)
    weight[0] *= 0.5
    x = width * np.sinh(u)
    root = np.exp(-0.25 * x * x) / (2.0 * math.pi) ** 0.25
    return _Rule(x, weight * root * root, root)


@lru_cache(maxsize=16)
def _hermite(variance: float, terms: int, odd: bool) -> Values:
    """hₙ(x) √φ(x) at the nodes for the odd or the even n, a row each: hₙ alone overflows."""
    rule = _rule(variance, terms)
    rows = np.empty((terms, rule.x.size))
    before, now = np.zeros_like(rule.x), rule.root
    for n in range(2 * terms):
        if n % 2 == odd:
            rows[n // 2] = now
        before, now = now, (rule.x * now - math.sqrt(n) * before) / math.sqrt(n + 1)
    return rows


def _coefficients(f: Function, k: Values, variance: float, terms: int, odd: bool) -> Values:
    """aₙ(k) for the odd or the even n, and in the last row the root of the sum of all aₙ² beyond.

    That row stands for the rest of the series as if it were one term: at ρ = 1 and k₁₁ = k₂₂ the
    sum is E[f²]. Shape (terms + 1, *shape of k). A network asks for pairs of the same variances
    again and again, so those of few of them are kept.
    """
    if terms * k.size > _MOST_KEPT:
        return _expanded(f, k, variance, terms, odd)
    return _kept(f, k.tobytes(), k.shape, variance, terms, odd)


@lru_cache(maxsize=512)
def _kept(
    f: Function, k: bytes, shape: tuple[int, ...], variance: float, terms: int, odd: bool
) -> Values:
    found = _expanded(f, np.frombuffer(k).reshape(shape), variance, terms, odd)
    found.setflags(write=False)
    return found


def _expanded(f: Function, k: Values, variance: float, terms: int, odd: bool) -> Values:
    rule = _rule(variance, terms)
    values = f(np.sqrt(k.reshape(-1, 1)) * rule.x)
    rows = np.empty((terms + 1, k.size))
    weight = rule.weight / rule.root
    np.matmul(_hermite(variance, terms, odd), (values * weight).T, out=rows[:-1])
    rest = (values * values) @ rule.weight - np.sum(rows[:-1] * rows[:-1], axis=0)
    rows[-1] = np.sqrt(np.maximum(rest, 0.0))
    return rows.reshape(terms + 1, *k.shape)


def _blocks(
    shape: tuple[int, ...], most: int, *arrays: tuple[int, ...]
) -> Iterator[tuple[slice, ...]]:
    """Parts of `shape` in which no array, of shapes that broadcast to it, has more than `most`
    elements."""
    parts = [tuple(slice(0, length) for length in shape)]
    while parts:
        part = parts.pop()
        taken = [_lengths(array, part) for array in arrays]
        largest = max(taken, key=math.prod)
        if math.prod(largest) <= most:
            yield part
            continue
        axis = largest.index(max(largest))
        start, stop = part[axis].start, part[axis].stop
        middle = (start + stop) // 2
        halves = (slice(middle, stop), slice(start, middle))
        parts.extend((*part[:axis], half, *part[axis + 1 :]) for half in halves)


def _lengths(shape: tuple[int, ...], part: tuple[slice, ...]) -> list[int]:
    return [1 if n == 1 else cut.stop - cut.start for n, cut in zip(shape, part, strict=True)]


def _take(array: Values, part: tuple[slice, ...]) -> Values:
    """That part of an array which may have axes of length 1 where the part is longer."""
    shape = array.shape[array.ndim - len(part) :]
    whole = slice(None)
    cuts = (whole if n == 1 else cut for n, cut in zip(shape, part, strict=True))
    return array[(*[whole] * (array.ndim - len(part)), *cuts)]


def _largest(k11: Values, k22: Values) -> float:
    """The largest finite variance, up to the next power of √2, so that there are few rules."""
    largest = max(float(np.max(k, initial=0.0, where=np.isfinite(k))) for k in (k11, k22))
    return math.exp2(math.ceil(2.0 * math.log2(max(largest, _SMALLEST))) / 2.0)


def _left_out(a: Values) -> Values:
    """For every n the largest part of E[f²] that stands in the terms from n on."""
    squares = (a * a).reshape(len(a), -1)
    sums = np.cumsum(squares[::-1], axis=0)[::-1]
    parts = np.divide(sums, sums[0], out=np.zeros_like(sums), where=sums[0] > 0.0)
    return np.asarray(np.max(parts, axis=1, initial=0.0))


def _series(a: Values, b: Values, rho: Values, odd: bool, out: Values) -> None:
    """out = Σ aₙ bₙ ρⁿ by Horner's rule in ρ², in blocks that stay in the cache.

    A block far from |ρ| = 1 takes fewer terms.
    """
    left_out = np.sqrt(_left_out(a) * _left_out(b))
    powers = np.arange(len(a))
    for part in _blocks(rho.shape, _BLOCK, rho.shape):
        r = rho[part]
        square = r * r
        closest = np.fmax.reduce(square, axis=None, initial=0.0)  # fmax leaves out NaN
        needed = left_out * closest**powers > TOLERANCE
        top = int(np.max(powers, initial=0, where=needed))
        a_part, b_part = _take(a[: top + 1], part), _take(b[: top + 1], part)
        total, product = np.empty(r.shape), np.empty(r.shape)
        np.multiply(a_part[top], b_part[top], out=total)
        for n in range(top - 1, -1, -1):
            total *= square
            total += np.multiply(a_part[n], b_part[n], out=product)
        out[part] = total * r if odd else total


def expected_product(
    f: Function, k12: ArrayLike, k11: ArrayLike, k22: ArrayLike, *, odd: bool
) -> Values:
    """E[f(z₁) f(z₂)] for an odd or even f without poles within π/2 of the real line.

    Coefficients are computed once for every element of k₁₁ and of k₂₂: give these the shapes (N, 1)
    and (1, M) where k₁₂ is (N, M).
    """
    k11, k22 = variances(k11), variances(k22)
    k12, most = bounded(k12, k11, k22)
    if np.array_equal(k11, k22) and np.array_equal(k12, np.broadcast_to(k11, k12.shape)):
        return np.broadcast_to(expected_value(lambda x: f(x) ** 2, k11), k12.shape).copy()
    rho = np.atleast_1d(np.divide(k12, most, out=np.zeros_like(most), where=most > 0.0))
    k11, k22 = (k.reshape((1,) * (rho.ndim - k.ndim) + k.shape) for k in (k11, k22))
    largest = _largest(k11, k22)
    terms = _terms(largest)
    value = np.empty(rho.shape)
    nodes = _rule(largest, terms).x.size
    most_variances = max(_MOST_COEFFICIENTS // max(terms, nodes), 1)
    for part in _blocks(rho.shape, most_variances, k11.shape, k22.shape):
        a = _coefficients(f, _take(k11, part), largest, terms, odd)
        b = _coefficients(f, _take(k22, part), largest, terms, odd)
        _series(a, b, _take(rho, part), odd, _take(value, part))
    return value.reshape(k12.shape)


def error_bound(f: Function, k11: ArrayLike, k22: ArrayLike, *, odd: bool) -> Values:
    """A bound of the error of `expected_product` for these variances and every correlation.

    The terms that are left out are at most the root of the product of what they have in E[f²] at
    either variance, by the inequality of Cauchy and Schwarz. Rounding is not in it.
    """
    k11, k22 = variances(k11), variances(k22)
    largest = _largest(k11, k22)
    a, b = (_coefficients(f, k, largest, _terms(largest), odd) for k in (k11, k22))
    scale = np.sqrt(np.sum(a * a, axis=0) * np.sum(b * b, axis=0))
    return np.asarray(a[-1] * b[-1] + TOLERANCE * scale)


def expected_value(f: Function, k11: ArrayLike) -> Values:
    """E[f(z₁)] for an even f without poles within π/2 of the real line."""
    k11 = variances(k11)
    rule = _rule(_largest(k11, k11), 0)
    value = np.empty(k11.shape)
    for part in _blocks(k11.shape, _MOST_COEFFICIENTS // rule.x.size, k11.shape):
        values = f(np.sqrt(k11[part])[..., np.newaxis] * rule.x)
        value[part] = values @ rule.weight
    return value
