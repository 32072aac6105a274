"""Loops over steps: every line is computed again from what is printed, and from nothing else."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from handgrad.documents.formulas.formula import Formula, Number, Symbol
from handgrad.documents.formulas.latex import to_latex
from handgrad.equations.derived import DerivedEquation
from handgrad.equations.equations import derive
from handgrad.equations.pairing import statements
from handgrad.equations.scope import find_loops
from handgrad.equations.subject import Subject
from handgrad.equations.tracing import NotesRecorder
from handgrad.ops import gru, leaky_rnn, lstm, rnn
from tests.equations.reading import FUNCTIONS, Reader, replaced
from tests.tolerances import assert_close

OPS = {"rnn": (rnn, 1), "leaky_rnn": (leaky_rnn, 1), "lstm": (lstm, 4), "gru": (gru, 3)}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without states and biases": {"without": ("bias_ih", "bias_hh", "h0", "c0")},
    "ragged": {"lengths": [4, 1, 2]},
    "reversed": {"reverse": True},
    "ragged and reversed": {"lengths": [4, 1, 2], "reverse": True},
}
PAIRS = [(op, setting) for op in OPS for setting in SETTINGS]
STEP = Symbol("t")


def subject(op: str, setting: str = "plain", **options: Any) -> Subject:
    """Sequences in which no two sizes are alike and none is 1."""
    rng = np.random.default_rng(0)
    module, gates = OPS[op]
    sequences, steps, features, hidden = 3, 4, 2, 5
    state = 6 if options.pop("projected", False) else hidden
    rows = gates * hidden
    shapes = {
        "x": (sequences, steps, features),
        "weight_ih": (rows, features),
        "weight_hh": (rows, state),
        "bias_ih": (rows,),
        "bias_hh": (rows,),
        "weight_hr": (state, hidden),
        "h0": (sequences, state),
        "c0": (sequences, hidden),
    }
    given = dict(SETTINGS[setting])
    without = given.pop("without", ())
    names = set(inspect.signature(module.forward).parameters) - set(without)
    if state == hidden:
        names -= {"weight_hr"}
    arrays = {name: rng.standard_normal(shape) for name, shape in shapes.items() if name in names}
    if "lengths" in given:
        arrays["lengths"] = np.asarray(given.pop("lengths"))
    if op == "leaky_rnn":
        options["alpha"] = 0.25
    options |= given
    forward, backward = (inspect.unwrap(each) for each in (module.forward, module.backward))
    y, _ = forward(**arrays, **options)
    parameters = inspect.signature(forward).parameters.values()
    gradients = tuple(each.name for each in parameters if each.kind is not each.KEYWORD_ONLY)
    return Subject(op, forward, backward, arrays, options, _random_like(y, rng), gradients)


def _random_like(y: Any, rng: np.random.Generator) -> Any:
    if isinstance(y, tuple):
        return tuple(_random_like(part, rng) for part in y)
    return rng.standard_normal(y.shape)


def read_again(found: Subject) -> list[str]:
    """Compute every equation from what is printed; the names of those that say something."""
    derivation = derive(found)
    functions = {**FUNCTIONS, Symbol("f"): np.tanh}
    if found.options.get("nonlinearity") == "relu":
        functions[Symbol("f")] = lambda a: np.maximum(a, 0.0)
    sizes = {Symbol("N"): 3, Symbol("alpha"): found.options.get("alpha")}
    reader = Reader(dict(sizes), functions)
    _learn(reader, derivation.given)
    checked = []
    for equation in derivation.forward:
        checked += _read(reader, equation)
    _learn(reader, derivation.incoming)
    for equation in derivation.backward:
        checked += _read(reader, equation)
    return checked


def _learn(reader: Reader, known: Any) -> None:
    reader.values.update({_counted(symbol): value for symbol, value in known})


def _read(reader: Reader, equation: DerivedEquation) -> list[str]:
    for left, right, value in stated(_counted(equation)):
        if left != right:
            found = np.broadcast_to(reader.value(right), np.shape(value))
            assert_close(found, value, "float64", to_latex(left))
        reader.values[left] = value
    return [] if equation.says_nothing else [equation.name]


def _counted(part: Any) -> Any:
    """A formula, or an equation, with the number of steps in the place of T."""
    if not isinstance(part, DerivedEquation):
        return replaced(part, Symbol("T"), Number("4"))
    return replace(
        part,
        left=_counted(part.left),
        right=_counted(part.right),
        parts=tuple((_counted(symbol), value) for symbol, value in part.parts),
        here=None if part.here is None else _counted(part.here),
    )


def stated(equation: DerivedEquation) -> list[tuple[Formula, Formula, Any]]:
    """Both sides and the value: of this step in a loop, of every step of a sequence."""
    if equation.here is not None:
        left, right, parts = equation.here.left, equation.here.right, equation.here.parts
        if len(parts) == 1:
            return [(left, right, equation.value)]
        blocks = np.concatenate([value for _, value in parts], axis=-1)
        return [(left, right, blocks), *((each, each, value) for each, value in parts)]
    if isinstance(equation.value, list):
        return []  # blocks of every step, which the loop has named already
    if len(equation.parts) > 1:
        return [
            (symbol, replaced(equation.right, STEP, Number(str(step))), value)
            for step, (symbol, value) in enumerate(equation.parts, start=1)
        ]
    return [(equation.left, equation.right, equation.value)]


@pytest.mark.parametrize(("op", "setting"), PAIRS)
def test_what_is_printed_gives_every_value(op, setting):
    found = subject(op, setting)
    checked = read_again(found)
    assert {"h", "h_new"} & set(checked)
    assert {"dh", "dh_before", "dh_t", "dweight_ih"} & set(checked)


@pytest.mark.parametrize("setting", ["plain", "ragged"])
def test_a_projection_and_other_activations(setting):
    assert "dweight_hr" in read_again(subject("lstm", setting, projected=True))
    assert "slope" in read_again(subject("rnn", setting, nonlinearity="relu"))


def latex(equations: tuple[DerivedEquation, ...]) -> list[str]:
    return [
        f"{to_latex(each.left)} {'<-' if each.updates else '='} {to_latex(each.right)}"
        for each in equations
        if not each.again and not each.says_nothing
    ]


D = r"\frac{\partial L}{\partial %s}"


def test_an_rnn_reads_as_backpropagation_through_time():
    derivation = derive(subject("rnn"))
    assert latex(derivation.forward) == [
        r"a_{t} = x_{t} W_{\text{ih}}^{\top} + b_{\text{ih}} + b_{\text{hh}}"
        r" + h_{t - 1} W_{\text{hh}}^{\top}",
        r"h_{t} = f (a_{t})",
        r"y_{t} = h_{t}",
    ]
    assert latex(derivation.backward)[:5] == [
        r"f_{t}^{\prime} = 1 - h_{t}^{2}",
        rf"{D % 'h_{t}'} <- {D % 'h_{t}'} + {D % 'y_{t}'}",
        rf"{D % 'a_{t}'} = {D % 'h_{t}'} \odot f_{{t}}^{{\prime}}",
        rf"{D % 'h_{t - 1}'} = {D % 'a_{t}'} W_{{\text{{hh}}}}",
        rf"{D % 'x_{t}'} = {D % 'a_{t}'} W_{{\text{{ih}}}}",
    ]
    transposed = rf"{{\left( {D % 'a_{t}'} \right)}}^{{\top}}"
    weight = D % r"W_{\text{hh}}"
    assert rf"{weight} = \sum_{{t = 1}}^{{T}} {transposed} h_{{t - 1}}" in latex(
        derivation.backward
    )
    loops = {to_latex(each.loop) for each in derivation.backward if each.loop is not None}
    assert loops == {r"t = T, \cdots, 1"}


def test_padding_is_where_the_step_is_beyond_the_length():
    forward = latex(derive(subject("gru", "ragged")).forward)
    assert forward[0].endswith(
        r"\begin{cases} x_{t} & \text{if } t \leq \ell \\ 0 & \text{otherwise} \end{cases}"
    )
    assert any(
        each.startswith("h_{t} = ") and r"t \leq \ell \\ h_{t - 1}" in each for each in forward
    )


def test_a_gradient_that_has_two_values_in_a_step_has_two_symbols():
    """In padding the cell's gradient goes on as it came, without what the step would add."""
    backward = latex(derive(subject("lstm", "ragged")).backward)
    (line,) = (each for each in backward if each.startswith(D % "c_{t - 1}"))
    anew = D % r"c_{t}^{\prime}"
    assert rf"{anew} \odot f_{{t}}" in line
    assert rf"{D % 'c_{t}'} & \text{{otherwise}}" in line


