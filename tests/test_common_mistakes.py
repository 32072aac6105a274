"""Mistakes of people who come from PyTorch, Keras, scikit-learn and NumPy, and their sentences.

Each row is a line of code, the error that it ends in and a part of the sentence, which says what
was meant or what is allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import ArgumentError, DataError, HandgradWarning, ShapeError

MISTAKES: list[tuple[str, type[Exception], str]] = [
    # -- names -------------------------------------------------------------------------------------
    ("hg.Conv2D(1, 8, 3)", AttributeError, "no attribute 'Conv2D'; write hg.Conv2d"),
    ("hg.nn.Linear(4, 3)", AttributeError, "no attribute 'nn'; write hg.layers, whose classes are"),
    ("hg.Linear(4, 3)", AttributeError, "no attribute 'Linear'; write hg.Dense"),
    ("hg.optim.Adam()", AttributeError, "no attribute 'optim'; write hg.optimizers"),
    ("hg.Adam(lr=0.1)", AttributeError, "no attribute 'Adam'; write hg.optimizers.Adam"),
    ("hg.ReLU()", AttributeError, "no attribute 'ReLU'; write hg.Activation(\"relu\")"),
    ("hg.BatchNorm2d(3)", AttributeError, "no attribute 'BatchNorm2d'; write hg.BatchNorm"),
    ("hg.CrossEntropyLoss()", AttributeError, "write hg.losses.CrossEntropy"),
    ("hg.losses.MSELoss()", AttributeError, "no attribute 'MSELoss'; write hg.losses.SquaredError"),
    ("hg.optimizers.Adm()", AttributeError, "no attribute 'Adm'; write hg.optimizers.Adam"),
    ("hg.ops.layernorm", AttributeError, "write hg.ops.layer_norm"),
    ("hg.initializers.glorot_uniform", AttributeError, "write hg.initializers.xavier_uniform"),
    ("hg.tensor([1.0])", AttributeError, "write an array of NumPy, in np.float32"),
    ("hg.no_grad()", AttributeError, "write y = model(x), which keeps nothing for backward"),
    ("hg.DataLoader(x)", AttributeError, "write hg.Trainer, which makes the batches"),
    # -- making layers -----------------------------------------------------------------------------
    (
        "hg.Sequential([dense])",
        ArgumentError,
        "a list; allowed: a layer; write hg.Sequential(*layers)",
    ),
    (
        "hg.Sequential(hg.Flatten)",
        ArgumentError,
        "is the class Flatten; allowed: a layer; write Fl",
    ),
    (
        "hg.Sequential(dense, np.tanh)",
        ArgumentError,
        "layers[1] is a numpy.ufunc; allowed: a layer",
    ),
    ("hg.Dense(4, 3, rng=0)", ArgumentError, "write rng=np.random.default_rng(0)"),
    ("hg.Dense(4, 3, rng)", ArgumentError, "argument 3 is given without a name; allowed without"),
    (
        "hg.Dense(4, rng=rng)",
        ArgumentError,
        "Dense: out_features is missing; needed: in_features, out_features",
    ),
    ("hg.Dense(4.0, 3, rng=rng)", ArgumentError, "in_features is 4.0; allowed: an integer"),
    ("hg.Dense(-4, 3, rng=rng)", ArgumentError, "Dense: in_features is -4; allowed: 1 or more"),
    (
        "hg.Dense(4, 2**62, rng=rng)",
        ArgumentError,
        "Dense: out_features is 4611686018427387904; al",
    ),
    ("hg.LayerNorm(2**62)", ArgumentError, "a size whose arrays a memory could hold"),
    ("hg.Dense(4, 3, rng=rng, units=3)", ArgumentError, "units is unknown; allowed: in_features,"),
    ("hg.Dense(4, 3, rng=rng, actvation='relu')", ArgumentError, "; did you mean activation?"),
    ("hg.Dense(4, 3, rng=rng, activation=np.tanh)", ArgumentError, "allowed: identity, relu,"),
    ("hg.Dense(4, 3, rng=rng, initializer='he')", ArgumentError, "allowed: a function of hg.init"),
    ("hg.Dense(4, 3, rng=rng, dtype=int)", ArgumentError, "dtype is the class int; allowed: np.fl"),
    ("hg.Conv2d(1, 2, 3, rng=rng, strides=2)", ArgumentError, "strides is unknown; allowed: "),
    ("hg.Dropout(50, rng=rng)", ArgumentError, "Dropout: p is 50; allowed: 0 to 1"),
    ("hg.MLP(4, 3, 2, rng=rng)", ArgumentError, "allowed without one: sizes; with one: rng="),
    # -- data --------------------------------------------------------------------------------------
    ("hg.data.load('mnist')", DataError, "in Python hg.data.load('mnist', PATH), where PATH is"),
    ("hg.data.load('digit')", DataError, "did you mean digits?"),
    ("data.x_test.mean()", AttributeError, "no attribute 'mean'; write x[:].mean, because x[:] is"),
    ("data.x_test / 255", ArgumentError, "allowed: indexing, which gives arrays; write x[:]"),
    ("model.forward(data.x_test)", ArgumentError, "write x = np.asarray(x, dtype=np.float32)"),
    ("data.images", AttributeError, "write data.x_train and data.x_test, of which [:] is an array"),
    ("x, y = data", ArgumentError, "write x, y = data.x_train[:], data.y_train"),
    # -- calling models ----------------------------------------------------------------------------
    ("model.forward(x.tolist())", ArgumentError, "x is a list; allowed: an array; write x = np.as"),
    (
        "model.forward(x.reshape(-1, 32))",
        ShapeError,
        "allowed: (..., 64), because weight has shape",
    ),
    ("model.forward(model.forward(x))", ArgumentError, "because forward returns both"),
    ("model.forward(x, train=True)", ArgumentError, "train is unknown; allowed: x, training"),
    ("model.forward(x, y)", ArgumentError, "argument 2 is given without a name; allowed without"),
    ("model.forward(x.astype(np.float64))", HandgradWarning, "write x = x.astype(np.float32)"),
    (
        "model.forward((x * 16).astype(np.uint8))",
        HandgradWarning,
        "of images x.astype(np.float32) /",
    ),
    ("model.fit(x, y)", AttributeError, "write hg.Trainer(model).fit(x, y, epochs=5)"),
    ("model.predict(x)", AttributeError, "no attribute 'predict'; write y = model(x)"),
    ("model.apply(x)", AttributeError, "no attribute 'apply'; write y = model(x)"),
    (
        "model.load('m.safetensors')",
        AttributeError,
        "write hg.load(path) for all of it, model.",
    ),
    (
        "hg.save_model(model, 'm')",
        AttributeError,
        "no attribute 'save_model'; write hg.save(model, path), and hg.",
    ),
    ("model.eval()", AttributeError, "write model.forward(x, training=True) to train, model(x) to"),
    ("model.zero_grad()", AttributeError, "write nothing: backward returns new gradients"),
    ("model.state_dict()", AttributeError, "write model.parameters and model.buffers"),
    ("model.to('cuda')", AttributeError, "write nothing: handgrad computes on the CPU"),
    ("model.parameters()", ArgumentError, "allowed: model.parameters, a dictionary"),
    ("model.parameters['1.wieght']", KeyError, "allowed: 1.weight, 1.bias"),
    (
        "model.parameters['1.bias'] = x",
        ShapeError,
        "'1.bias' has shape (5, 1, 8, 8); allowed: (10,)",
    ),
    ("model.parameters['0.bias'] = x", ArgumentError, "'0.bias' is unknown; allowed: 1.weight, "),
    ("model.update_parameters([x])", ArgumentError, "a list is given; allowed: a mapping of names"),
    ("model.backward(dy, x)", ArgumentError, "write y, cache = model.forward(x)"),
    ("model.backward(dy[:2], cache)", ShapeError, "allowed: float32 and (5, 10), as y"),
    ("hg.ops.relu(x)", ArgumentError, "write y, cache = hg.ops.relu.forward(x, ...)"),
    ("hg.ops.softmax.forward(x, dim=1)", ArgumentError, "argument 'dim'; allowed: x, axis"),
    ("hg.ops.relu.forward(x.astype(int))", ArgumentError, "write x = x.astype(np.float32)"),
    # -- losses and optimizers ---------------------------------------------------------------------
    ("loss(scores, cache)", ArgumentError, "allowed: an array of floats, or an array of integers"),
    ("loss.forward(y, scores)", ArgumentError, "write loss.forward(y, target)"),
    ("loss.forward(model.forward(x), y)", ArgumentError, "because forward returns both"),
    ("loss.forward(scores, y + 10)", ArgumentError, "allowed: 0 to 9, or ignore_index = -100"),
    (
        "loss.forward(scores, y.astype(float))",
        ArgumentError,
        "allowed: integers, because its shape",
    ),
    ("loss.backward(scores)", ArgumentError, "write value, cache = loss.forward(y, target)"),
    (
        "hg.losses.CrossEntropy('sum')",
        ArgumentError,
        "allowed without one: none; with one: weight=",
    ),
    (
        "hg.optimizers.Adam(learning_rate=0.1)",
        ArgumentError,
        "learning_rate is unknown; allowed: lr",
    ),
    ("hg.optimizers.Adam(lr='0.1')", ArgumentError, "Adam: lr is '0.1'; allowed: a finite number"),
    ("hg.optimizers.Adam(model.parameters)", ArgumentError, "write Adam(lr=0.001), and optimizer."),
    (
        "hg.optimizers.Adam(lr=hg.optimizers.Constant(1))",
        ArgumentError,
        "write hg.Trainer(..., sch",
    ),
    ("optimizer.zero_grad()", AttributeError, "write nothing: backward returns new gradients"),
    (
        "optimizer.step(model, gradients)",
        ArgumentError,
        "write optimizer.step(model.parameters, gr",
    ),
    (
        "optimizer.step(gradients, model.parameters)",
        ArgumentError,
        "allowed: what backward returned",
    ),
    # -- training ----------------------------------------------------------------------------------
    (
        "hg.Trainer([dense])",
        ArgumentError,
        "model is a list; allowed: a layer; write hg.Sequential",
    ),
    (
        "hg.Trainer(model, hg.losses.CrossEntropy)",
        ArgumentError,
        "allowed: an object, CrossEntropy()",
    ),
    ("hg.Trainer(model, optimizer='adm')", ArgumentError, "optimizer is 'adm'; allowed: sgd, "),
    ("hg.Trainer(model, criterion=loss)", ArgumentError, "criterion is unknown; allowed: model, "),
    ("hg.Trainer(model, epochs=3)", ArgumentError, "write trainer.fit(x, y, epochs=...)"),
    ("hg.Trainer(model, batch_size=2.5)", ArgumentError, "batch_size is 2.5; allowed: an integer"),
    ("hg.Trainer(model, augment='flip')", ArgumentError, "write augment=hg.training.Shift(1)"),
    (
        "hg.Trainer(model, callbacks=hg.training.EarlyStopping(3))",
        ArgumentError,
        "write callbacks=[hg.training.EarlyStopping(patience=3)]",
    ),
    (
        "hg.Trainer(model).fit(x, y)",
        ArgumentError,
        "epochs is missing; needed: x, epochs; write epochs=10",
    ),
    (
        "hg.Trainer(model).fit(x, y, epochs='3')",
        ArgumentError,
        "epochs is '3'; allowed: an integer",
    ),
    (
        "hg.Trainer(model).fit(x, y, epochs=1, batch_size=2)",
        ArgumentError,
        "write hg.Trainer(model, batch_size=...)",
    ),
    (
        "hg.Trainer(model).fit(x, y[:2], epochs=1)",
        ShapeError,
        "x has 5 examples and y 2; allowed: ",
    ),
    ("hg.Trainer(model).fit(x, y + 10, epochs=1)", DataError, "y has the label 10 in row 0; exp"),
    (
        "hg.Trainer(hg.SequenceClassifier(1, 4, 2)).fit(x.reshape(5, 64), y, epochs=1)",
        ShapeError,
        "x has sequences of shape (T,), one number a step; allowed: (T, features); of one feat",
    ),
    (
        "hg.Trainer(conv).fit([x[0, 0], x[0, 0, 1:]], y[:2], epochs=1)",
        DataError,
        "x has images of different heights, 7 to 8; expected one size, as Pillow's image.resize",
    ),
    ("hg.Trainer(model).fit(x * np.nan, y, epochs=1)", DataError, "in row 0"),
    ("hg.Trainer(model).predict(x)", AttributeError, "write trainer.trained.predict(x)"),
    ("hg.Trainer(model).train(x, y)", AttributeError, "write trainer.fit(x, y, epochs=5)"),
    (
        "hg.Trainer(model, progress='off').fit(x, y, epochs=1)['val_loss']",
        KeyError,
        "'val_loss' is unknown; allowed: kind, epoch, step, loss",
    ),
]


@pytest.fixture
def names() -> dict[str, Any]:
    """What stands in the examples: a model of digits after a pass forward and backward."""
    rng, data = np.random.default_rng(0), hg.data.load("digits")
    dense = hg.Dense(64, 10, rng=rng)
    model, loss = hg.Sequential(hg.Flatten(), dense), hg.losses.CrossEntropy()
    x, y = data.x_train[:5], data.y_train[:5]
    scores, cache = model.forward(x)
    dy = loss.backward(loss.forward(scores, y)[1])
    gradients = model.backward(dy, cache)[1]
    optimizer = hg.optimizers.Adam()
    conv = hg.Sequential(hg.Conv2d(8, 2, 3, rng=rng))
    return {"hg": hg, "np": np, **locals()}


@pytest.mark.parametrize(("code", "error", "sentence"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_ends_in_one_sentence(
    code: str,
    error: type[Exception],
    sentence: str,
    names: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HANDGRAD_DATA", raising=False)
    with pytest.raises(error) as found:
        exec(code, names)
    text = str(found.value)
    assert sentence in text
    assert "\n" not in text
    assert len(text) < 420


def test_the_names_that_are_suggested_are_there() -> None:
    """Whatever begins with hg. in a suggestion for a name of another library can be written."""
    for name in ("Linear", "ReLU", "BatchNorm1d", "SimpleRNN", "GlobalAveragePooling2D", "Softmax"):
        with pytest.raises(AttributeError) as found:
            getattr(hg, name)
        written = str(found.value).partition("; write ")[2].partition(",")[0]
        assert eval(written, {"hg": hg}) is not None


def test_a_parameter_that_is_set_is_written_where_it_lies() -> None:
    model = hg.Sequential(hg.Dense(4, 3, rng=np.random.default_rng(0)))
    flat = model.bind()
    model.parameters["0.bias"] = [1.0, 2.0, 3.0]
    model.parameters.update({"0.weight": np.ones((3, 4))})
    flat["0.bias"] = flat["0.bias"] * 2
    assert flat.buffer.tolist() == [1.0] * 12 + [2.0, 4.0, 6.0]
    parameters = dict(model.parameters)
    parameters["0.bias"] = np.zeros(3)
    assert model.parameters["0.bias"].tolist() == [2.0, 4.0, 6.0]


def test_names_of_python_are_no_misspellings() -> None:
    with pytest.raises(AttributeError, match=r"^module 'handgrad' has no attribute '__wrapped__'$"):
        hg.__wrapped__  # noqa: B018
    assert not hasattr(hg, "grad")
    assert not hasattr(hg.Flatten(), "fit")
