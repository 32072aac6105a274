"""The `text` recipe beside the same model in PyTorch: same first weights, same batches, in turns.

    python -m benchmarks.text --data FILE [--seeds 3] [--steps 2000] [--threads N]

For every seed two processes train on the text in FILE, a hundred steps of one and then of the
other, while the one that waits is stopped. It prints the validation loss of both over all blocks of
the validation part, which have to agree within what the seeds differ by, and the time of a step.
PyTorch's model is written as for PyTorch: one product for queries, keys and values, and
`scaled_dot_product_attention`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from benchmarks import machine
from benchmarks.bursts import Contender, Spread
from benchmarks.contender import Job
from benchmarks.peers import TITLES, installed

BURST: Final = 100
_LIBRARIES: Final = ("handgrad", "torch")


def _task(data: str, seed: int) -> tuple[Any, Any]:
    """The recipe for this text and its task."""
    from handgrad import recipes

    recipe = recipes.read("text").changed("data", path=data).changed("training", seed=seed)
    task = recipes.load_task(recipe)
    return recipes.completed(recipe, task), task


def _batches(recipe: Any, task: Any, seed: int) -> Iterator[tuple[Any, Any]]:
    """Batches without end, drawn as the trainer draws them."""
    rng, size = np.random.default_rng(seed), recipe.training["batch_size"]
    while True:
        order = task.data.train.order(size, rng)
        for first in range(0, len(order), size):
            (tokens,), targets = task.data.train.gather(order[first : first + size])
            yield tokens, targets


def _schedule(recipe: Any, task: Any) -> Callable[[int], float]:
    from handgrad.recipes.building import build_schedule

    steps = -(-task.examples // recipe.training["batch_size"])
    found: Callable[[int], float] = build_schedule(recipe, recipe.optimizer.settings["lr"], steps)
    return found


def handgrad(data: str, seed: int) -> Job:
    """handgrad's side."""
    import handgrad as hg
    from handgrad import recipes, training
    from handgrad.optimizers import clipping_factor, global_norm
    from handgrad.recipes.building import build_optimizer

    recipe, task = _task(data, seed)
    model, loss, optimizer = (
        recipes.build_model(recipe),
        recipes.build_loss(recipe),
        build_optimizer(recipe),
    )
    parameters = model.bind()
    gradients = parameters.zeros_like()
    loss_and_gradients = training.TrainingStep(model, loss, gradients)
    batches, schedule = _batches(recipe, task, seed), _schedule(recipe, task)
    done = 0

    def run(steps: int) -> None:
        nonlocal done
        for _ in range(steps):
            tokens, targets = next(batches)
            loss_and_gradients((tokens,), targets)
            scale = clipping_factor(global_norm(gradients), recipe.training["clip_norm"])
            optimizer.step(parameters, gradients, schedule(done), scale=scale)
            done += 1

    def judge() -> float:
        return training.evaluate(model, loss, task.data.validation, 64).loss

    return Job(run, hg.__version__, judge=judge)


def torch(data: str, seed: int) -> Job:
    """PyTorch's side, from the same weights."""
    import torch as library
    from torch.nn import functional

    from handgrad import recipes

    recipe, task = _task(data, seed)
    model = _gpt(recipe, recipes.build_model(recipe).parameters)
    settings = recipe.optimizer.settings
    optimizer = library.optim.AdamW(
        model.parameters(),
        lr=settings["lr"],
        betas=tuple(settings["betas"]),
        weight_decay=settings["weight_decay"],
        fused=True,
    )
    batches, schedule = _batches(recipe, task, seed), _schedule(recipe, task)
    done = 0

    def loss_of(tokens: Any, targets: Any) -> Any:
        logits = model(library.from_numpy(tokens))
        flat = logits.view(-1, logits.shape[-1])
        return functional.cross_entropy(flat, library.from_numpy(targets).view(-1))

    def run(steps: int) -> None:
        nonlocal done
        for _ in range(steps):
            loss = loss_of(*next(batches))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            library.nn.utils.clip_grad_norm_(model.parameters(), recipe.training["clip_norm"])
            for group in optimizer.param_groups:
                group["lr"] = schedule(done)
            optimizer.step()
            done += 1

    def judge() -> float:
        every, total = task.data.validation.every(), 0.0
        with library.no_grad():
            for first in range(0, len(every), 64):
                index = every[first : first + 64]
                (tokens,), targets = task.data.validation.gather(index)
                total += float(loss_of(tokens, targets)) * len(index)
        return total / len(every)

    return Job(run, library.__version__, judge=judge)


