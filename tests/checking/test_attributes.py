"""Parameters that a user's object keeps: judged, or said not to be in the report's first line."""

from __future__ import annotations

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking.attributes import get


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


class Linear:
    def __init__(self):
        self.w, self.b = normal(3, 4), normal(4)

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, dy):
        return dy @ self.w.T


class Assigned(Linear):
    factor = 1.0

    def backward(self, dy):
        self.dw, self.grad_b = self.factor * self.x.T @ dy, dy.sum(0)
        return dy @ self.w.T


class Added(Linear):
    """Gradients are added to what there is, from an earlier step or from none."""

    factor = 1.0

    def __init__(self):
        super().__init__()
        self.dw, self.db = np.ones((3, 4)), np.ones(4)

    def backward(self, dy):
        self.dw += self.factor * self.x.T @ dy
        self.db += dy.sum(0)
        return dy @ self.w.T


class InDicts:
    factor = 1.0

    def __init__(self):
        self.params, self.grads, self.xp = {"w": normal(3, 4), "b": normal(4)}, {}, np

    def forward(self, x):
        return x @ self.params["w"] + self.params["b"], x

    def backward(self, dy, x):
        self.grads["dw"] = self.grads.get("dw", 0) + self.factor * x.T @ dy
        self.grads["db"] = dy.sum(0)
        return dy @ self.params["w"].T


class InLists:
    """The attributes are the arrays of the lists too."""

    factor = 1.0

    def __init__(self):
        self.weight, self.bias = normal(3, 4), normal(4)
        self.params = [self.weight, self.bias]
        self.grads = [np.zeros((3, 4)), np.zeros(4)]

    def forward(self, x):
        self.x = x
        return x @ self.weight + self.bias

    def backward(self, dy):
        self.grads[0][...] = self.factor * self.x.T @ dy
        self.grads[1][...] = dy.sum(0)
        return dy @ self.params[0].T


class Parameter:
    def __init__(self, data):
        self.data, self.grad = data, np.zeros_like(data)


class InObjects:
    factor = 1.0

    def __init__(self):
        self.w, self.b = Parameter(normal(3, 4)), Parameter(normal(4))

    def forward(self, x):
        self.x = x
        return x @ self.w.data + self.b.data

    def backward(self, dy):
        self.w.grad += self.factor * self.x.T @ dy
        self.b.grad += dy.sum(0)
        return dy @ self.w.data.T


class Nested:
    factor = 1.0

    def __init__(self):
        self.layers = [Assigned()]

    def forward(self, x):
        return np.tanh(self.layers[0].forward(x)) * 2

    def backward(self, dy):
        y = np.tanh(self.layers[0].x @ self.layers[0].w + self.layers[0].b)
        self.layers[0].factor = self.factor
        return self.layers[0].backward(2 * dy * (1 - y * y))


