"""Decoding: the most probable tokens, one at a time or by beams, and tokens drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from handgrad.arrays import Array
from handgrad.data.tokens import END, PAD, START, UNKNOWN
from handgrad.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from jaxtyping import Float, Int

#: Special tokens that a translation never has; </s> ends it.
_NEVER: Final = (PAD, START, UNKNOWN)


class Translator(Protocol):
    """An encoder-decoder, as far as decoding needs it. A state has one row for every sequence."""

    def start(self, sources: Array, source_lengths: Array) -> Any:
        """The state before the first step: the encoder's work, done once."""

    def step(self, tokens: Array, state: Any) -> tuple[Array, Any]:
        """Scores (B, V) of the tokens that follow the last ones (B,), and the state after them."""

    def choose(self, state: Any, index: Array) -> Any:
        """The rows `index` (B',) of a state, in that order; a row may come several times."""


class LanguageModel(Protocol):
    """A decoder-only model, as far as decoding needs it."""

    def start(self, tokens: Array) -> tuple[Array, Any]:
        """Scores (B, V) of the tokens that follow the tokens (B, T), and the state after them."""

    def step(self, tokens: Array, state: Any) -> tuple[Array, Any]:
        """As `Translator.step`."""


class Hypothesis(NamedTuple):
    """Tokens (L,) without </s>, and the logarithm of their probability over the length penalty."""

    tokens: Array
    score: float


def greedy(
    model: Translator,
    sources: Array,
    source_lengths: Int[Array, "N"],
    *,
    longest: int,
) -> list[Int[Array, "L"]]:
    """For every source the tokens that are each the most probable one after those before it.

    A sequence ends before </s>, or after `longest` tokens. <pad>, <s> and <unk> are never written.
    Raises ArgumentError for longest below 1.
    """
    _check_at_least("greedy", "longest", longest, 1)
    found: list[list[int]] = [[] for _ in range(sources.shape[0])]
    rows = np.arange(sources.shape[0])
    tokens = np.full(len(rows), START)
    state = model.start(sources, source_lengths)
    for _ in range(longest):
        if len(rows) == 0:
            break
        logits, state = model.step(tokens, state)
        tokens = np.argmax(_without_marks(logits), axis=1)
        going = np.flatnonzero(tokens != END)
        if len(going) < len(rows):
            rows, tokens, state = rows[going], tokens[going], model.choose(state, going)
        for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
            found[row].append(token)
    return [np.array(written, dtype=np.int64) for written in found]


def beam(
    model: Translator,
    sources: Array,
    source_lengths: Int[Array, "N"],
    *,
    width: int,
    longest: int,
    length_penalty: float = 0.0,
) -> list[Hypothesis]:
    """For every source the best sequence that a search with `width` hypotheses at a time finds.

    In each step every hypothesis is followed by every token. Of these sequences the `width` best
    count: those that end leave the search, and the search goes on from the best that do not. The
    score of a sequence of L tokens, </s> counted, is log P / ((5 + L)/6)^length_penalty, so that
    above 0 longer ones are preferred; P is the model's own, with tokens that are never written.
    The search for a source is over when nothing that is still open can become better than what has
    ended, or after `longest` tokens, </s> counted. If nothing has ended by then, it gives the best
    that has not.

    Raises ArgumentError for width or longest below 1 and for length_penalty below 0.
    Source: Wu et al., Google's neural machine translation system: bridging the gap between human
    and machine translation (2016), section 7.
    """
    _check_at_least("beam", "width", width, 1)
    _check_at_least("beam", "longest", longest, 1)
    _check_at_least("beam", "length_penalty", length_penalty, 0)
    batch = sources.shape[0]
    best = [Hypothesis(np.zeros(0, np.int64), -np.inf) for _ in range(batch)]
    rows = np.arange(batch)  # the sources that are still searched, `width` rows of state for each
    written = np.zeros((batch, width, 0), np.int64)
    log_p = np.full((batch, width), -np.inf)
    log_p[:, 0] = 0.0  # at first all hypotheses are the same: one counts
    tokens = np.full(batch * width, START)
    state = model.choose(model.start(sources, source_lengths), np.repeat(rows, width))
    for length in range(1, longest + 1):
        if len(rows) == 0:
            break
        logits, state = model.step(tokens, state)
        vocabulary = logits.shape[1]
        log_p_token = _without_marks(log_softmax(logits.astype(np.float64)))
        candidates = log_p[:, :, None] + log_p_token.reshape(len(rows), width, vocabulary)
        candidates = candidates.reshape(len(rows), width * vocabulary)
        positions = _highest(candidates, 2 * width)  # at most `width` of them end
        log_p = np.take_along_axis(candidates, positions, axis=1)
        parents, tokens = np.divmod(positions, vocabulary)
        ends = tokens == END

        scores = log_p / _penalty(length, length_penalty)
        for k, rank in np.argwhere(ends[:, :width]).tolist():
            if scores[k, rank] > best[rows[k]].score:
                best[rows[k]] = Hypothesis(written[k, parents[k, rank]], float(scores[k, rank]))

        open_first = np.argsort(ends, axis=1, kind="stable")[:, :width]
        log_p = np.take_along_axis(np.where(ends, -np.inf, log_p), open_first, axis=1)
        parents = np.take_along_axis(parents, open_first, axis=1)
        tokens = np.take_along_axis(tokens, open_first, axis=1)
        before = np.take_along_axis(written, parents[:, :, None], axis=1)
        written = np.concatenate((before, tokens[:, :, None]), axis=2)

        # log P only falls, and what is divided by only grows: this is the most that can be reached.
        bound = log_p[:, 0] / _penalty(longest, length_penalty)
        going = np.flatnonzero(bound > [best[row].score for row in rows])
        first = np.arange(len(rows))[:, None] * width
        state = model.choose(state, (first + parents)[going].reshape(-1))
        rows, written, log_p = rows[going], written[going], log_p[going]
        tokens = tokens[going].reshape(-1)
    for k, row in enumerate(rows.tolist()):
        if best[row].score == -np.inf:
            score = log_p[k, 0] / _penalty(longest, length_penalty)
            best[row] = Hypothesis(written[k, 0], float(score))
    return best


