"""The proof: what is wrong at any of its points is refused, and what is smooth is smooth."""

import numpy as np
import pytest

import handgrad as hg
from handgrad.deriving.deriving import Deriving
from handgrad.deriving.meetings import MeetingError
from handgrad.deriving.proof import Proof
from handgrad.deriving.refusals import UnprovedError, UnreadableError

N = ("N",)


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def relu(x):
    return np.maximum(x, 0)


def signed_log(x):
    return np.sign(x) * np.log1p(np.abs(x))


def signed_root(x, eps=1e-3):
    return eps * x - np.sign(-x) * (np.sqrt(1 + np.abs(-x)) - 1) / 2


@pytest.mark.parametrize(
    ("forward", "slope"),
    [
        (softplus, 0.5),
        (logistic, 0.25),
        (relu, 0.0),
        (signed_log, 1.0),
        (signed_root, 0.251),
    ],
)
def test_slope_where_pieces_meet(forward, slope):
    derived = hg.derive(forward, x=N)
    _, cache = derived.forward(np.zeros(2))
    np.testing.assert_array_equal(derived.backward(np.ones(2), cache), slope * np.ones(2))


def test_a_sign_that_leaves_a_product_leaves_its_axes():
    derived = hg.derive(lambda x: (np.sign(x) * np.abs(x)).sum(), x=("N", "D"))
    _, cache = derived.forward(np.zeros((3, 2)))
    np.testing.assert_array_equal(derived.backward(np.float64(0.5), cache), np.full((3, 2), 0.5))


def _proof(forward, **shapes):
    return hg.derive(forward, **shapes).proof


def _with_backward(proof, backward):
    functions = {"forward": proof.functions["forward"], "backward": backward}
    return Proof(proof.pair, proof.sampler, functions)


def _square(x, scale=2.0):
    return x * x * scale


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda right, dy, cache: 1.001 * right(dy, cache), "differs from differences"),
        (lambda right, dy, cache: right(dy, cache)[:-1], "has shape"),
        (lambda right, dy, cache: 1 / 0, "the emitted backward fails"),
        (lambda right, dy, cache: right(dy, (cache[0], 2.0)), "differs"),
    ],
)
def test_wrong_backward_is_refused(wrong, said):
    proof = _proof(_square, x=N)
    proof.run()
    right = proof.functions["backward"]
    with pytest.raises(UnprovedError, match=said):
        _with_backward(proof, lambda dy, cache: wrong(right, dy, cache)).run()


def test_wrong_slope_at_a_smooth_point_is_refused():
    proof = _proof(softplus, x=N)

    def backward(dy, cache):
        x = cache[0]
        return dy * np.where(x == 0, 0, 1 / (1 + np.exp(-x)))

    functions = {"forward": lambda x: (softplus(x), (x,)), "backward": backward}
    with pytest.raises(MeetingError, match="where x is 0"):
        Proof(proof.pair, proof.sampler, functions).run()


def _drawn(x):
    return x * np.random.default_rng().random()


CALLS: list[int] = []


def _counted(x):
    CALLS.append(1)
    return x * len(CALLS)


@pytest.mark.parametrize("forward", [_drawn, _counted])
def test_forward_that_cannot_be_proved_is_refused_with_its_line(forward):
    with pytest.raises(hg.errors.ArgumentError, match=r"derive: line \d+: .*; allowed: "):
        hg.derive(forward, x=N)


def _logarithm(p, q):
    return (p * np.log(p / q)).sum()


def _root(a):
    return np.linalg.cholesky(a)


def test_examples_are_of_the_domain_of_the_forward():
    assert hg.derive(_logarithm, p=N, q=N).proof.sampler.domains
    derived = hg.derive(_root, a=("N", "N"))
    assert set(derived.proof.sampler.domains.values()) == {"definite"}


def test_simplified_gradient_that_is_wrong_is_left_for_the_plain_one(monkeypatch):
    import sys

    module = sys.modules[Deriving.__module__]
    own = module.simplified

    def wrong(program, cotangents, gradients, assume, world):
        found, steps = own(program, cotangents, gradients, assume, world)
        return [each * 1.5 for each in found], [*steps, None]

    monkeypatch.setattr(module, "simplified", wrong)
    derived = hg.derive(_square, x=N)
    assert derived.steps == ()
    assert hg.check((derived.forward, derived.backward), np.array([1.0, -2.0])).ok


@pytest.mark.parametrize("shorter", ["x", "w"])
def test_lengths_are_those_that_the_forward_takes(shorter) -> None:
    """Of a kernel that slides over an array, or the other way round; at both sets of sizes."""

    def correlated(x, w):
        a, b = (x, w) if shorter == "w" else (w, x)
        n = a.shape[0] - b.shape[0] + 1
        y = np.zeros(n)
        for t in range(n):
            y[t] = a[t : t + b.shape[0]] @ b
        return y

    derivation = hg.derive(correlated, x=("L",), w=("K",))
    first, second, *_ = derivation.proof.trials()
    sizes = [{n: v.size for n, v in t.values.items()} for t in (first, second)]
    assert all(s[shorter] < max(s.values()) for s in sizes)
    assert sizes[0]["x"] != sizes[1]["x"]
    assert sizes[0]["w"] != sizes[1]["w"]
    longer = "L" if shorter == "w" else "K"
    assert f"-{longer} > 0" not in derivation.forward_source
    with pytest.raises(ValueError, match="allowed: "):
        derivation.forward(*(np.ones(3 if n == shorter else 2) for n in ("x", "w")))


