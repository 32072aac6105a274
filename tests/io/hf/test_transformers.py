"""Beside transformers itself: what it writes is read here, and what is written here, there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import HandgradError
from tests.golden.make_pretrained import LAYOUTS, MINILM, TEXTS, made, outputs
from tests.io.hf.layouts import layout, outputs_of
from tests.tolerances import assert_close


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYOUTS)
def test_folders_go_both_ways(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    theirs = made(name)
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="2KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 1
    found = layout(name)
    ours = found.kind.from_pretrained(tmp_path / "theirs", **found.settings)
    expected = outputs(name, theirs)["y"]
    assert_close(outputs_of(ours), expected, "float32 functions", name)

    ours.save_pretrained(tmp_path / "ours")
    if name == "bert masked":
        kind = transformers.BertModel
    elif name == "mistral":
        kind = transformers.LlamaForCausalLM
    else:
        kind = type(theirs)
    again = kind.from_pretrained(tmp_path / "ours").eval()
    assert_close(outputs(name, again)["y"], expected, "float32 functions", name)


#: Other values of an entry, by the type of the one that a model of theirs has.
_OTHERS: dict[type, list[Any]] = {
    bool: [True, False, None],
    int: [0, 1, 3, 8, None],
    float: [0.0, 0.5, 2.0, None],
    str: ["relu", "silu", "gelu", "gelu_new", "quick_gelu", "tanh", "relative_key"],
    list: [["full_attention"] * 2, ["sliding_attention"] * 2],
    type(None): [True, 2, 0.5, "x", [0], {"x": 1}],
    dict: [{"rope_type": "linear", "factor": 2.0}, {"rope_theta": 5e5}, {"0": [1]}],
}
#: Entries that say nothing of what goes through a model, or that ours reads otherwise on purpose.
_OTHER_MATTERS = ("model_type", "transformers_version", "return_dict", "dtype")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYOUTS)
def test_another_setting_is_followed_or_refused(name: str, tmp_path: Path) -> None:
    """Every entry of their configuration, changed alone: the same numbers, or a DataError."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    theirs, found = made(name), layout(name)
    theirs.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    plain = json.loads(path.read_text())
    followed = 0
    for entry, value in theirs.config.to_dict().items():
        for other in _OTHERS[type(value)] if entry not in _OTHER_MATTERS else ():
            path.write_text(json.dumps({**plain, entry: other}))
            try:
                again = type(theirs).from_pretrained(tmp_path, dtype=torch.float32).eval()
                expected = outputs(name, again)["y"]
            except Exception:  # they refuse it, each in a way of its own
                continue
            try:
                y = outputs_of(found.kind.from_pretrained(tmp_path, **found.settings))
            except HandgradError:
                continue
            assert_close(y, expected, "float32 functions", f"{entry}={other!r}")
            followed += 1
    assert followed > 20


def _minilm() -> str:
    folder = os.path.join(os.environ.get("HANDGRAD_DATA", ""), "minilm")
    if not os.path.isdir(folder):
        pytest.skip("needs HANDGRAD_DATA with the folder minilm: config.json, model.safetensors")
    return folder


def _golden() -> dict[str, np.ndarray]:
    with np.load(MINILM) as golden:
        return dict(golden)


@pytest.mark.data
def test_minilm_gives_what_transformers_gives() -> None:
    folder, golden = _minilm(), _golden()
    bert = hg.Bert.from_pretrained(folder, pooling="none")
    hidden, _ = bert.forward(golden["tokens"], lengths=golden["lengths"])
    assert_close(hidden[:, 0], golden["first"], "float32 functions", "hidden states")
    means, _ = hg.Bert.from_pretrained(folder, pooling="mean", normalize=True).forward(
        golden["tokens"], lengths=golden["lengths"]
    )
    assert np.abs(means - golden["means"]).max() < 1e-5
    assert means[0] @ means[1] > 0.5 > means[0] @ means[2]


@pytest.mark.data
def test_minilm_has_the_tokens_of_transformers() -> None:
    pytest.importorskip("tokenizers")
    golden = _golden()
    batch = hg.hf.Tokenizer.from_pretrained(_minilm()).batch(TEXTS)
    np.testing.assert_array_equal(batch.tokens, golden["tokens"])
    np.testing.assert_array_equal(batch.lengths, golden["lengths"])
