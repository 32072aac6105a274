"""Tokenizers that would multiply a text are refused before they run; those in use are not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import handgrad as hg
from handgrad.data.growth import MOST, growth
from handgrad.errors import DataError

pytest.importorskip("tokenizers")

Steps = list[dict[str, Any]]
SIXTEEN = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 16}
MARKS = {"[CLS]": {"id": "[CLS]", "ids": [0], "tokens": ["[UNK]"]}}


def sequence(name: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", name: list(steps)}


def template(*single: str) -> dict[str, Any]:
    parts = [
        {"Sequence": {"id": each, "type_id": 0}}
        if each == "A"
        else {"SpecialToken": {"id": each, "type_id": 0}}
        for each in single
    ]
    pair = [{"Sequence": {"id": each, "type_id": 0}} for each in "AB"]
    return {"type": "TemplateProcessing", "single": parts, "pair": pair, "special_tokens": MARKS}


def replace(pattern: str, content: str, kind: str = "String") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def charsmap(*texts: str) -> dict[str, Any]:
    table = (0).to_bytes(4, "little") + "\0".join(texts).encode() + b"\0"
    encoded = base64.b64encode(table).decode()
    return {"type": "Precompiled", "precompiled_charsmap": encoded}


def written(folder: Path, **parts: Any) -> Path:
    content = {
        "version": "1.0",
        **dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer")),
        **dict.fromkeys(("post_processor", "decoder")),
        "added_tokens": [],
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
        **parts,
    }
    (folder / "tokenizer.json").write_text(json.dumps(content))
    return folder


BOMBS: dict[str, dict[str, Any]] = {
    "replacements": {"normalizer": sequence("normalizers", *[SIXTEEN] * 7)},
    "without types": {"normalizer": {"normalizers": [{**SIXTEEN, "type": "Replace"}] * 7}},
    "nested": {"normalizer": sequence("normalizers", *[sequence("normalizers", SIXTEEN)] * 7)},
    "in turns": {
        "normalizer": sequence("normalizers", *[replace("a", "b" * 16), replace("b", "a" * 16)] * 4)
    },
    "by letters": {
        "normalizer": sequence("normalizers", *[replace("a", "A" * 16), {"type": "Lowercase"}] * 7)
    },
    "one": {"normalizer": replace("a", "a" * 5000)},
    "pattern of several": {"normalizer": sequence("normalizers", *[replace("aa", "a" * 32)] * 7)},
    "nothing": {"normalizer": sequence("normalizers", *[replace("", "aaa")] * 7)},
    "expressions": {"normalizer": sequence("normalizers", *[replace("x*", "aaa", "Regex")] * 7)},
    "compatibility": {
        "normalizer": sequence("normalizers", *[replace("\u0644", "\ufdfa"), {"type": "NFKC"}] * 10)
    },
    "bytes": {
        "pre_tokenizer": sequence(
            "pretokenizers", *[{"type": "ByteLevel", "add_prefix_space": False}] * 30
        )
    },
    "before and after": {
        "normalizer": replace("a", "b" * 100),
        "pre_tokenizer": sequence(
            "pretokenizers", *[{"type": "ByteLevel", "add_prefix_space": False}] * 8
        ),
    },
    "marks": {"post_processor": template(*["A"] * 5000)},
    "decoders": {"decoder": sequence("decoders", *[SIXTEEN] * 7)},
    "table": {"normalizer": sequence("normalizers", *[charsmap("b", "a" * 100)] * 2)},
    "an added token": {
        "normalizer": sequence("normalizers", *[SIXTEEN] * 7),
        "added_tokens": [
            {
                "id": 1,
                "content": "a",
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False),
                "normalized": True,
            }
        ],
    },
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_text_that_would_multiply_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"may make [\d,]+ characters or tokens of one"):
        hg.hf.Tokenizer.from_pretrained(written(tmp_path, **BOMBS[name]))


ALBERT = sequence(
    "normalizers",
    replace("``", '"'),
    replace("''", '"'),
    {"type": "NFKD"},
    {"type": "StripAccents"},
    {"type": "Lowercase"},
    charsmap("a", "x" * 18),  # the longest text that Unicode has for a character
    replace(" {2,}", " ", "Regex"),
)
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
SPLIT = {"type": "Split", "pattern": {"Regex": r"\d"}, "behavior": "Isolated", "invert": False}
KNOWN: dict[str, dict[str, Any]] = {
    "ALBERT": {
        "normalizer": ALBERT,
        "pre_tokenizer": sequence("pretokenizers", {"type": "WhitespaceSplit"}, METASPACE),
        "post_processor": template("[CLS]", "A", "[CLS]"),
        "decoder": METASPACE,
    },
    "Llama 2": {
        "normalizer": sequence(
            "normalizers", {"type": "Prepend", "prepend": "\u2581"}, replace(" ", "\u2581")
        ),
        "decoder": sequence(
            "decoders", replace("\u2581", " "), {"type": "ByteFallback"}, {"type": "Fuse"}
        ),
    },
    "DeepSeek": {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": sequence("pretokenizers", *[SPLIT] * 4, BYTES),
        "decoder": BYTES,
    },
    "twenty ligatures": {
        "normalizer": sequence("normalizers", *(replace(chr(200 + i), "...") for i in range(20)))
    },
}


@pytest.mark.parametrize("name", KNOWN)
def test_tokenizers_in_use_are_read(name: str) -> None:
    assert growth(KNOWN[name]) <= MOST


@pytest.mark.parametrize(
    ("parts", "right"),
    [
        ({"normalizer": sequence("normalizers", SIXTEEN, SIXTEEN)}, 256),
        ({"normalizer": sequence("normalizers", replace("a", "bbb"), replace("c", "ddd"))}, 3),
        ({"normalizer": sequence("normalizers", replace("a", "bbb"), replace("b", "cc"))}, 6),
        ({"normalizer": sequence("normalizers", replace("b", "cc"), replace("a", "bbb"))}, 3),
        ({"decoder": sequence("decoders", replace("a", "bb"))}, 2),
        ({"post_processor": template("[CLS]", "A", "A")}, 3),
        ({}, 1),
        ([], 1),
    ],
)
def test_the_bound_is_that_of_the_steps(parts: Any, right: int) -> None:
    assert growth(parts) == right


def test_a_bounded_one_runs(tmp_path: Path) -> None:
    normalizer = sequence("normalizers", SIXTEEN, SIXTEEN)
    found = hg.hf.Tokenizer.from_pretrained(written(tmp_path, normalizer=normalizer))
    assert found.encode("a").tolist() == [0]


def test_what_is_cut_off_is_not_kept(tmp_path: Path) -> None:
    cut = {"direction": "Right", "max_length": 500, "strategy": "LongestFirst", "stride": 499}
    path = written(tmp_path, truncation=cut, pre_tokenizer={"type": "Whitespace"})
    found = hg.hf.Tokenizer.from_pretrained(path)
    assert len(found.encode("a " * 1000)) == 500
    assert found._tokenizer.truncation["stride"] == 0
