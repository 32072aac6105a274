"""Faults as they stand in public layers, each with the line and the change that is to be told."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg


def n(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def told(target, *arrays, line="", **options):
    """The report's only fault, whose change puts this line in."""
    report = hg.check(target, *arrays, **options)
    found = [each for each in report.faults if each.situation == "usual"]
    assert found, str(report)
    for each in found:
        added = [row[1:].strip() for row in each.diff.splitlines() if row.startswith("+ ")]
        assert added == [line], str(report)
    return found


# Settings that forward writes into, as the running means of a batch norm are


def normalise(x, gamma, beta, settings):
    mean, var = np.mean(x, axis=0), np.var(x, axis=0)
    known = settings.get("mean", np.zeros(x.shape[1]))
    settings["mean"] = 0.9 * known + 0.1 * mean
    settings.setdefault("seen", []).append(mean)
    xhat = (x - mean) / np.sqrt(var + 1e-5)
    return gamma * xhat + beta, (x - mean, xhat, gamma, np.sqrt(var + 1e-5))


def denormalise(dy, cache):
    centred, xhat, gamma, spread = cache
    rows = len(dy)
    dgamma, dbeta = np.sum(dy * xhat, axis=0), np.sum(dy, axis=0)
    dxhat = dy * gamma
    dinverse = np.sum(dxhat * centred, axis=0)
    dspread = dinverse * (-1 / spread**2)
    dvar = dspread * 0.5 * (1 / spread)
    dsquares = dvar * np.ones_like(dy)
    dcentred = dxhat / spread + dsquares * 2 * centred
    return dcentred - np.sum(dcentred, axis=0) / rows, dgamma, dbeta


def test_what_forward_writes_into_its_settings_is_there_in_one_call_alone():
    settings = {"mode": "train"}
    arrays = n(5, 3), n(3), n(3)
    fault = told(
        (normalise, denormalise),
        *arrays,
        settings=settings,
        line="dsquares = dvar * np.ones_like(dy) / rows",
    )
    assert "1/rows" in fault[0].message
    assert settings == {"mode": "train"}


# A line that makes nothing of what it reads, among changes with the same effect


def weigh(hs, h):
    return np.sum(hs * h[:, None], axis=2), (hs, h)


def weigh_back(dt, cache):
    hs, h = cache
    wide = dt[:, :, None].repeat(hs.shape[2], axis=2)
    dhs = wide * h[:, None]
    dhr = wide
    dh = np.sum(dhr, axis=1)
    return dhs, dh


def test_a_line_that_is_a_name_for_another_gains_what_was_left_out():
    told((weigh, weigh_back), n(2, 4, 3), n(2, 3), line="dhr = wide * hs")


# Steps of dy that a carry through time lacks


def recur(x, h, w, u):
    every = np.zeros((x.shape[0], x.shape[1], h.shape[1]))
    before = []
    for t in range(x.shape[1]):
        before.append(h)
        h = np.tanh(x[:, t] @ w + h @ u)
        every[:, t] = h
    return every, (x, before, every, w, u)


def recur_back(dy, cache):
    x, before, every, w, u = cache
    dx, dw, du = np.zeros_like(x), np.zeros_like(w), np.zeros_like(u)
    dh = np.zeros_like(before[0])
    for t in reversed(range(x.shape[1])):
        whole = dh
        da = whole * (1 - every[:, t] ** 2)
        dx[:, t] = da @ w.T
        dw += x[:, t].T @ da
        du += before[t].T @ da
        dh = da @ u.T
    return dx, dh, dw, du


def test_a_carry_that_lacks_its_step_of_dy():
    arrays = n(3, 4, 2), n(3, 5, seed=1), n(2, 5, seed=2), n(5, 5, seed=3)
    told((recur, recur_back), *arrays, line="whole = dh + dy[:, t]")


# Changes of backward come before those of forward, and an attribute is one word


class Squash:
    def forward(self, x, w):
        out = 1 / (1 + np.exp(-x))
        self.out, self.w = out, w
        return out * w

    def backward(self, dy):
        dx = dy * self.w * self.out
        return dx, dy * self.out


def test_a_change_of_backward_comes_before_one_of_what_forward_keeps():
    told(Squash(), n(4, 3), n(4, 3), line="dx = dy * self.w * self.out * (1 - self.out)")


# Axes in another order before they are laid flat


