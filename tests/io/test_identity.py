"""A run is resumed as it was begun: whatever decides its numbers is compared, and named."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import layers, losses, models, optimizers
from handgrad.data import Blocks, Pixels, Sequences
from handgrad.data.sources import as_source
from handgrad.errors import RunError
from handgrad.io.identity import (
    describe_data,
    describe_model,
    describe_settings,
    differences,
)
from handgrad.training import (
    Affine,
    Callback,
    Compose,
    EarlyStopping,
    Flip,
    RunConfig,
    Shift,
    train,
)
from tests.training import problem


class CrashError(Exception):
    pass


class Crash(Callback):
    def on_step(self, trainer: Any) -> None:
        if trainer.step == 3:
            raise CrashError


class Quiet(Crash):
    """Another class, so that the list of callbacks is another one."""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "stopped"
    with pytest.raises(CrashError):
        train(**problem.parts(callbacks=[Crash()], checkpoint_steps=2), out=folder)
    return folder


def config(parts: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {**parts, "config": replace(parts["config"], **settings)}


def data(parts: dict[str, Any], **arrays: Any) -> dict[str, Any]:
    return {**parts, "data": replace(parts["data"], **arrays)}


def dropped(parts: dict[str, Any]) -> dict[str, Any]:
    parts["model"].layers["drop"].p = 0.3
    return parts


def activated(parts: dict[str, Any]) -> dict[str, Any]:
    model = parts["model"]
    changed = {**model.layers, "active": layers.Activation("tanh")}
    return {**parts, "model": layers.Sequential(**changed)}


def normed(parts: dict[str, Any]) -> dict[str, Any]:
    parts["model"].layers["norm"].eps = 1e-3
    return parts


def permuted(parts: dict[str, Any]) -> dict[str, Any]:
    y = parts["data"].y_train
    return data(parts, y_train=np.roll(y, 1))


def reordered(parts: dict[str, Any]) -> dict[str, Any]:
    found = parts["data"]
    return data(parts, x_train=found.x_train[::-1], y_train=found.y_train[::-1])


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "learning rate": (lambda p: {**p, "optimizer": optimizers.Adam(lr=1e-3)}, r"optimizer\.lr"),
    "betas": (
        lambda p: {**p, "optimizer": optimizers.Adam(lr=5e-3, betas=(0.8, 0.999))},
        r"optimizer\.hyperparameters\.beta1",
    ),
    "optimizer": (lambda p: {**p, "optimizer": optimizers.AdamW(lr=5e-3)}, r"optimizer\.type"),
    "schedule": (lambda p: config(p, schedule=optimizers.Constant(5e-3)), "schedule"),
    "no schedule": (lambda p: config(p, schedule=None), "schedule"),
    "lambda": (lambda p: config(p, schedule=lambda step: 5e-3), "schedule"),
    "loss": (lambda p: {**p, "loss": losses.CrossEntropy()}, r"loss\.options\.label_smoothing"),
    "clipping": (lambda p: config(p, clip_norm=1.0), "clip_norm"),
    "accumulate": (lambda p: config(p, accumulate=2), "accumulate"),
    "seed": (lambda p: config(p, seed=12), "seed"),
    "augment": (lambda p: config(p, augment=Affine(rotation=6, shift=0.4)), r"augment\.rotation"),
    "no augment": (lambda p: config(p, augment=None), "augment"),
    "patience": (lambda p: config(p, early_stopping=49), r"callbacks\[1\]\.patience"),
    "callback": (lambda p: config(p, callbacks=[Quiet()]), r"callbacks\[0\]\.type"),
    "dropout": (dropped, r"model\.drop\.p is 0\.3; allowed: 0\.2"),
    "activation": (activated, r"model\.active\.name is 'tanh'; allowed: 'relu'"),
    "norm": (normed, r"model\.norm\.eps"),
    "labels": (permuted, r"data\.train\._targets"),
    "order": (reordered, r"data\.train\._values"),
    "scale": (lambda p: data(p, x_train=p["data"].x_train * 2), r"data\.train\._values"),
    "validation": (
        lambda p: data(p, x_validation=p["data"].x_validation * 2),
        r"data\.validation\._values",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_setting_is_refused_and_named(stopped: Path, name: str) -> None:
    change, message = CHANGES[name]
    parts = problem.parts(callbacks=[Crash()], checkpoint_steps=2)
    before = (stopped / "checkpoint" / "latest.safetensors").read_bytes()
    with pytest.raises(RunError, match=message):
        train(**change(parts), out=stopped, resume=True)
    assert (stopped / "checkpoint" / "latest.safetensors").read_bytes() == before


def test_another_engine_is_refused(stopped: Path) -> None:
    parts = problem.parts(callbacks=[Crash()], checkpoint_steps=2)
    if hg.kernels.native is None:
        pytest.skip("there is one engine here")
    with hg.engine("reference"), pytest.raises(RunError, match="engine is 'reference'; allowed"):
        train(**parts, out=stopped, resume=True)


def test_a_change_on_purpose_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(CrashError):
        train(**problem.parts(callbacks=[Crash()], checkpoint_steps=2), out=folder)

    def changed(*callbacks: Callback) -> dict[str, Any]:
        parts = problem.parts(callbacks=callbacks, checkpoint_steps=2, clip_norm=1.0)
        config: RunConfig = replace(parts["config"], text="clip_norm = 1.0\n")
        return {**parts, "config": config}

    with pytest.raises(CrashError):
        train(**changed(Crash()), out=folder, resume=True, changes="clip_norm=1.0")
    text = (folder / "config.toml").read_text()
    assert text.startswith("clip_norm = 1.0\n# changed after step 2: clip_norm=1.0\n# The run ")
    # From then on it belongs to the run.
    with pytest.raises(RunError, match=r"clip_norm is 5\.0; allowed: 1\.0"):
        train(**problem.parts(callbacks=[Crash()]), out=folder, resume=True)
    quiet = Crash()
    quiet.on_step = lambda trainer: None  # type: ignore[method-assign]
    summary = train(**changed(quiet), out=folder, resume=True)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    changes = [record for record in records if record["kind"] == "change"]
    assert changes == [{"kind": "change", "step": 2, "changes": {"clip_norm": [5.0, 1.0]}}]
    with pytest.raises(RunError, match="the run is finished"):
        train(**changed(quiet), out=folder, resume=True, changes="clip_norm=2.0")
    assert summary["steps"] == 32


def test_a_change_survives_a_kill_before_the_next_checkpoint(tmp_path: Path) -> None:
    """config.toml is written first; what differs from the checkpoint is then meant."""
    folder = tmp_path / "run"
    with pytest.raises(CrashError):
        train(**problem.parts(callbacks=[Crash()], checkpoint_steps=2), out=folder)
    before = (folder / "checkpoint" / "latest.safetensors").read_bytes()
    parts = problem.parts(callbacks=[Crash()], clip_norm=1.0)
    with pytest.raises(CrashError):
        train(**parts, out=folder, resume=True, changes="clip_norm=1.0")
    (folder / "checkpoint" / "latest.safetensors").write_bytes(before)
    with pytest.raises(CrashError):
        train(**problem.parts(callbacks=[Crash()], clip_norm=1.0), out=folder, resume=True)
    (folder / "checkpoint" / "latest.safetensors").write_bytes(before)
    with pytest.raises(RunError, match=r"seed is 12"):
        train(**problem.parts(seed=12, callbacks=[Crash()]), out=folder, resume=True)


# -- descriptions ----------------------------------------------------------------------------------


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


MODELS: list[tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]] = [
    (functools.partial(layers.Dense, 4, 3), {}, {"activation": "relu", "bias": False}),
    (
        functools.partial(layers.Conv2d, 4, 4, 3),
        {},
        {"stride": 2, "padding": 1, "dilation": 2, "groups": 2, "activation": "gelu"},
    ),
    (functools.partial(layers.LSTM, 4, 3), {}, {"num_layers": 2, "bidirectional": True}),
    (functools.partial(layers.RNN, 4, 3), {}, {"nonlinearity": "relu"}),
    (functools.partial(layers.LeakyRNN, 4, 3), {"alpha": 0.5}, {"alpha": 0.25}),
    (
        functools.partial(models.GPT, 8, context=4, width=8, heads=2, blocks=1),
        {},
        {"dropout": 0.1, "approximate": "tanh", "positions": "sinusoidal", "eps": 1e-3},
    ),
    (
        functools.partial(models.MLP, (4, 3, 2)),
        {},
        {"activation": "tanh", "dropout": 0.1},
    ),
    (
        functools.partial(models.Seq2Seq, 5, 6, embedding=4, hidden=4),
        {},
        {"score": "dot", "cell": "tanh", "dropout": 0.2, "feed": False},
    ),
    (
        functools.partial(models.Transformer, 5, 6, d_model=8, heads=2, hidden=8),
        {},
        {"norm": "pre", "activation": "gelu", "dropout": 0.25},
    ),
    (
        functools.partial(models.SequenceClassifier, 4, 3, 2),
        {},
        {"cell": "gru", "pooling": "max", "head_dropout": 0.3},
    ),
]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case[0].func.__name__)
def test_every_setting_of_a_model_is_in_its_description(case: Any) -> None:
    build, usual, others = case
    found = describe_model(build(rng=rng(), **usual))
    json.dumps(found, allow_nan=False)
    assert not list(differences(found, describe_model(build(rng=rng(), **usual))))
    for name, value in others.items():
        other = describe_model(build(rng=rng(), **{**usual, name: value}))
        assert list(differences(found, other)), name


def test_weights_are_no_part_of_a_description() -> None:
    model = problem.model()
    found = describe_model(model)
    for array in (*model.parameters.values(), *model.buffers.values()):
        array += 1
    model.generators["drop.rng"].random()
    assert describe_model(model) == found
    assert describe_model(problem.model(seed=99)) == found


def scaled(factor: float) -> Callable[[int], float]:
    return lambda step: factor * step


class Doubled:
    rate = 0.5

    def __init__(self, power: int) -> None:
        self._power = power
        self._calls = 0

    def __call__(self, step: int) -> float:
        self._calls += 1
        return self.rate * 2**self._power


class Tripled(Doubled):
    rate = 1.5


SETTINGS = [
    [optimizers.SGD(lr=0.1), optimizers.SGD(lr=0.2), optimizers.Momentum(lr=0.1)],
    [scaled(1.0), scaled(2.0), lambda step: step + 1.0, lambda step: step - 1.0],
    [functools.partial(scaled, 1.0), functools.partial(scaled, 2.0)],
    [Doubled(1), Doubled(2), Tripled(1)],
    [optimizers.LinearWarmup(optimizers.Constant(lr), 5) for lr in (0.1, 0.2)],
    [losses.CrossEntropy(weight=np.ones(3) * n) for n in (1, 2)],
    [EarlyStopping(n).settings() for n in (1, 2)],
    [Compose(steps) for steps in ([Flip(0.1)], [Flip(0.2)], [Shift(1)], [Shift(1), Flip(0.1)])],
    [float("nan"), float("inf"), None, np.float32(1), np.int64(1), b"a", b"b", 1 + 2j],
    [{1, 2}, {1, 3}, {"a": {1, 2}}, [1, [2]], [1, 2], list(range(100)), list(range(1, 101))],
]


@pytest.mark.parametrize("values", SETTINGS, ids=lambda values: type(values[0]).__name__)
def test_settings_that_differ_have_descriptions_that_do(values: list[Any]) -> None:
    found = [json.dumps(describe_settings(value), allow_nan=False) for value in values]
    assert len(set(found)) == len(found)
    assert found == [json.dumps(describe_settings(value)) for value in values]


def test_what_a_schedule_remembers_is_no_setting() -> None:
    schedule = Doubled(1)
    found = describe_settings(schedule)
    schedule(3)
    assert describe_settings(schedule) == found


def test_an_object_that_refers_to_itself_has_an_end() -> None:
    one: dict[str, Any] = {}
    one["self"] = one
    json.dumps(describe_settings(one))


def test_data_that_differ_have_descriptions_that_do() -> None:
    x, y = rng().normal(size=(6, 4)).astype(np.float32), np.arange(6) % 2
    tokens = np.arange(40)
    parts = [np.full((n, 2), n, np.float32) for n in (1, 2, 3)]
    sources = [
        as_source((x, y), "train"),
        as_source((x[::-1], y), "train"),
        as_source((x, y[::-1]), "train"),
        as_source((x * 2, y), "train"),
        as_source((x, y), "train", np.float64),
        as_source((np.arange(6), y), "train"),
        as_source((Pixels(np.ones((6, 4), np.uint8), 255), y), "train"),
        as_source((Pixels(np.ones((6, 4), np.uint8), 16), y), "train"),
        Blocks(tokens, 8),
        Blocks(tokens, 8, 3),
        Blocks(np.append(tokens[:-1], 7), 8),
        as_source((Sequences.of(parts), np.arange(3)), "train"),
        as_source((Sequences.of(parts[::-1]), np.arange(3)), "train"),
        as_source((Sequences.of(parts, 1), np.arange(3)), "train"),
    ]
    found = [json.dumps(describe_data(source)) for source in sources]
    assert len(set(found)) == len(found)
    assert describe_data(as_source((x, y), "train")) == json.loads(found[0])
    # The same values in memory of another order are the same data.
    assert describe_data(as_source((np.asfortranarray(x), y), "train")) == json.loads(found[0])


def test_a_source_may_say_what_stands_for_it() -> None:
    class Stream:
        def __init__(self, name: str) -> None:
            self.name, self.read = name, 0

        def fingerprint(self) -> str:
            return self.name

    first = Stream("a")
    found = describe_data(first)
    first.read = 7
    assert describe_data(first) == found != describe_data(Stream("b"))
