"""Lines of which a value of the derivation puts gradients right, and what is said of them."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

import handgrad as hg

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


def test_a_path_that_is_left_out_is_told_by_what_it_goes_through():
    found = faults((gated, without_the_second_output), normal(4, 3), normal(3, 5), normal(3, 5))
    assert {each.gradient for each in found} == {"x", "u"}
    for each in found:
        assert each.kind == "term missing"
        assert "what comes back through concatenate((y, b), 1) is missing" in each.message
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
