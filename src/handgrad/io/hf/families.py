"""The families of models: what a config.json says of one, and how to say it of a model of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from handgrad.errors import ArgumentError
from handgrad.escaping import cut
from handgrad.io.hf import names
from handgrad.io.hf.config import Config
from handgrad.io.hf.names import ArrayNames
from handgrad.models.bert import POOLINGS

Settings = dict[str, Any]

#: GELU by their names: the one that is exact, and those that are its form with tanh.
_GELU: Final = {
    "gelu": "none",
    "gelu_new": "tanh",
    "gelu_pytorch_tanh": "tanh",
    "gelu_fast": "tanh",
}
#: The layers in which every step sees all before it, by their name in `layer_types`.
_FULL: Final = "full_attention"
#: Entries of our own, which transformers keeps and does not look at: it always makes a pooler.
_POOLING, _NORMALIZE = "handgrad_pooling", "handgrad_normalize"
#: The entry that says whether a model ends with the weights of its embedding.
TIED: Final = "tie_word_embeddings"
_QKV: Final = ("q_proj", "k_proj", "v_proj")


@dataclass(frozen=True)
class Family:
    """A class of ours and the `model_type`s that are read as one.

    settings: those of its constructor for a config; config: the entries of a config for those of a
    constructor, which are all given.
    """

    model_types: tuple[str, ...]
    names: ArrayNames
    settings: Callable[[Config], Settings]
    config: Callable[[Settings], Settings]


def _gpt2_settings(config: Config) -> Settings:
    config.require(
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
        add_cross_attention=False,
        is_causal=True,
        pruned_heads={},
    )
    width = config.integer("n_embd")
    return {
        "vocabulary": config.integer("vocab_size"),
        "context": config.integer("n_positions"),
        "width": width,
        "heads": config.integer("n_head"),
        "blocks": config.integer("n_layer"),
        "hidden": config.integer("n_inner", 4 * width),
        "eps": config.number("layer_norm_epsilon", 1e-5),
        "approximate": _GELU[config.choice("activation_function", tuple(_GELU), "gelu_new")],
        "tied": config.flag(TIED, True),
    }


def _gpt2_config(settings: Settings) -> Settings:
    _require("GPT", "GPT-2", settings, positions="learned", bias=True)
    if settings["kv_heads"] not in (None, settings["heads"]):
        raise _unwritable("GPT", "kv_heads", settings["kv_heads"], "GPT-2", settings["heads"])
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": settings["vocabulary"],
        "n_positions": settings["context"],
        "n_embd": settings["width"],
        "n_head": settings["heads"],
        "n_layer": settings["blocks"],
        "n_inner": settings["hidden"],
        "layer_norm_epsilon": settings["eps"],
        "activation_function": "gelu_new" if settings["approximate"] == "tanh" else "gelu",
        TIED: settings["tied"],
    }


def _llama_settings(config: Config) -> Settings:
    kind = config.choice("model_type", LLAMA.model_types)
    config.choice("hidden_act", ("silu", "swish"), "silu")
    config.require(is_causal=True)
    if kind in ("qwen2", "qwen3"):
        config.require(use_sliding_window=False)
    _check_window(config, used=kind not in ("qwen2", "qwen3"))
    layers = config.entry("layer_types") or []
    if not isinstance(layers, list) or any(each != _FULL for each in layers):
        raise config.error("layer_types", str(layers), f"a list of {_FULL}")
    base, scaling = _rotary(config)
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    return {
        "vocabulary": config.integer("vocab_size"),
        "context": config.integer("max_position_embeddings"),
        "width": width,
        "heads": heads,
        "blocks": config.integer("num_hidden_layers"),
        "hidden": config.integer("intermediate_size"),
        "kv_heads": config.integer("num_key_value_heads", heads),
        "head_size": config.integer("head_dim", 128 if kind == "qwen3" else width // heads),
        "rotary_base": base,
        "rotary_scaling": scaling,
        "qk_norm": kind == "qwen3",
        "attention_bias": _QKV if kind == "qwen2" else config.flag("attention_bias", False),
        "bias": config.flag("mlp_bias", False),
        "eps": config.number("rms_norm_eps", 1e-6),
        "tied": config.flag(TIED, False),
    }


def _check_window(config: Config, *, used: bool) -> None:
    """A window as long as the context hides nothing; one that is switched off may be any."""
    window = config.optional_integer("sliding_window")
    config.entry("max_window_layers")
    if used and window is not None and window < config.integer("max_position_embeddings"):
        raise config.error("sliding_window", window, "null, because every step sees all before it")


def _rotary(config: Config) -> tuple[float, Settings | None]:
    """The base and the scaling, in today's entry `rope_parameters` or in the two before it."""
    older, entries = _named(config.table("rope_scaling")), _named(_of_layers(config))
    for name in sorted({*older, *entries}) if older and entries else ():
        if older.get(name) != entries.get(name):
            expected = f"what rope_parameters says, {entries.get(name)!r}"
            raise config.error("rope_scaling", f"{name}={older.get(name)!r}", expected)
    entries = entries or older
    for part in (entries.pop("partial_rotary_factor", None), config.entry("partial_rotary_factor")):
        if part not in (None, 1.0):
            raise config.error("partial_rotary_factor", part, "1.0")
    base, outer = entries.pop("rope_theta", None), config.entry("rope_theta")
    if base is not None and outer not in (None, base):
        raise config.error("rope_theta", outer, f"what rope_parameters says, {base!r}")
    found = outer if base is None else base
    base = config.positive("rope_theta", 10000.0 if found is None else found)
    kind = entries.pop("rope_type", "default")
    if kind == "default":
        for name, value in entries.items():
            raise config.error(
                f"{cut(str(name))} of the positions",
                value,
                "null, because their rope_type is default",
            )
        return base, None
    if kind in ("llama3", "yarn") and "original_max_position_embeddings" not in entries:
        entries["original_max_position_embeddings"] = config.integer("max_position_embeddings")
    return base, {"rope_type": kind, **entries}


