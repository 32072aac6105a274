"""The words of nodes are those of their text, however they are made."""

from __future__ import annotations

import ast

import pytest

from handgrad.checking.alignment import words
from handgrad.checking.alignment.words import SourceWords

TEXTS = (
    "dx = -(a + b) * c ** 2 @ w.T",
    "dx[t, :-1] += 2 * (x - mean[:, None]) / n",
    "self.grads['w'] = np.sum(dy * (x > 0), axis=(0, 1), keepdims=True)",
    "a, b = c, (d,)",
    "y **= (-x) ** 2",
    "return dx, -1e-05 * dw[::2], self.x.shape[0]",
    "mask = ~(a & b) if not found else a <= b != c",
    "dx = [each.sum() for each in rows] + [1, *more]",
    "total = sum(each for each in rows)",
    "x = (lambda v: v)(a) - (yield)",
    "z = a - (b - c) - -d // (e % f)",
    "y = 3 .real + w[...] + f(**options)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_the_words_of_a_statement_are_those_of_its_text(text: str) -> None:
    (statement,) = ast.parse(f"def f():\n {text}").body[0].body  # type: ignore[attr-defined]
    known = SourceWords()
    for each in ast.walk(statement):
        if isinstance(each, ast.expr | ast.stmt):
            assert known.of(each) == words._WORD.findall(ast.unparse(each)), ast.unparse(each)


def test_the_words_of_a_loop_are_those_of_its_head() -> None:
    (loop,) = ast.parse("for t in range(n - 1):\n x = 1").body
    assert SourceWords().of(loop) == ["range", "(", "n", "-", "1", ")"]
