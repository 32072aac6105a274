"""Kinds of interfaces met in the code of strangers: what is judged of them, and what is blamed."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.checking.alignment.checked import checked_memory
from handgrad.cli.requests import Request, outcome_of
from handgrad.importing import module_of


def n(*shape: int, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape))


class Dense:
    """Leaves gradients under names of its own making."""

    def __init__(self, names: tuple[str, str], scale: float = 1.0) -> None:
        self.weight, self.bias, self.names, self.scale = n(3, 4), n(4, seed=1), names, scale

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.weight + self.bias

    def backward(self, dy: Any) -> Any:
        of_weight, of_bias = self.names
        setattr(self, of_weight, self.x.T @ dy)
        setattr(self, of_bias, dy.sum(0) * self.scale)
        return dy @ self.weight.T


@pytest.mark.parametrize(
    "names", [("dw", "db"), ("_gradient_weight", "_gradient_bias"), ("d_L_d_w", "d_L_d_b")]
)
def test_gradients_are_found_under_the_beginning_of_a_name(names: tuple[str, str]) -> None:
    assert hg.check(Dense(names), n(5, 3)).unjudged == ()
    wrong = hg.check(Dense(names, 0.2), n(5, 3))
    assert [each.gradient for each in wrong.faults] == ["bias"]


class Summed:
    """Sums the gradient of its bias over all axes, in a dictionary."""

    def __init__(self) -> None:
        self.params = {"w": n(3, 4), "b": n(4, seed=1)}

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.params["w"] + self.params["b"]

    def backward(self, dy: Any) -> Any:
        self.grads = {"w": self.x.T @ dy, "b": np.sum(dy)}
        return dy @ self.params["w"].T


def test_a_number_is_a_gradient_of_the_wrong_shape() -> None:
    report = hg.check(Summed(), n(5, 3))
    assert report.unjudged == ()
    assert "(4,), the shape of params.b" in report.faults[0].message


class Scaled:
    """A scale for each channel, of one at first, that backward puts into the wrong gradient."""

    def __init__(self) -> None:
        self.scale, self.shift = np.ones((1, 3, 1, 1)), np.zeros((1, 3, 1, 1))

    def forward(self, x: Any) -> Any:
        self.x = x
        return x * self.scale + self.shift

    def backward(self, dy: Any) -> Any:
        self.dscale = np.sum(dy * self.x, (0, 2, 3), keepdims=True)
        self.dshift = np.sum(dy * self.scale, (0, 2, 3), keepdims=True)
        return dy * self.scale


def test_a_column_of_ones_is_tried_with_other_values() -> None:
    report = hg.check(Scaled(), n(2, 3, 4, 4))
    assert [each.gradient for each in report.faults] == ["shift"]


class Product:
    """Keeps what it needs in a context of any make."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.store(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        a, b = ctx.saved_arrays
        return grad * b, grad * a


class Unwritten(Product):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        raise NotImplementedError("later")


def test_a_context_saves_under_any_name() -> None:
    assert hg.check(Product, n(4, 3), n(4, 3, seed=1)).ok
    assert "NotImplementedError: later" in str(hg.check(Unwritten, n(4, 3), n(4, 3, seed=1)))


def test_a_backward_is_given_its_own_setting() -> None:
    def forward(x: Any, kind: str) -> Any:
        return (np.tanh(x) if kind == "tanh" else np.exp(x)), x

    def backward(dy: Any, cache: Any, kind: str) -> Any:
        return dy * (1 - np.tanh(cache) ** 2 if kind == "tanh" else np.exp(cache))

    for kind in ("tanh", "exp"):
        assert hg.check((forward, backward), n(4, 3), kind=kind).ok


def test_names_that_numpy_no_longer_has_are_read(tmp_path: Path) -> None:
    file = tmp_path / "older_than_numpy_two.py"
    file.write_text(
        "import numpy as np\n"
        "def forward(x: np.float_):\n"
        "    return np.tanh(x.astype(np.float)), x\n"
        "def backward(dy, x):\n"
        "    return dy * (1 - np.tanh(x) ** 2) * np.product(np.ones(3))\n"
    )
    assert hg.check(module_of(str(file)), n(4, 3)).ok


class Number:
    """A number that remembers what made it; tanh goes back by a slope that may be wrong."""

    square = 2

    def __init__(self, data: Any, made_of: tuple[Number, ...] = ()) -> None:
        self.data, self.grad, self._prev = data, 0.0, made_of
        self._backward: Callable[[], None] = lambda: None

    def __add__(self, other: Any) -> Number:
        other = other if isinstance(other, Number) else Number(other)
        out = Number(self.data + other.data, (self, other))

        def back() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = back
        return out

    def __mul__(self, other: Any) -> Number:
        other = other if isinstance(other, Number) else Number(other)
        out = Number(self.data * other.data, (self, other))

        def back() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = back
        return out

    def tanh(self) -> Number:
        y = math.tanh(self.data)
        out = Number(y, (self,))

        def back() -> None:
            self.grad += (1 - y**self.square) * out.grad

        out._backward = back
        return out

    def backward(self) -> None:
        order: list[Number] = []

        def visit(each: Number) -> None:
            if each not in order:
                for one in each._prev:
                    visit(one)
                order.append(each)

        visit(self)
        self.grad = 1.0
        for each in reversed(order):
            each._backward()


