"""Layers and models: every line is computed again from what is printed, and from nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from handgrad import layers, losses, models
from handgrad.documents.formulas.formula import (
    Formula,
    FormulaRow,
    Number,
    Operator,
    Script,
    Sign,
    Symbol,
    parts_in,
    row,
)
from handgrad.documents.formulas.latex import to_latex
from handgrad.equations.equations import DerivedEquation
from handgrad.equations.models.chain import Chain
from handgrad.equations.models.composition import input_symbols
from handgrad.equations.models.flow import Flow, flow_of, flow_of_inputs
from handgrad.equations.models.names import Sizes
from handgrad.equations.models.passes import loss_subject, run_forward
from handgrad.equations.models.sample import target_for
from handgrad.equations.models.steps import OpCall
from handgrad.equations.models.symbols import value_gradient
from handgrad.equations.tracing import in_order
from handgrad.ops import gelu
from tests.equations.calculating import Calculator, softmax, without_letters
from tests.equations.reading import replaced
from tests.tolerances import assert_close

F64 = np.float64


class Case(NamedTuple):
    """A model, and inputs of which no two sizes are alike."""

    name: str
    make: Callable[[np.random.Generator], Any]
    inputs: tuple[Any, ...]
    loss: Any = None


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape)


def tokens(high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(8).integers(0, high, shape)


def _with_learned_state(kind: str, rng: np.random.Generator) -> Any:
    layer = getattr(layers, kind)(3, 7, 2, rng=rng, bidirectional=True, learn_h0=True, dtype=F64)
    for name in layer.learned_states:
        getattr(layer, name)[...] = normal(4, 7)
    return layer


LENGTHS = np.array([5, 3])

CASES = [
    Case(
        "dense",
        lambda rng: layers.Dense(5, 3, rng=rng, activation="tanh", dtype=F64),
        (normal(4, 5),),
    ),
    Case("layer-norm", lambda rng: layers.LayerNorm(5, dtype=F64), (normal(3, 2, 5),)),
    Case(
        "layer-norm-without-bias",
        lambda rng: layers.LayerNorm(5, bias=False, dtype=F64),
        (normal(3, 5),),
    ),
    Case("rms-norm", lambda rng: layers.RMSNorm(5, dtype=F64), (normal(3, 5),)),
    Case("standardize", lambda rng: layers.Standardize(), (normal(2, 5, 3),)),
    Case("standardize-vectors", lambda rng: layers.Standardize(), (normal(4, 5),)),
    Case("standardize-rows", lambda rng: layers.Standardize(-1), (normal(2, 5, 3),)),
    Case("flatten", lambda rng: layers.Flatten(), (normal(2, 3, 4),)),
    Case("last-step", lambda rng: layers.LastStep(bidirectional=True), (normal(2, 3, 4),)),
    Case("mean-of-steps", lambda rng: layers.StepPooling("mean"), (normal(2, 3, 4),)),
    Case(
        "mean-of-steps-that-count",
        lambda rng: layers.StepPooling("mean"),
        (normal(4, 5, 3), np.array([5, 3, 0, 2])),
    ),
    Case(
        "learned-positions",
        lambda rng: layers.LearnedPositions(7, 3, rng=rng, dtype=F64),
        (normal(2, 5, 3),),
    ),
    Case("positional-encoding", lambda rng: layers.PositionalEncoding(), (normal(2, 5, 4),)),
    Case(
        "attention",
        lambda rng: layers.MultiHeadAttention(
            6, 3, rng=rng, dropout=0.2, post_dropout=0.3, dtype=F64
        ),
        (normal(4, 5, 6),),
    ),
    Case(
        "add-norm",
        lambda rng: layers.AddNorm(layers.Dense(5, 5, rng=rng, dtype=F64), 5, dtype=F64),
        (normal(3, 5),),
    ),
    Case(
        "block",
        lambda rng: layers.TransformerBlock(
            6, 3, 7, rng=rng, dropout=0.1, norm="post", causal=True, dtype=F64
        ),
        (normal(4, 5, 6),),
    ),
    Case(
        "encoder",
        lambda rng: layers.TransformerEncoder(3, 6, 2, 7, rng=rng, activation="gelu", dtype=F64),
        (normal(4, 5, 6),),
    ),
    Case("rnn", lambda rng: layers.RNN(3, 7, 2, rng=rng, dtype=F64), (normal(2, 5, 3),)),
    Case(
        "gru-from-a-state",
        lambda rng: layers.GRU(3, 7, 2, rng=rng, dtype=F64),
        (normal(4, 5, 3), normal(2, 4, 7)),
    ),
    Case(
        "lstm-from-a-state",
        lambda rng: layers.LSTM(3, 7, rng=rng, dtype=F64),
        (normal(2, 5, 3), (normal(1, 2, 7), normal(1, 2, 7))),
    ),
    Case(
        "leaky-rnn",
        lambda rng: layers.LeakyRNN(3, 7, alpha=0.25, rng=rng, dtype=F64),
        (normal(2, 5, 3),),
    ),
    Case("gru", lambda rng: layers.GRU(3, 7, rng=rng, dtype=F64), (normal(2, 5, 3),)),
    *(
        Case(f"learned-start-of-{kind}", partial(_with_learned_state, kind), (normal(2, 5, 3),))
        for kind in ("GRU", "LSTM")
    ),
    Case(
        "gru-recurrent-bias",
        lambda rng: layers.GRU(3, 7, rng=rng, bias="recurrent", dtype=F64),
        (normal(2, 5, 3),),
    ),
    Case(
        "lstm",
        lambda rng: layers.LSTM(3, 7, 2, rng=rng, bidirectional=True, dropout=0.3, dtype=F64),
        (normal(2, 5, 3),),
    ),
    Case(
        "two-layer-net",
        lambda rng: models.TwoLayerNet(5, 3, 4, 6, rng=rng, dtype=F64),
        (normal(2, 5, 3),),
    ),
    Case(
        "cls-encoder",
        lambda rng: models.ClsEncoder(3, 4, 6, 7, rng=rng, dtype=F64),
        (normal(2, 5, 3),),
    ),
    Case(
        "tagger",
        lambda rng: models.SequenceTagger(3, 4, 6, rng=rng, dtype=F64),
        (normal(2, 5, 3), LENGTHS),
        losses.CrossEntropy(class_axis=-1),
    ),
    Case(
        "classifier",
        lambda rng: models.SequenceClassifier(
            3, 4, 6, rng=rng, cell="gru", pooling="mean", dtype=F64
        ),
        (normal(2, 5, 3), LENGTHS),
        losses.CrossEntropy(),
    ),
    Case(
        "gpt",
        lambda rng: models.GPT(11, context=9, width=6, heads=2, blocks=3, rng=rng, dtype=F64),
        (tokens(11, 4, 5),),
        losses.CrossEntropy(class_axis=-1),
    ),
    Case(
        "transformer",
        lambda rng: models.Transformer(
            11,
            13,
            d_model=6,
            heads=2,
            hidden=9,
            encoder_blocks=1,
            decoder_blocks=1,
            rng=rng,
            dtype=F64,
        ),
        (tokens(11, 4, 7), np.array([7, 3, 2, 1]), tokens(13, 4, 5), np.array([5, 4, 1, 2])),
        losses.CrossEntropy(class_axis=-1),
    ),
    *(
        Case(
            f"seq2seq-{score}-{cell}",
            lambda rng, score=score, cell=cell: models.Seq2Seq(
                11,
                13,
                embedding=3,
                hidden=5,
                decoder_hidden=9 if score == "additive" else None,
                score=score,
                cell=cell,
                encoder="rnn",
                rng=rng,
                dtype=F64,
            ),
            (tokens(11, 2, 7), np.array([7, 3]), tokens(13, 2, 4), np.array([4, 2])),
            losses.CrossEntropy(class_axis=-1),
        )
        for score, cell in (("additive", "gru"), ("cosine", "tanh"), ("dot", "sigmoid"))
    ),
]


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def _slope(name: str) -> Formula:
    return Script(Operator(name), sup=Sign("′"))


#: What words and letters stand for, as the page explains them.
FUNCTIONS: dict[Formula, Callable[..., Any]] = {
    Symbol("sigma"): sigmoid,
    Symbol("f"): np.tanh,
    Operator("relu"): lambda x: np.maximum(x, 0.0),
    Operator("gelu"): lambda x: gelu.forward(x)[0],
    _slope("relu"): lambda x: (x > 0) * 1.0,
    _slope("gelu"): lambda x: gelu.backward(np.ones_like(x), gelu.forward(x)[1]),
    _slope("tanh"): lambda x: 1.0 - np.tanh(x) ** 2,
    Operator("softmax"): softmax,
}
LOSS = "loss"
#: Values that are drawn, so that the page cannot say them.
DRAWN = Operator("Bernoulli")


def chained(case: Case) -> tuple[Flow, Chain, list, Any]:
    model = case.make(np.random.default_rng(0))
    several = len(case.inputs) > 1
    x = case.inputs if several else case.inputs[0]
    flow = (
        flow_of_inputs(copy.deepcopy(model), x)
        if several
        else flow_of(copy.deepcopy(model), x.shape[1:])
    )
    chain = Chain(flow, run_forward(flow, x), Sizes(), "en")
    y = chain.run.values[-1]
    last = None
    if case.loss is not None:
        last = chain.loss(loss_subject(case.loss, y, target_for(case.loss, y)))
    else:
        chain.found.values[flow.output] = np.random.default_rng(1).standard_normal(y.shape)
    steps = [(chain.gathered(node.number), chain.node(node)) for node in reversed(flow.nodes)]
    return flow, chain, steps, last


def pages(case: Case) -> tuple[Calculator, Iterator[OpCall]]:
    """A calculator that knows what is given, and the parts of a page in their order."""
    flow, chain, steps, last = chained(case)
    calculator = Calculator(FUNCTIONS)
    given = [each for each in in_order(case.inputs) if each is not None]
    symbols = input_symbols(flow.nodes[0].layer, case.inputs, 0)
    calculator.values.update(zip(symbols, given, strict=True))
    for node in flow.nodes:
        assert not any(step.is_opaque for _, step in steps)
        if not node.is_sum:
            for name, symbol in chain.symbols_of(node).items():
                calculator.values[symbol] = node.layer.parameters[name]
    for symbol, value in chain.given:
        calculator.values[symbol] = value
    if chain.target is not None:
        calculator.values[chain.target[0]] = chain.target[1]

    def parts() -> Iterator[OpCall]:
        for _, step in reversed(steps):
            yield from step.forward
        if last is not None:  # its op has a test of its own
            for part in (*last.forward, *last.backward):
                yield replace(part, name=LOSS)
        else:
            output = flow.output
            calculator.values[value_gradient(output)] = chain.found.values[output]
        for gathered, step in steps:
            if gathered is not None:
                yield OpCall((gathered,))
            yield from step.backward
            for other in step.others:
                yield from other.parts

    return calculator, parts()


def stated(equation: DerivedEquation) -> Iterator[tuple[Formula, Formula, Any]]:
    """Both sides and the value: of this step in a loop, of every step of a sequence."""
    if equation.here is not None:
        equation = equation.here
    if isinstance(equation.value, list | tuple):
        if len(equation.parts) > 1 and all(map(_is_array, equation.value)):
            whole = np.concatenate(equation.value, axis=-1)
            yield equation.left, equation.right, whole
        for symbol, value in equation.parts:
            yield symbol, symbol, value
    elif len(equation.parts) > 1:
        for step, (symbol, value) in enumerate(equation.parts, start=1):
            yield symbol, replaced(equation.right, Symbol("t"), Number(str(step))), value
        (whole, _), *_ = [*without_letters(equation.left, {Symbol("t")}), (equation.left, [])]
        yield whole, whole, equation.value
    else:
        yield equation.left, equation.right, equation.value


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_printed_gives_every_value(case):
    calculator, parts = pages(case)
    problems = []
    for part in parts:
        for meaning in part.settings:
            if isinstance(meaning.value, int | float):
                calculator.learn(meaning.symbol, meaning.value)
        for equation in part.equations:
            calculator.steps = _steps(equation)
            for left, right, value in stated(equation):
                if left != right and part.name != LOSS and DRAWN not in parts_in(right):
                    problems += _compared(calculator, part, left, right, value)
                calculator.learn(_whole(left)[0], value)
    assert not problems, "\n".join(problems)


def _compared(calculator, part: OpCall, left: Formula, right: Formula, value: Any) -> list[str]:
    symbol, letters = _whole(left)
    try:
        if letters:
            found = calculator.of_entries(right, letters, np.shape(value))
        else:
            found = calculator.result(right, np.shape(value))
        assert_close(found, np.asarray(value, F64), "float64", to_latex(symbol))
    except Exception as error:
        words = f"{type(error).__name__} {str(error)[:200]}"
        return [f"{part.number} {part.name} {to_latex(left)} = {to_latex(right)}: {words}"]
    return []


def _whole(left: Formula) -> tuple[Formula, list[Formula]]:
    """The symbol of which a left side is an entry, and the letters of its place: s for s_i,j."""
    match left:
        case Script(
            base,
            FormulaRow((*before, Sign(","), Symbol("i") as i, Sign(","), Symbol("j") as j)),
            sup,
        ):
            return Script(base, row(*before), sup), [i, j]
        case Script(base, FormulaRow((Symbol("i") as i, Sign(","), Symbol("j") as j)), sup):
            return base if sup is None else Script(base, sup=sup), [i, j]
    return left, []


def _steps(equation: DerivedEquation) -> int:
    """How many steps the loop around an equation has, or those of its value."""
    numbers = [int(each.digits) for each in _numbers(equation.loop)]
    return max(numbers, default=len(equation.parts))


def _numbers(formula: Any) -> Iterator[Number]:
    if isinstance(formula, Number):
        yield formula
    for each in getattr(formula, "parts", ()):
        yield from _numbers(each)
