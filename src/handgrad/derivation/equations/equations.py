"""From the trees of a forward and a backward to their equations.

An assignment whose value is an array is an equation; one of sizes, settings or another shape of the
same array is none. Both functions are run twice: on the inputs of the example, whose values the
equations carry, and on inputs in which every letter of the annotations has a size of its own, which
tells the shapes.
"""

from __future__ import annotations

from dataclasses import replace

from handgrad.derivation.documents.labels import label
from handgrad.derivation.equations import meanings
from handgrad.derivation.equations.derived import Derivation, Equation, Meaning
from handgrad.derivation.equations.dimensions import Dimensions
from handgrad.derivation.equations.execution import Subject, execute, labelled
from handgrad.derivation.equations.frame import Frame
from handgrad.derivation.equations.lines import Lines
from handgrad.derivation.equations.naming import glossary_of, gradient_inputs, output_names
from handgrad.derivation.equations.side import Side
from handgrad.trees import read

__all__ = ["Derivation", "Equation", "Meaning", "derive"]


def derive(
    subject: Subject,
    lang: str = "en",
    *,
    letters: frozenset[str] = frozenset(),
    dimensions: Dimensions | None = None,
) -> Derivation:
    """The equations of a pair, with their words in `lang` and none of `letters` as an index.

    Sizes go by the letters of the annotations, or by `dimensions`. Raises TreeError where a source
    cannot be read.
    """
    functions = read(subject.forward), read(subject.backward)
    run = execute(functions, subject)
    lettered = run
    if dimensions is None:
        lettered, dimensions = labelled(functions, subject, run)
    glossary = glossary_of(
        functions,
        (run[0].trace, run[1].trace),
        gradients=subject.gradients,
        is_last=subject.cotangent is None,
    )
    glossary = replace(glossary, letters=glossary.letters | letters)
    words = label(lang, "if"), label(lang, "otherwise")
    sides = Frame({}, glossary, dimensions, words), Frame({}, glossary, dimensions, words)

    forward = Side(functions[0], run[0], lettered[0], sides[0])
    lines = Lines(forward)
    forward_equations = lines.equations() + lines.outputs(output_names(functions, run[0].trace))
    backward = Side(functions[1], run[1], lettered[1], sides[1], forward)
    inputs = gradient_inputs(functions, run[1].trace, subject.gradients)
    lines = Lines(backward)
    backward_equations = lines.equations() + lines.returned(inputs)

    results = run[1].trace.result
    several = results if isinstance(results, tuple | list) else (results,)
    return Derivation(
        tuple(forward_equations),
        tuple(backward_equations),
        tuple(meanings.symbols(forward, backward)),
        tuple(meanings.kept(forward, backward)),
        tuple(meanings.given(forward, subject.arrays)),
        tuple(meanings.incoming(backward, subject.cotangent)),
        tuple(meanings.arriving(backward, subject.cotangent)),
        dict(zip(inputs, several, strict=False)),
        glossary,
        next((glossary.symbol(each.counter) for each in forward.moments.loops), None),
    )
