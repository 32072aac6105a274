"""Symbolic sizes: canonical, exact where they can be, and the integers that they stand for."""

import itertools
import operator

import pytest

from handgrad.program.sizes import ONE, Quotient, Size

N, D, B = map(Size.of, "NDB")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (N + D, "D + N"),
        (2 * N * D - 1, "2 * D * N - 1"),
        (N - N, "0"),
        (2 * N // N, "2"),
        (N * D // D, "N"),
        ((2 * N + 1) // 2, "N"),
        ((4 * N - 1) // 2, "2 * N - 1"),
        ((N + B - 1) // B, "(B + N - 1) // (B)"),
        (-(-N // 2), "-((-N) // (2))"),
        (N - N // 2, "N - ((N) // (2))"),
        (Size.of(7) // 2, "3"),
        (6 % N, "-N * ((6) // (N)) + 6"),
    ],
)
def test_text(size, text):
    assert str(size) == text


def test_text_is_python_of_the_same_number():
    sizes = [N, N * D - 3, (N + B - 1) // B, -(-N // 2), N % 3, (N // 2) * (D // 2) - N // 2]
    for size, n, d, b in itertools.product(sizes, (5, 8), (3, 4), (2, 3)):
        lengths = {"N": n, "D": d, "B": b}
        assert eval(str(size), {}, lengths) == size.number(lengths)
        assert size.at(lengths).constant == size.number(lengths)


@pytest.mark.parametrize("sign", [operator.add, operator.sub, operator.mul, operator.floordiv])
def test_arithmetic_is_that_of_integers(sign):
    for a, b in itertools.product([N, 2 * N, N - D, N * D, N + 1], [D, Size.of(3), N, 2 * D]):
        for n, d in ((7, 2), (4, 9)):
            lengths = {"N": n, "D": d}
            assert sign(a, b).number(lengths) == sign(a.number(lengths), b.number(lengths))


def test_equal_sizes_are_one_however_they_are_written():
    assert (N + 1) * 2 - 2 == 2 * N
    assert hash(N * D) == hash(D * N)
    assert N != D


def test_letters_and_replacement():
    size = (N + B - 1) // B
    assert size.letters == {"N", "B"}
    assert size.at({"B": ONE}) == N
    assert size.at({"N": 2 * B}).number({"B": 4}) == 2


def test_slope():
    assert (3 * N + D).slope("N") == 3
    assert (N + D).slope("B") == 0
    assert (N * D).slope("N") is None
    assert (N // 2).slope("N") is None


def test_division_by_nothing():
    with pytest.raises(ZeroDivisionError):
        N // 0


def test_a_multiple_of_a_sum_is_divided_by_it():
    padded = Size.of("W") + 2 * Size.of("p")
    assert padded * Size.of("s") * 8 // (8 * padded) == Size.of("s")
    assert padded * padded // padded == padded
    assert isinstance(((padded + 1) // padded).terms[0][0][0], Quotient)
