"""The recipe finetune-text: a model in a folder learns a text, by LoRA or whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from handgrad import recipes
from handgrad.errors import HandgradError
from handgrad.recipes.runs import load_model, read_recipe

TEXT = "row, row, row your boat, gently down the stream\n" * 30
QUICK = ("data.unit=bytes", "data.block=16", "training.batch_size=16", "training.seed=3")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of bytes in the layout of Hugging Face, and a text to learn."""
    folder = tmp_path_factory.mktemp("base")
    sizes: dict[str, Any] = {"context": 32, "width": 16, "heads": 4, "kv_heads": 2}
    model = hg.Llama(256, **sizes, hidden=24, blocks=2, tied=True, rng=np.random.default_rng(0))
    model.save_pretrained(folder)
    (folder / "song.txt").write_text(TEXT)
    return folder


def read(base: Path, *changes: str) -> Any:
    return recipes.read("finetune-text", (f"model.folder={base}", *QUICK, *changes))


def train(base: Path, out: Path, *changes: str) -> Any:
    recipe = read(base, *changes).changed("data", path=str(base / "song.txt"))
    built = recipes.build(recipe, recipes.load_task(recipe))
    built.train(out, progress="off")
    return built


@pytest.mark.parametrize(
    "changes",
    [(), ("model.recompute=true", "model.lora_dropout=0.1", "model.targets=['linear2']")],
)
def test_lora_changes_its_matrices_alone_and_keeps_them_as_an_adapter(
    base: Path, tmp_path: Path, changes: tuple[str, ...]
) -> None:
    model = train(base, tmp_path, *changes).model
    assert all(".lora_" in name for name in model.parameters)
    again = hg.Llama.from_pretrained(base)
    for name, array in again.parameters.items():
        assert np.array_equal(array, model.frozen_parameters[name]), name
    hg.lora.load(again, tmp_path)
    tokens = np.arange(12)[None]
    assert np.array_equal(again(tokens), model(tokens))
    assert json.loads((tmp_path / "adapter_config.json").read_text())["r"] == 8


def test_whole_models_are_trained_too(base: Path, tmp_path: Path) -> None:
    model = train(base, tmp_path, "model.method=full").model
    before = hg.Llama.from_pretrained(base).parameters
    assert set(model.parameters) == set(before)
    assert not np.array_equal(model.parameters["tokens.weight"], before["tokens.weight"])
    assert not (tmp_path / "adapter_config.json").exists()


def test_a_run_goes_on_without_the_folder_that_it_began_with(base: Path, tmp_path: Path) -> None:
    model = train(base, tmp_path).model
    loaded: Any = load_model(tmp_path, read_recipe(tmp_path))
    tokenizer = hg.load(tmp_path).tokenizers["tokens"]
    tokens = tokenizer.encode("row, row")[None]
    assert np.array_equal(loaded(tokens), model(tokens))
    settings: dict[str, Any] = {"length": 9, "rng": np.random.default_rng(1)}
    assert loaded.generate(tokens, **settings).shape == (1, 17)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("model.folder=''",), "model.folder is empty; allowed: the folder of a GPT-2 or Llama"),
        (("model.folder=nowhere",), "nowhere"),
        (("model.method=full", "model.rank=8"), 'model.rank is 8 with method = "full"'),
        (("data.block=64",), "data.block is 64; allowed: at most 32"),
        (("model.targets=['c_attn']",), "targets has 'c_attn'; allowed: q_proj"),
        (("model.rank=64",), "rank is 64; allowed: 1 to 16"),
        (("model.method=half",), 'model.method is "half"; allowed: lora, full'),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    base: Path, changes: tuple[str, ...], message: str
) -> None:
    def build() -> None:
        recipe = read(base, *changes).changed("data", path=str(base / "song.txt"))
        recipes.build(recipe, recipes.load_task(recipe))

    with pytest.raises(HandgradError) as error:
        build()
    assert message in str(error.value)


def test_the_tokenizer_of_the_folder_is_kept(base: Path, tmp_path: Path) -> None:
    package = pytest.importorskip("tokenizers")
    from handgrad.data.subwords import PretrainedTokenizer
    from handgrad.data.tokenizers import load_tokenizer

    tokenizer = package.Tokenizer(package.models.BPE())
    tokenizer.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = package.decoders.ByteLevel()
    alphabet = package.pre_tokenizers.ByteLevel.alphabet()
    trainer = package.trainers.BpeTrainer(
        vocab_size=256, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.enable_truncation(4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    own = PretrainedTokenizer.of_folder(tmp_path)
    own.save(tmp_path / "tokens.json")
    again = load_tokenizer(tmp_path / "tokens.json")
    assert again.decode(again.encode(TEXT)) == TEXT
    text = hg.data.load_text(base / "song.txt", tokenizer=own)
    assert (again.size, len(text.train) > len(text.validation)) == (256, True)