def in_single(x, g):
    h = x.astype(np.float32)
    r = 1 / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6)
    return (h * r).astype(x.dtype) * g


def turned(x, base=100.0):
    """Angles in the type of the array."""
    t, d = x.shape
    rates = base ** (-np.arange(d, dtype=x.dtype) / d)
    angles = np.arange(t, dtype=x.dtype)[:, None] * rates
    return np.cos(angles) * x + np.tri(t, dtype=x.dtype) @ np.eye(t, dtype=x.dtype) @ x


def test_an_array_of_the_type_of_another_stays_single() -> None:
    derived = hg.derive(turned, x=("T", "D"))
    x = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)
    y, cache = derived.forward(x)
    assert y.dtype == np.float32
    assert derived.backward(y, cache).dtype == np.float32
    np.testing.assert_allclose(y, turned(x), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_made_single_stay_single(dtype) -> None:
    """Between the casts values are those of float32; results and gradients have the arrays' own."""
    derived = hg.derive(in_single, x=("N", "D"), g=("D",))
    rng = np.random.default_rng(2)
    x, g, dy = (rng.standard_normal(shape).astype(dtype) for shape in ((3, 4), 4, (3, 4)))
    y, cache = derived.forward(x, g)
    np.testing.assert_allclose(y, in_single(x, g), rtol=1e-12 if dtype == np.float64 else 1e-6)
    found = derived.backward(dy, cache)
    assert [each.dtype for each in (y, *found)] == [np.dtype(dtype)] * 3
    r = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    dx = r * (dy * g - x * r**2 * (x * dy * g).mean(-1, keepdims=True))
    np.testing.assert_allclose(found[0], dx, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], (dy * x * r).sum(0), rtol=1e-4, atol=1e-5)


def test_a_wrong_gradient_of_single_arrays_is_refused(monkeypatch) -> None:
    from dataclasses import replace

    from handgrad.program.node import PRIMITIVES

    record = PRIMITIVES["exp"]
    wrong = replace(record, vjp=lambda g, y, x: (1.01 * g * y,))
    monkeypatch.setitem(PRIMITIVES, "exp", wrong)
    with pytest.raises(UnreadableError, match="differs from differences"):
        hg.derive(lambda x: np.exp(x.astype(np.float32)), x=N)


def test_a_number_made_single_is_rounded() -> None:
    def rounded(x):
        return float(np.float32(x.sum())) * x

    derived = hg.derive(rounded, x=N)
    x = np.array([0.1, 0.7, -0.3])
    y, cache = derived.forward(x)
    np.testing.assert_array_equal(y, rounded(x))
    dy = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(derived.backward(dy, cache), 0.5 * dy + dy @ x, rtol=1e-6)


def test_half_precision_is_refused_by_its_name() -> None:
    with pytest.raises(UnreadableError, match=r"float16 are not known.*np\.float32"):
        hg.derive(lambda x: np.exp(x.astype(np.float16)), x=N)


def test_a_proof_of_many_arrays_takes_runs_in_proportion() -> None:
    def runs(count):
        calls = []

        def layers(x, weights):
            calls.append(1)
            for weight in weights:
                x = np.maximum(x * weight, 0)
            return x

        hg.derive(layers, x=N, weights=[N] * count)
        return len(calls)

    assert runs(20) < 2.5 * runs(10)


def test_where_pieces_of_many_arrays_meet_a_wrong_gradient_is_found() -> None:
    """The halves of each softplus meet where its array is zero, beside arrays moved at once."""

    def summed(*xs):
        return sum(softplus(x) * (k + 1) for k, x in enumerate(xs))

    derived = hg.derive(summed, *[N] * 9)
    _, cache = derived.forward(*[np.zeros(2)] * 9)
    for k, dx in enumerate(derived.backward(np.ones(2), cache)):
        np.testing.assert_allclose(dx, (k + 1) / 2)


def test_differences_without_a_digit_tell_nothing():
    """A path that cannot be, as of an alignment too short, costs 1e30 and hides its slope."""

    def forward(x):
        return np.tanh(x).sum() + 1e30

    derived = hg.derive(forward, x=("N",))
    _, cache = derived.forward(np.zeros(3))
    np.testing.assert_allclose(derived.backward(2.0, cache), np.full(3, 2.0))


