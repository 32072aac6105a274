from __future__ import annotations

import tomllib

from handgrad import recipes


def test_every_recipe_is_listed_with_what_it_learns(handgrad):
    result = handgrad("recipes")
    assert result.exit_code == 0, result.output
    for name in recipes.names():
        assert name in result.stdout
    assert "digits" in result.stdout


def test_what_runs_now_depends_on_the_files_that_are_here(handgrad, monkeypatch, tmp_path):
    monkeypatch.delenv("HANDGRAD_DATA", raising=False)
    assert "runs now: yes" in handgrad("recipes", "show", "digits").stdout
    assert "runs now: no, lacks files" in handgrad("recipes", "show", "mnist-mlp").stdout
    folder = tmp_path / "mnist"
    folder.mkdir()
    for part in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            (folder / f"{part}-{kind}-ubyte").touch()
    monkeypatch.setenv("HANDGRAD_DATA", str(tmp_path))
    assert "runs now: yes" in handgrad("recipes", "show", "mnist-mlp").stdout


def test_show_says_the_files_and_prints_the_recipe(handgrad):
    shown = handgrad("recipes", "show", "mnist-cnn").stdout
    assert "t10k-images-idx3-ubyte" in shown
    assert tomllib.loads(shown)["data"] == {"name": "mnist"}


def test_a_copy_is_a_recipe_and_replaces_nothing(handgrad, refused, tmp_path):
    mine = tmp_path / "my.toml"
    assert handgrad("recipes", "copy", "digits", mine).exit_code == 0
    assert recipes.read(str(mine)).tables == recipes.read("digits").tables
    assert "is there already" in refused("recipes", "copy", "vowels", mine)
    assert "ends in .toml" in refused("recipes", "copy", "vowels", tmp_path / "my")
    assert "did you mean digits?" in refused("recipes", "copy", "digit", tmp_path / "x.toml")
