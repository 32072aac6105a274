"""The order of operations and of memory of a program, in the letters of its sizes.

Sizes are polynomials; of a sum of sizes the products that no other one bounds are its order. What
is taken away is left out, a quotient counts as its numerator over a denominator of one product,
a counter is at most its number of rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from handgrad.program.inplace import line_of
from handgrad.program.node import FIXED, Loop, Node, Program
from handgrad.program.sizes import Size

#: Powers of letters, in order of the alphabet.
Product = tuple[tuple[str, int], ...]

_VIEWS: Final = frozenset(
    (*FIXED, "input", "part", "stop", "reshape", "transpose", "broadcast_to", "diagonal")
)
#: Functions of matrices, of as many operations as a product of matrices has.
_CUBIC: Final = frozenset(
    (
        *("inv", "solve", "solve_triangular", "det", "slogdet", "cholesky"),
        *("eig", "eigh", "svd", "qr", "pinv", "expm"),
    )
)
_POWERS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Order:
    """Products of letters, none of which bounds another."""

    products: frozenset[Product]

    def __add__(self, other: Order) -> Order:
        return largest(self.products | other.products)

    def __mul__(self, other: Order) -> Order:
        return largest(times(p, q) for p in self.products for q in other.products)

    def __le__(self, other: Order) -> bool:
        return all(any(bounds(q, p) for q in other.products) for p in self.products)

    def __str__(self) -> str:
        written = sorted("·".join(map(_power, p)) or "1" for p in self.products)
        return f"O({' + '.join(written)})"


def _power(factor: tuple[str, int]) -> str:
    letter, power = factor
    return letter if power == 1 else letter + str(power).translate(_POWERS)


CONSTANT: Final = Order(frozenset({()}))


def largest(products: Iterable[Product]) -> Order:
    several = set(products)
    kept = {p for p in several if not any(q != p and bounds(q, p) for q in several)}
    return Order(frozenset(kept))


def bounds(upper: Product, lower: Product) -> bool:
    """Return whether a product is at least another one for lengths of 1 or more."""
    high, low = dict(upper), dict(lower)
    return all(high.get(x, 0) >= low.get(x, 0) for x in high.keys() | low.keys())


def times(left: Product, right: Product, sign: int = 1) -> Product:
    powers = dict(left)
    for letter, power in right:
        powers[letter] = powers.get(letter, 0) + sign * power
    return tuple(sorted((letter, power) for letter, power in powers.items() if power))


def of_size(size: Size, known: Mapping[str, Order]) -> Order:
    """The order of a size; `known` are those of letters that stand for others."""
    found = CONSTANT
    for atoms, coefficient in Size.of(size).terms:
        if coefficient < 0:
            continue
        term = CONSTANT
        for atom in atoms:
            if isinstance(atom, str):
                term *= known.get(atom) or Order(frozenset({((atom, 1),)}))
                continue
            top, bottom = of_size(atom.top, known), of_size(atom.bottom, known)
            if len(bottom.products) == 1:
                (divisor,) = bottom.products
                top = largest(times(p, divisor, -1) for p in top.products)
            term *= top
        found += term
    return found


class Orders(NamedTuple):
    """Of one program: operations; elements of all arrays that it makes; of those held at once.

    Who takes a result reads each of its elements, also of one that repeats an array's. Of the
    rounds of a loop all arrays are made, but only those of one round held.
    """

    operations: Order
    made: Order
    held: Order

    @classmethod
    def of(cls, program: Program, known: Mapping[str, Order]) -> Orders:
        """Those of a program, which reads its inputs and holds them."""
        read = CONSTANT
        for node in program.inputs:
            read += volume(node.shape, known)
        total = cls(read, read, read)
        for node in program.outputs:
            total = total._replace(operations=total.operations + volume(node.shape, known))
        for node in program.body:
            one = _of_node(node, known)
            total = cls(*(a + b for a, b in zip(total, one, strict=True)))
        return total


def volume(shape: Iterable[Size], known: Mapping[str, Order]) -> Order:
    found = CONSTANT
    for size in shape:
        found *= of_size(size, known)
    return found


def _of_node(node: Node, known: Mapping[str, Order]) -> Orders:
    if node.op == "loop":
        return _of_loop(node.attrs["loop"], known)
    made = volume(node.shape, known)
    if node.op == "part":
        return Orders(made, made, made)
    if node.op in _VIEWS or (node.op == "getitem" and len(node.args) == 1):
        return Orders(CONSTANT, CONSTANT, CONSTANT)
    work = made
    if node.op == "contract":
        sizes: dict[int, Size] = {}
        for operand, at in zip(node.args, (node.attrs["left"], node.attrs["right"]), strict=True):
            sizes |= dict(zip(at, operand.shape, strict=True))
        work = volume(sizes.values(), known)
    elif node.op in ("add_at", "store"):  # in place
        made = volume(node.args[0].shape, known) if node.args[0].op == "zeros" else CONSTANT
        work = made + volume(node.args[1].shape, known)
    else:
        rows = of_size(node.args[0].shape[-1], known) if node.op in _CUBIC else CONSTANT
        # A selection reads of its array what it gives.
        for operand in node.args[1:] if node.op == "getitem" else node.args:
            work += volume(operand.shape, known) * rows
    return Orders(work, made, made)


def _of_loop(loop: Loop, known: Mapping[str, Order]) -> Orders:
    rounds = of_size(Size.of(loop.count), known)
    body = loop.body
    inner = Orders(CONSTANT, CONSTANT, CONSTANT)
    within = {**known, loop.counter: rounds}
    taken = {id(change) for k in range(loop.carried) for change in line_of(loop, k)}
    for node in body.body:
        if node.op == "part" and id(node) in taken:
            continue  # changed in place by a loop inside
        one = _of_node(node, within)
        inner = Orders(*(a + b for a, b in zip(inner, one, strict=True)))
    return Orders(inner.operations * rounds, inner.made * rounds, inner.held)