def test_an_axis_of_one_by_chance_is_tried_at_other_lengths():
    """Halves of halves: of six they have two elements and one, which is spread over both."""

    def wavelet(x):
        loss = 0.0
        for _ in range(2):
            even, odd = x[:, ::2], x[:, 1::2]
            loss = loss + np.sin(even - odd).mean()
            x = (even + odd) / 2
        return loss + (x**2).mean()

    derived = hg.derive(wavelet, x=("N", "L"))
    x = np.random.default_rng(3).standard_normal((3, 8))
    np.testing.assert_allclose(derived.forward(x)[0], wavelet(x), rtol=1e-12)
    with pytest.raises(ValueError, match="allowed"):
        derived.forward(x[:, :6])


def test_a_last_block_of_one_row_is_no_example():
    def blocks(x, w, chunk=2):
        state, found = np.zeros(w.shape), []
        for s in range(0, len(x), chunk):
            mask = np.tril(np.ones((chunk, chunk)))
            part = (
                np.exp(-np.abs(x[s : s + chunk, None] - x[None, s : s + chunk])) * mask[..., None]
            )
            found.append((part * w).sum(1) + state)
            state = np.tanh(state + part[-1, 0])
        return np.concatenate(found)

    derived = hg.derive(blocks, x=("T", "D"), w=("D",))
    x, w = np.random.default_rng(3).standard_normal((8, 3)), np.arange(3.0)
    for chunk in (2, 4):
        wanted = blocks(x, w, chunk)
        np.testing.assert_allclose(derived.forward(x, w, chunk)[0], wanted, rtol=1e-12)


def _partial_likelihood(beta, x, time):
    """Times that are floats are compared: along them the likelihood jumps."""
    eta, total = x @ beta, 0.0
    for t in np.unique(time):
        total += eta[time == t].sum() - np.log(np.exp(eta)[time >= t].sum())
    return total


def test_an_array_along_which_the_forward_jumps_is_named():
    rng = np.random.default_rng(2)
    examples = rng.standard_normal(2), rng.standard_normal((4, 2)), np.array([1.0, 2.0, 2.0, 3.0])
    said = "allowed: a forward that stands its proof, or wrt without time, along which it is not"
    with pytest.raises(UnreadableError, match=said):
        hg.derive(_partial_likelihood, *examples)
    derived = hg.derive(_partial_likelihood, *examples, wrt=["beta", "x"])
    y, cache = derived.forward(*examples)
    np.testing.assert_allclose(y, _partial_likelihood(*examples))
    way = rng.standard_normal(2)
    ends = (_partial_likelihood(examples[0] + s * way, *examples[1:]) for s in (1e-6, -1e-6))
    up, down = ends
    assert derived.backward(1.0, cache)[0] @ way == pytest.approx((up - down) / 2e-6, rel=1e-6)


def fitted(x, y):
    """A line through points: of fewer points than numbers there is none."""
    return np.linalg.solve(x.T @ x, x.T @ y)


def test_sizes_without_an_inverse_tell_nothing():
    derived = hg.derive(fitted, np.random.default_rng(2).standard_normal((5, 2)), np.ones(5))
    assert not derived.fixed


def scaled_sum(*xs):
    """Arrays whose gradients are of sizes from 1 to 1e-4."""
    return sum(np.sin(x) * 0.3**k for k, x in enumerate(xs))


@pytest.mark.parametrize("place", range(9))
def test_a_wrong_gradient_among_many_is_found(place):
    proof = hg.derive(scaled_sum, *[N] * 9).proof

    def wrong(right, dy, cache):
        return tuple(dx * (1.5 if k == place else 1) for k, dx in enumerate(right(dy, cache)))

    right = proof.functions["backward"]
    with pytest.raises(UnprovedError, match=f"dxs_{place} differs"):
        _with_backward(proof, lambda dy, cache: wrong(right, dy, cache)).run()


def cancelled(x, m):
    """At x of 0 a division by 0 cancels, and below 0 the root is no number."""
    t = m / np.sqrt(x)
    return (1 - np.exp(-np.abs(t))) / t


def test_a_gradient_may_be_no_number_at_the_end_of_a_domain_alone():
    derived = hg.derive(cancelled, x=N, m=N)
    right = derived.proof.functions["backward"]

    def near_the_end(dy, cache):
        root = cache[0]
        return tuple(dx * np.where(root < 0.3, np.nan, 1) for dx in right(dy, cache))

    with pytest.raises(MeetingError, match="where x is 0"):
        _with_backward(derived.proof, near_the_end).run()


def inflated(rate, count):
    """Counts are floats, of which 0 has a likelihood of its own."""
    return np.where(count == 0, np.log1p(np.exp(-rate)), count * np.log(rate) - rate)


def test_a_label_at_which_the_forward_jumps_from_both_sides_is_named():
    rate, count = np.array([0.3, 0.7, 1.2]), np.array([0.0, 2.0, 1.0])
    with pytest.raises(UnreadableError, match="or wrt without count, along which it is not smooth"):
        hg.derive(inflated, rate, count)
    assert hg.derive(inflated, rate, count, wrt=["rate"])
