from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError
from handgrad.layers import Layer
from handgrad.losses import BY_NAME, CrossEntropy, CTCLoss, Loss, SquaredError, Weighted
from handgrad.optimizers import BY_NAME as OPTIMIZERS
from handgrad.optimizers import Adam, Momentum
from tests.layers.cases import CASES
from tests.layers.cases import Case as LayerCase
from tests.onnx.running import MODELS as WHOLE
from tests.onnx.running import Case as WholeCase
from tests.onnx.running import made, session
from tests.onnx.trained import trained
from tests.tolerances import assert_close

onnx = pytest.importorskip("onnx")

#: Their gradient is 0 but for rounding: a key's bias moves all scores of a query alike.
WITHOUT_GRADIENT = "k_proj.bias"


class Trained(NamedTuple):
    """A model, and the shape, the classes and the steps of its batches."""

    model: Any
    shape: tuple[int, ...]
    classes: int
    tokens: bool = False

    def made(self, dtype: Any) -> Layer:
        return self.model(rng=np.random.default_rng(0), dtype=dtype)

    def loss(self) -> Loss:
        return CrossEntropy(class_axis=-1) if self.tokens else CrossEntropy()

    def batch(self, dtype: Any) -> Any:
        def make(rng: np.random.Generator) -> Any:
            if self.tokens:
                return tuple(rng.integers(0, self.classes, (2, *self.shape)))
            x = rng.standard_normal(self.shape).astype(dtype)
            return x, rng.integers(0, self.classes, self.shape[0])

        return make


