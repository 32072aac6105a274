"""What a mask selects has a length of its own, though another mask is alike on the example."""

import numpy as np
import pytest

import handgrad as hg


def _means(x, mask):
    """Rows of one mask, in rounds of a loop."""
    total = 0.0
    for t in range(len(mask)):
        chosen = x[mask[t]]
        total = total + (chosen**2).sum() / len(chosen)
    return total


def _listed(x, mask):
    return np.array([np.tanh(x[np.nonzero(row)[0]]).mean() for row in mask])


def _different(x, mask):
    """How many numbers differ in each row."""
    one, two = np.unique(mask[0] * 1).size, np.unique(mask[1] * 1).size
    return x.sum() / one + (x**2).sum() / two


def _again(x, mask):
    """One mask that is computed twice, and another one that is true where it is."""
    one, two = x[mask[0] & mask[1]], x[mask[0] & mask[1]]
    return (one * two).sum() / np.sum(mask[0]) + x[~mask[2]].sum()


@pytest.mark.parametrize("forward", [_means, _listed, _different, _again])
def test_masks_that_are_alike_on_the_example_are_two(forward):
    x = np.random.default_rng(0).standard_normal(5)
    derived = hg.derive(forward, x, np.ones((3, 5), dtype=bool))
    other = np.array([[1, 0, 1, 0, 1], [1, 1, 1, 1, 1], [0, 1, 0, 1, 0]], dtype=bool)
    y, cache = derived.forward(x, other)
    np.testing.assert_allclose(y, forward(x, other))
    dy = np.random.default_rng(1).standard_normal(np.shape(y))
    steps = [1e-6 * each for each in np.eye(5)]
    changes = [np.sum((forward(x + h, other) - forward(x - h, other)) * dy) for h in steps]
    np.testing.assert_allclose(derived.backward(dy, cache), np.array(changes) / 2e-6, atol=1e-7)
