"""Decoding: against an exhaustive search, and by what sampling leaves out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from handgrad.data.tokens import END, PAD, START, UNKNOWN
from handgrad.errors import ArgumentError, ShapeError
from handgrad.models.decoding import beam, greedy, log_softmax, sample
from tests.tolerances import assert_close

VOCABULARY = 7
WORDS = (4, 5, 6)
SOURCES = np.array([[3], [11], [5], [8]])
LENGTHS = np.array([1, 1, 1, 1])


class Table:
    """A model whose scores are drawn anew for every source and everything written so far.

    A state is what each row has written, its source first.
    """

    def __init__(self, favour_end: float = 0.0) -> None:
        self.favour_end = favour_end
        self.rows_stepped = 0

    def start(self, sources: np.ndarray, source_lengths: np.ndarray) -> np.ndarray:
        return sources

    def step(self, tokens: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = np.column_stack((state, tokens))
        self.rows_stepped += len(state)
        return np.stack([self.scores(row) for row in state]), state

    def choose(self, state: np.ndarray, index: np.ndarray) -> np.ndarray:
        return state[index]

    def scores(self, written: np.ndarray) -> np.ndarray:
        scores = 1.5 * np.random.default_rng(written).standard_normal(VOCABULARY)
        scores[END] += self.favour_end
        return scores

    def log_p(self, source: int, tokens: tuple[int, ...]) -> float:
        """The score of these tokens after <s>."""
        written, total = [source, START], 0.0
        for token in tokens:
            total += float(log_softmax(self.scores(np.array(written)))[token])
            written.append(token)
        return total


def every_ended(longest: int) -> list[tuple[int, ...]]:
    return [
        (*words, END)
        for length in range(longest)
        for words in itertools.product(WORDS, repeat=length)
    ]


def test_greedy_takes_the_most_probable_token_each_time() -> None:
    model = Table()
    found = greedy(model, SOURCES, LENGTHS, longest=6)
    assert len({len(tokens) for tokens in found}) > 1
    for (source,), tokens in zip(SOURCES, found, strict=True):
        written = [source, START]
        for token in [*tokens, END] if len(tokens) < 6 else tokens:
            scores = model.scores(np.array(written))
            scores[[PAD, START, UNKNOWN]] = -np.inf
            assert token == np.argmax(scores)
            written.append(token)


def test_greedy_leaves_a_source_alone_once_it_has_ended() -> None:
    model = Table()
    found = greedy(model, SOURCES, LENGTHS, longest=6)
    assert model.rows_stepped == sum(min(len(tokens) + 1, 6) for tokens in found)


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 3.0])
def test_a_wide_beam_finds_the_best_of_all(length_penalty: float) -> None:
    model, longest = Table(), 4
    found = beam(model, SOURCES, LENGTHS, width=60, longest=longest, length_penalty=length_penalty)
    lengths = set()
    for (source,), (tokens, score) in zip(SOURCES, found, strict=True):
        scores = {
            ended: model.log_p(source, ended) / ((5 + len(ended)) / 6) ** length_penalty
            for ended in every_ended(longest)
        }
        best = max(scores, key=lambda ended: scores[ended])
        assert (*tokens, END) == best
        assert_close(score, scores[best], "float64")
        lengths.add(len(tokens))
    assert len(lengths) > 1


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_beam_is_the_plain_search_of_one_source(width: int) -> None:
    model, longest = Table(), 5
    found = beam(model, SOURCES, LENGTHS, width=width, longest=longest, length_penalty=0.5)
    for (source,), (tokens, score) in zip(SOURCES, found, strict=True):
        expected_tokens, expected_score = plain_beam(model, int(source), width, longest, 0.5)
        assert tuple(tokens) == expected_tokens
        assert_close(score, expected_score, "float64")


def plain_beam(
    model: Table, source: int, width: int, longest: int, power: float
) -> tuple[tuple[int, ...], float]:
    """The same search with lists, to its very end."""
    ended: list[tuple[float, tuple[int, ...]]] = []
    open_ones: list[tuple[int, ...]] = [()]
    for length in range(1, longest + 1):
        followed = [(*words, t) for words in open_ones for t in (*WORDS, END)]
        followed.sort(key=lambda tokens: -model.log_p(source, tokens))
        ended += [
            (model.log_p(source, tokens) / ((5 + length) / 6) ** power, tokens[:-1])
            for tokens in followed[:width]
            if tokens[-1] == END
        ]
        open_ones = [tokens for tokens in followed if tokens[-1] != END][:width]
    if not ended:
        best = open_ones[0]
        return best, model.log_p(source, best) / ((5 + longest) / 6) ** power
    score, tokens = max(ended)
    return tokens, score


def test_a_beam_of_one_is_greedy() -> None:
    found = beam(Table(), SOURCES, LENGTHS, width=1, longest=6)
    for hypothesis, tokens in zip(found, greedy(Table(), SOURCES, LENGTHS, longest=6), strict=True):
        np.testing.assert_array_equal(hypothesis.tokens, tokens)


def test_what_has_not_ended_is_given_where_nothing_has() -> None:
    model = Table(favour_end=-50.0)
    found = beam(model, SOURCES, LENGTHS, width=3, longest=4)
    for (source,), (tokens, score) in zip(SOURCES, found, strict=True):
        assert len(tokens) == 4
        expected_tokens, expected_score = plain_beam(model, int(source), 3, 4, 0.0)
        assert tuple(tokens) == expected_tokens
        assert_close(score, expected_score, "float64")


def test_a_search_stops_when_nothing_can_improve() -> None:
    model = Table(favour_end=50.0)
    found = beam(model, SOURCES, LENGTHS, width=2, longest=100)
    assert [len(hypothesis.tokens) for hypothesis in found] == [0, 0, 0, 0]
    assert model.rows_stepped == 2 * len(SOURCES)


def test_no_sources_are_no_tokens() -> None:
    assert greedy(Table(), SOURCES[:0], LENGTHS[:0], longest=3) == []
    assert beam(Table(), SOURCES[:0], LENGTHS[:0], width=2, longest=3) == []


class Chain:
    """A language model whose next token depends on the last one alone, by a table of scores."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    def start(self, tokens: np.ndarray) -> tuple[np.ndarray, int]:
        return self.scores[tokens[:, -1]], tokens.shape[1]

    def step(self, tokens: np.ndarray, state: int) -> tuple[np.ndarray, int]:
        return self.scores[tokens], state + 1