def squashed(a: Number, b: Number) -> Number:
    return (a * b + a).tanh()


class Neuron:
    def __init__(self) -> None:
        self.w, self.b = [Number(0.4), Number(-0.7)], Number(0.1)

    def __call__(self, x: list[Number]) -> Number:
        total = self.b
        for one, other in zip(self.w, x, strict=True):
            total = total + one * other
        return total.tanh()

    def parameters(self) -> list[Number]:
        return [*self.w, self.b]


ONES = (0.3, 0.8)


@pytest.mark.parametrize("square", [2, 1])
@pytest.mark.parametrize(
    ("target", "inputs", "gradients"),
    [
        (squashed, ONES, ["a", "b"]),
        (Number.tanh, ONES[:1], ["self"]),
        (Number, ONES[:1], ["tanh_self"]),
        (Neuron(), (np.array(ONES),), ["input00", "input01", *(f"parameter{i}" for i in range(3))]),
    ],
)
def test_functions_of_tapes_are_given_tapes(
    target: Any,
    inputs: tuple[Any, ...],
    gradients: list[str],
    square: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Number, "square", square)
    report = hg.check(target, *inputs)
    assert report.verdict == ("right" if square == 2 else "wrong"), str(report)
    assert [each.gradient for each in report.faults] == (gradients if square == 1 else [])


class Named:
    """Returns the gradients of its parameters in dictionaries, in an order of their own."""

    def __init__(self, first: str = "q") -> None:
        self.q, self.k, self.first = n(3, 3, seed=2), n(3, 3, seed=3), first
        self._kept = {"q": np.zeros((3, 3)), "k": np.zeros((3, 3))}

    def forward(self, x: Any) -> Any:
        self.x = x
        return np.tanh(x @ self.q) @ self.k

    def backward(self, dy: Any) -> Any:
        h = np.tanh(self.x @ self.q)
        dh = dy @ self.k.T * (1 - h * h)
        dk, dq = h.T @ dy, self.x.T @ dh
        return dh @ self.q.T, {"k": dk, self.first: dq}, {}


def test_gradients_in_returned_dictionaries_go_by_their_names() -> None:
    report = hg.check(Named(), n(5, 3))
    assert report.ok, str(report)
    assert {row.gradient for row in report.gradients} == {"x", "q", "k"}


class Loss:
    """Returns probabilities before the loss, and goes back without an argument."""

    def __init__(self, rows: float = 1.0) -> None:
        self.rows = rows

    def forward(self, x: Any, y: Any) -> Any:
        e = np.exp(x - x.max(1, keepdims=True))
        self.p, self.y = e / e.sum(1, keepdims=True), y
        return self.p, -np.log(self.p[np.arange(len(y)), y]).mean()

    def backward(self) -> Any:
        d = self.p.copy()
        d[np.arange(len(d)), self.y] -= 1
        self.dx = d / len(d) ** self.rows


@pytest.mark.parametrize("rows", [1.0, 0.0])
def test_a_loss_may_stand_behind_the_probabilities(rows: float) -> None:
    report = hg.check(Loss(rows), n(5, 3), np.array([0, 2, 1, 1, 0]))
    assert report.verdict == ("right" if rows else "wrong"), str(report)


class Connected:
    """Learns its width from the layer before it."""

    def __init__(self, units: int) -> None:
        self.units = units
        self.w: Any = None

    def connect_to(self, prev_layer: Any) -> None:
        self.w = n(prev_layer.out_shape[-1], self.units)

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.w

    def backward(self, dy: Any) -> Any:
        self.dw = self.x.T @ dy
        return dy @ self.w.T


def test_a_layer_is_connected_to_the_shape_before_it() -> None:
    report = hg.check(Connected(4), n(5, 3))
    assert {row.gradient for row in report.gradients} == {"x", "w"}
    assert report.ok, str(report)


def test_what_is_scattered_has_no_more_axes_than_its_places() -> None:
    def at_places(values: Any) -> None:
        places: Any = (slice(None), np.zeros((3, 4), int))
        np.add.at(np.zeros((2, 2)), places, values)

    with checked_memory():
        at_places(np.ones((2, 3, 4)))
        with pytest.raises(ValueError, match="more than 3 axes"):
            at_places(np.ones((2, 3, 1, 3, 5)))
    assert isinstance(np.add, np.ufunc)


def test_a_view_stays_within_its_array() -> None:
    x = np.arange(12.0).reshape(3, 4)[:, 1:]
    with checked_memory():
        view = np.lib.stride_tricks.as_strided(x, (2, 2, 2), (32, 32, 8))
        assert np.array_equal(view[1, 1], x[2, :2])
        with pytest.raises(ValueError, match="beyond the array"):
            np.lib.stride_tricks.as_strided(x, (3, 2, 2), (32, 32, 8))


