"""Kinds of faults in one table: the phrase of each as a cause, and as a repair."""

from __future__ import annotations

from typing import Final, NamedTuple


class Repair(NamedTuple):
    """The fault of a backward that an edit puts right, and its phrase with {} for the part."""

    kind: str
    phrase: str


class FaultKind(NamedTuple):
    """One kind of fault.

    meaning: of a gradient, for the documentation. phrase: of a message, with {} for the part
    concerned. cost: how contrived it is as the one edit of a right backward; less comes first.
    repair: the fault of a wrong backward that this edit makes right.
    """

    meaning: str
    phrase: str = "{}"
    cost: float = 2.0
    repair: Repair | None = None


#: Kinds that are edits of a backward, of `handgrad.program.edits`.
EDITS: Final = {
    "activation derivative forgotten": FaultKind(
        "the gradient is not multiplied by f′",
        "the derivative of the activation, in {}, is forgotten",
        1.0,
        Repair("extra factor", "{} should not be applied"),
    ),
    "term missing": FaultKind(
        "a summand is left out",
        "term {} is missing",
        1.05,
        Repair("extra term", "term {} is too many"),
    ),
    "wrong sign": FaultKind(
        "a summand or the whole has the wrong sign",
        "term {} has the wrong sign",
        1.05,
        Repair("wrong sign", "term {} has the wrong sign"),
    ),
    "mean for sum": FaultKind(
        "a mean where a sum belongs",
        "a mean stands where {} belongs",
        1.1,
        Repair("sum for mean", "{} should be a mean"),
    ),
    "sum for mean": FaultKind(
        "a sum where a mean belongs",
        "a sum stands where {} belongs",
        1.1,
        Repair("mean for sum", "{} should be a sum"),
    ),
    "mask forgotten": FaultKind(
        "a condition is left out",
        "the condition {} is forgotten",
        1.1,
        Repair("extra factor", "the condition {} does not belong there"),
    ),
    "transpose missing": FaultKind(
        "a matrix is not transposed",
        "{} is not transposed",
        1.2,
        Repair("transposed", "{} should not be transposed"),
    ),
    "factor missing": FaultKind(
        "an array that should be multiplied in is not",
        "the factor {} is missing",
        1.2,
        Repair("extra factor", "the factor {} is too many"),
    ),
    "scale missing": FaultKind(
        "a number that should be multiplied in is not",
        "the scale {} is missing",
        1.2,
        Repair("extra factor", "the scale {} is too many"),
    ),
    "not reduced": FaultKind(
        "not summed, or no mean taken, over an axis that was broadcast",
        "{} is not taken: the values stay as they are",
        1.25,
        Repair("extra factor", "{} does not belong there: the values are wanted as they are"),
    ),
    "gradients swapped": FaultKind(
        "two gradients come back in each other's place",
        "{} come back in each other's place",
        1.25,
        Repair("gradients swapped", "{} come back in each other's place"),
    ),
    "operands swapped": FaultKind(
        "the operands of a matrix product or a quotient are exchanged",
        "the operands of {} are exchanged",
        1.3,
        Repair("operands swapped", "the operands of {} are exchanged"),
    ),
    "wrong axis": FaultKind(
        "another axis",
        "{} is taken along another axis",
        1.3,
        Repair("wrong axis", "{} is taken along the wrong axis"),
    ),
    "wrong branch": FaultKind(
        "the two branches of a condition are exchanged",
        "the branches of {} are exchanged",
        1.3,
        Repair("wrong branch", "the branches of {} are exchanged"),
    ),
    "function missing": FaultKind(
        "a function is not applied",
        "{} is not applied",
        1.35,
        Repair("extra factor", "{} should not be applied"),
    ),
    "scale inverted": FaultKind(
        "multiplied where it should be divided, or the other way round",
        "{} multiplies where it should divide, or the other way round",
        1.4,
        Repair("scale inverted", "{} multiplies where it should divide, or vice versa"),
    ),
    "transposed": FaultKind(
        "a matrix is transposed that should not be",
        "{} is transposed and should not be",
        1.4,
        Repair("transpose missing", "{} should be transposed"),
    ),
    "stale variable": FaultKind(
        "another variable of the same shape is used",
        "one variable stands where another belongs: {}",
        1.9,
        Repair("stale variable", "another variable belongs there: {}"),
    ),
}
#: Kinds that are insertions into a wrong backward, of `handgrad.program.insertions`.
INSERTIONS: Final = {
    "transpose inserted": FaultKind(
        "", cost=1.45, repair=Repair("transpose missing", "{} should be transposed")
    ),
    "mask inserted": FaultKind(
        "", cost=1.5, repair=Repair("mask forgotten", "the mask {} is forgotten")
    ),
    "flip inserted": FaultKind("", cost=1.6, repair=Repair("flipped", "{} should be flipped")),
    "shift inserted": FaultKind(
        "", cost=1.6, repair=Repair("shifted", "{} should be taken one element further or before")
    ),
    "sum inserted": FaultKind(
        "",
        cost=1.4,
        repair=Repair("term missing", "{} is overwritten where a sum belongs: the last one counts"),
    ),
    "factor inserted": FaultKind(
        "", cost=1.5, repair=Repair("factor missing", "the factor {} is missing")
    ),
    "carry inserted": FaultKind(
        "",
        cost=1.7,
        repair=Repair("factor missing", "the factor {} from one pass to the next is missing"),
    ),
    "derivative inserted": FaultKind(
        "",
        cost=1.55,
        repair=Repair("activation derivative forgotten", "the factor {} is forgotten"),
    ),
    "term inserted": FaultKind(
        "", cost=1.6, repair=Repair("term missing", "the term {} is missing")
    ),
    "brackets moved": FaultKind(
        "", cost=1.5, repair=Repair("brackets", "the brackets of {} belong elsewhere")
    ),
    "derivative of sigmoid": FaultKind(
        "",
        cost=1.5,
        repair=Repair(
            "other derivative", "{} is the derivative of tanh: that of sigmoid belongs there"
        ),
    ),
    "whole softmax": FaultKind(
        "",
        cost=1.55,
        repair=Repair(
            "other derivative",
            "{} is the diagonal of the Jacobian of softmax: all of it belongs there",
        ),
    ),
    "derivative of tanh": FaultKind(
        "",
        cost=1.5,
        repair=Repair(
            "other derivative", "{} is the derivative of sigmoid: that of tanh belongs there"
        ),
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
        "constant": "None comes back, which says that the input is a constant",
    }.items()
}
