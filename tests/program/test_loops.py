"""Rounds that are alike are one loop, in the program and in what is emitted of it."""

import re
import sys

import numpy as np
import pytest

from handgrad.deriving.deriving import derive
from handgrad.program.sizes import Size
from tests.program import test_trace  # noqa: F401 (fills the table)
from tests.program.tracing import Forward
from tests.program.written.cases import CASES

CLASSICS = [
    *("lstm", "gru", "mamba", "gla", "delta_rule", "crf", "hmm_scaled", "ctc", "euler", "rk4"),
    *("flash", "flash2", "chunked_ce", "causal_rows", "two_layers", "bidirectional", "rwkv"),
    *("stacked_rnn", "gae", "vtrace", "iir", "interior", "view_rows"),
    *("sinkhorn", "jacobi", "per_head_store", "conv1d", "pool", "mat2"),
]

#: A loop over rounds in emitted source; those inside count by i, j and k.
ROUNDS = re.compile(r"^ *for \w+ in (?:reversed\()?range\(", re.MULTILINE)


@pytest.mark.parametrize("name", CLASSICS)
def test_classics_stay_loops_both_ways(name):
    """derive() proves the pair by differences at two sizes and two settings."""
    case = CASES[name]
    d = derive(case.forward, **case.given)
    for source in (d.forward_source, d.backward_source):
        assert len(ROUNDS.findall(source)) >= case.loops


def counts(forward, **given):
    f = Forward(forward, **given)
    f.check(f.lengths[0])
    return [n.attrs["loop"].count for n in f.loops()], f


def test_first_and_last_rounds_that_differ_are_written_out():
    def forward(x):
        y = np.zeros_like(x)
        for t in range(len(x)):
            if t == 0:
                y[t] = x[t]
            elif t == len(x) - 1:
                y[t] = np.sin(x[t])
            else:
                y[t] = x[t - 1] * x[t + 1]
        return y

    found, f = counts(forward, x=("T", "D"))
    assert found == [Size.of("T") - 2]
    f.check(f.lengths[1])


def test_rounds_that_alternate_hold_the_count():
    def forward(x):
        for t in range(len(x)):
            x = np.sin(x) if t % 2 else np.tanh(x)
        return x

    found, f = counts(forward, x=("T",))
    assert found == []
    assert not f.accepts([np.ones(6)], f.lengths[1])


def test_condition_on_the_counter_is_checked_at_both_ends():
    def forward(x, last=9):
        for t in range(len(x)):
            x = np.sin(x) if t < last else np.tanh(x)
        return x

    found, f = counts(forward, x=("T",))
    assert found == [Size.of("T")]
    assert f.accepts([np.ones(6)], f.lengths[1])
    assert not f.accepts([np.ones(12)], {"T": 12})


def test_values_several_rounds_old():
    def forward(x):
        hs = [x[0], x[1], x[2]]
        for t in range(3, len(x)):
            hs.append(np.tanh(hs[-1] * hs[-3]) + x[t])
        return np.stack(hs)

    found, f = counts(forward, x=("T + 4", "D"))
    assert found == [Size.of("T") + 1]
    f.check({"T": 9, "D": 2})


def test_loops_of_the_same_operands_are_two():
    def forward(x, w):
        ends = []
        for rows in (x, x[::-1]):
            h = np.zeros(x.shape[1])
            for v in rows:
                h = np.tanh(w @ h + v)
            ends.append(h)
        return np.concatenate(ends)

    _, f = counts(forward, x=("T", "D"), w=("D", "D"))
    f.check(f.lengths[1])


def test_counter_outlives_its_loop():
    def forward(x):
        previous, total = 0, 0
        for t in range(len(x)):
            total = total + x[t] * x[previous]
            previous = t
        return total * x[t] + t

    found, f = counts(forward, x=("T", "D"))
    assert len(found) == 1
    f.check(f.lengths[1])


def test_stretches_of_rounds_are_slices_of_the_stack():
    def forward(x):
        hs, h = [x[0]], x[0]
        for v in x:
            h = np.tanh(h * v)
            hs.append(h)
        return np.stack(hs[1:-1]), np.concatenate([v[None] for v in hs[1:]]), np.stack(hs[::-1])

    found, f = counts(forward, x=("T", "D"))
    assert len(found) >= 1
    f.check(f.lengths[1])


def long_recurrence(x):
    h = x[0]
    for v in x:
        h = np.tanh(h * v)
    return h


def alternating(x, n=3):
    i = 0
    while i < n:
        x = np.tanh(x) if i % 2 else np.sin(x)
        i += 1
    return x


def rounds(forward, n):
    """The program of so many rounds, checked on values."""
    if forward is long_recurrence:
        f = Forward(forward, x=(n, 2))
    else:
        f = Forward(forward, x=(2,), n=n)
    f.check({})


def calls(work, *arguments):
    """How many functions are called: the time that no neighbour of the machine lengthens."""
    count = 0

    def tally(*_):
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        work(*arguments)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("forward", [long_recurrence, alternating])
def test_three_thousand_rounds_end_in_a_result(forward):
    rounds(forward, 3000)


@pytest.mark.parametrize("forward", [long_recurrence, alternating])
def test_work_grows_as_the_rounds_do(forward):
    few, many = calls(rounds, forward, 150), calls(rounds, forward, 600)
    assert many < 6 * few, f"{few} calls for 150 rounds, {many} for 600"
