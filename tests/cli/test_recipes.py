from __future__ import annotations

from handgrad import recipes


def test_every_recipe_is_listed_with_its_data(handgrad):
    result = handgrad("recipes")
    assert result.exit_code == 0, result.output
    for name in recipes.names():
        assert name in result.stdout
    assert "it comes with handgrad" in result.stdout
    assert "t10k-images-idx3-ubyte" in result.stdout