def sample(
    model: LanguageModel,
    tokens: Int[Array, "B T"],
    *,
    length: int,
    rng: np.random.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Int[Array, "B T+length"]:
    """The tokens, and `length` more after each sequence, drawn from softmax(scores/temperature).

    `top_k` leaves only the k most probable tokens, `top_p` of these only the most probable ones
    that together reach the probability p. With temperature 0 the most probable token is taken.
    `rng` is advanced by one float64 per sequence and token, at temperature 0 by none.

    Raises ShapeError for tokens that are not (B, T) with T at least 1, ArgumentError for
    length or temperature below 0, top_k below 1, and top_p outside of 0 < p ≤ 1.
    Source: Fan, Lewis, Dauphin, Hierarchical neural story generation (2018), for top-k; Holtzman et
    al., The curious case of neural text degeneration (2020), for top-p.
    """
    if len(tokens.shape) != 2 or tokens.shape[1] == 0:
        raise ShapeError(
            f"sample: tokens has shape {tuple(tokens.shape)}; allowed: (B, T) with T at least 1"
        )
    _check_at_least("sample", "length", length, 0)
    _check_at_least("sample", "temperature", temperature, 0)
    if top_k is not None:
        _check_at_least("sample", "top_k", top_k, 1)
    if top_p is not None and not 0 < top_p <= 1:
        raise ArgumentError(f"sample: top_p is {top_p!r}; allowed: more than 0, up to 1")
    if length == 0:
        return tokens
    logits, state = model.start(tokens)
    last = _draw(logits, rng, temperature, top_k, top_p)
    written = [tokens, last[:, None]]
    for _ in range(length - 1):
        logits, state = model.step(last, state)
        last = _draw(logits, rng, temperature, top_k, top_p)
        written.append(last[:, None])
    return np.concatenate(written, axis=1)


def _draw(
    logits: Float[Array, "B V"],
    rng: np.random.Generator,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
) -> Int[Array, "B"]:
    """One token for every row of scores."""
    if temperature == 0:
        return np.argmax(logits, axis=1)
    logits = logits.astype(np.float64)
    falling = np.argsort(-logits, axis=1, kind="stable")
    p = np.exp(log_softmax(np.take_along_axis(logits, falling, axis=1)[:, :top_k] / temperature))
    if top_p is not None:
        p_of_better = np.cumsum(p, axis=1) - p
        p = np.where(p_of_better < top_p, p, 0.0)
    cumulative = np.cumsum(p, axis=1)
    drawn = rng.random((len(logits), 1)) * cumulative[:, -1:]
    position = np.argmax(cumulative > drawn, axis=1)
    return np.take_along_axis(falling, position[:, None], axis=1)[:, 0]


def log_softmax(x: Float[Array, "*batch V"]) -> Float[Array, "*batch V"]:
    """log p = x − max x − log Σ exp(x − max x), along the last axis."""
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))


def _without_marks(scores: Float[Array, "B V"]) -> Float[Array, "B V"]:
    """−∞ for the special tokens that are never written."""
    scores = np.array(scores)
    scores[:, _NEVER] = -np.inf
    return scores


def _highest(scores: Float[Array, "N M"], count: int) -> Int[Array, "N count"]:
    """The positions of the `count` highest scores of each row, the highest first."""
    if count < scores.shape[1]:
        positions = np.sort(np.argpartition(-scores, count - 1, axis=1)[:, :count], axis=1)
    else:
        positions = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    falling = np.argsort(-np.take_along_axis(scores, positions, axis=1), axis=1, kind="stable")
    return np.take_along_axis(positions, falling, axis=1)


def _penalty(length: int, power: float) -> float:
    return float(((5 + length) / 6) ** power)


def _check_at_least(what: str, name: str, value: float, least: int) -> None:
    if not value >= least:
        raise ArgumentError(f"{what}: {name} is {value!r}; allowed: {least} or more")
