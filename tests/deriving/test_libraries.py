"""Sources for PyTorch, which their proof runs beside those for NumPy in both precisions."""

import importlib.util

import numpy as np
import pytest

import handgrad as hg


def _kinds(x, slopes):
    """Integers beside floats, numbers chosen by a mask, and a diagonal of ones."""
    n = x.shape[1]
    distance = -np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
    bias = slopes[:, None, None] * distance + np.eye(n)
    return np.where(x > 0, 1.0, 0.1)[:, :, None] * np.tanh(bias[: len(x)])


def _placed(x, y, power=2.0):
    """Gradients added at places beside a slice and a new axis, and a branch on a setting."""
    chosen = np.take_along_axis(x, y[:, None], axis=1)[:, 0]
    return (1 - np.tanh(chosen)) ** power * chosen


def _sorted(x):
    return np.sort(x, axis=1)[:, ::-1][:, : x.shape[1] // 2].mean(axis=1)


def _reversed(x):
    """Axes read from their ends, one of them after a new axis, and means that keep every axis."""
    turned = x[None, ::-1, 1:] * np.exp(x)[::-1, None, :-1]
    return turned * (x - x.mean(keepdims=True))[::-1, ::-1][:, 1:]


def _turned(x, y):
    """Gradients added in an array whose axes are in another order, and truths made floats."""
    turned = np.moveaxis(np.exp(x), -1, 0)
    ones = (x == x.max(-1, keepdims=True)).astype(float)
    chosen = np.take_along_axis(turned * ones.T, y[None, :], axis=0)
    return chosen * np.diag(x @ x.T) + (turned**2).sum(0)


def _powers(w, u, eps=1e-12):
    """A gradient of u that cancels to nothing but rounding errors."""
    v = w.T @ u
    v = v / (np.linalg.norm(v) + eps)
    u = w @ v
    return w / ((u / (np.linalg.norm(u) + eps)) @ w @ v)


def _filtered(x, p, q):
    """An inverse whose condition single precision shows."""
    for z in x:
        s = p @ p.T + q
        p = p - p @ np.linalg.inv(s) @ p + np.outer(z, z)
    return p


def _spectrum(x, w):
    """Complex zeros beside numbers that no binary fraction is."""
    out = np.zeros((len(x), x.shape[1] // 2 + 1), dtype=complex)
    out[:, :2] = np.fft.rfft(x)[:, :2] * (w + 1j * np.tanh(w)) * np.array([1 / 3, 0.1])
    return np.fft.irfft(out, n=x.shape[1])


def _with_ones(x):
    return np.array([[x[0] * 2, 1.0], [x[1], x[0]]]) ** 3


def _segments(x, w):
    """Sums of rows from places that are known."""
    return np.add.reduceat(np.tanh(x @ w), [0, 1, 2], axis=0)


def _contrasted(z, y):
    """A gradient with the mean of truths."""
    scores = z @ z.T
    same = (y[:, None] == y[None, :]) & ~np.eye(len(z), dtype=bool)
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    return -((same * logs).sum(1) / np.maximum(same.sum(1), 1)).mean()


def _truths(x, y, bound=1.0):
    """Truths that are all that a factor meets, a bound that is a setting, and a mask of floats."""
    signs = 2.0 * y - 1.0
    shown = np.where(np.tril(np.ones((len(x), len(x)))), x[:, None] - x[None, :], -1.0)
    return np.minimum(bound, signs * x) * (1.0 - y) + (1 - y) * shown.sum(1)


def _masked(s):
    """The least number of the type that the scores have."""
    least = np.finfo(s.dtype).min
    s = np.where(np.tri(len(s), dtype=bool), s, least)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _smoothed(z, f, q=0.3):
    """Covariances that cancel in single precision."""
    p = np.eye(len(f))
    x = np.zeros(len(f))
    for each in z:
        p = f @ p @ f.T + q * np.eye(len(f))
        k = p @ np.linalg.inv(p + 1e-3 * np.eye(len(f)))
        x = f @ x + k @ (each - f @ x)
        p = (np.eye(len(f)) - k) @ p
    return x


def _of_settings(x, theta=0.5, eps=1.0, alpha=2.1):
    """A number of settings alone, which the backward chooses by."""
    return (theta / eps) ** (alpha - x)


_TABLE = np.array([0.1, 1 / 3])


def _near(x, cutoff=1.3):
    """A number of settings in front of truths that are a factor of floats."""
    return 0.5 * (np.cos(x * np.pi / cutoff) + 1.0) * (x < cutoff)


def _of_tables(x):
    """Tables of floats and of complex numbers that no binary fraction is."""
    return np.abs(x[:, :2] * (_TABLE + 1j)) ** 2 * np.outer(x[:, 0], _TABLE)


def _below(x, lo=-3, hi=2):
    """Bounds that are whole numbers below zero."""
    return np.exp(np.clip(x, lo, hi))


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize(
    ("forward", "given"),
    [
        (_near, {"x": ("N",)}),
        (_of_tables, {"x": ("N", "D")}),
        (_below, {"x": ("N", "D")}),
    ],
)
def test_a_source_has_the_values_of_that_for_numpy(forward, given, library):
    pytest.importorskip(library)
    assert "def backward" in hg.derive(forward, **given).to(library)


@pytest.mark.parametrize(
    ("forward", "given"),
    [
        (_of_settings, {"x": ("N",)}),
        (_truths, {"x": ("N",), "y": ("N", bool)}),
        (_masked, {"s": ("N", "N")}),
        (_smoothed, {"z": ("T", "D"), "f": ("D", "D")}),
        (_segments, {"x": ("N", "D"), "w": ("D", "H")}),
        (_contrasted, {"z": ("N", "D"), "y": ("N", int)}),
        (_with_ones, {"x": ("N",)}),
        (_spectrum, {"x": ("N", "T"), "w": (2,)}),
        (_turned, {"x": ("N", "C"), "y": ("N", int)}),
        (_powers, {"w": ("N", "D"), "u": ("N",)}),
        (_filtered, {"x": ("T", "N"), "p": ("N", "N"), "q": ("N", "N")}),
        (_reversed, {"x": ("N", "D")}),
        (_kinds, {"x": ("N", "D"), "slopes": ("N",)}),
        (_placed, {"x": ("N", "C"), "y": ("N", int)}),
        (_sorted, {"x": ("N", "D")}),
    ],
)
def test_a_source_for_torch_has_the_values_of_that_for_numpy(forward, given):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    assert "torch.autograd.Function" in hg.derive(forward, **given).to("torch")


def _net(x, params, scale=2.0):
    for layer in params["layers"]:
        x = np.tanh(x @ layer["w"] + layer["b"])
    return x * scale * params["gain"]


def _params(rng):
    layers = [{"w": rng.standard_normal((3, 3)), "b": rng.standard_normal(3)} for _ in range(2)]
    return {"layers": layers, "gain": rng.standard_normal(3)}


def test_arrays_in_dicts_and_lists_have_gradients_in_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, params = rng.standard_normal((2, 3)), _params(rng)
    derived = hg.derive(_net, x=x, params=params)
    names = {}
    exec(derived.to("torch"), names)
    mapped = torch.utils._pytree.tree_map
    given = mapped(lambda each: torch.tensor(each, requires_grad=True), params)
    names["_net"](torch.tensor(x), given).sum().backward()
    y, cache = derived.forward(x, params)
    gradients = derived.backward(np.ones_like(y), cache)
    found = [each.grad.numpy() for each in torch.utils._pytree.tree_leaves(given)]
    assert len(found) == len(gradients) - 1
    for got, want in zip(found, gradients[1:], strict=True):
        np.testing.assert_allclose(got, want)


def test_arrays_in_dicts_and_lists_have_gradients_in_jax():
    rng = np.random.default_rng(0)
    source = hg.derive(_net, x=rng.standard_normal((2, 3)), params=_params(rng)).to("jax")
    layers = ", ".join(f"{{'w': gradients[{k}], 'b': gradients[{k + 1}]}}" for k in (1, 3))
    assert f"return gradients[0], {{'layers': [{layers}], 'gain': gradients[5]}}" in source
