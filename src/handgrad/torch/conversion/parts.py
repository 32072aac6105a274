"""Modules for what torch.nn lacks, so that layers that need it can leave as modules too."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class OutputOnly(nn.Module):  # type: ignore[misc, unused-ignore]
    """The first of what a recurrent module returns, without its state: for nn.Sequential."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)[0]


class SelfAttention(nn.Module):  # type: ignore[misc, unused-ignore]
    """Attention of x to itself, without the weights: for nn.Sequential."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x, x, x, need_weights=False)[0]


class ResidualModule(nn.Module):  # type: ignore[misc, unused-ignore]
    """x + inner(x), or projection(x) + inner(x)."""

    def __init__(self, inner: nn.Module, projection: nn.Module | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.projection = projection

    def forward(self, x: Tensor) -> Tensor:
        skip = x if self.projection is None else self.projection(x)
        return skip + self.inner(x)


class LastStepModule(nn.Module):  # type: ignore[misc, unused-ignore]
    """(N, T, D) to (N, D); with `bidirectional` the second half comes from the first step."""

    def __init__(self, bidirectional: bool = False) -> None:
        super().__init__()
        self.bidirectional = bidirectional

    def forward(self, x: Tensor) -> Tensor:
        if not self.bidirectional:
            return x[:, -1]
        half = x.shape[2] // 2
        return torch.cat((x[:, -1, :half], x[:, 0, half:]), dim=-1)


class StepPoolingModule(nn.Module):  # type: ignore[misc, unused-ignore]
    """(N, T, D) to (N, D): the "mean" of the steps, or their "max" in each feature."""

    def __init__(self, pooling: str) -> None:
        super().__init__()
        self.pooling = pooling

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1) if self.pooling == "mean" else x.max(1).values


class AnyBatchNorm(nn.BatchNorm1d):  # type: ignore[misc, unused-ignore]
    """Batch normalisation of (N, C, …) with any number of axes."""

    def _check_input_dim(self, input: Any) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected (N, C, ...), got {input.dim()}D input")


class StandardizeModule(nn.Module):  # type: ignore[misc, unused-ignore]
    """Mean 0 and variance 1 over these axes of every example; None for all but the batch's."""

    def __init__(self, axes: tuple[int, ...] | None = None, eps: float = 1e-5) -> None:
        super().__init__()
        self.axes = axes
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        axes = tuple(range(1, x.dim())) if self.axes is None else self.axes
        variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + self.eps)


class SwiGLUModule(nn.Module):  # type: ignore[misc, unused-ignore]
    """a σ(a) b of the halves of the last axis."""

    def forward(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return functional.silu(a) * b


class GEGLUModule(nn.Module):  # type: ignore[misc, unused-ignore]
    """a Φ(a) b of the halves of the last axis."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return functional.gelu(a, approximate=self.approximate) * b


class Erf(nn.Module):  # type: ignore[misc, unused-ignore]
    """The error function of every value."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.erf(x)


class Sin(nn.Module):  # type: ignore[misc, unused-ignore]
    """The sine of every value."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x)
