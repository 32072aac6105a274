"""Lines of which a value of the derivation puts gradients right, and what is said of them."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

import handgrad as hg
from tests.checking.alignment.passes import Planted
from tests.checking.alignment.searched import searched

RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.standard_normal(shape)


def faults(pair, *arrays, **options):
    report = hg.check(pair, *arrays, seed=0, **options)
    assert not report.ok
    assert report.dropped == ()
    return [each for each in report.faults if each.situation == "usual"]


def gated(x, w, u):
    a, b = x @ w, x @ u
    gate = 1 / (1 + np.exp(-a))
    y = gate * np.tanh(b)
    return np.concatenate([y, b], axis=1), (x, w, u, gate, np.tanh(b))


def without_the_second_output(dy, cache):
    x, w, u, gate, t = cache
    dout = dy[:, : gate.shape[1]]
    da = dout * t * gate * (1 - gate)
    db = dout * gate * (1 - t * t)
    return da @ w.T + db @ u.T, x.T @ da, x.T @ db


def test_a_path_that_is_left_out_is_told_as_the_term_that_is_missing():
    found = faults((gated, without_the_second_output), normal(4, 3), normal(3, 5), normal(3, 5))
    assert {each.gradient for each in found} == {"x", "u"}
    for each in found:
        assert each.kind == "term missing"
        assert "the term dy[:, 5:] is missing beside dout gate (1 − t t)" in each.message
        line = without_the_second_output.__code__.co_firstlineno + 4
        assert each.line == line


def normalised(x):
    mean = x.mean(axis=0)
    spread = np.sqrt(((x - mean) ** 2).mean(axis=0) + 1e-3)
    return (x - mean) / spread, spread


def statistics_as_constants(dy, spread):
    return dy / spread


def test_values_taken_as_constants_are_told_by_their_names():
    (fault,) = faults((normalised, statistics_as_constants), normal(6, 3))
    assert fault.kind == "term missing"
    assert "mean and spread is missing: they are taken as constants" in fault.message


def decayed(xs, h, w, decay):
    states = [h]
    for x in xs:
        h = decay * states[-1] + np.tanh(x @ w)
        states.append(h)
    return np.stack(states[1:]), (xs, states, w, decay)


def decayed_backward(dys, cache):
    xs, states, w, decay = cache
    dxs, dw = np.zeros_like(xs), np.zeros_like(w)
    ddecay = np.zeros_like(decay)
    dh = np.zeros_like(states[0])
    for t in reversed(range(len(xs))):
        dh = dh + dys[t]
        ddecay += (dh * states[t]).sum(axis=0)
        da = dh * (1 - np.tanh(xs[t] @ w) ** 2)
        dw += xs[t].T @ da
        dxs[t] = da @ w.T
        dh = dh
    return dxs, dh, dw, ddecay


def test_the_line_that_carries_a_gradient_through_time_lacks_its_factor():
    found = faults(
        (decayed, decayed_backward), normal(3, 2, 4), normal(2, 5), normal(4, 5), normal(5)
    )
    assert {each.gradient for each in found} == {"xs", "h", "w", "decay"}
    first = decayed_backward.__code__.co_firstlineno
    for each in found:
        line = each.line or int(each.message.split("(line ")[1].rstrip(")"))
        assert line in (first + 6, first + 11)  # where it is added to, or where it is kept
        assert each.kind == "factor missing"
        assert "the factor decay is missing" in each.message


def scores(q, k, v):
    weights = np.exp(q @ k.T)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ v, (q, k, v, weights)


def without_softmax(dy, cache):
    q, k, v, weights = cache
    dweights = dy @ v.T
    return dweights @ k, dweights.T @ q, weights.T @ dy


def test_a_gradient_that_stands_for_that_of_an_earlier_value():
    found = faults((scores, without_softmax), normal(4, 3), normal(5, 3), normal(5, 2))
    assert {each.gradient for each in found} == {"q", "k"}
    assert {each.kind for each in found} == {"activation derivative forgotten"}
    assert all("derivative of weights with respect to" in each.message for each in found)


def test_nothing_of_the_search_stays_in_the_users_module():
    faults((normalised, statistics_as_constants), normal(6, 3))
    assert "_right_values" not in globals()


def unrolled(x, h0, w, u):
    hs, h = [], h0
    for t in range(len(x)):
        h = np.tanh(x[t] @ w + h @ u)
        hs.append(h)
    return np.stack(hs), (x, h0, w, u, hs)


def with_the_state_of_the_same_step(dhs, cache):
    x, h0, w, u, hs = cache
    dx, dw, du, dh = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u), np.zeros_like(h0)
    for t in reversed(range(len(x))):
        da = (dhs[t] + dh) * (1 - hs[t] ** 2)
        dx[t] = da @ w.T
        dw += x[t].T @ da
        du += hs[t].T @ da
        dh = da @ u.T
    return dx, dh, dw, du


def test_the_state_of_the_step_before_is_named_in_what_is_added_up():
    arrays = normal(4, 3, 2), normal(3, 5), normal(2, 5), normal(5, 5)
    (fault,) = faults((unrolled, with_the_state_of_the_same_step), *arrays)
    assert (fault.gradient, fault.kind) == ("u", "stale variable")
    assert "the value of the step before belongs there: hs[t − 1], and h0" in fault.message
    assert fault.line == with_the_state_of_the_same_step.__code__.co_firstlineno + 7


def squeezed(x, w):
    a = np.tanh(x @ w)
    y = np.exp(a) * a
    return y, (x, w, a)


def multiplied_in_place(dy, cache):
    x, w, a = cache
    da = dy * np.exp(a) * (a + 1)
    da *= 1 - a
    return da @ w.T, x.T @ da


def test_a_line_that_multiplies_a_gradient_in_place_is_named():
    for fault in faults((squeezed, multiplied_in_place), normal(4, 3), normal(3, 5)):
        assert fault.line == multiplied_in_place.__code__.co_firstlineno + 3
        assert fault.diff.endswith("+    da *= 1 - a ** 2")


def through_both(x, w, v):
    z = np.tanh(x)
    y = x + z @ w
    return y + np.tanh(y) @ v, (z, np.tanh(y), w, v)


def without_what_passes_by(dout, cache):
    z, t, w, v = cache
    dy = (dout @ v.T) * (1 - t * t)
    dx = (dy @ w.T) * (1 - z * z)
    return dx


def test_a_share_of_what_its_variable_is_called_after_lacks_the_rest():
    arrays = normal(4, 3), normal(3, 3), normal(3, 3)
    first, second = faults((through_both, without_what_passes_by), *arrays, wrt=("x",))
    line = without_what_passes_by.__code__.co_firstlineno + 2
    assert (first.kind, first.term, first.line) == ("term missing", "dout", line)
    assert (second.kind, second.term, second.line) == ("term missing", "dy", line + 1)


def raw_projection(x, w):
    centred = x - x.mean()
    return np.tanh(x @ w), (centred, np.tanh(x @ w))


def with_the_centred_ones(dy, cache):
    centred, y = cache
    return centred.T @ (dy * (1 - y * y))


def test_an_array_that_backward_has_not_is_named_beside_the_one_in_its_place():
    found = faults((raw_projection, with_the_centred_ones), normal(4, 3), normal(3, 5), wrt=("w",))
    assert [(each.kind, each.term) for each in found] == [("stale variable", "x for centred")]


def gated_steps(xs, u):
    h, hs, gates = np.zeros((2, 3)), [np.zeros((2, 3))], []
    for t in range(len(xs)):
        gates.append(1 / (1 + np.exp(-h @ u)))
        h = gates[-1] * h + np.tanh(xs[t])
        hs.append(h)
    return np.stack(hs[1:]), (xs, u, hs, gates)


def without_the_gate(dys, cache):
    xs, u, hs, gates = cache
    dxs, du, carry = np.zeros_like(xs), np.zeros_like(u), 0.0
    for t in reversed(range(len(xs))):
        dh = dys[t] + carry
        dxs[t] = dh * (1 - np.tanh(xs[t]) ** 2)
        dgate = dh * hs[t] * gates[t] * (1 - gates[t])
        du += hs[t].T @ dgate
        carry = dh + dgate @ u.T
    return dxs, du


def test_what_a_step_hands_on_is_right_without_what_the_step_itself_gives():
    line = without_the_gate.__code__.co_firstlineno + 8
    for fault in faults((gated_steps, without_the_gate), normal(4, 2, 3), normal(3, 3)):
        assert (fault.line, fault.kind) == (line, "factor missing")
        assert "gates[t]" in fault.message


def scattered(dy, cache, factor=None):
    x, step = cache
    factor = step if factor is None else factor
    dx = np.zeros_like(x)
    for i in range(len(dy)):
        dx[i * factor : i * factor + 2] += dy[i]
    return dx


def windows(x):
    return np.stack([x[2 * i : 2 * i + 2].sum(axis=0) for i in range(3)]), (x, 2)


def without_the_stride(dy, cache):
    return scattered(dy, cache, factor=1)


def test_a_number_that_a_helper_multiplies_by_is_told_as_a_factor():
    (fault,) = faults((windows, without_the_stride), normal(6, 3))
    assert (fault.kind, fault.term) == ("scale missing", "factor = 2 for 1")
    assert fault.line == without_the_stride.__code__.co_firstlineno + 1


def through_half_a_float(dy, x):
    return (2 * x * dy).astype(np.float16).astype(x.dtype)


def test_what_passes_through_a_small_float_is_rounded():
    (fault,) = faults((lambda x: (x * x, x), through_half_a_float), normal(3, 4))
    assert (fault.kind, fault.term) == ("inaccurate", "float16")


def damped(x, s0):
    s = np.zeros_like(x[0])
    for each in x:
        s = each + s * np.exp(-s) + s0
    return s, (x, s0)


def zero_for_the_first_state(dy, cache):
    x, s0 = cache
    dx, ds0 = np.zeros_like(x), np.zeros_like(s0)
    states = [np.zeros_like(x[0])]
    for each in x:
        states.append(each + states[-1] * np.exp(-states[-1]) + s0)
    ds = dy
    for t in reversed(range(len(x))):
        dx[t] = ds
        ds0 = 0 * ds
        ds = ds * (1 - states[t]) * np.exp(-states[t])
    return dx, ds0


def test_zero_is_no_gradient_without_a_factor():
    # The first state is 0, and any gradient times 0 is what was found.
    found = faults((damped, zero_for_the_first_state), normal(3, 4), normal(4))
    assert {each.gradient for each in found} == {"s0"}
    for each in found:
        assert "the factor" not in each.message


def coupled(x, wz, wi):
    """A cell that forgets what it does not take in; c[−1] is what it begins with."""
    steps, units = x.shape[0], wz.shape[1]
    z, i, f, c = (np.zeros((steps + 1, units)) for _ in range(4))
    for t in range(steps):
        z[t] = np.tanh(x[t] @ wz)
        i[t] = 1 / (1 + np.exp(-(x[t] @ wi)))
        f[t] = 1 - i[t]
        c[t] = i[t] * z[t] + f[t] * c[t - 1]
    return c[:-1], (x, wz, wi, z, i, f, c)


def without_what_is_forgotten(dy, cache):
    x, wz, wi, z, i, f, c = cache
    dc, dx = np.zeros_like(c), np.zeros_like(x)
    dwz, dwi = np.zeros_like(wz), np.zeros_like(wi)
    for t in reversed(range(len(x))):
        dc[t] = dy[t] + f[t + 1] * dc[t + 1]
        di = dc[t] * z[t] * i[t] * (1 - i[t])
        dz = dc[t] * i[t] * (1 - z[t] ** 2)
        dx[t] = dz @ wz.T + di @ wi.T
        dwz += np.outer(x[t], dz)
        dwi += np.outer(x[t], di)
    return dx, dwz, dwi


def test_a_gate_that_is_one_minus_another_is_told_at_the_line_of_the_other():
    """Of all lines that depart, in a loop that runs backward, it is the first that does."""
    found = faults((coupled, without_what_is_forgotten), normal(4, 3), normal(3, 2), normal(3, 2))
    line = without_what_is_forgotten.__code__.co_firstlineno + 6
    assert {each.gradient for each in found} == {"x", "wi"}
    assert {each.line for each in found} == {line}
    for each in found:
        assert "what comes back through f is missing: it is taken as a constant" in each.message


def test_lines_that_the_work_did_not_reach_are_looked_at_later(tmp_path):
    planted = Planted("rnn", "da = dh * (1 - self.hs[t + 1] ** 2)", "da = dh * self.hs[t + 1]")
    search = searched(planted, tmp_path)
    departures, wrong = search.departures, search.wrong
    with departures.interventions.possible():
        departures.work.take(10e6)
        assert not departures._known(wrong)
        departures.work.done = 0.0
        assert next(each.slot.name for each in departures._known(wrong)) == "da"


def wave(x):
    a, b, c = np.sin(3 * x), np.exp(-x * x), 1 / (1 + np.exp(-x))
    p, q = np.cos(a + b) * c, np.tanh(b * c) / (2 + a)
    return p * q * np.log1p(x * x) + np.arctan(p - q), (x, a, b)


def wave_of_its_own(dy, cache):
    x, a, b = cache
    slope = np.cosh(x) * np.arctan(a) - np.log1p(x * x) * np.sinh(b)
    return dy * slope


def test_a_line_that_no_change_puts_right_is_told_where_the_right_value_does():
    """The right expression is too long to be told."""
    (found,) = faults((wave, wave_of_its_own), normal(4, 3))
    assert found.line == wave_of_its_own.__code__.co_firstlineno + 2
    assert "it would be right with the derivation's value of slope = " in found.message
