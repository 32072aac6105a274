"""The workloads of the benchmark: every library computes the same. Nothing is timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import handgrad as hg
from benchmarks import steps, torch_modules, workloads

_TAGGER: dict[str, Any] = {"batch": 3, "steps": 6, "features": 4, "hidden": 8, "classes": 5}

#: Sizes that are done in a moment.
SMALL: dict[str, dict[str, Any]] = {
    "mlp_tiny": {},
    "mlp": {"width": 16},
    "cnn": {"batch": 2},
    "convnet": {"batch": 2, "size": 8},
    "rnn": _TAGGER,
    "lstm": _TAGGER,
    "gru": _TAGGER,
    "lstm_projection": _TAGGER | {"projection": 4},
    "lstm_ragged": _TAGGER,
    "seq2seq": {"batch": 3, "steps": 4, "features": 5, "hidden": 6, "classes": 7},
    "encoder": {"batch": 4, "tokens": 5, "features": 3, "width": 8},
    "encoder_block": {"batch": 2, "steps": 3, "width": 8, "heads": 2, "hidden": 5, "classes": 7},
    "gpt_mini": {"batch": 2, "steps": 6, "vocabulary": 11, "blocks": 2, "width": 8, "heads": 2},
}
#: gpt2_124m is gpt_mini in other sizes, and too large for a test.
TESTED = list(SMALL)


@pytest.mark.parametrize("name", TESTED)
def test_models_give_a_score_for_each_target(name: str) -> None:
    workload = workloads.load(name, **SMALL[name])
    inputs, target = workload.examples()
    model = workload.handgrad(np.random.default_rng(0))
    scores, _ = model.forward(*inputs)
    assert scores.shape[:-1] == target.shape
    assert target.max() < scores.shape[-1]
    assert workload.flops(model) > 0


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("name", TESTED)
def test_pytorch_takes_the_same_steps(name: str) -> None:
    pytest.importorskip("torch")
    _same(name, "torch")


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("name", torch_modules.AIMS)
def test_our_modules_take_the_same_steps_in_pytorchs_loop(name: str) -> None:
    pytest.importorskip("torch")
    own = torch_modules.handgrad(name, SMALL[name])
    theirs = torch_modules.torch(name, SMALL[name])
    assert steps.same_losses(np.array(own.losses), np.array(theirs.losses), "float32")


@pytest.mark.parametrize(
    "name", ["mlp_tiny", "lstm_ragged", "gru", "seq2seq", "encoder", "encoder_block"]
)
def test_jax_takes_the_same_steps(name: str) -> None:
    pytest.importorskip("jax")
    _same(name, "jax")


def test_scikit_learn_takes_the_same_steps() -> None:
    pytest.importorskip("sklearn")
    _same("mlp_tiny", "sklearn")


def _same(name: str, peer: str) -> None:
    own = steps.handgrad(name, SMALL[name])
    theirs = getattr(steps, peer)(name, SMALL[name])
    assert steps.same_losses(np.array(own.losses), np.array(theirs.losses), "float32")
    theirs.run(1)


def test_losses_that_differ_are_seen() -> None:
    own = np.array([2.0, 1.0])
    assert not steps.same_losses(own, own * [1.0, 1.01], "float32")
    assert steps.same_losses(own, own * [1.0, 1.01], "bf16")


def test_ragged_steps_that_do_not_count_are_no_work() -> None:
    workload, full = (
        workloads.load(name, **_TAGGER) for name in ("lstm_ragged", "lstm_projection")
    )
    (_, lengths), target = workload.examples()
    assert np.array_equal(np.sum(target != workloads.IGNORED, axis=1), lengths)
    per_step = workloads.load("lstm_ragged", **_TAGGER).flops(None) / lengths.sum()
    again = workloads.load("lstm_ragged", **(_TAGGER | {"batch": 5}))
    assert again.flops(None) / again.examples()[0][1].sum() == per_step
    assert full.examples()[1].min() >= 0


def test_flops_of_recurrent_layers_by_hand() -> None:
    """rnn: U has no gradient of its input, W and the head have."""
    features, hidden, classes = 4, 8, 5
    weights = 2 * features * hidden + 3 * hidden * hidden + 3 * hidden * classes
    assert workloads.load("rnn", **_TAGGER).flops(None) == 2 * weights * 3 * 6


def test_only_dense_networks_stand_beside_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "multiplies_bf16", lambda: True)
    peers = ["torch", "torch-bf16", "sklearn"]
    dense, other = workloads.load("mlp_tiny"), workloads.load("gru")
    assert steps.contenders(dense, peers) == ["handgrad", "handgrad-bf16", *peers]
    assert steps.contenders(other, peers) == ["handgrad", "handgrad-bf16", *peers[:-1]]
    assert steps.contenders(other, ["torch"]) == ["handgrad", "torch"]


def test_gpt2_has_its_124_million_parameters() -> None:
    described = workloads.load("gpt2_124m")
    (tokens,), _ = described.examples()
    assert tokens.shape == (4, 64)
    width, blocks = 768, 12
    count = (50_257 + 1_024) * width + blocks * (12 * width**2 + 13 * width) + 2 * width
    assert count == 124_439_808
    small = hg.GPT(7, context=3, width=8, heads=2, blocks=2, rng=np.random.default_rng(0))
    assert sum(p.size for p in small.parameters.values()) == 10 * 8 + 2 * (12 * 64 + 13 * 8) + 16
