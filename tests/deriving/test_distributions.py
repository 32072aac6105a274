"""Densities and distribution functions of scipy.stats in forwards, grids, and np.vectorize."""

import numpy as np
import pytest
from scipy import stats

import handgrad as hg
from handgrad.deriving.deriving import UnreadableError

CASES = {
    "expected improvement": (
        lambda mean, sd: (
            mean * stats.norm.cdf(mean / sd) + stats.norm.pdf(mean, loc=0.1, scale=sd) * sd
        ),
        [(5,), (5,)],
    ),
    "with parameters": (lambda x, sd: stats.norm(0.3, sd).logcdf(x), [(5,), (5,)]),
    "by its sides": (lambda x, s: stats.gumbel_r.logsf(x) + stats.logistic.sf(x * s), [(4,), (4,)]),
    "of t": (lambda x, df: stats.t.logpdf(x, df), [(5,), (5,)]),
    "of gamma": (lambda x, a, s: stats.gamma.logpdf(x, a, scale=s), [(5,), (5,), (5,)]),
    "of beta": (lambda x, a, b: stats.beta.pdf(x, a, b), [(5,), (5,), (5,)]),
    "on a part of the line": (lambda x, s: stats.uniform.cdf(x, scale=s), [(6,), (6,)]),
    "quantiles": (lambda x, s: stats.norm.ppf(stats.norm.cdf(x), scale=s), [(4,), (4,)]),
    "of vectors": (
        lambda x, m, f: stats.multivariate_normal.logpdf(x, m, f @ f.T + np.eye(len(m))),
        [(5, 3), (3,), (3, 3)],
    ),
    "whole numbers": (
        lambda rate: stats.poisson.logpmf(np.array([0, 3, 1]), rate).sum(),
        [(3,)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_distribution_is_derived(name):
    forward, shapes = CASES[name]
    rng = np.random.default_rng(0)
    derived = hg.derive(forward, *(rng.random(shape) + 0.2 for shape in shapes))
    arrays = [3 * rng.random(shape) + 0.2 for shape in shapes]
    np.testing.assert_allclose(derived.forward(*arrays)[0], forward(*arrays), rtol=1e-12)


def test_outside_of_its_support_a_density_is_zero_and_so_is_its_slope():
    forward = lambda x, a: stats.gamma.pdf(x, a)  # noqa: E731
    derived = hg.derive(forward, np.array([0.5, 2.0, 1.5]), np.array([2.0, 3.0, 1.5]))
    x, a = np.array([-1.0, 0.7, -0.2]), np.array([2.5, 1.5, 3.0])
    y, cache = derived.forward(x, a)
    np.testing.assert_allclose(y, forward(x, a))
    dx, da = derived.backward(np.ones(3), cache)
    assert dx[0] == dx[2] == da[0] == da[2] == 0
    assert dx[1] != 0


@pytest.mark.parametrize(
    ("forward", "said"),
    [
        (lambda x: stats.truncnorm.logpdf(x, -2, 2), "truncnorm.logpdf of scipy.stats"),
        (lambda x: stats.norm.rvs(x), "random"),
        (lambda x: stats.norm.entropy(0.0, x), "norm.entropy of scipy.stats"),
    ],
)
def test_what_is_not_known_of_a_distribution_is_refused(forward, said):
    with pytest.raises(UnreadableError, match=said):
        hg.derive(forward, np.array([0.5, 0.2]))


def moved(image, offset):
    y, x = np.mgrid[: image.shape[0], 0 : image.shape[1]]
    rows, columns = np.ogrid[: image.shape[0], : image.shape[1]]
    return image * np.exp(-((y + offset) ** 2) - (x - rows) * columns * offset)


def test_grids_have_the_sizes_of_arrays():
    derived = hg.derive(moved, image=("H", "W"), offset=())
    image = np.random.default_rng(1).standard_normal((3, 5))
    np.testing.assert_allclose(derived.forward(image, 0.1)[0], moved(image, 0.1))


raised = np.vectorize(lambda x, power: np.log1p(x * x) ** power, excluded={"power"})


@np.vectorize
def smooth(x, y):
    return np.log1p(np.exp(x * y))


def test_functions_vectorized_outside_of_the_forward():
    derived = hg.derive(lambda x, y: smooth(raised(x, power=3), y), x=("N", "M"), y=("M",))
    x, y = np.random.default_rng(2).standard_normal((2, 4, 4))
    wanted = smooth(raised(x, power=3), y[0])
    np.testing.assert_allclose(derived.forward(x, y[0])[0], wanted)
