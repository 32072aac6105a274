"""The notation of all pages in one table: the words of code, their symbols and meanings.

docs/notation.md is printed from it. What has no word here goes by the rules of `glossary`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from handgrad.documents.formulas.formula import (
    Accent,
    Fenced,
    Formula,
    Fraction,
    Number,
    Script,
    Sign,
    Symbol,
    Text,
)


class Word(NamedTuple):
    """The symbol of a word of the code, and the meaning that both have on a page."""

    symbol: Formula
    meaning: str


def _letter(name: str, *, sub: str = "", sup: Formula | None = None) -> Formula:
    below = Text(sub) if sub else None
    return Script(Symbol(name), below, sup) if sub or sup is not None else Symbol(name)


def _norm(name: str) -> Formula:
    """‖x‖ with what is added under its root."""
    return Script(Fenced(Symbol(name), "‖"), Symbol("epsilon"))


_SQUARED: Final = Number("2")
_PRIME: Final = Sign("′")
_X: Final = Symbol("x")

#: Words that have a letter of their own in the literature. A name for one over a root stands for
#: the fraction, so that products with it become quotients. Two words of one symbol are never on one
#: page with two meanings.
WORDS: Final[Mapping[str, Word]] = {
    "weight": Word(Symbol("W"), "a matrix or kernel that is learned"),
    "w": Word(Symbol("W"), "a matrix or kernel that is learned"),
    "bias": Word(Symbol("b"), "a vector that is learned and added"),
    "eps": Word(Symbol("epsilon"), "the small number under a root"),
    "mean": Word(Symbol("mu"), "the mean over the axes that are normalised"),
    "variance": Word(
        _letter("sigma", sup=_SQUARED), "the variance, with all of the n values in its divisor"
    ),
    "var": Word(
        _letter("sigma", sup=_SQUARED), "the variance, with all of the n values in its divisor"
    ),
    "std": Word(Symbol("sigma"), "the standard deviation"),
    "unbiased": Word(_letter("s", sup=_SQUARED), "the variance with n − 1 in its divisor"),
    "inv_std": Word(
        Fraction(Number("1"), Script(Symbol("sigma"), Symbol("epsilon"))),
        "one over the root of the variance and ε",
    ),
    "inv_rms": Word(
        Fraction(Number("1"), Script(Accent("hat", Symbol("sigma")), Symbol("epsilon"))),
        "one over the root of the mean square and ε",
    ),
    "mean_square": Word(Fenced(Script(_X, sup=_SQUARED), "⟨"), "the mean of the squares"),
    "running_mean": Word(_letter("mu", sub="run"), "the mean over batches, for inference"),
    "running_var": Word(
        _letter("sigma", sub="run", sup=_SQUARED), "the variance over batches, for inference"
    ),
    "momentum": Word(Symbol("m"), "the share of the new batch in a running mean"),
    "values": Word(Symbol("M"), "how many values a mean is over"),
    "num_groups": Word(Symbol("G"), "the number of groups"),
    "centred": Word(Accent("tilde", _X), "what is left without the mean"),
    "centered": Word(Accent("tilde", _X), "what is left without the mean"),
    "shifted": Word(Accent("tilde", _X), "what is left without the largest"),
    "highest": Word(Symbol("m"), "the largest along an axis"),
    "difference": Word(Symbol("Delta"), "the prediction less the target"),
    "squares": Word(Script(Symbol("Delta"), sup=_SQUARED), "the squared differences"),
    "scale": Word(Symbol("c"), "what scores are multiplied by, 1/√d unless given"),
    "factor": Word(Symbol("c"), "a constant in front"),
    "out": Word(Symbol("y"), "what comes out"),
    "output": Word(Symbol("y"), "what comes out"),
    "target": Word(Symbol("t"), "what should come out"),
    "targets": Word(Symbol("l"), "the labels of a sequence"),
    "labels": Word(Script(Symbol("l"), sup=_PRIME), "the labels with a blank between each two"),
    "labels_of_each": Word(Accent("bar", Symbol("ell")), "how many labels each sequence has"),
    "length": Word(Symbol("ell"), "the length of a sequence"),
    "last": Word(Script(Symbol("s"), sup=Sign("∗")), "where the labels end"),
    "is_impossible": Word(
        Script(Symbol("kappa"), Sign("∅")), "1 where no path leads to the labels"
    ),
    "dx_possible": Word(
        Script(Symbol("delta"), _X), "the gradient where a path leads to the labels"
    ),
    "batch": Word(Symbol("N"), "the number of examples"),
    "loss": Word(Symbol("J"), "the loss of every example, before it is reduced"),
    "smooth": Word(Symbol("u"), "the share of each class by smoothing"),
    "gates": Word(Symbol("Gamma"), "the four gates of a step, side by side"),
    "count": Word(Symbol("nu"), "how many values of a window lie inside"),
    "dropout_p": Word(Symbol("p"), "the probability to switch off"),
    "ignore_index": Word(_letter("c", sub="ign"), "the class that is left out"),
    "padding_idx": Word(_letter("v", sub="pad"), "the row that stays as it is"),
    "states_before": Word(Accent("bar", Symbol("h")), "the states before each step"),
    "positive_part": Word(Script(_X, sup=Sign("+")), "x where it is above 0, and 0 elsewhere"),
    "losses": Word(Symbol("ell"), "the losses of the examples"),
    "classes": Word(Symbol("C"), "the number of classes"),
    "label_smoothing": Word(Symbol("s"), "the share that is spread over all classes"),
    "negative_slope": Word(Symbol("alpha"), "the slope below 0"),
    "probability": Word(Symbol("Phi"), "the distribution function of the normal law"),
    "density": Word(Symbol("phi"), "the density of the normal law"),
    "slope": Word(Script(Symbol("f"), sup=_PRIME), "the derivative of a function"),
    "gate": Word(Symbol("g"), "what a value is multiplied by"),
    "pos_weight": Word(_letter("w", sub="pos"), "the weight of the positives"),
    "yes": Word(Script(Symbol("p"), Number("1")), "the probability of 1"),
    "no": Word(Script(Symbol("p"), Number("0")), "the probability of 0"),
    "positives": Word(Script(Symbol("t"), Number("1")), "the weighted targets of 1"),
    "negatives": Word(Script(Symbol("t"), Number("0")), "the targets of 0"),
    "negative_part": Word(Script(_X, sup=Sign("−")), "x where it is below 0, and 0 elsewhere"),
    "log_one_plus": Word(Symbol("lambda"), "log(1 + e^−∣x∣)"),
    "kernel_offset": Word(Symbol("tau"), "the place in a window"),
    "number": Word(Symbol("tau"), "the number of a step"),
    "winner": Word(
        Script(Symbol("tau"), sup=Sign("∗")), "the place in a window where the largest stands"
    ),
    "row_sums": Word(Symbol("r"), "the sums of the rows"),
    "along": Word(Symbol("r"), "the part along a vector"),
    "time": Word(Symbol("tau"), "the time of a step"),
    "base": Word(Symbol("B"), "the base of the wavelengths"),
    "stride": Word(Symbol("s"), "by how many places a window moves"),
    "dilation": Word(Symbol("d"), "how far the places of a window are apart"),
    "padding": Word(Symbol("p"), "how many places are added on each side"),
    "kernel": Word(Symbol("k"), "how many places a window has"),
    "row_numbers": Word(Symbol("v"), "which rows are taken"),
    "class_index": Word(Symbol("c"), "the number of a class"),
    "lengths": Word(Symbol("ell"), "how long each sequence is"),
    "input_lengths": Word(_letter("ell", sub="in"), "how long each input is"),
    "source_lengths": Word(_letter("ell", sub="src"), "how long each source is"),
    "target_lengths": Word(_letter("ell", sub="tgt"), "how long each target is"),
    "inputs": Word(_letter("x", sub="in"), "what goes into the decoder"),
    "sources": Word(_letter("x", sub="src"), "what goes into the encoder"),
    "tokens": Word(_letter("x", sub="tok"), "numbers of words or letters"),
    "counts": Word(Symbol("kappa"), "1 where an element counts"),
    "keep": Word(Symbol("kappa"), "1 where a value is kept"),
    "keep_scale": Word(_letter("c", sub="keep"), "1/(1 − p), which keeps the expectation"),
    "kept": Word(Symbol("kappa"), "1 where a value is kept"),
    "real": Word(Symbol("kappa"), "1 where there is no padding"),
    "is_key": Word(Symbol("kappa"), "1 where a key may be looked at"),
    "inside": Word(_letter("kappa", sub="in"), "1 inside of the image"),
    "largest": Word(_letter("kappa", sub="max"), "1 where the largest stands"),
    "won": Word(_letter("kappa", sub="win"), "1 where a value is the largest of its window"),
    "chosen": Word(Symbol("E"), "1 in the column of each chosen row, and 0 elsewhere"),
    "one_hot": Word(Symbol("E"), "1 in the column of each chosen row, and 0 elsewhere"),
    "cls_token": Word(_letter("x", sub="cls"), "the learned token in front"),
    "token_type": Word(_letter("t", sub="type"), "to which text a token belongs"),
    "qk": Word(Symbol("s"), "the scores, query by key"),
    "row": Word(Symbol("R"), "y, spread over another axis"),
    "share": Word(Symbol("rho"), "the gradient that each value of a window gets"),
    "position": Word(Symbol("p"), "the position of a step"),
    "total": Word(Symbol("Z"), "what a mean is divided by"),
    "power": Word(Symbol("e"), "exp of the shifted scores"),
    "score": Word(Symbol("e"), "the score of a key"),
    "mask": Word(Symbol("M"), "which values count"),
    "context": Word(Symbol("c"), "the mean of the values that a query sees"),
    "state": Word(Symbol("h"), "the hidden state"),
    "memory": Word(Symbol("M"), "what attention looks at"),
    "query": Word(Symbol("q"), "what looks"),
    "queries": Word(Symbol("q"), "what looks"),
    "key": Word(Symbol("k"), "what is looked at"),
    "inv_s": Word(Fraction(Number("1"), _norm("s")), "one over the length of s"),
    "inv_h": Word(Fraction(Number("1"), _norm("h")), "one over the length of h"),
}

#: The symbols of words whose letter another name has.
SECOND: Final[Mapping[str, Formula]] = {"target": Script(Symbol("t"), sup=Sign("∗"))}
#: Letters for names without one of their own, where those of the name are taken.
SPARE: Final = "uvwsabcfghpqrz"
