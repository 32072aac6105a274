"""PyTorch's modules on handgrad's kernels, under its autograd, optimizers and compiler.

    from handgrad.torch import LSTM  # in place of torch.nn.LSTM

docs/pytorch.md says more. Needs PyTorch: `pip install 'handgrad[torch]'`.
"""

try:
    from handgrad.torch.acceleration import Acceleration, accelerate, restore
    from handgrad.torch.attention import MultiheadAttention
    from handgrad.torch.conversion.parts import (
        LastStepModule,
        OutputOnly,
        ResidualModule,
        SelfAttention,
        StepPoolingModule,
    )
    from handgrad.torch.encoder_layer import TransformerEncoderLayer
    from handgrad.torch.modules import (
        Conv1d,
        Conv2d,
        CrossEntropyLoss,
        GroupNorm,
        LayerNorm,
        Linear,
        RMSNorm,
    )
    from handgrad.torch.recurrent import GRU, LSTM, RNN
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "handgrad.torch needs PyTorch; install it with: pip install 'handgrad[torch]'",
        name="torch",
    ) from None

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Acceleration",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "GroupNorm",
    "LastStepModule",
    "LayerNorm",
    "Linear",
    "MultiheadAttention",
    "OutputOnly",
    "RMSNorm",
    "ResidualModule",
    "SelfAttention",
    "StepPoolingModule",
    "TransformerEncoderLayer",
    "accelerate",
    "restore",
]
