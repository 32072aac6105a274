from __future__ import annotations

import numpy as np
import pytest

from handgrad import optimizers
from handgrad.documents.formulas.latex import to_latex
from handgrad.equations.models.update import settings_of, update_rule, updated
from tests.documents.formulas import letters

RULES = {
    "sgd": (
        optimizers.SGD(0.1),
        [r"\theta \leftarrow \theta - \eta \frac{\partial L}{\partial \theta}"],
    ),
    "sgd-decay": (
        optimizers.SGD(0.1, weight_decay=0.01),
        [
            r"g = \frac{\partial L}{\partial \theta}",
            r"g \leftarrow g + \lambda \theta",
            r"\theta \leftarrow \theta - \eta g",
        ],
    ),
    "momentum": (
        optimizers.Momentum(0.1),
        [
            r"g = \frac{\partial L}{\partial \theta}",
            r"\mu \leftarrow \beta \mu + (1 - \tau) g",
            r"\theta \leftarrow \theta - \eta \mu",
        ],
    ),
    "classical": (
        optimizers.Momentum(0.1, form="classical"),
        [
            r"g = \frac{\partial L}{\partial \theta}",
            r"\mu \leftarrow \beta \mu + g",
            r"\theta \leftarrow \theta - \eta \mu",
        ],
    ),
    "nesterov": (
        optimizers.Nesterov(0.1),
        [
            r"g = \frac{\partial L}{\partial \theta}",
            r"\mu \leftarrow \beta \mu + g",
            r"\theta \leftarrow \theta - \eta (g + \beta \mu)",
        ],
    ),
    "rmsprop": (
        optimizers.RMSProp(0.1),
        [
            r"g = \frac{\partial L}{\partial \theta}",
            r"v \leftarrow \alpha v + (1 - \alpha) g^{2}",
            r"\theta \leftarrow \theta - \frac{\eta g}{\sqrt{v} + \varepsilon}",
        ],
    ),
    "adamw": (
        optimizers.AdamW(0.1),
        [
            r"g = \frac{\partial L}{\partial \theta}",
            r"\theta \leftarrow (1 - \eta \lambda) \theta",
            r"m \leftarrow \beta_{1} m + (1 - \beta_{1}) g",
            r"v \leftarrow \beta_{2} v + (1 - \beta_{2}) g^{2}",
            r"\hat{m} = \frac{m}{1 - \beta_{1}^{t}}",
            r"\hat{v} = \frac{v}{1 - \beta_{2}^{t}}",
            r"\theta \leftarrow \theta - \frac{\eta \hat{m}}{\sqrt{\hat{v}} + \varepsilon}",
        ],
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_are_written_as_in_the_literature(name):
    optimizer, expected = RULES[name]
    rule = update_rule(optimizer)
    assert [f"{to_latex(left)} {to_latex(right)}" for left, right in rule] == expected


@pytest.mark.parametrize("name", RULES)
def test_every_setting_that_is_written_has_a_value(name):
    optimizer, _ = RULES[name]
    found = settings_of(optimizer)
    rule = update_rule(optimizer)
    written = set().union(*(letters(side) for both in rule for side in both))
    given = set().union(*(letters(symbol) for symbol, _ in found))
    state = {"theta", "g", "partial", "L", "mu", "v", "m", "t"}
    assert written - state == given
    assert all(to_latex(value) != "0" for _, value in found)


@pytest.mark.parametrize("name", RULES)
def test_the_first_step_is_the_optimizers_own(name):
    optimizer, _ = RULES[name]
    rng = np.random.default_rng(0)
    parameter, gradient = rng.standard_normal((2, 3, 4))
    expected = {"p": parameter.copy()}
    twin = type(optimizer)(optimizer.lr)
    twin.hyperparameters = optimizer.hyperparameters
    twin.step(expected, {"p": gradient})
    before = parameter.copy()
    np.testing.assert_allclose(updated(optimizer, parameter, gradient), expected["p"], rtol=1e-12)
    np.testing.assert_array_equal(parameter, before)
