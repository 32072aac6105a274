# mypy: ignore-errors
"""C. Gulino: layers, attention, the transformer block, and what training needs."""

from __future__ import annotations

from docs.mistakes import gulino_attention, gulino_layers, gulino_training, gulino_transformer_block
from docs.mistakes.row import Document

DOCUMENT = Document(
    "Neural Network Simplified Mathematics",
    "C. Gulino",
    (
        *gulino_layers.ROWS,
        *gulino_attention.ROWS,
        *gulino_transformer_block.ROWS,
        *gulino_training.ROWS,
    ),
)
