"""Every optimizer beside PyTorch's of the same rule, and one problem for all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from handgrad.optimizers import SGD, Adam, AdamW, Momentum, Nesterov, Optimizer, RMSProp

STEPS = 20


class Case(NamedTuple):
    """Ours, and the name and arguments of PyTorch's."""

    name: str
    kind: type[Optimizer]
    arguments: dict[str, Any]
    torch_name: str
    torch_arguments: dict[str, Any]

    def make(self) -> Optimizer:
        return self.kind(**self.arguments)


def _same(name: str, kind: type[Optimizer], torch_name: str, **arguments: Any) -> Case:
    return Case(name, kind, arguments, torch_name, arguments)


CASES = [
    _same("sgd", SGD, "SGD", lr=0.1),
    _same("sgd-decay", SGD, "SGD", lr=0.1, weight_decay=0.3),
    Case(
        "momentum-classical",
        Momentum,
        {"lr": 0.1, "momentum": 0.8, "form": "classical", "weight_decay": 0.1},
        "SGD",
        {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.1},
    ),
    Case(
        "momentum-averaged",  # with lr, the classical form with lr (1 − β)
        Momentum,
        {"lr": 0.1, "momentum": 0.75},
        "SGD",
        {"lr": 0.025, "momentum": 0.75},
    ),
    Case(
        "nesterov",
        Nesterov,
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
    ),
    _same("rmsprop", RMSProp, "RMSprop", lr=0.02, alpha=0.9, eps=1e-3, weight_decay=0.1),
    _same("adam", Adam, "Adam", lr=0.05, betas=(0.8, 0.95)),
    _same("adam-decay", Adam, "Adam", lr=0.05, eps=1e-2, weight_decay=0.3),
    _same("adamw", AdamW, "AdamW", lr=0.05, betas=(0.8, 0.95), weight_decay=0.2),
    _same("adamw-default", AdamW, "AdamW"),
]


def problem() -> tuple[np.ndarray, np.ndarray]:
    """First parameters (5,) and the gradients of every step (STEPS, 5), some of them 0."""
    rng = np.random.default_rng(2)
    gradients = rng.standard_normal((STEPS, 5)) * [1.0, 10.0, 1e-3, 1.0, 0.0]
    gradients[::3, 3] = 0.0
    return rng.standard_normal(5), gradients


def torch_trajectory(case: Case) -> list[list[float]]:
    """PyTorch's parameters after each step, in float64."""
    import torch

    first, gradients = problem()
    parameter = torch.nn.Parameter(torch.tensor(first))
    optimizer = getattr(torch.optim, case.torch_name)([parameter], **case.torch_arguments)
    trajectory = []
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        trajectory.append(parameter.detach().tolist())
    return trajectory