# Loops of users


def moving(x):
    total = x[0]
    for t in range(1, x.shape[0]):
        total = 0.5 * total + x[t]
    return total, x.shape[0]


def averaged(x):
    h = x[0]
    hs = [h]
    for t in range(x.shape[0]):
        h = h + x[t] / (t + 1) + 0.5 * t
        hs = [*hs, h]
    last = hs[-1] * x[-1]
    return last, x


def backwards(x, h0):
    h = h0
    hs = []
    for t in reversed(range(x.shape[0])):
        h = np.tanh(x[t] + 0.5 * h)
        hs = [h, *hs]
    return h, (hs, x)


def backwards_backward(dh, cache):
    hs, _ = cache
    dxs = []
    for t in range(len(hs)):
        da = dh * (1.0 - hs[t] * hs[t])
        dxs = [*dxs, da]
        dh = 0.5 * da
    dx = np.stack(dxs)
    return dx, dh


def downwards(dy, x):
    dx = np.zeros_like(x)
    for t in range(x.shape[0] - 1, -1, -1):
        dx[t] = dy * x[t]
    return dx


def nested(x):
    total = x
    for i in range(2):
        for j in range(2):
            total = total + x * (i + j)
    return total, x


def times(dy, x):
    dx = dy * x
    return dx


