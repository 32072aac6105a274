"""The algebra of a backward: what it finds, why, and that it changes no value and costs no more."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad.deriving.algebra import simplified
from handgrad.deriving.algebra.choose import Costs
from handgrad.deriving.algebra.multiply import Multiplier
from handgrad.deriving.algebra.simplify import Algebra
from handgrad.deriving.algebra.values import SAME
from handgrad.program.node import Program, within
from tests.deriving import forwards
from tests.deriving.algebra_of import Seen, gradients, seen

PLAIN = [case for case in forwards.CASES if case[0] is not forwards.group_norm]


def counts(found: Seen) -> tuple[float, float]:
    """The costs of the plain sweep and of what the algebra made of it."""
    own = {id(n) for n in Program(found.program.inputs, found.program.outputs).body}
    own |= {id(n) for n in found.program.inputs}
    costs = Costs(found.world.lengths)
    return costs.total(found.plain, own).total, costs.total(found.simple, own).total


@pytest.mark.parametrize(("forward", "given"), PLAIN, ids=lambda x: getattr(x, "__name__", ""))
def test_it_never_costs_more_and_every_step_is_equal(monkeypatch, forward, given) -> None:
    found = seen(monkeypatch, forward, **given)
    before, after = counts(found)
    assert after <= before
    for old, new in zip(found.plain, found.simple, strict=True):
        np.testing.assert_allclose(new.value, old.value, rtol=1e-7, atol=1e-9)
    for step in found.steps:
        assert len(step.differences) == 2
        assert max(step.differences) <= SAME
        assert step.before != step.after


def test_layer_norm_has_three_terms_and_keeps_what_it_needs(monkeypatch) -> None:
    found = seen(monkeypatch, forwards.layer_norm, x=("N", "D"), gamma=("D",), beta=("D",))
    assert set(found.derived.cache) == {"gamma", "inv_std", "x_hat"}
    assert found.derived.backward_source.count(".mean(") == 2
    assert [s.why for s in found.steps] == ["Σ centred = 0, because Σ(x − mean) = 0"]


def test_the_maximum_of_a_softmax_has_no_gradient(monkeypatch) -> None:
    found = seen(monkeypatch, forwards.softmax, x=("N", "D"))
    assert found.derived.cache == ("y",)
    assert "where" not in found.derived.backward_source
    (step,) = found.steps
    assert step.why == (
        "softmax does not change when every score is shifted, so the maximum has no gradient"
    )


def test_a_stated_sum_makes_the_gradient_of_a_cross_entropy_p_minus_q(monkeypatch) -> None:
    given = {"x": ("N", "C"), "q": ("N", "C"), "wrt": ["x"]}
    found = seen(monkeypatch, forwards.cross_entropy, **given, assume={"sum(q, -1)": 1})
    assert "(p - q)" in found.derived.backward_source
    assert any("assumed: sum(q, -1) = 1" in step.why for step in found.steps)
    without = seen(monkeypatch, forwards.cross_entropy, **given)
    assert "q.sum(-1" in without.derived.backward_source


def test_softmax_by_its_log_sum_exp_is_a_softmax(monkeypatch) -> None:
    def attention(s, v):
        m = s.max(-1, keepdims=True)
        lse = np.log(np.exp(s - m).sum(-1, keepdims=True)) + m
        p = np.exp(s - lse)
        return p @ v

    found = seen(monkeypatch, attention, s=("T", "S"), v=("S", "E"))
    assert set(found.derived.cache) == {"p", "v"}
    assert "exp" not in found.derived.backward_source


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_softplus_by_its_halves_has_the_slope_of_a_logistic_function(monkeypatch, weight) -> None:
    """Halves side by side are one function when the forward is read, others in the algebra."""

    def beside(x, z):
        return np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))

    def weighted(x, z):
        return weight * np.maximum(x, 0) - x * z + weight * np.log1p(np.exp(-np.abs(x)))

    found = seen(monkeypatch, beside if weight == 1 else weighted, x=("N",), z=("N",), wrt=["x"])
    x, z = np.array([0.0, -800.0, 800.0, 1.5]), np.array([0.25, 0.5, 0.5, 0.0])
    (dx,) = gradients(found.derived, np.array([2.0, 1.0, -1.0, 3.0]), x=x, z=z)
    want = weight * np.array([0.5, 0.0, 1.0, 1 / (1 + np.exp(-1.5))]) - z
    np.testing.assert_allclose(dx, want * np.array([2.0, 1.0, -1.0, 3.0]), rtol=1e-12)
    assert "where" not in found.derived.backward_source.partition("def backward")[2]
    if weight == 1:
        assert any(node.op == "softplus" for node in found.program.body)
    else:
        assert found.steps[-1].rule == "function"
        assert "softplus" in found.steps[-1].why


LOG = {
    "where": (lambda x: np.where(x > 0, x, 0), lambda x: np.where(x < 0, -x, 0)),
    "the other way": (lambda x: np.where(x < 0, 0, x), lambda x: np.where(x >= 0, 0, -x)),
    "by max": (lambda x: np.maximum(x, 0), lambda x: np.maximum(-x, 0)),
    "by zeros": (
        lambda x: np.where(x > 0, x, np.zeros_like(x)),
        lambda x: np.where(-x > 0, -x, np.zeros_like(x)),
    ),
}


@pytest.mark.parametrize("halves", LOG)
def test_both_softplus_of_a_cross_entropy_are_seen_in_their_halves(monkeypatch, halves) -> None:
    positive, negative = LOG[halves]

    def cross_entropy(x, z):
        log = np.log1p(np.exp(-np.abs(x)))
        return z * (negative(x) + log) + (1 - z) * (positive(x) + log)

    found = seen(monkeypatch, cross_entropy, x=("N",), z=("N",), wrt=["x"])
    assert sum(node.op == "softplus" for node in found.program.body) == 2
    x, z = np.array([0.0, -800.0, 800.0, 1.5]), np.array([0.25, 0.5, 0.5, 0.0])
    (dx,) = gradients(found.derived, np.ones(4), x=x, z=z)
    want = np.array([0.5, 0.0, 1.0, 1 / (1 + np.exp(-1.5))]) - z
    np.testing.assert_allclose(dx, want, rtol=1e-12)
    assert "where" not in found.derived.backward_source.partition("def backward")[2]


def test_the_smaller_half_is_no_softplus(monkeypatch) -> None:
    def other(x):
        return np.where(x < 0, x, 0) + np.log1p(np.exp(-np.abs(x)))

    x = np.array([0.5, -2.0])
    (dx,) = gradients(seen(monkeypatch, other, x=("N",)).derived, np.ones(2), x=x)
    s = np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))
    np.testing.assert_allclose(dx, (x < 0) - np.sign(x) * s, rtol=1e-12)


def test_a_gate_written_by_its_exponential_is_stable(monkeypatch) -> None:
    def silu(x):
        return x / (1 + np.exp(-x))

    found = seen(monkeypatch, silu, x=("N",))
    (dx,) = gradients(found.derived, np.array([1.0, -2.0]), x=np.array([-800.0, 800.0]))
    np.testing.assert_allclose(dx, [0.0, -2.0], atol=1e-300)


def halves(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def each_half_its_own(x):
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


def halves_of_sizes(x):
    e = np.exp(-np.abs(x))
    return np.where(x > 0, 1 / (1 + e), e / (1 + e))


@pytest.mark.parametrize("forward", [halves, each_half_its_own, halves_of_sizes])
def test_a_logistic_function_by_its_halves_is_one(monkeypatch, forward) -> None:
    found = seen(monkeypatch, forward, x=("N",))
    assert found.derived.cache == ("y",)
    assert "where" not in found.derived.backward_source
    x = np.array([0.0, 2.0, -2.0, 800.0, -800.0])
    (dx,) = gradients(found.derived, np.full(5, 2.0), x=x)
    y = 1 / (1 + np.exp(-x[1]))
    np.testing.assert_allclose(dx, [0.5, *[2 * y * (1 - y)] * 2, 0, 0], rtol=1e-12, atol=1e-300)


def test_a_choice_by_another_sign_stays_one(monkeypatch) -> None:
    def mirrored(x):
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, e, 1) / (1 + e)

    found = seen(monkeypatch, mirrored, x=("N",))
    x = np.array([1.0, -3.0])
    (dx,) = gradients(found.derived, np.ones(2), x=x)
    y = 1 / (1 + np.exp(x))
    np.testing.assert_allclose(dx, -y * (1 - y), rtol=1e-12)


def exponentials(x):
    highest = x.max(-1, keepdims=True)
    return np.exp(x - np.where(np.isinf(highest), 0, highest))


def one_for_zero(x):
    e = exponentials(x)
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def where_there_is_some(x):
    e = exponentials(x)
    total = e.sum(axis=-1)
    return e / np.where(total > 0, total, np.ones_like(total))[:, None]


@pytest.mark.parametrize("forward", [one_for_zero, where_there_is_some])
def test_a_softmax_of_rows_that_may_be_masked_everywhere_has_two_terms(monkeypatch, forward):
    found = seen(monkeypatch, forward, x=("N", "D"))
    assert found.derived.cache == ("y",)
    assert "where" not in found.derived.backward_source
    assert any("shifted" in step.why for step in found.steps)
    x = np.array([[0.5, -np.inf, 1.0], [-np.inf] * 3])
    dy = np.array([[1.0, 2.0, -1.0], [3.0, 1.0, 2.0]])
    (dx,) = gradients(found.derived, dy, x=x)
    y = forward(x)
    np.testing.assert_allclose(dx, y * (dy - (y * dy).sum(-1, keepdims=True)), rtol=1e-12)


def test_a_guarded_sum_over_its_divisor_stays_0_where_nothing_is_zero_beside_it(monkeypatch):
    def share(x, w):
        total = exponentials(x).sum(-1)
        return w * (total / np.where(total == 0, 1, total))

    found = seen(monkeypatch, share, x=("N", "D"), w=("N",))
    x = np.array([[0.5, 1.0], [-np.inf, -np.inf]])
    dx, dw = gradients(found.derived, np.array([2.0, 3.0]), x=x, w=np.array([1.0, 5.0]))
    np.testing.assert_array_equal(dw, [2.0, 0.0])
    np.testing.assert_allclose(dx, 0, atol=1e-15)


def test_a_guarded_log_sum_exp_is_flat_in_a_masked_row(monkeypatch):
    def log_total(x):
        total = exponentials(x).sum(-1)
        return np.log(np.where(total == 0, 1, total))

    found = seen(monkeypatch, log_total, x=("N", "D"))
    x = np.array([[0.5, 1.0, 0.0], [-np.inf, -np.inf, -np.inf]])
    (dx,) = gradients(found.derived, np.array([2.0, 3.0]), x=x)
    e = exponentials(x)
    want = 2 * (e / np.maximum(e.sum(-1, keepdims=True), 1)) - 2 * (e == 1)  # less the largest
    np.testing.assert_allclose(dx[0], want[0], atol=1e-12)
    np.testing.assert_array_equal(dx[1], 0)


def test_three_products_of_matrices_stay_products_of_two(monkeypatch) -> None:
    def linear_attention(q, k, v, m):
        return ((q @ k.T) * m) @ v

    found = seen(
        monkeypatch,
        linear_attention,
        q=("T", "D"),
        k=("S", "D"),
        v=("S", "E"),
        m=("T", "S"),
        wrt=["q", "k", "v"],
    )
    assert "einsum" not in found.derived.backward_source
    assert found.derived.backward_source.count("@") == 4


def test_rows_of_a_mixture_use_its_output(monkeypatch) -> None:
    """Σ p dp over experts is Σ y dy: an element-wise product where there was a contraction."""
    case = next(given for f, given in forwards.CASES if f is forwards.mixture_of_experts)
    found = seen(monkeypatch, forwards.mixture_of_experts, **case)
    costs, own = Costs(found.world.lengths), {id(n) for n in found.program.body}
    assert found.simple != found.plain
    plain, simple = (costs.total(nodes, own) for nodes in (found.plain, found.simple))
    assert simple.contractions <= plain.contractions


def test_constants_are_folded_exactly(monkeypatch) -> None:
    def scaled(x):
        return 0.1 * (3.0 * x) ** 2 / 0.9 * (1 / 3)

    found = seen(monkeypatch, scaled, x=("N",))
    assert "99999" not in found.derived.backward_source
    assert "00000" not in found.derived.backward_source


@pytest.mark.parametrize(
    ("forward", "given"), forwards.LOOPS, ids=lambda x: getattr(x, "__name__", "")
)
def test_bodies_of_loops_are_simplified(monkeypatch, forward, given) -> None:
    found = seen(monkeypatch, forward, **given)
    before, after = counts(found)
    assert after <= before
    assert found.derived.backward_source.count("for ") == 1


def test_an_output_that_nothing_depends_on_has_a_gradient_of_zero(monkeypatch) -> None:
    def shifted(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return (e / e.sum(-1, keepdims=True)).sum(-1)

    found = seen(monkeypatch, shifted, x=("N", "D"))
    (dx,) = gradients(found.derived, np.array([1.0, -2.0]), x=np.eye(2, 3))
    assert not np.any(dx)
    assert dx.shape == (2, 3)


def test_long_sums_are_left_as_they_are(monkeypatch) -> None:
    def long(x):
        y = x
        for k in range(40):
            y = y * np.sin(x * (k + 1)) + x
        return y

    found = seen(monkeypatch, long, x=("N",))
    assert counts(found)[1] <= counts(found)[0]


def test_what_has_been_simplified_is_a_program_to_simplify_again(monkeypatch) -> None:
    found = seen(monkeypatch, forwards.layer_norm, x=("N", "D"), gamma=("D",), beta=("D",))
    with within(found.world):
        again, _ = simplified(found.program, found.cotangents, found.simple, None, found.world)
    for one, two in zip(found.simple, again, strict=True):
        np.testing.assert_allclose(one.value, two.value, rtol=1e-9, atol=1e-12)


def test_many_rounds_written_out_take_work_in_proportion(monkeypatch) -> None:
    def rounds(count):
        scales = [0.1 * (k % 7 + 1) for k in range(count)]

        def unrolled(x, w):
            y = x
            for scale in scales:
                y = np.tanh(y @ w) * scale + y
            return y

        return unrolled

    def tries(count):
        found = []
        original = Algebra.array

        def counted(self, node):
            found.append(node)
            return original(self, node)

        with monkeypatch.context() as patch:
            patch.setattr(Algebra, "array", counted)
            seen(monkeypatch, rounds(count), x=("N", "D"), w=("D", "D"))
        return len(found)

    assert tries(60) < 2.5 * tries(30)


def test_a_round_whose_example_cancels_is_simplified_all_the_same(monkeypatch) -> None:
    """A loop's adjoints are ones on the example, for which a normalisation has no gradient."""

    def sinkhorn(c):
        k = np.exp(-c)
        for _ in range(3):
            k = k / k.sum(0, keepdims=True)
            k = k / k.sum(1, keepdims=True)
        return k

    found = seen(monkeypatch, sinkhorn, c=("N", "D"))
    before, after = counts(found)
    assert after < before
    assert "(-(" not in found.derived.backward_source


def test_a_long_polynomial_takes_work_in_proportion(monkeypatch) -> None:
    """What its terms share is looked for without pairing equal factors with each other."""

    def reaches(count):
        found = []
        original = Multiplier.reach

        def counted(self, indices):
            found.append(1)
            return original(self, indices)

        def polynomial(x):
            y, z = 0.25 * x, x * x
            for k in range(count):
                y = y * z + 1.0 / (k + 2)
            return y * np.exp(-z)

        with monkeypatch.context() as patch:
            patch.setattr(Multiplier, "reach", counted)
            seen(monkeypatch, polynomial, x=("N",))
        return len(found)

    assert reaches(12) < 5 * reaches(6)


def test_arrays_made_single_are_simplified_as_well(monkeypatch) -> None:
    def attention(s):
        s = s.astype(np.float32)
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    found = seen(monkeypatch, attention, s=("T", "S"))
    before, after = counts(found)
    assert after < before
    assert "max" not in found.derived.backward_source
