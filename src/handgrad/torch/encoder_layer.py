"""PyTorch's TransformerEncoderLayer on handgrad's kernels."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from handgrad.torch.bridge import hand_over, multiplies_bf16, refusal
from handgrad.torch.encoder_layer_op import encoder_layer

_FUNCTIONS: Final = ((functional.relu, "relu"), (functional.gelu, "gelu"), (torch.relu, "relu"))
_MODULES: Final = {nn.ReLU: "relu", nn.SiLU: "silu"}
