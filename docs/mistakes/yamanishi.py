# mypy: ignore-errors
"""S. Yamanishi: dense, convolutional and recurrent networks, LSTM, attention, transformer."""

from __future__ import annotations

from docs.mistakes import yamanishi_attention, yamanishi_layers, yamanishi_recurrence
from docs.mistakes.row import Document

DOCUMENT = Document(
    "DNN, CNN, RNN, LSTM, Attn, and Transformer",
    "S. Yamanishi",
    (
        *yamanishi_layers.ROWS,
        *yamanishi_recurrence.ROWS,
        *yamanishi_attention.ROWS,
    ),
)