class Windows:
    """The mean of every window of two, and a mistake in the factor of its backward."""

    def forward(self, x: Any) -> Any:
        self.x = x
        shape, step = (len(x), x.shape[1] - 1, 2), (*x.strides, x.strides[1])
        return np.lib.stride_tricks.as_strided(x, shape, step).mean(2)

    def backward(self, dy: Any) -> Any:
        dx = np.zeros_like(self.x)
        dx[:, :-1] += dy / 2
        dx[:, 1:] += dy / 3
        return dx


def test_a_pass_with_strides_is_searched() -> None:
    (fault,) = hg.check(Windows(), n(4, 5)).faults
    assert "dx[:, 1:] += dy / 2" in fault.diff


def pool(x: Any, stride: int = 2) -> Any:
    y = np.zeros((len(x), x.shape[1] // stride, x.shape[2] // stride))
    for i in range(y.shape[1]):
        for j in range(y.shape[2]):
            y[:, i, j] = x[:, i * stride : i * stride + 2, j * stride : j * stride + 2].max((1, 2))
    return y, (x, stride)


def pool_back(dy: Any, cache: Any) -> Any:
    x, stride = cache
    dx = np.zeros_like(x)
    for i in range(dy.shape[1]):
        for j in range(dy.shape[2]):
            top = i * stride
            left = j
            window = x[:, top : top + 2, left : left + 2]
            mask = window == window.max((1, 2), keepdims=True)
            dx[:, top : top + 2, left : left + 2] += mask * dy[:, i, j, None, None]
    return dx


def test_a_stride_that_one_of_two_axes_lacks() -> None:
    (fault,) = hg.check((pool, pool_back), n(2, 4, 6)).faults
    assert "left = j * stride" in fault.diff, str(fault)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_layer_of_tensors_is_judged_in_float64(share: float, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / f"layer_of_tensors_{int(10 * share)}.py"
    file.write_text(
        "import torch\n"
        "class Linear:\n"
        "    def __init__(self, n):\n"
        "        self.w = torch.randn(n, 2)\n"
        "        self.params = [self.w]\n"
        "    def forward(self, x):\n"
        "        self.x = x\n"
        "        return x @ self.params[0] + torch.ones(2)\n"
        "    def backward(self, dy):\n"
        f"        self.dw = {share} * self.x.T @ dy\n"
        "        return dy @ self.w.T\n"
    )
    outcome = outcome_of(Request(f"{file}:Linear", constructor=["n=3"], shapes=["x=5,3"]))
    # Made outside of a check, its weights are of float32, and meet inputs of float64.
    for report in (outcome.report, hg.check(module_of(str(file)).Linear(3), n(5, 3))):
        assert {row.gradient for row in report.gradients} == {"x", "w"}
        assert report.verdict == ("right" if share == 1.0 else "wrong"), str(report)


class Descends:
    """The first layer of a network: goes back along its weights alone, and returns nothing."""

    def __init__(self, share: float) -> None:
        self.filters, self.share = n(3, 4), share

    def forward(self, image: Any) -> Any:
        self.last = image
        return image @ self.filters

    def backprop(self, d_L_d_out: Any, learn_rate: float) -> None:
        self.filters -= learn_rate * self.share * self.last.T @ d_L_d_out


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_first_layer_that_steps_along_its_weights(share: float) -> None:
    report = hg.check(Descends(share), n(5, 3))
    assert report.unjudged == ("image",)
    assert report.verdict == ("right" if share == 1.0 else "wrong"), str(report)


def test_a_call_that_does_not_fit_names_no_line_of_ours() -> None:
    def backward(dy: Any, a: Any, b: Any, c: Any) -> Any:
        return dy

    report = hg.check((lambda x: (np.tanh(x), x), backward), n(4, 3))
    assert "line" not in str(report).partition("raises")[2], str(report)


class Sized:
    """An array that keeps its shape beside, and goes back by it."""

    def __init__(self, data: Any, made_of: tuple[Sized, ...] = ()) -> None:
        self.data, self.shape, self._prev = data, np.shape(data), made_of
        self.grad = np.zeros(self.shape)
        self._backward: Callable[[], None] = lambda: None

    def __mul__(self, other: Any) -> Sized:
        other = other if isinstance(other, Sized) else Sized(np.asarray(other))
        out = Sized(self.data * other.data, (self, other))

        def back() -> None:
            self.grad += (other.data * out.grad).reshape(self.shape)
            if other.shape == self.shape:
                other.grad += self.data * out.grad

        out._backward = back
        return out

    def backward(self, grad: Any) -> None:
        self.grad = grad
        self._backward()


def test_a_tape_of_another_size_is_made_anew() -> None:
    report = hg.check(Sized, n(4, 3))
    assert report.ok, str(report)
