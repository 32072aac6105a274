"""Calls that the modules leave to PyTorch's own code: its result, or its error."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch")
own = pytest.importorskip("handgrad.torch")


def _same_end(ours: Any, theirs: Any, *given: Any, **masks: Any) -> Any:
    """The result of PyTorch's module, which ours gives too; or the error of both."""
    ours.load_state_dict(theirs.state_dict())
    try:
        expected = theirs(*given, **masks)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=re.escape(str(error))):
            ours(*given, **masks)
        return error
    torch.testing.assert_close(ours(*given, **masks), expected, equal_nan=True)
    return expected


_LAYER: Final[dict[str, Any]] = {
    "d_model": 8, "nhead": 2, "dim_feedforward": 8, "dropout": 0.0, "batch_first": True
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:handgrad.torch.TransformerEncoderLayer. a tensor of inference")
@pytest.mark.parametrize("norm_first", [False, True])
def test_tensors_of_inference_mode_end_as_in_pytorch(norm_first: bool) -> None:
    with torch.inference_mode():
        x = torch.randn(2, 5, 8)
    modules = (own.TransformerEncoderLayer, torch.nn.TransformerEncoderLayer)
    _same_end(*(module(**_LAYER, norm_first=norm_first) for module in modules), x)


@pytest.mark.parametrize("shape", [(0, 5), (2, 0)])
def test_an_empty_batch_with_a_mask_ends_as_in_pytorch(shape: tuple[int, int]) -> None:
    modules = (own.TransformerEncoderLayer, torch.nn.TransformerEncoderLayer)
    mask = torch.zeros(shape, dtype=torch.bool)
    layers = (module(**_LAYER) for module in modules)
    _same_end(*layers, torch.randn(*shape, 8), src_key_padding_mask=mask)
