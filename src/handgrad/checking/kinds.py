"""Kinds of faults in one table: the phrase of each as a cause."""

from __future__ import annotations

from typing import Final, NamedTuple


class FaultKind(NamedTuple):
    """One kind of fault.

    meaning: of a gradient, for the documentation. phrase: of a message, with {} for the part
    concerned. cost: how contrived it is as the one edit of a right backward; less comes first.
    """

    meaning: str
    phrase: str = "{}"
    cost: float = 2.0


#: Kinds that are edits of a backward, of `handgrad.program.edits`.
EDITS: Final = {
    "activation derivative forgotten": FaultKind(
        "the gradient is not multiplied by f′",
        "the derivative of the activation, in {}, is forgotten",
        1.0,
    ),
    "term missing": FaultKind(
        "a summand is left out",
        "term {} is missing",
        1.05,
    ),
    "wrong sign": FaultKind(
        "a summand or the whole has the wrong sign",
        "term {} has the wrong sign",
        1.05,
    ),
    "mean for sum": FaultKind(
        "a mean where a sum belongs",
        "a mean stands where {} belongs",
        1.1,
    ),
    "sum for mean": FaultKind(
        "a sum where a mean belongs",
        "a sum stands where {} belongs",
        1.1,
    ),
    "mask forgotten": FaultKind(
        "a condition is left out",
        "the condition {} is forgotten",
        1.1,
    ),
    "transpose missing": FaultKind(
        "a matrix is not transposed",
        "{} is not transposed",
        1.2,
    ),
    "factor missing": FaultKind(
        "an array that should be multiplied in is not",
        "the factor {} is missing",
        1.2,
    ),
    "scale missing": FaultKind(
        "a number that should be multiplied in is not",
        "the factor {} is missing",
        1.2,
    ),
    "not reduced": FaultKind(
        "not summed, or no mean taken, over an axis that was broadcast",
        "{} is not taken: the values stay as they are",
        1.25,
    ),
    "gradients swapped": FaultKind(
        "two gradients come back in each other's place",
        "{} come back in each other's place",
        1.25,
    ),
    "operands swapped": FaultKind(
        "the operands of a matrix product or a quotient are exchanged",
        "the operands of {} are exchanged",
        1.3,
    ),
    "wrong axis": FaultKind(
        "another axis",
        "{} is taken along another axis",
        1.3,
    ),
    "wrong branch": FaultKind(
        "the two branches of a condition are exchanged",
        "the branches of {} are exchanged",
        1.3,
    ),
    "function missing": FaultKind(
        "a function is not applied",
        "{} is not applied",
        1.35,
    ),
    "scale inverted": FaultKind(
        "multiplied where it should be divided, or the other way round",
        "{} multiplies where it should divide, or the other way round",
        1.4,
    ),
    "transposed": FaultKind(
        "a matrix is transposed that should not be",
        "{} is transposed and should not be",
        1.4,
    ),
    "stale variable": FaultKind(
        "another variable of the same shape is used",
        "one variable stands where another belongs: {}",
        1.9,
    ),
}
#: Every kind that a report can hold.
KINDS: Final = EDITS | {
    name: FaultKind(meaning)
    for name, meaning in {
        "raises": "forward or backward raised an exception",
        "wrong count": "backward returns too few or too many gradients",
        "wrong shape": "the gradient has not the shape of what it belongs to",
        "wrong type": "the gradient is no array of floats, or not of the input's type",
        "not finite": "NaN or infinity where forward is finite",
        "not returned": "backward asks for a value that forward makes and does not return",
        "forward differs": "forward is not that of the op it is compared with",
        "scaled": "the whole gradient is multiplied by a number",
        "term doubled": "a summand counts twice",
        "term scaled": "a summand is multiplied by a number",
        "brackets": "factors are multiplied in another order than the product of matrices allows",
        "other derivative": "the derivative of another activation: tanh, sigmoid or softmax",
        "other expression": "a line is another expression than the derived one, told as a whole",
        "two causes": "two faults of different kinds, both in the message",
        "extra term": "a summand too many",
        "extra factor": "a factor too many",
        "flipped": "an array, or the gradient, is the other way round along an axis",
        "shifted": "elements are taken one position away",
        "axes permuted": "the axes are in another order",
        "gradient is zero": "nothing flows back",
        "other mask": "the cotangent through another mask than forward's",
        "some rows": "right except on the rows named",
        "masked rows": "right except where the mask is off",
        "strided cotangent": "right only if dy is contiguous in memory",
        "not linear": "the gradient is not proportional to the cotangent",
        "written to": "an argument was written to",
        "not repeatable": "a second call with the same cache gives something else",
        "inaccurate": "further from float64 than rounding explains",
        "situation": "right on the usual inputs, wrong in the situation named",
        "unknown": "wrong, and nothing tried explains it",
        "random": "forward gives something else on every call",
        "kink": "right, at inputs where the slopes ahead and behind differ",
        "convention": "right, if it is called as the remark says",
        "guard": "right, but for the number that keeps forward from dividing by 0",
        "constant": "None comes back, which says that the input is a constant",
    }.items()
}