OBJECTS = {
    Assigned: ("w", "b"),
    Added: ("w", "b"),
    InDicts: ("params.w", "params.b"),
    InLists: ("weight", "bias"),
    InObjects: ("w.data", "b.data"),
    Nested: ("layers.0.w", "layers.0.b"),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_parameters_of_an_object_are_judged(kind):
    target = kind()
    report = hg.check(target, normal(5, 3))
    assert report.ok, str(report)
    assert report.unjudged == ()
    assert {row.gradient for row in report.gradients} == {"x", *OBJECTS[kind]}
    assert str(report).rstrip().endswith("✓ every gradient is right")
    for name in OBJECTS[kind]:  # gradients were taken on copies
        path = tuple(int(key) if key.isdigit() else key for key in name.split("."))
        np.testing.assert_array_equal(get(target, path), get(kind(), path))


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_wrong_gradient_of_a_parameter_is_named(kind):
    target = kind()
    target.factor = 2.0
    report = hg.check(target, normal(5, 3))
    assert report.verdict == "wrong"
    (fault,) = report.faults
    name = OBJECTS[kind][0]
    assert (fault.gradient, fault.kind) == (name, "extra factor")
    assert f"d{name}: is twice what it should be" in fault.message


def test_bound_methods_are_those_of_their_object():
    target = Assigned()
    target.factor = 2.0
    report = hg.check((target.forward, target.backward), normal(5, 3))
    assert [fault.gradient for fault in report.faults] == ["w"]


def test_wrt_says_what_is_judged():
    target = Assigned()
    target.factor = 2.0
    report = hg.check(target, normal(5, 3), wrt=["x"])
    assert report.ok
    assert report.unjudged == ()


def test_the_first_line_names_parameters_that_were_not_judged():
    report = hg.check(Linear(), normal(5, 3))
    assert report.verdict == "right"
    assert report.unjudged == ("w", "b")
    first = " ".join(str(report).split("\n")[:2])
    assert first.startswith(
        "✓ dx is right; the gradients of w, b were not judged: y depends on them"
    )
    assert "every gradient is right" not in str(report)
    assert report.to_dict()["unjudged"] == ["w", "b"]


class Half(Linear):
    def backward(self, dy):
        self.dw = self.x.T @ dy
        return dy @ self.w.T


def test_some_may_be_judged_and_others_not():
    report = hg.check(Half(), normal(5, 3))
    assert report.unjudged == ("b",)
    assert str(report).startswith("✓ dx, dw are right; the gradient of b was not judged")


class WrongHalf(Linear):
    def backward(self, dy):
        return 3 * dy @ self.w.T


def test_the_first_line_of_a_wrong_report_names_them_too():
    report = hg.check(WrongHalf(), normal(5, 3))
    assert report.verdict == "wrong"
    assert str(report).startswith("? the gradients of w, b were not judged")


class Memory:
    """Arrays that y does not depend on, or that forward writes, are no parameters."""

    def __init__(self):
        self.seen, self.mean, self.out = 0, np.zeros(3), np.zeros((5, 3))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        self.out = np.tanh(x)
        return self.out

    def backward(self, dy):
        return dy * (1 - self.out**2)


def test_what_forward_writes_is_no_parameter():
    target = Memory()
    for _ in range(2):  # also with what an earlier check left
        report = hg.check(target, normal(5, 3))
        assert report.ok
        assert report.unjudged == ()


class Steps(Linear):
    """Backward also makes the step."""

    def backward(self, dy):
        dx = dy @ self.w.T
        self.dw = self.x.T @ dy
        self.w = self.w - 0.0 * self.dw
        return dx


def test_a_parameter_that_backward_replaces_is_not_judged():
    assert "w" in hg.check(Steps(), normal(5, 3)).unjudged


class Error:
    """The labels are y, and what flows back is kept as dy: no gradient of theirs."""

    def __init__(self):
        self.y = normal(5, 3, seed=1)

    def forward(self, p):
        self.p = p
        return ((p - self.y) ** 2).sum()

    def backward(self, dout):
        self.dy = 2 * dout * (self.p - self.y)
        return self.dy


def test_what_flows_back_is_no_gradient_of_a_parameter():
    report = hg.check(Error(), normal(5, 3))
    assert report.ok, str(report)
    assert report.unjudged == ("y",)


class Momentum:
    def __init__(self, lr):
        self.lr, self.v = lr, {}

    def step(self, name, w, dw):
        self.v[name] = 0.9 * self.v.get(name, 0.0) + dw
        s = self.v[name]
        return w - self.lr * s / (np.sqrt(s * s) + 1e-8)


class Descends(Linear):
    """Backward steps with an optimizer whose steps are not linear in the gradient."""

    factor = 1.0

    def __init__(self):
        super().__init__()
        self.optimizer = Momentum(0.01)

    def backward(self, dy):
        dx = dy @ self.w.T
        self.dw, self.db = self.factor * self.x.T @ dy, dy.sum(axis=0)
        self.w = self.optimizer.step("w", self.w, self.dw)
        self.b = self.optimizer.step("b", self.b, self.db)
        return dx


class DescendsAt(Descends):
    """The same, with the rate as an argument."""

    def backward(self, dy, lr):
        self.optimizer.lr = lr
        return super().backward(dy)


@pytest.mark.parametrize("kind", [Descends, DescendsAt])
def test_an_optimizer_within_backward_is_frozen(kind):
    target = kind()
    report = hg.check(target, normal(5, 3))
    assert report.ok, str(report)
    assert report.unjudged == ()
    assert {row.gradient for row in report.gradients} >= {"x", "w", "b"}
    target.factor = 2.0
    report = hg.check(target, normal(5, 3))
    assert [fault.gradient for fault in report.faults] == ["w"]


def test_a_gradient_that_torch_returns_as_none_is_said():
    torch = pytest.importorskip("torch")

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, labels):
            ctx.save_for_backward(weight)
            return x * weight + labels

        @staticmethod
        def backward(ctx, dy):
            (weight,) = ctx.saved_tensors
            return dy * weight, None, None

    report = hg.check(Scale, normal(5, 3), normal(3, seed=1), normal(5, 3, seed=2))
    assert report.verdict == "right"
    assert report.unjudged == ("weight",)
    assert str(report).startswith("✓ dx is right; the gradient of weight was not judged")


