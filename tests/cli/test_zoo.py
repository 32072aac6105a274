from __future__ import annotations

import shutil

import pytest

from handgrad import recipes
from handgrad.recipes.promised import Promise


def test_models_are_the_recipes_that_promise_a_figure(handgrad, tmp_path):
    listed = handgrad("zoo", "--out", tmp_path).stdout
    for name in recipes.names():
        promise = Promise.of(recipes.read(name).about)
        assert (name in listed) == (promise is not None)
    assert "not trained" in listed


def test_a_model_that_is_there_is_judged_and_not_trained_again(handgrad, zoo):
    before = (zoo / "digits" / "model.safetensors").stat().st_mtime_ns
    result = handgrad("zoo", "digits", "--out", zoo)
    assert result.exit_code == 0, result.output
    assert "✓" in result.stdout
    assert "promised 99.4" in result.stdout
    assert (zoo / "digits" / "model.safetensors").stat().st_mtime_ns == before
    assert "✓" in handgrad("zoo", "--out", zoo).stdout


def test_a_promise_that_is_not_kept_is_exit_code_1(handgrad, zoo, monkeypatch):
    monkeypatch.setattr(Promise, "is_kept", lambda *_: False)
    result = handgrad("zoo", "digits", "--out", zoo)
    assert result.exit_code == 1
    assert "✗" in result.stdout


def test_a_model_begun_is_trained_to_its_end(handgrad, zoo, tmp_path):
    shutil.copytree(zoo, tmp_path / "zoo")
    (tmp_path / "zoo" / "digits" / "summary.json").unlink()
    result = handgrad("zoo", "digits", "--out", tmp_path / "zoo", "-q")
    assert result.exit_code == 0, result.output


def test_a_run_of_another_recipe_is_refused(refused, digits_run):
    found = refused("zoo", "digits", "--out", digits_run.parent)
    assert "a run of another recipe than digits" in found


def test_a_name_that_is_no_model_is_refused_with_those_there_are(refused):
    assert "did you mean digits?" in refused("zoo", "digit")
    assert "allowed: dates, digits" in refused("zoo", "table")


@pytest.fixture(scope="module")
def zoo(handgrad, tmp_path_factory):
    """A zoo with the digits, which are trained in seconds."""
    folder = tmp_path_factory.mktemp("zoo")
    result = handgrad("zoo", "digits", "--out", folder, "-q")
    assert result.exit_code == 0, result.output
    return folder
