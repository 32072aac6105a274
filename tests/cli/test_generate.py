from __future__ import annotations

import pytest

TINY = ["model.width=8", "model.heads=2", "model.blocks=1", "data.block=16", "data.blocks=24"]


@pytest.fixture(scope="module")
def text_run(handgrad, tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    (folder / "song.txt").write_text("row, row, row your boat\n" * 40)
    settings = [part for change in TINY for part in ("--set", change)]
    out = folder / "run"
    result = handgrad(
        *("train", "text", "--data", folder / "song.txt", "--epochs", 1, "--out", out), *settings
    )
    assert result.exit_code == 0, result.output
    assert "bits per character" in result.stdout
    return out


def test_a_seed_and_a_prompt_give_one_text(handgrad, text_run):
    arguments = ("generate", text_run, "--prompt", "row", "--length", 40, "--seed", 2)
    first, again = handgrad(*arguments), handgrad(*arguments)
    assert first.exit_code == 0, first.output
    assert first.stdout == again.stdout
    assert first.stdout.startswith("row")
    assert len(first.stdout.removesuffix("\n")) == 43
    assert handgrad(*arguments[:-1], 3).stdout != first.stdout


def test_temperature_0_needs_no_seed(handgrad, text_run):
    arguments = ("generate", text_run, "--temperature", 0, "--length", 30, "--seed")
    assert handgrad(*arguments, 1).stdout == handgrad(*arguments, 2).stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prompt", "ÿ"], "'ÿ' at position 0 is not in the vocabulary"),
        (["--prompt", ""], "--prompt is empty"),
        (["--top-p", "2"], "top_p is 2.0; allowed: more than 0, up to 1"),
        (["--top-k", "0"], "top_k is 0"),
        (["--temperature=-1"], "temperature is -1.0"),
        (["--length=-5"], "length is -5"),
        (["--seed=-1"], "--seed is -1; allowed: 0 or more"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(refused, text_run, options, message):
    assert message in refused("generate", text_run, *options)


def test_other_runs_are_named(refused, digits_run, tmp_path):
    assert "is a run on classes; expected one on text" in refused("generate", digits_run)
    assert "no run here" in refused("generate", tmp_path)


def test_evaluate_gives_the_same_figures(handgrad, text_run):
    result = handgrad("evaluate", text_run)
    assert result.exit_code == 0, result.output
    assert "validation loss" in result.stdout
    assert "bits per character" in result.stdout


def test_a_damaged_tokenizer_is_one_sentence(refused, text_run, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(text_run, copy)
    (copy / "tokens.json").write_text("[]")
    assert "tokens.json is damaged or was changed" in refused("generate", copy)
    (copy / "tokens.json").unlink()
    assert "tokens.json is missing" in refused("generate", copy)
