"""Adapted models beside PyTorch, and adapters beside peft."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from tests.lora.test_adapting import RNG, adapted
from tests.tolerances import assert_close

torch = pytest.importorskip("torch")

SIZES: dict[str, Any] = {
    "vocabulary": 29,
    "context": 16,
    "width": 16,
    "heads": 4,
    "kv_heads": 2,
    "hidden": 24,
    "tied": True,
    "eps": 1e-5,
}
TOKENS = RNG(1).integers(0, 29, (3, 9))


def model() -> Any:
    return adapted(hg.Llama(**SIZES, blocks=2, rng=RNG(0)), alpha=6)


def gradients_of(model: Any) -> tuple[float, dict[str, np.ndarray]]:
    loss = hg.losses.CrossEntropy(class_axis=-1)
    logits, cache = model.forward(TOKENS[:, :-1], training=True)
    value, loss_cache = loss.forward(logits, TOKENS[:, 1:])
    _, gradients = model.backward(loss.backward(loss_cache), cache)
    return float(value), dict(gradients)


def ours(name: str) -> str:
    """The name of one of peft's arrays in our model."""
    parts = name.removeprefix("base_model.model.").split(".")
    kind = "a" if ".lora_A." in name else "b"
    return f"blocks.{parts[2]}.attention.inner.{parts[4]}.lora_{kind}"


@pytest.mark.parametrize("recompute", [False, True])
def test_loss_and_gradients_are_those_of_pytorch(tmp_path: Path, recompute: bool) -> None:
    from benchmarks.finetune_torch import Llama

    found = model()
    hg.Llama(**SIZES, blocks=2, rng=RNG(0)).save_pretrained(tmp_path)
    hg.lora.save(found, tmp_path / "adapter")
    value, gradients = gradients_of(found)
    peer = Llama(tmp_path, SIZES, 2, 6 / 2, recompute=recompute)
    expected = peer.loss(torch.tensor(TOKENS[:, :-1]), torch.tensor(TOKENS[:, 1:]))
    expected.backward()
    assert_close(value, float(expected.detach()), "float32 functions")
    assert len(gradients) == len(peer.adapter)
    for name, parameter in peer.adapter.items():
        assert_close(
            gradients[ours(name.replace("/", "."))], parameter.grad.numpy(), "float32 functions"
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_adapters_go_to_peft_and_come_back(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    found = model()
    hg.Llama(**SIZES, blocks=2, rng=RNG(0)).save_pretrained(tmp_path)
    hg.lora.save(found, tmp_path / "ours")
    base = transformers.LlamaForCausalLM.from_pretrained(tmp_path)
    theirs = peft.PeftModel.from_pretrained(base, tmp_path / "ours").eval()
    with torch.no_grad():
        expected = theirs(torch.tensor(TOKENS)).logits.numpy()
    assert_close(found(TOKENS), expected, "float32 functions")
    theirs.save_pretrained(tmp_path / "theirs")
    again = hg.Llama.from_pretrained(tmp_path)
    hg.lora.load(again, tmp_path / "theirs")
    assert_close(again(TOKENS), found(TOKENS), "float32 functions")