def chain(seed: int = 3) -> Chain:
    return Chain(np.random.default_rng(seed).standard_normal((8, 8)))


def test_sampling_follows_the_probabilities() -> None:
    model = chain()
    prompt = np.zeros((20_000, 1), np.int64)
    drawn = sample(model, prompt, length=2, rng=np.random.default_rng(5), temperature=0.7)
    assert drawn.shape == (20_000, 3)
    p = np.exp(log_softmax(model.scores / 0.7))
    for column, expected in ((1, p[0]), (2, p[0] @ p)):
        found = np.bincount(drawn[:, column], minlength=8) / len(drawn)
        assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected / len(drawn)))


def test_temperature_0_takes_the_most_probable() -> None:
    model = chain()
    rng = np.random.default_rng(5)
    state = rng.bit_generator.state
    drawn = sample(model, np.arange(8)[:, None], length=4, rng=rng, temperature=0)
    for before, after in itertools.pairwise(drawn.T):
        np.testing.assert_array_equal(after, np.argmax(model.scores[before], axis=1))
    assert rng.bit_generator.state == state


@pytest.mark.parametrize("k", [1, 3, 8, 100])
def test_top_k_leaves_the_k_most_probable(k: int) -> None:
    model = chain()
    drawn = sample(
        model, np.zeros((3000, 1), np.int64), length=1, rng=np.random.default_rng(2), top_k=k
    )
    allowed = np.argsort(-model.scores[0])[:k]
    assert set(drawn[:, 1]) == set(allowed)


def test_top_p_leaves_the_most_probable_that_reach_p() -> None:
    model = Chain(np.log(np.array([[0.1, 0.4, 0.3, 0.2]])))
    prompt = np.zeros((3000, 1), np.int64)

    def found(**settings: Any) -> set[int]:
        drawn = sample(model, prompt, length=1, rng=np.random.default_rng(2), **settings)
        return set(drawn[:, 1].tolist())

    assert found(top_p=0.01) == {1}
    assert found(top_p=0.6) == {1, 2}
    assert found(top_p=0.85) == {1, 2, 3}
    assert found(top_p=1.0) == {0, 1, 2, 3}
    assert found(top_p=0.75) == {1, 2, 3}
    assert found(top_p=0.75, top_k=3) == {1, 2}, "probabilities are of what top_k leaves"


def test_the_same_generator_draws_the_same() -> None:
    prompt = np.arange(8)[:, None]
    first, second = (
        sample(chain(), prompt, length=9, rng=np.random.default_rng(1)) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first[:, :1], prompt)


def test_nothing_more_is_the_prompt() -> None:
    prompt = np.arange(8)[:, None]
    found = sample(chain(), prompt, length=0, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(found, prompt)


def test_log_softmax_does_not_overflow() -> None:
    x = np.array([[1000.0, 0.0, -1000.0], [-np.inf, 0.0, 0.0]])
    expected = np.array([[0.0, -1000.0, -2000.0], [-np.inf, -np.log(2.0), -np.log(2.0)]])
    assert_close(log_softmax(x), expected, "float64")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "beam: width is 0; allowed: 1 or more"),
        ({"longest": 0}, "beam: longest is 0; allowed: 1 or more"),
        ({"length_penalty": -0.5}, "beam: length_penalty is -0.5; allowed: 0 or more"),
        ({"length_penalty": float("nan")}, "beam: length_penalty is nan; allowed: 0 or more"),
    ],
)
def test_settings_of_a_beam_that_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        beam(Table(), SOURCES, LENGTHS, **{"width": 2, "longest": 3, **settings})


def test_greedy_needs_a_length() -> None:
    with pytest.raises(ArgumentError, match="greedy: longest is 0; allowed: 1 or more"):
        greedy(Table(), SOURCES, LENGTHS, longest=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": -1}, "sample: length is -1; allowed: 0 or more"),
        ({"temperature": -1.0}, "sample: temperature is -1.0; allowed: 0 or more"),
        ({"top_k": 0}, "sample: top_k is 0; allowed: 1 or more"),
        ({"top_p": 0.0}, "sample: top_p is 0.0; allowed: more than 0, up to 1"),
        ({"top_p": 1.5}, "sample: top_p is 1.5; allowed: more than 0, up to 1"),
    ],
)
def test_settings_of_sampling_that_are_refused(settings: dict[str, Any], message: str) -> None:
    prompt = np.zeros((1, 1), np.int64)
    with pytest.raises(ArgumentError, match=message):
        sample(chain(), prompt, **{"length": 1, "rng": np.random.default_rng(0), **settings})


def test_a_prompt_has_at_least_one_token() -> None:
    with pytest.raises(ShapeError, match=r"tokens has shape \(2, 0\); allowed: \(B, T\) with T"):
        sample(chain(), np.zeros((2, 0), np.int64), length=1, rng=np.random.default_rng(0))
