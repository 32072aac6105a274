"""What a forward is given: objects as settings and parameters, lengths, and numbers."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import handgrad as hg

ND = ("N", "D")


class Mode(enum.Enum):
    SQUARE = 1
    CUBE = 2


@dataclass(frozen=True)
class Config:
    scale: float = 2.0
    power: int = 2
    act: str = "tanh"


class Layer:
    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b

    def __call__(self, x: Any) -> Any:
        return np.tanh(x @ self.w + self.b)


def acted(x, act=np.tanh):
    return act(x) ** 2


def acted_by_lambda(x, act=lambda v: v * v * v):
    return act(x)


def typed(x, dtype=np.float64):
    return (x * x).astype(dtype)


def in_mode(x, mode=Mode.CUBE):
    return x**2 if mode is Mode.SQUARE else x**3


def configured(x, config=Config()):
    y = x * config.scale**config.power
    return np.tanh(y) if config.act == "tanh" else y


def of_a_dict(x, config={"scale": 2.0, "act": "tanh"}):  # noqa: B006
    y = x * config["scale"]
    return np.tanh(y) if config["act"] == "tanh" else y


def of_words(x, order=("a", "b")):
    return x.sum(0) if order[0] == "a" else x.sum(1)


def layered(x, layers):
    for layer in layers:
        x = layer(x)
    return x


def right(d: hg.Derivation, forward: Any, *arrays: Any, **settings: Any) -> None:
    rng = np.random.default_rng(3)
    y, cache = d.forward(*arrays, **settings)
    np.testing.assert_allclose(y, forward(*arrays, **settings), rtol=1e-10)
    dy, way = rng.standard_normal(np.shape(y)), rng.standard_normal(arrays[0].shape)
    found = d.backward(dy, cache)
    dx = found[0] if isinstance(found, tuple) else found
    up, down = (forward(arrays[0] + h * way, *arrays[1:], **settings) for h in (1e-6, -1e-6))
    np.testing.assert_allclose((dx * way).sum(), ((up - down) * dy).sum() / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("forward", "other"),
    [
        (acted, {"act": np.sinh}),
        (acted_by_lambda, {"act": lambda v: v * v}),
        (typed, {"dtype": np.float32}),
        (in_mode, {"mode": Mode.SQUARE}),
        (configured, {"config": Config(act="none")}),
        (of_a_dict, {"config": {"scale": 2.0, "act": "none"}}),
        (of_words, {"order": ("b", "a")}),
    ],
)
def test_setting_that_is_no_number_holds_for_its_value(forward: Any, other: dict[str, Any]) -> None:
    d = hg.derive(forward, x=ND)
    x = np.random.default_rng(1).standard_normal((4, 3))
    right(d, forward, x)
    default = forward.__defaults__[0]
    right(d, forward, x, **{next(iter(other)): default})
    with pytest.raises(ValueError, match="; allowed: "):
        d.forward(x, **other)


def test_numbers_of_an_object_stay_variables() -> None:
    d = hg.derive(configured, x=ND)
    x = np.random.default_rng(2).standard_normal((4, 3)) / 9
    right(d, configured, x, config=Config(scale=3.0))
    assert d.forward_source.startswith("def forward(x, config=types.SimpleNamespace(scale=2.0")
    for library in ("numpy", "torch"):
        assert "import types\n" in d.to(library)


@pytest.mark.parametrize("holder", [Layer, lambda w, b: SimpleNamespace(w=w, b=b)])
def test_arrays_of_an_object_get_gradients(holder: Any) -> None:
    def forward(x, layer):
        return np.tanh(x @ layer.w + layer.b)

    d = hg.derive(forward, x=ND, layer=holder(("D", "K"), ("K",)))
    rng = np.random.default_rng(4)
    x, w, b = (rng.standard_normal(shape) for shape in ((5, 3), (3, 2), (2,)))
    right(d, forward, x, holder(w, b))
    y, cache = d.forward(x, holder(w, b))
    dy = rng.standard_normal(y.shape)
    _, dw, db = d.backward(dy, cache)
    np.testing.assert_allclose(dw, x.T @ (dy * (1 - y * y)))
    np.testing.assert_allclose(db, (dy * (1 - y * y)).sum(0))


def test_list_of_layers() -> None:
    rng = np.random.default_rng(5)
    given = [Layer(rng.standard_normal((3, 4)), rng.standard_normal(4)) for _ in range(1)]
    given.append(Layer(rng.standard_normal((4, 2)), rng.standard_normal(2)))
    x = rng.standard_normal((6, 3))
    right(hg.derive(layered, x, given), layered, x, given)


def test_axis_of_one_in_the_place_of_a_longer_one_is_refused() -> None:
    d = hg.derive(lambda x, y: ((x - y) ** 2).mean(), x=ND, y=ND)
    x = np.ones((4, 3))
    for given, at in (((x, x[:, :1]), "y"), ((x[:, :1], x), "x")):
        expected = rf"{at} has shape \(4, 1\); allowed: \(N, D\) where D = 3, N = 4"
        with pytest.raises(ValueError, match=expected):
            d.forward(*given)
    d.forward(x[:, :1], x[:, :1])
    with pytest.raises(ValueError, match=r"y has shape \(4,\); allowed: \(N, D\)"):
        d.forward(x, x[:, 0])


def sinkhorn(c, a, b, eps=0.5):
    k = np.exp(-c / eps)
    v = np.ones_like(b)
    for _ in range(10):
        u = a / (k @ v)
        v = b / (k.T @ u)
    return np.sum(u[:, None] * k * v * c)


def test_numbers_on_which_differences_tell_nothing_are_left() -> None:
    d = hg.derive(sinkhorn, c=("N", "M"), a=("N",), b=("M",))
    rng = np.random.default_rng(6)
    right(d, sinkhorn, *(rng.uniform(0.1, 0.9, shape) for shape in ((4, 3), (4,), (3,))))


def low_modes(x, w):
    found = np.fft.rfft(x, axis=-1)
    out = np.zeros((x.shape[0], w.shape[1], found.shape[-1]), complex)
    out[:, :, : w.shape[2]] = np.einsum("bim,iom->bom", found[:, :, : w.shape[2]], w)
    return np.fft.irfft(out, n=x.shape[-1], axis=-1)


def test_letter_of_any_place_may_have_to_be_the_longest() -> None:
    d = hg.derive(low_modes, x=("B", "I", "N"), w=("I", "O", "M"))
    rng = np.random.default_rng(7)
    right(d, low_modes, rng.standard_normal((2, 3, 8)), rng.standard_normal((3, 4, 2)))


def test_median_is_not_smooth_where_all_is_equal() -> None:
    def forward(x):
        return np.median(x, axis=1, keepdims=True) * x

    right(hg.derive(forward, x=ND), forward, np.random.default_rng(8).standard_normal((5, 4)))


def test_matrix_function_is_given_though_equal_values_have_no_vectors() -> None:
    def whitened(x, eps=1e-3):
        centred = x - x.mean(0)
        values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
        return centred @ (vectors / np.sqrt(values + eps)) @ vectors.T

    right(hg.derive(whitened, x=ND), whitened, np.random.default_rng(9).standard_normal((7, 3)))


def test_loop_that_values_end_is_refused_with_what_to_write() -> None:
    def fixed_point(x):
        z = 0 * x
        for k in range(20):
            if x[0, 0] * 100 % 20 < k:
                break
            z = np.tanh(0.8 * z + x)
        return z

    with pytest.raises(hg.errors.ArgumentError, match=r"; allowed: np\.where, or a loop whose"):
        hg.derive(fixed_point, x=ND)


def test_keys_of_counters_hold_after_their_rounds() -> None:
    def chart(x):
        n, kept = len(x), {}
        for i in range(n):
            kept[i, i + 1] = x[i]
        for span in range(2, n + 1):
            for i in range(n - span + 1):
                kept[i, i + span] = np.tanh(kept[i, i + 1] * kept[i + 1, i + span])
        return kept[0, n]

    x = np.random.default_rng(10).standard_normal((4, 2))
    d = hg.derive(chart, x)
    assert d.fixed == {"N": 4}
    right(d, chart, x)


def test_lengths_in_an_array_are_those_of_the_example() -> None:
    def pooled(x, lengths):
        return np.stack([np.tanh(x[i, :n]).mean(0) for i, n in enumerate(lengths)])

    x, lengths = np.random.default_rng(11).standard_normal((3, 5, 2)), np.array([5, 3, 2])
    d = hg.derive(pooled, x, lengths)
    right(d, pooled, x, lengths)
    with pytest.raises(ValueError, match="; allowed: True"):
        d.forward(x, np.array([5, 2, 2]))


def _powers(w, u, rounds=1):
    for _ in range(rounds):
        u = np.tanh(w @ u)
    return u


def test_one_round_by_a_setting_is_derived_for_any_number() -> None:
    derived = hg.derive(_powers, w=("N", "N"), u=("N",))
    rng = np.random.default_rng(4)
    w, u, dy, v = (rng.standard_normal(s) for s in ((3, 3), 3, 3, (3, 3)))
    np.testing.assert_allclose(derived.forward(w, u)[0], _powers(w, u))
    for rounds in (1, 2, 4):
        y, cache = derived.forward(w, u, rounds)
        np.testing.assert_allclose(y, _powers(w, u, rounds))
        found = float(np.sum(derived.backward(dy, cache)[0] * v))
        ends = (_powers(w + h * v, u, rounds) @ dy for h in (1e-6, -1e-6))
        assert found == pytest.approx(next(ends) / 2e-6 - next(ends) / 2e-6, rel=1e-6, abs=1e-8)


def _summed(x, axis=1):
    return np.cumsum(x, axis) ** 2


def test_a_setting_of_one_that_counts_no_rounds_stays_as_it_is() -> None:
    derived = hg.derive(_summed, x=("N", "N"))
    x = np.random.default_rng(5).standard_normal((4, 4))
    np.testing.assert_allclose(derived.forward(x)[0], _summed(x))
    with pytest.raises(ValueError, match="axis is 0; allowed: 1"):
        derived.forward(x, 0)