MODELS = {
    "mlp": Trained(lambda **k: hg.MLP([20, 32, 5], **k), (16, 20), 5),
    "cnn": Trained(
        lambda **k: hg.CNN((1, 8, 8), [4, 6], 5, hidden=16, batch_norm=True, **k), (8, 1, 8, 8), 5
    ),
    "lstm": Trained(lambda **k: hg.SequenceClassifier(3, 8, 4, cell="lstm", **k), (8, 6, 3), 4),
    "gpt": Trained(
        lambda **k: hg.GPT(11, context=8, width=12, heads=2, blocks=2, **k), (4, 8), 11, tokens=True
    ),
}
MADE = {"momentum": lambda: Momentum(0.05), "adam": lambda: Adam(1e-3)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("optimizer", MADE)
@pytest.mark.parametrize(
    "name",
    [name if name == "mlp" else pytest.param(name, marks=pytest.mark.slow) for name in MODELS],
)
def test_a_hundred_steps_are_those_of_handgrad(name: str, optimizer: str, dtype: str, tmp_path):
    case = MODELS[name]
    steps = list(
        trained(
            case.made(dtype),
            case.loss(),
            MADE[optimizer](),
            case.batch(dtype),
            tmp_path / "training.onnx",
            steps=100,
        )
    )
    assert len(steps) == 100
    for number, (ours, theirs) in enumerate(steps):
        for key in ours if number == 99 else ["loss"]:
            if not key.endswith(WITHOUT_GRADIENT):
                assert_close(theirs[key], ours[key], f"ONNX training, {dtype}", f"{name} {key}")


def _trainable(case: LayerCase) -> tuple[Layer, tuple[int, ...]]:
    """The layer of a case, with a dense one behind it where it has no parameters."""
    layers = [case.make(np.random.default_rng(0))]
    y, _ = hg.Sequential(*layers).forward(case.batch(), training=True)
    if not layers[0].parameters:
        layers.append(hg.Dense(y.shape[-1], 3, rng=np.random.default_rng(1), dtype=np.float64))
        y, _ = hg.Sequential(*layers).forward(case.batch(), training=True)
    return hg.Sequential(*layers), y.shape


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_two_steps_of_every_layer(case: LayerCase, tmp_path) -> None:
    model, shape = _trainable(case)

    def make(rng: np.random.Generator) -> Any:
        x = rng.integers(0, 7, case.shape) if case.tokens else rng.standard_normal(case.shape)
        for column in case.levels:
            x[:, column] = rng.integers(0, 3, len(x)) + 0.25
        return x, rng.standard_normal(shape)

    path = tmp_path / "training.onnx"
    for ours, theirs in trained(model, SquaredError(), Momentum(0.1), make, path, steps=2):
        for key in ours:
            assert_close(theirs[key], ours[key], "other arrays", f"{case.name} {key}")


def _inputs(model: Layer, lengths: bool, rng: np.random.Generator) -> tuple[Any, ...]:
    """Random inputs of a model, three examples."""
    tokens, some = rng.integers(0, 7, (3, 5)), np.array([5, 3, 1])
    further = (some,) if lengths else ()
    match model:
        case hg.GPT() | hg.Llama() | hg.Bert():
            return (tokens,)
        case hg.SequenceTagger():
            return (tokens, *further)
        case hg.SequenceClassifier():
            return (rng.standard_normal((3, 5, 4), np.float32), *further)
        case hg.Seq2Seq() | hg.Transformer():
            vectors = isinstance(model, hg.Seq2Seq) and model.source is None
            sources = rng.standard_normal((3, 5, 4), np.float32) if vectors else tokens
            return sources, some, rng.integers(0, 7, (3, 4))
        case hg.TwoLayerNet():
            return (rng.standard_normal((3, 4, 5), np.float32),)
        case hg.ClsEncoder():
            return (rng.standard_normal((3, 4, 5), np.float32),)
        case hg.MultiHeadAttention():
            return (rng.standard_normal((3, 5, 8), np.float32),)
        case hg.CNN():
            return (rng.standard_normal((3, 1, 8, 9), np.float32),)
    return (rng.standard_normal((3, 5), np.float32),)


#: Lengths of a Bert are by keyword, and no input of a training step.
STEPPED = [case for case in WHOLE if not (case.name.startswith("bert") and case.settings)]


@pytest.mark.slow
@pytest.mark.parametrize("case", STEPPED, ids=lambda case: case.name)
def test_two_steps_of_every_model(case: WholeCase, tmp_path) -> None:
    model, lengths = made(case), bool(case.settings)
    y, _ = model.forward(*_inputs(model, lengths, np.random.default_rng(0)))

    def make(rng: np.random.Generator) -> Any:
        return _inputs(model, lengths, rng), rng.standard_normal(y.shape, np.float32)

    path = tmp_path / "training.onnx"
    for ours, theirs in trained(model, SquaredError(), Momentum(0.01), make, path, steps=2):
        for key in ours:
            assert_close(theirs[key], ours[key], "float32", f"{case.name} {key}")


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("loss", sorted({*BY_NAME} - {"mse", "bce"}))
def test_every_optimizer_and_loss(name: str, loss: str, tmp_path) -> None:
    model = hg.MLP([4, 6, 3], rng=np.random.default_rng(0), dtype=np.float64)
    kind = OPTIMIZERS[name]
    settings = {"weight_decay": 0.01} if name != "nesterov" else {}

    def make(rng: np.random.Generator) -> Any:
        target = rng.integers(0, 3, 5) if loss == "cross_entropy" else rng.random((5, 3))
        return rng.standard_normal((5, 4)), target

    path = tmp_path / "training.onnx"
    for ours, theirs in trained(
        model, BY_NAME[loss](), kind(0.01, **settings), make, path, steps=3
    ):
        for key in ours:
            assert_close(theirs[key], ours[key], "other arrays", key)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_labels_without_times(zero_infinity: bool, tmp_path) -> None:
    model = hg.Sequential(hg.Dense(4, 3, rng=np.random.default_rng(0), dtype=np.float64))
    loss = CTCLoss(zero_infinity=zero_infinity)

    def make(rng: np.random.Generator) -> Any:
        labels = np.array([[1, 2, 1], [1, 1, 0], [2, 2, 2]])
        # Two equal labels need a blank between them, so the last ones have no path where that is 0.
        steps = np.array([6, 4, 3 if zero_infinity else 5])
        return rng.standard_normal((3, 6, 4)), (labels, steps, np.array([3, 2, 3]))

    path = tmp_path / "training.onnx"
    for ours, theirs in trained(model, loss, Adam(0.01), make, path, steps=3):
        for key in ours:
            assert_close(theirs[key], ours[key], "other arrays", key)


def test_weights_of_examples_are_a_target(tmp_path) -> None:
    model = hg.Sequential(hg.Dense(4, 3, rng=np.random.default_rng(0), dtype=np.float64))

    def make(rng: np.random.Generator) -> Any:
        return rng.standard_normal((5, 4)), (rng.integers(0, 3, 5), rng.random(5))

    loss, path = Weighted(CrossEntropy(reduction="none")), tmp_path / "training.onnx"
    for ours, theirs in trained(model, loss, Momentum(0.1), make, path, steps=3):
        for key in ours:
            assert_close(theirs[key], ours[key], "other arrays", key)


def test_lengths_are_an_input(tmp_path) -> None:
    model = hg.SequenceTagger(3, 5, 4, rng=np.random.default_rng(0), dtype=np.float64)

    def make(rng: np.random.Generator) -> Any:
        lengths = np.array([6, 2, 4, 1])
        return (rng.standard_normal((4, 6, 3)), lengths), rng.integers(0, 4, (4, 6))

    loss, path = CrossEntropy(class_axis=-1), tmp_path / "training.onnx"
    for ours, theirs in trained(model, loss, Adam(0.01), make, path, steps=3):
        for key in ours:
            assert_close(theirs[key], ours[key], "other arrays", key)


def test_the_state_to_start_from_is_a_graph_too(tmp_path) -> None:
    model = hg.MLP([4, 6, 3], rng=np.random.default_rng(0))
    batch = np.zeros((5, 4), np.float32), np.zeros(5, np.int64)
    paths = tmp_path / "training.onnx", tmp_path / "start.onnx"
    state = hg.export_training(model, CrossEntropy(), Adam(), paths[0], batch, start=paths[1])
    start = session(paths[1])
    assert not start.get_inputs()
    names = [each.name for each in start.get_outputs()]
    found = dict(zip(names, start.run(None, {}), strict=True))
    assert found.keys() == state.keys()
    assert state.keys() == {f"{part}{name}" for part in ("", "m.", "v.") for name in names[:4]}
    for name, array in found.items():
        np.testing.assert_array_equal(array, state[name])
        np.testing.assert_array_equal(array, model.parameters.get(name, np.zeros_like(array)))


def test_a_graph_goes_on_where_training_stopped(tmp_path) -> None:
    rng = np.random.default_rng(3)
    model = hg.MLP([4, 6, 3], rng=rng, dtype=np.float64)
    optimizer = Adam(0.01)
    gradients = {name: rng.standard_normal(each.shape) for name, each in model.parameters.items()}
    optimizer.step(model.parameters, gradients)
    batch = rng.standard_normal((5, 4)), rng.integers(0, 3, 5)
    path = tmp_path / "training.onnx"
    state = hg.export_training(model, CrossEntropy(), optimizer, path, batch)
    np.testing.assert_array_equal(state["m.linear1.bias"], optimizer.state["m.linear1.bias"])
    feeds = {"x": batch[0], "target": batch[1], "lr": np.asarray(0.01), "step": np.asarray(1)}
    loss, *new = session(path).run(None, feeds | state)
    y, cache = model.forward(batch[0], training=True)
    value, loss_cache = CrossEntropy().forward(y, batch[1])
    _, gradients = model.backward(CrossEntropy().backward(loss_cache), cache)
    optimizer.step(model.parameters, gradients)
    assert_close(loss, value, "other arrays", "loss")
    assert_close(new[0], next(iter(model.parameters.values())), "other arrays", "the first")


def test_what_a_graph_trained_goes_back(tmp_path) -> None:
    rng = np.random.default_rng(3)
    model, other = (hg.MLP([4, 6, 3], rng=rng, dtype=np.float64) for _ in range(2))
    optimizer, again = Adam(0.01), Adam(0.01)

    def make(rng: np.random.Generator) -> Any:
        return rng.standard_normal((5, 4)), rng.integers(0, 3, 5)

    path = tmp_path / "training.onnx"
    (*_, (_, state)) = trained(model, CrossEntropy(), optimizer, make, path, steps=3)
    other.update_parameters({name: state[name] for name in other.parameters})
    slots = {name: state[name] for name in optimizer.state if name != "step"}
    again.load_state({"step": np.asarray(3), **slots})
    gradients = {name: rng.standard_normal(each.shape) for name, each in model.parameters.items()}
    optimizer.step(model.parameters, gradients)
    again.step(other.parameters, gradients)
    for name, array in model.parameters.items():
        assert_close(other.parameters[name], array, "other arrays", name)


def test_operators_are_those_of_the_standard(tmp_path) -> None:
    path = tmp_path / "training.onnx"
    batch = np.zeros((2, 1, 8, 8), np.float32), np.zeros(2, np.int64)
    model = hg.CNN((1, 8, 8), [4], 3, rng=np.random.default_rng(0), dropout=0.5)
    hg.export_training(model, CrossEntropy(), Adam(), path, batch)
    proto = onnx.load(path)
    assert [(each.domain, each.version) for each in proto.opset_import] == [("", 17)]
    assert {node.domain for node in proto.graph.node} == {""}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "mlp"}, "model is 'mlp'; allowed: a layer"),
        ({"loss": "mse"}, "loss is 'mse'; allowed: a loss"),
        ({"optimizer": None}, "optimizer is None; allowed: an optimizer"),
        ({"batch": np.zeros(3)}, "batch is an array"),
        ({"loss": CrossEntropy(reduction="none")}, r"the loss has shape \(5,\)"),
    ],
)
def test_refusals(changed: dict[str, Any], said: str, tmp_path) -> None:
    given = {
        "model": hg.MLP([4, 3], rng=np.random.default_rng(0)),
        "loss": CrossEntropy(),
        "optimizer": Adam(),
        "path": tmp_path / "training.onnx",
        "batch": (np.zeros((5, 4), np.float32), np.zeros(5, np.int64)),
    }
    with pytest.raises(ArgumentError, match=said):
        hg.export_training(**(given | changed))
    assert not (tmp_path / "training.onnx").exists()
