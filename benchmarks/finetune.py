"""Fine-tuning a Llama of 135 million parameters by LoRA: handgrad beside PyTorch, and peft.

    python -m benchmarks.finetune [--rounds 5] [--burst 10] [--blocks 30] [--recompute]

The layout is that of SmolLM-135M with random weights, the adapter of rank 8 on q_proj and v_proj; a
step takes 4 sequences of 256 tokens through forward, cross-entropy, backward and AdamW. All
contenders read one folder and one adapter and take turns, as `bursts` says. The peer `torch` is the
model in plain PyTorch with its fused functions, `peft` is transformers with peft.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.bursts import compare
from benchmarks.contender import Job
from benchmarks.machine import describe, resident_bytes

SIZES: Final[dict[str, Any]] = {
    "vocabulary": 49_152,
    "context": 2_048,
    "width": 576,
    "heads": 9,
    "kv_heads": 3,
    "hidden": 1_536,
    "tied": True,
    "eps": 1e-5,
}
BATCH: Final = 4
STEPS: Final = 256
RANK: Final = 8
ALPHA: Final = 16.0
LEARNING_RATE: Final = 2e-4
#: Steps whose losses show that all contenders compute the same.
LOSSES: Final = 3


def prepare(folder: Path, blocks: int) -> None:
    """Write the model and its adapter, which are the same for all contenders."""
    import handgrad as hg

    model = hg.Llama(**SIZES, blocks=blocks, rng=np.random.default_rng(0))
    model.save_pretrained(folder)
    hg.lora.save(hg.lora.adapt(model, rank=RANK, alpha=ALPHA), folder / "adapter")


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Tokens and those that follow them, (BATCH, STEPS) each."""
    tokens = np.random.default_rng(1).integers(0, SIZES["vocabulary"], (BATCH, STEPS + 1))
    return tokens[:, :-1], tokens[:, 1:]


def flops(blocks: int) -> int:
    """Of the products with weights in forward and for dx, without attention and the adapter."""
    width, hidden = SIZES["width"], SIZES["hidden"]
    shared = width * SIZES["kv_heads"] // SIZES["heads"]
    of_block = 2 * width * (width + shared) + 3 * width * hidden
    return 2 * 2 * BATCH * STEPS * (blocks * of_block + width * SIZES["vocabulary"])


def _job(step: Callable[[], float], before: int, blocks: int, version: str) -> Job:
    losses = tuple(step() for _ in range(LOSSES))

    def run(count: int) -> None:
        for _ in range(count):
            step()

    return Job(run, version, flops(blocks), losses, before=before)


def handgrad(folder: str, blocks: int, recompute: bool) -> Job:
    import handgrad as hg
    from handgrad.training import TrainingStep

    before = resident_bytes()
    model = hg.Llama.from_pretrained(folder, recompute=recompute)
    hg.lora.load(model, Path(folder) / "adapter")
    parameters, (tokens, targets) = model.bind(), batch()
    gradients = parameters.zeros_like()
    train = TrainingStep(model, hg.losses.CrossEntropy(class_axis=-1), gradients)
    optimizer = hg.optimizers.AdamW(lr=LEARNING_RATE)

    def step() -> float:
        loss = float(train((tokens,), targets))
        optimizer.step(parameters, gradients)
        return loss

    return _job(step, before, blocks, hg.__version__)


def torch(folder: str, blocks: int, recompute: bool) -> Job:
    from benchmarks.finetune_torch import Llama

    before = resident_bytes()
    model = Llama(Path(folder), SIZES, blocks, ALPHA / RANK, recompute=recompute)
    return _torch_job(lambda tokens, targets: model.loss(tokens, targets), model, before, blocks)


def peft(folder: str, blocks: int, recompute: bool) -> Job:
    from peft import PeftModel
    from transformers import LlamaForCausalLM

    before = resident_bytes()
    base = LlamaForCausalLM.from_pretrained(folder, attn_implementation="sdpa")
    model = PeftModel.from_pretrained(base, f"{folder}/adapter", is_trainable=True)
    model.config.use_cache = False
    if recompute:
        base.gradient_checkpointing_enable()
        base.enable_input_require_grads()
    from torch.nn.functional import cross_entropy

    def loss(tokens: Any, targets: Any) -> Any:
        logits = model(input_ids=tokens).logits
        return cross_entropy(logits.flatten(0, 1), targets.flatten())

    return _torch_job(loss, model, before, blocks)


def _torch_job(loss: Callable[[Any, Any], Any], model: Any, before: int, blocks: int) -> Job:
    import torch as library

    model.train()
    trained = [each for each in model.parameters() if each.requires_grad]
    optimizer = library.optim.AdamW(trained, lr=LEARNING_RATE, fused=True)
    tokens, targets = map(library.from_numpy, batch())

    def step() -> float:
        optimizer.zero_grad()
        value = loss(tokens, targets)
        value.backward()
        optimizer.step()
        return float(value.detach())

    return _job(step, before, blocks, library.__version__)


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.finetune")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--burst", type=float, default=10.0, help="seconds of a turn")
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--recompute", action="store_true")
    parser.add_argument("--json", type=Path, help="a file for the result")
    given = parser.parse_args(None if arguments is None else list(arguments))
    peers = [name for name in ("torch", "peft") if find_spec(name) is not None]
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), given.blocks)
        settings = {"folder": folder, "blocks": given.blocks, "recompute": given.recompute}
        result = compare(
            [(name, settings) for name in ("handgrad", *peers)],
            "benchmarks.finetune",
            threads=given.threads,
            rounds=given.rounds,
            burst=given.burst,
        )
    libraries = [name for name in peers if name == "torch"]
    result = {**result, "recompute": given.recompute, "machine": describe(libraries)}
    for name, found in result["contenders"].items():
        spread = f"{found['low']:.2f} to {found['high']:.2f}"
        print(
            f"{name}: {found['median']:.2f} s ({spread}), "
            f"{result['flops'] / found['median'] / 1e9:.0f} GFLOP/s, "
            f"peak {found['peak_bytes'] / 2**30:.2f} GiB, "
            f"losses {', '.join(f'{loss:.4f}' for loss in found['losses'])}"
        )
    for name, ratio in result["ratios"].items():
        print(f"{name} takes {ratio['median']:.2f} times as long as handgrad")
    for name, reason in result["failed"].items():
        print(f"{name} failed: {reason}")
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
