"""Forwards as people write them: each is a program with the same results and right gradients."""

import numpy as np
import pytest

from handgrad.program.node import Refused
from tests.program.tracing import Forward
from tests.program.written import (
    arrays,
    blocks,
    kernels,
    objects,
    python,
    recurrent,
    recursions,
    walks,
)
from tests.program.written.cases import CASES
from tests.rows import rows

FILES = (arrays, blocks, kernels, objects, python, recurrent, recursions, walks)


def test_every_file_fills_the_table():
    homes = {c.forward.__module__ for c in CASES.values() if hasattr(c.forward, "__name__")}
    assert homes == {f.__name__ for f in FILES}


@rows("name", CASES)
def test_program_is_the_function_and_its_gradient_meets_differences(name):
    case = CASES[name]
    f = Forward(case.forward, **case.given)
    first, other = f.lengths
    f.check(first)
    assert len(f.loops()) >= case.loops
    values = f.values(other, 5)
    assert f.accepts(values, other) == (case.sizes == 2 or first == other)
    if case.sizes == 2:
        f.check(other, 5)


def swallow(x):
    try:
        return np.unwrap(x)
    except Exception:
        return x


def as_lists(x):
    return np.array(x.tolist())


def changes_a_table(x):
    TABLE[0] = x[0, 0]
    return x * TABLE


def stores_floats_in_integers(x):
    y = np.zeros(3, dtype=int)
    y[0] = x[0, 0]
    return y * x[0, 0]


def raises(x):
    if x.shape[0] > 1:
        raise ValueError("one row only")
    return x


def misses_a_name(x):
    return x * nowhere


def wraps_a_diagonal(x):
    y = x * 1
    np.fill_diagonal(y, 0.0, wrap=True)
    return y


def puts_several(x):
    y = x * 1
    np.putmask(y, x > 0.5, x[0])
    return y


def in_turn(x):
    rows, others = (v for v in x), (v for v in x)
    out = 0
    for _ in range(2):
        out = out + next(rows) * next(others)
    return out


TABLE = np.ones(6)


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (swallow, "no derivative of unwrap is known"),
        (as_lists, "no attribute 'tolist'"),
        (changes_a_table, "asks for the number"),
        (stores_floats_in_integers, "kind f are stored in an array of i"),
        (raises, "ValueError: one row only"),
        (misses_a_name, "nowhere"),
        (wraps_a_diagonal, "write x\\[i, j\\] = value"),
        (puts_several, "write x\\[mask\\] = values"),
        (in_turn, "two loops go on in turn"),
    ],
)
def test_refusals_name_the_line_and_the_reason(forward, reason):
    first = forward.__code__.co_firstlineno
    with pytest.raises(Refused, match=reason) as caught:
        Forward(forward, x=("N", "D"))
    line = int(str(caught.value).split(":")[0].removeprefix("line "))
    assert first < line < first + 8


def test_branch_on_values_is_a_guard():
    def forward(x):
        if x.sum() > 0:
            return x * 2
        return x * 3

    f = Forward(forward, x=("N",))
    assert f.accepts([np.ones(5)], f.lengths[0])
    assert not f.accepts([-np.ones(5)], f.lengths[0])


def test_branch_on_values_in_rounds_is_a_guard_on_all_of_them():
    def forward(x):
        total = 0.0
        for v in x:
            if v > 0:
                total = total + v * v
            else:
                total = total - v
        return total

    f = Forward(forward, x=("T",))
    assert len(f.loops()) == 1
    good, bad = np.ones(6), np.ones(6)
    bad[3] = -1
    assert f.accepts([good], f.lengths[1])
    assert not f.accepts([bad], f.lengths[1])


def test_loop_left_early_holds_where_it_was_left():
    def forward(x):
        y = np.ones_like(x)
        for _ in range(50):
            new = 0.5 * (y + (x**2 + 1) / y)
            if np.abs(new - y).max() < 1e-3:
                break
            y = new
        return y

    f = Forward(forward, x=("N",))
    f.check(f.lengths[0], seed=1)
    assert not f.accepts([np.full(5, 1e6)], f.lengths[0])


def test_whole_numbers_that_python_wants_hold():
    def forward(x):
        return x * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0][x.shape[0]]

    f = Forward(forward, x=("N",))
    f.check(f.lengths[0])
    assert not f.accepts([np.ones(6)], f.lengths[1])


def test_views_see_what_their_array_becomes():
    def forward(x):
        y = x * 1
        row, column = y[0], y.T[1]
        y[:, 1] = 7.0
        row *= 2
        return row * x[0], column

    f = Forward(forward, x=("N", "D"))
    f.check(f.lengths[0])
    f.check(f.lengths[1])


def test_objects_and_lists_of_the_user_stay_as_they_were():
    class Model:
        def __init__(self):
            self.seen = []

        def __call__(self, x):
            self.seen.append(x)
            MEMO["x"] = x
            return x * 2

    model = Model()
    Forward(model, x=("N",))
    assert model.seen == []
    assert MEMO == {}


MEMO: dict[str, object] = {}


def test_function_without_a_file():
    scope = {"np": np}
    source = "def f(x, /, *ws, k=2, **more):\n    for w in ws:\n        x = np.tanh(x @ w)\n"
    source += "    return x * k + more['b']\n"
    exec(source, scope)
    given = {"x": ("N", "D"), "ws": [("D", "D"), ("D", "D")], "more": {"b": ("D",)}}
    f = Forward(scope["f"], **given)
    f.check(f.lengths[0])
    f.check(f.lengths[1])
