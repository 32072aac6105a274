"""Write optimizers.json: PyTorch's parameters after steps 1, 2 and 20 of every optimizer case.

python -m tests.golden.make_optimizers
"""

from __future__ import annotations

import json
from pathlib import Path

import torch

from tests.optimizers.cases import CASES, STEPS, torch_trajectory

KEPT_STEPS = (1, 2, STEPS)


def main() -> None:
    golden = {
        case.name: {
            str(step): values
            for step, values in enumerate(torch_trajectory(case), start=1)
            if step in KEPT_STEPS
        }
        for case in CASES
    }
    text = json.dumps({"torch": torch.__version__.partition("+")[0], "cases": golden}, indent=1)
    Path(__file__).with_name("optimizers.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