@pytest.mark.parametrize("flat", ["flatten", "ravel"])
def test_a_transpose_that_is_missing_before_a_flattening(flat):
    def forward(x):
        best = x.transpose(0, 2, 3, 1).reshape(-1, 2)
        return best[:, 0].reshape(x.shape[0], x.shape[2], -1, 2).transpose(0, 3, 1, 2), x.shape

    def flattened(dy, shape):
        columns = np.zeros((dy.size, 2))
        columns[:, 0] = dy.flatten()
        return columns.reshape(shape[0], shape[2], shape[3], shape[1]).transpose(0, 3, 1, 2)

    def ravelled(dy, shape):
        columns = np.zeros((dy.size, 2))
        columns[:, 0] = dy.ravel()
        return columns.reshape(shape[0], shape[2], shape[3], shape[1]).transpose(0, 3, 1, 2)

    backward = flattened if flat == "flatten" else ravelled
    line = f"columns[:, 0] = dy.transpose(0, 2, 3, 1).{flat}()"
    told((forward, backward), n(2, 4, 3, 5), line=line)


# Names of gradients that end in delta


class Scale:
    def __init__(self, gamma):
        self.gamma = gamma
        self.gamma_delta = np.zeros_like(gamma)

    def forward(self, x):
        self.x = x
        return x * self.gamma

    def backward(self, dy):
        self.gamma_delta = np.sum(dy, axis=0)
        return dy * self.gamma


def test_a_gradient_that_is_called_a_delta_is_judged():
    fault = told(Scale(n(3)), n(4, 3), line="self.gamma_delta = np.sum(dy * self.x, axis=0)")
    assert {each.gradient for each in fault} == {"gamma"}


# Values that are computed and never used


def centre(x, scale):
    mean = x.mean(axis=1, keepdims=True)
    spread = np.sqrt(((x - mean) ** 2).mean(axis=1, keepdims=True) + 1e-5)
    return scale * (x - mean) / spread, ((x - mean) / spread, spread, scale)


def centre_back(dy, cache):
    xhat, spread, scale = cache
    one = scale * dy / spread
    two = np.mean(scale * dy, axis=1, keepdims=True) / spread  # noqa: F841
    three = xhat * np.mean(scale * dy * xhat, axis=1, keepdims=True) / spread
    dx = one - three
    return dx, np.sum(dy * xhat, axis=0)


def test_a_term_that_is_computed_and_never_used_belongs_in_the_sum_of_its_like():
    told((centre, centre_back), n(4, 3), np.ones(3), line="dx = one - three - two")


# Windows that a loop multiplies by


def convolve(x, w):
    out = np.zeros((x.shape[0] - w.shape[1] + 1, w.shape[0]))
    for i in range(out.shape[0]):
        for f in range(w.shape[0]):
            out[i, f] = np.sum(x[i : i + w.shape[1], :] * w[f])
    return out, (x, w)


def without_x(dy, cache):
    x, w = cache
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(dy.shape[0]):
        for f in range(w.shape[0]):
            dw[f] += dy[i, f]
            dx[i : i + w.shape[1], :] += dy[i, f] * w[f]
    return dx, dw


def without_w(dy, cache):
    x, w = cache
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i in range(dy.shape[0]):
        for f in range(w.shape[0]):
            dw[f] += dy[i, f] * x[i : i + w.shape[1], :]
            dx[i : i + w.shape[1], :] += dy[i, f]
    return dx, dw


@pytest.mark.parametrize(
    ("backward", "line"),
    [
        (without_x, "dw[f] += dy[i, f] * x[i:i + w.shape[1], :]"),
        (without_w, "dx[i : i + w.shape[1], :] += dy[i, f] * w[f]"),
    ],
)
def test_a_window_is_a_factor_that_a_loop_may_lack(backward, line):
    told((convolve, backward), n(6, 2), n(3, 2, 2, seed=1), line=line)


# Arrays that are never filled


def test_zeros_that_nothing_is_written_into_are_shown():
    def forward(x):
        return x[::2] * 3, x.shape

    def backward(dy, shape):
        dx = np.zeros(shape)
        return dx

    (fault,) = hg.check((forward, backward), n(4, 3)).faults
    assert "nothing is written into the zeros of dx = np.zeros(shape) (line " in fault.message
    assert fault.line == backward.__code__.co_firstlineno + 1


# A square that a line lacks


def whiten(x):
    centred = x - x.mean(axis=0)
    std = np.sqrt(np.mean(centred**2, axis=0) + 1e-6)
    return centred / std, (centred, std)


def whiten_back(dy, cache):
    centred, std = cache
    dcentred = dy / std
    dstd = -np.sum(dy * centred, axis=0)
    dvar = 0.5 * dstd / std
    dcentred += (2.0 / len(dy)) * centred * dvar
    return dcentred - dcentred.mean(axis=0)


def test_a_line_that_lacks_a_square_gains_it_and_not_the_next():
    told((whiten, whiten_back), n(5, 3), line="dstd = -np.sum(dy * centred, axis=0) / (std * std)")


# Arrays that a loop writes into are made by the lines that write


def by_filters(x, w, b):
    return np.einsum("nchw,fc->nfhw", x, w) + b[:, None, None], (x, w, b)