def _named(table: Settings) -> Settings:
    """A table of rotary positions without what is null, and its kind under today's name."""
    named = {name: value for name, value in table.items() if value is not None}
    older = named.pop("type", "default")
    return {"rope_type": older, **named} if named or older != "default" else {}


def _of_layers(config: Config) -> Settings:
    """`rope_parameters`, which newer files may have once for each type of layer.

    Files without `layer_types` do not say which are used, so there all have to agree.
    """
    entries = config.table("rope_parameters")
    kinds = [name for name, value in entries.items() if isinstance(value, dict)]
    if not kinds:
        return dict(entries)
    used = [_FULL] if config.entry("layer_types") else kinds
    first = entries.get(used[0])
    if len(kinds) < len(entries) or first is None or any(entries[name] != first for name in used):
        raise config.error(
            "rope_parameters", entries, f"one table, or one for {_FULL} that goes for every layer"
        )
    return dict(first)


def _llama_config(settings: Settings) -> Settings:
    bias, kind = settings["attention_bias"], "qwen3" if settings["qk_norm"] else "llama"
    if not isinstance(bias, bool):
        if settings["qk_norm"] or set(bias) != set(_QKV):
            raise _unwritable("Llama", "attention_bias", bias, "Llama", f"True, False or {_QKV}")
        kind = "qwen2"
    if kind != "llama":
        _require("Llama", kind.capitalize(), settings, bias=False)
    heads, scaling = settings["heads"], settings["rotary_scaling"]
    config = {
        "model_type": kind,
        "architectures": [f"{kind.capitalize()}ForCausalLM"],
        "vocab_size": settings["vocabulary"],
        "max_position_embeddings": settings["context"],
        "hidden_size": settings["width"],
        "num_attention_heads": heads,
        "num_key_value_heads": settings["kv_heads"] or heads,
        "num_hidden_layers": settings["blocks"],
        "intermediate_size": settings["hidden"],
        "head_dim": settings["head_size"] or settings["width"] // heads,
        "hidden_act": "silu",
        "rms_norm_eps": settings["eps"],
        "rope_theta": settings["rotary_base"],
        "rope_scaling": None if scaling is None else dict(scaling),
        TIED: settings["tied"],
    }
    own = {"attention_bias": bias, "mlp_bias": settings["bias"]}
    return config if kind == "qwen2" else {**config, **own}


def _bert_settings(config: Config) -> Settings:
    config.require(
        position_embedding_type="absolute",
        is_decoder=False,
        add_cross_attention=False,
        pruned_heads={},
    )
    width = config.integer("hidden_size")
    activation = config.choice("hidden_act", (*_GELU, "relu", "silu"), "gelu")
    return {
        "vocabulary": config.integer("vocab_size"),
        "context": config.integer("max_position_embeddings"),
        "width": width,
        "heads": config.integer("num_attention_heads"),
        "blocks": config.integer("num_hidden_layers"),
        "hidden": config.integer("intermediate_size", 4 * width),
        "types": config.integer("type_vocab_size", 2),
        "activation": "gelu" if activation in _GELU else activation,
        "approximate": _GELU.get(activation, "none"),
        "eps": config.number("layer_norm_eps", 1e-12),
        "pooling": config.choice(_POOLING, POOLINGS, "none"),
        "normalize": config.flag(_NORMALIZE, False),
    }


def _bert_config(settings: Settings) -> Settings:
    activation = settings["activation"]
    if activation not in ("gelu", "relu", "silu"):
        raise _unwritable("Bert", "activation", activation, "BERT", "gelu, relu or silu")
    if activation == "gelu" and settings["approximate"] == "tanh":
        activation = "gelu_new"
    return {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": settings["vocabulary"],
        "max_position_embeddings": settings["context"],
        "hidden_size": settings["width"],
        "num_attention_heads": settings["heads"],
        "num_hidden_layers": settings["blocks"],
        "intermediate_size": settings["hidden"] or 4 * settings["width"],
        "type_vocab_size": settings["types"],
        "hidden_act": activation,
        "layer_norm_eps": settings["eps"],
        _POOLING: settings["pooling"],
        _NORMALIZE: settings["normalize"],
    }


def _require(model: str, layout: str, settings: Mapping[str, Any], **needed: Any) -> None:
    for name, value in needed.items():
        if settings[name] != value:
            raise _unwritable(model, name, settings[name], layout, value)


def _unwritable(model: str, name: str, found: Any, layout: str, allowed: Any) -> ArgumentError:
    return ArgumentError(
        f"save_pretrained: {model} has {name}={found!r}; allowed in the layout of {layout}: "
        f"{allowed}"
    )


GPT2: Final = Family(("gpt2",), names.GPT2, _gpt2_settings, _gpt2_config)
LLAMA: Final = Family(
    ("llama", "mistral", "qwen2", "qwen3"), names.LLAMA, _llama_settings, _llama_config
)
BERT: Final = Family(("bert",), names.BERT, _bert_settings, _bert_config)

#: The family of each model, by the name of its class.
FAMILIES: Final[Mapping[str, Family]] = {"GPT": GPT2, "Llama": LLAMA, "Bert": BERT}
