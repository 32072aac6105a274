"""Folders in the layout of Hugging Face: config.json, safetensors, tokenizer.json.

    model = hg.Llama.from_pretrained("SmolLM-135M")
    tokenizer = hg.hf.Tokenizer.from_pretrained("SmolLM-135M")
    logits, cache = model.forward(tokenizer.encode("Once upon a time")[None])

Nothing is downloaded, and nothing in a folder runs. The families are those of `families`; a
tokenizer needs the extra `handgrad[subwords]`.
"""

from handgrad.io.hf.folder import load, save
from handgrad.io.hf.tokenizer import Batch, Tokenizer

__all__ = ["Batch", "Tokenizer", "load", "save"]