def by_filters_back(dy, cache):
    x, w, b = cache
    db = np.zeros_like(b)
    for f in range(len(b)):
        db[f] += np.mean(dy[:, f])
    dx, dw = np.einsum("nfhw,fc->nchw", dy, w), np.einsum("nfhw,nchw->fc", dy, x)
    return dx, dw, db


def test_a_line_that_writes_into_what_is_returned_is_where_it_is_wrong():
    arrays = n(2, 3, 4, 5), n(6, 3, seed=1), n(6, seed=2)
    told((by_filters, by_filters_back), *arrays, line="db[f] += np.sum(dy[:, f])")


def gate(x, v, w):
    a, g = x @ v, 1 / (1 + np.exp(-(x @ w)))
    return a * g, (x, v, w, a, g)


def gate_back(dy, cache):
    x, v, w, a, g = cache  # noqa: RUF059
    da, dz = dy * g, dy * a * g * (1 - g)
    dx = da @ v.T
    return dx, x.T @ da, x.T @ dz


def test_a_product_gains_a_term_where_it_is_set_and_not_where_it_is_returned():
    told((gate, gate_back), n(4, 3), n(3, 5), n(3, 5), line="dx = da @ v.T + dz @ w.T")


# A number that is taken from elements stands where one for each row belongs


def hinge(x, y):
    rows = np.arange(len(x))
    margins = np.maximum(0, x - x[rows, y][:, None] + 1.0)
    margins[rows, y] = 0
    return np.sum(margins) / len(x), (margins, y)


def hinge_back(dy, cache):
    margins, y = cache
    n = len(margins)
    violated = np.sum(margins > 0, axis=1)  # noqa: F841
    dx = np.zeros_like(margins)
    dx[margins > 0] = 1
    dx[np.arange(n), y] -= 1
    return dy * dx / n


def test_a_number_that_is_taken_off_is_told_as_the_array_that_belongs_there():
    line = "dx[np.arange(n), y] -= violated"
    told((hinge, hinge_back), n(4, 3), np.array([0, 2, 1, 1]), line=line)


class Jacobians:
    def forward(self, x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        self.y = e / e.sum(axis=-1, keepdims=True)
        return self.y

    def backward(self, dy):
        y, at = self.y[..., np.newaxis], range(dy.shape[-1])
        jacobian = -y * y.swapaxes(-1, -2)
        jacobian[..., at, at] += 1
        return (jacobian @ dy[..., np.newaxis]).squeeze(-1)


def test_a_number_on_a_diagonal_is_told_as_the_array_that_belongs_there():
    told(Jacobians(), n(4, 3), line="jacobian[..., at, at] += self.y")


# With four rows √(1/4) = 2 · 1/4: what fits by that chance alone is not told


def scaled_rows(x, g):
    centred, var = x - x.mean(axis=0), x.var(axis=0)
    return g * centred / np.sqrt(var + 1e-5), (centred, var, g)


def scaled_rows_back(dy, cache):
    centred, var, g = cache
    std, dh = np.sqrt(var + 1e-5), dy * g
    dvar = -0.5 * np.sum(dh * centred, axis=0) / std**3
    each = np.ones(dy.shape) / len(dy) * dvar
    dcentred = dh / std + centred * each
    dx = dcentred - np.mean(dcentred, axis=0)
    return dx, np.sum(dy * centred, axis=0) / std


@pytest.mark.parametrize("rows", [4, 5])
def test_a_change_is_right_for_other_numbers_of_rows_as_well(rows):
    report = hg.check((scaled_rows, scaled_rows_back), n(rows, 3), n(3, seed=1))
    [fault] = [each for each in report.faults if each.situation == "usual"]
    assert "2" in fault.diff.splitlines()[-1], str(report)
    assert "sqrt(np.ones" not in fault.diff


# Labels that are a setting keep their number of rows, and forward reads as many of its input


def labelled(x, labels):
    rows = np.arange(len(labels))
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return -np.mean(np.log(p[rows, labels])), (p, labels)


def labelled_back(dy, cache):
    p, labels = cache[0].copy(), cache[1]
    p[np.arange(len(labels)), labels] -= 1
    return dy * p / p.size


def test_rows_that_forward_does_not_read_take_no_part():
    found = hg.check((labelled, labelled_back), n(4, 3), labels=np.array([0, 2, 1, 1])).faults
    [fault] = [each for each in found if each.situation == "usual"]
    assert "p.size" in fault.message
    assert fault.diff


class Labelled:
    def forward(self, x, labels):
        loss, (self.p, _) = labelled(x, labels)
        return loss

    def backward(self, labels):
        self.dx = self.p.copy()
        rows = np.arange(len(labels))
        self.dx[rows, labels] -= 1
        return self.dx


def test_the_size_that_an_array_changed_in_place_lacks_is_told():
    [fault] = hg.check(Labelled(), n(4, 3), np.array([0, 2, 1, 1])).faults
    assert "the factor 1/" in fault.message
    assert fault.line
    assert fault.diff
