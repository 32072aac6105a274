"""The README and the documents show what the code does and holds."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from docs import moving
from handgrad.recipes import keys
from tests.rows import rows

ROOT = Path(__file__).parents[1]
#: Pages that `python -m docs.site` writes.
GENERATED = {*ROOT.glob("docs/api/**/*.md")}
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks of the README in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_set_up_is_two_commands_of_one_line() -> None:
    commands = blocks("sh")
    assert len(commands) == 2
    assert all(len(command.splitlines()) == 1 for command in commands)


def test_the_first_network_has_ten_lines() -> None:
    assert sum(line != "" for line in blocks("python")[0].splitlines()) == 10


def test_the_check_shown_is_that_of_its_page() -> None:
    command, _, verdict = blocks("console")[0].split("\n", 2)
    page = (ROOT / "docs/find-the-bug.md").read_text("utf-8")
    first = re.search(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert first[1].startswith(command + "\n")
    assert first[1].endswith(verdict)


@rows(
    "document",
    sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")} - GENERATED),
    ids=lambda p: p.name,
)
def test_links_lead_to_files(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text("utf-8")):
        assert "://" in target or (document.parent / target).exists(), target


def test_every_key_of_a_recipe_is_documented() -> None:
    text = (ROOT / "docs/recipes.md").read_text("utf-8")
    types = (
        keys.LAYERS
        | keys.MODELS
        | keys.LOSSES
        | keys.OPTIMIZERS
        | keys.SCHEDULES
        | keys.AUGMENTATIONS
    )
    data = {"name": ""}, {"name": "dates"}, {"name": "pronounce"}
    names = {*keys.SECTIONS, *keys.TRAINING, *types}
    names |= {key for model in keys.MODELS for each in data for key in keys.data_keys(model, each)}
    names |= {key for settings in types.values() for key in settings}
    # The part of its data that a run's config.toml keeps to build the model again.
    names -= {"mean", "std", "target_mean", "target_std", "vocabulary", "vocabularies"}
    assert not {name for name in names if f"`{name}`" not in text}


def test_the_moving_picture_has_every_equation_and_no_script() -> None:
    text = moving.PICTURE.read_text("utf-8")
    assert len(text) < 400_000
    tags = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(text).iter()}
    assert tags == {"svg", "title", "style", "defs", "g", "path", "rect", "use"}
    still, moves = text.split("@media (prefers-reduced-motion: no-preference)")
    assert "animation" not in still
    assert moves.count("@keyframes") == 2 * len(list(moving.equations()))
    drawn = set(re.findall(r'<path id="(\w+)"', text))
    assert drawn == set(re.findall(r'<use href="#(\w+)"', text))
