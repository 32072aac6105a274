"""Write what PyTorch computes for every op case: `python -m tests.golden.make`, with PyTorch.

For each case the file ops.npz holds one float64 array: a fingerprint of the inputs, then y and the
gradients, each as `sample` reduces it. The tests compare with it and need no PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.ops.cases import CASES, Arrays, Case, leaves, mapped

FILE = Path(__file__).with_name("ops.npz")
MOST = 96


def sample(array: Any) -> np.ndarray:
    """A small array whole; of a large one evenly spread values and the root mean square."""
    flat = np.asarray(array, dtype=np.float64).reshape(-1)
    if flat.size <= MOST:
        return flat
    spread = np.linspace(0, flat.size - 1, MOST - 1).astype(int)
    return np.append(flat[spread], np.sqrt(np.mean(flat * flat)))


def fingerprint(arrays: Arrays) -> float:
    """Tells whether the generator still makes the inputs that the golden file was made from."""
    finite = (np.nan_to_num(array.astype(np.float64)) for array in arrays.values())
    return float(sum(np.sum(np.cos(array)) for array in finite))


def in_torch(case: Case, dtype: Any = np.float64) -> tuple[Any, dict[str, Any]]:
    """y and the gradients of a case as PyTorch computes them; 0 where y does not depend on x."""
    import torch

    tensors = {name: torch.tensor(array) for name, array in case.arrays(dtype).items()}
    inputs = [tensors[name].requires_grad_() for name in case.differentiable]
    y = case.samples.torch(torch.nn.functional, tensors, case.options)
    dy = mapped(torch.tensor, case.random_like(y, "cotangent", dtype))
    depending = [each for each in zip(leaves(y), leaves(dy), strict=True) if each[0].requires_grad]
    outputs, cotangents = zip(*depending, strict=True)
    gradients = torch.autograd.grad(outputs, inputs, cotangents, materialize_grads=True)
    found = zip(case.differentiable, gradients, strict=True)
    return mapped(lambda output: output.detach().numpy(), y), {
        name: gradient.numpy() for name, gradient in found
    }


def main() -> None:
    golden = {}
    for case in CASES:
        if case.row.not_in_torch:
            continue
        y, gradients = in_torch(case)
        values = (*leaves(y), *gradients.values())
        parts = [[fingerprint(case.arrays())], *map(sample, values)]
        golden[case.id] = np.concatenate(parts)
    np.savez_compressed(FILE, **golden)


if __name__ == "__main__":
    main()