def same(dy, count):
    return dy


def loops_of(forward: Any, backward: Any, **arrays: Any) -> list[tuple[str, bool, bool]]:
    """The counter of every loop over steps, whether it is reversed, and whether of backward."""
    runs = NotesRecorder().runs(Subject("pair", forward, backward, arrays, {}, None))
    own = {False: statements(runs.forward), True: statements(runs.backward)}
    found = find_loops(runs, own).values()
    return [(each.counter, each.is_reversed, each.of_backward) for each in found]


def test_loops_over_steps():
    x = np.ones(3)
    assert loops_of(averaged, times, x=x) == [("t", False, False)]
    assert loops_of(moving, same, x=x) == []  # does not begin at the first step
    assert loops_of(nested, times, x=x) == []
    assert loops_of(averaged, downwards, x=x)[1] == ("t", True, True)
    assert loops_of(backwards, backwards_backward, x=np.ones((4, 3)), h0=np.ones(3)) == [
        ("t", True, False),
        ("t", False, True),
    ]


def test_a_loop_against_time_reads_the_step_after():
    rng = np.random.default_rng(0)
    arrays = {"x": rng.standard_normal((4, 3)), "h0": rng.standard_normal(3)}
    found = Subject(
        "backwards", backwards, backwards_backward, arrays, {}, rng.standard_normal(3), ("x", "h0")
    )
    derivation = derive(found)
    assert latex(derivation.forward) == [
        "h_{5} = h_{0}",
        r"h_{t} = \tanh \left( x_{t} + \frac{h_{t + 1}}{2} \right)",
    ]
    assert latex(derivation.backward)[:2] == [
        rf"{D % 'a_{t}'} = {D % 'h_{t}'} \odot (1 - h_{{t}}^{{2}})",
        rf"{D % 'h_{t + 1}'} = \frac{{1}}{{2}} {D % 'a_{t}'}",
    ]
    assert {"h", "da", "dh"} <= set(read_again(found))


def test_steps_count_from_1_and_their_number_as_the_code_does():
    x = np.asarray([2.0, 3.0])
    derivation = derive(Subject("averaged", averaged, times, {"x": x}, {}, np.ones(())))
    assert latex(derivation.forward) == [
        "h_{0} = x_{1}",
        r"h_{t} = h_{t - 1} + \frac{x_{t}}{t} + \frac{t - 1}{2}",
        r"s^{\ast} = h_{2} x_{2}",
        r"y = s^{\ast}",
    ]