def _gpt(recipe: Any, first: dict[str, Any]) -> Any:
    """The recipe's GPT in PyTorch, with these first weights."""
    import torch as library
    from torch import nn
    from torch.nn import functional

    sizes, block = recipe.model.settings, recipe.data["block"]
    width, heads = sizes["width"], sizes["heads"]

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self, i: int) -> None:
            super().__init__()
            names = (
                "attention.inner.o_proj.weight",
                "feed_forward.inner.linear1.weight",
                "feed_forward.inner.linear2.weight",
            )
            qkv = [first[f"blocks.{i}.attention.inner.{name}_proj.weight"] for name in "qkv"]
            arrays = [np.concatenate(qkv), *(first[f"blocks.{i}.{name}"] for name in names)]
            self.qkv, self.o, self.linear1, self.linear2 = map(_linear, arrays)
            self.norm1 = nn.LayerNorm(width, bias=False)
            self.norm2 = nn.LayerNorm(width, bias=False)

        def forward(self, x: Any) -> Any:
            batch, steps, _ = x.shape
            q, k, v = (
                each.view(batch, steps, heads, width // heads).transpose(1, 2)
                for each in self.qkv(self.norm1(x)).split(width, dim=2)
            )
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(batch, steps, width))
            return x + self.linear2(functional.gelu(self.linear1(self.norm2(x))))

    class GPT(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding.from_pretrained(_copy(first["tokens.weight"]), freeze=False)
            self.positions = nn.Parameter(_copy(first["positions.weight"]))
            self.blocks = nn.ModuleList(Block(i) for i in range(sizes["blocks"]))
            self.norm = nn.LayerNorm(width, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
            for each in self.blocks:
                x = each(x)
            return functional.linear(self.norm(x), self.tokens.weight)

    def _linear(weight: Any) -> Any:
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        layer.weight = nn.Parameter(_copy(weight))
        return layer

    def _copy(array: Any) -> Any:
        return library.from_numpy(np.array(array))

    assert block == first["positions.weight"].shape[0]
    return GPT()


def measure(data: str, seed: int, steps: int, threads: int) -> dict[str, dict[str, Any]]:
    """Validation loss, its milliseconds per step, and the seconds of all steps, by library."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                Contender(
                    name,
                    "benchmarks.text",
                    {"data": data, "seed": seed},
                    threads=threads,
                    warm=False,
                )
            )
            for name in _LIBRARIES
        ]
        times: dict[str, list[float]] = {name: [] for name in _LIBRARIES}
        for turn in range(steps // BURST):
            for contender in running if turn % 2 else running[::-1]:
                times[contender.name].append(contender.seconds(BURST))
        return {
            contender.name: {
                "loss": contender.judged(),
                "ms": asdict(Spread.of([1000 * each for each in times[contender.name]])),
                "seconds": BURST * sum(times[contender.name]),
            }
            for contender in running
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.text", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", required=True, help="a text file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=machine.cores())
    given = parser.parse_args()
    here, missing = installed(["torch"])
    if not here:
        sys.exit("\n".join(missing))
    print(f"{given.steps} steps, {given.threads} threads; ms: median of bursts (quartiles)")
    for seed in range(given.seeds):
        for name, found in measure(given.data, seed, given.steps, given.threads).items():
            ms = found["ms"]
            print(
                f"seed {seed}  {TITLES[name]:<8}  validation loss {found['loss']:.4f}  "
                f"{ms['median']:.2f} ({ms['low']:.2f}–{ms['high']:.2f})",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