class WithMomentum(Linear):
    """Backward steps, and keeps the weights of the step before, which y does not depend on."""

    factor = 1.0

    def __init__(self):
        super().__init__()
        self.lr, self.momentum, self.before = 0.01, 0.0, self.w.copy()

    def backward(self, dy):
        dw = self.factor * self.x.T @ dy
        dx = dy @ self.w.T
        self.w = self.w - self.lr * dw + self.momentum * (self.w - self.before)
        self.before = self.w.copy()
        return dx


def test_the_weights_of_the_step_before_are_no_parameter():
    report = hg.check(WithMomentum(), normal(5, 3))
    assert report.ok, str(report)
    assert {row.gradient for row in report.gradients} == {"x", "w"}
    target = WithMomentum()
    target.factor = 2.0
    assert [fault.gradient for fault in hg.check(target, normal(5, 3)).faults] == ["w"]


class Nested:
    """Backward returns dx, the gradients of the weights in a tuple, and what it made on the way."""

    factor = 1.0

    def __init__(self):
        self.w, self.b = normal(3, 4), normal(4)

    def forward(self, x):
        y = np.tanh(x @ self.w + self.b)
        return y, (x, y)

    def backward(self, deltas, state):
        x, y = state
        da = deltas * (1 - y * y)
        return da @ self.w.T, (x.T @ da, self.factor * da.sum(axis=0)), (da, y)


def test_gradients_in_a_tuple_behind_dx_are_judged_and_the_rest_left_out():
    target = Nested()
    report = hg.check(target, normal(5, 3))
    assert report.ok, str(report)
    assert {row.gradient for row in report.gradients} == {"x", "w", "b"}
    target.factor = 2.0
    assert [fault.gradient for fault in hg.check(target, normal(5, 3)).faults] == ["b"]


class Held:
    def __init__(self, params):
        self.params, self.grads = params, np.zeros_like(params)


class OfHeld:
    """Weights and their gradients are `params` and `grads` of an object for each."""

    factor = 1.0

    def __init__(self):
        self.w = Held(normal(3, 4))

    def forward(self, x):
        self.x = x
        return x @ self.w.params

    def _compute_gradients(self, grads):
        self.w.grads = self.factor * self.x.T @ grads
        return grads @ self.w.params.T


def test_weights_and_gradients_of_an_object_for_each_are_judged():
    target = OfHeld()
    report = hg.check(target, normal(5, 3))
    assert report.ok, str(report)
    assert report.unjudged == ()
    target.factor = 2.0
    assert [each.gradient for each in hg.check(target, normal(5, 3)).faults] == ["w.params"]
