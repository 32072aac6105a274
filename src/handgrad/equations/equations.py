"""From the programs of a forward and a backward to their equations.

A name that is set to an array is an equation; one of sizes, settings or another shape of the same
array is none. Both functions are run once, on the inputs of the example, whose values the equations
carry, as tracers, whose sizes know the letters of the annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from handgrad.documents.formulas.formula import Formula
from handgrad.documents.labels import label
from handgrad.equations import meanings
from handgrad.equations.derived import DerivedEquation, Meaning, PairDerivation
from handgrad.equations.dimensions import Dimensions
from handgrad.equations.lines import EquationWriter
from handgrad.equations.naming import StatementNames, glossary_of
from handgrad.equations.pairing import Statement, runs_in_letters, statements
from handgrad.equations.scope import Scope, find_carried, find_loops
from handgrad.equations.steps import find_step_axes
from handgrad.equations.subject import Subject
from handgrad.program import Node
from handgrad.program.functions import is_array

__all__ = ["DerivedEquation", "Meaning", "PairDerivation", "derive"]


def _arrays(subject: Subject, found: Mapping[bool, list[Statement]]) -> Iterator[str]:
    """The names of arrays, each of which has a symbol that no size may have too."""
    yield from subject.arrays
    for each in (*found[False], *found[True]):
        for name, node in zip(each.names, each.values, strict=True):
            if isinstance(node, Node) and is_array(node.value):
                yield name


def derive(
    subject: Subject,
    lang: str = "en",
    *,
    letters: frozenset[str] = frozenset(),
    dimensions: Dimensions | None = None,
    taken: frozenset[Formula] = frozenset(),
) -> PairDerivation:
    """The equations of a pair, with their words in `lang` and none of `letters` as an index.

    `taken` are the symbols of arrays elsewhere on the page, which no size may have.

    Sizes go by the letters of the annotations, or by `dimensions`. Raises ArgumentError where a
    pass fails on the inputs.
    """
    runs, sizes = runs_in_letters(subject, dimensions)
    found = {False: statements(runs.forward), True: statements(runs.backward)}
    loops = find_loops(runs, found)
    counters = {each.counter for each in loops.values()}
    glossary = glossary_of(subject, runs, found, counters)
    glossary = replace(glossary, letters=glossary.letters | letters)
    sizes = replace(sizes, taken=taken.union(map(glossary.symbol, _arrays(subject, found))))
    words = label(lang, "if"), label(lang, "otherwise")
    scope = Scope(runs, glossary, sizes, words, loops=loops)
    find_carried(scope, found)
    find_step_axes(scope)
    in_numbers = replace(scope, dimensions=Dimensions(sizes.lengths), loops={}, step_axes={})
    names = StatementNames(subject, runs, found)
    lines = EquationWriter(scope, in_numbers, found, names)
    forward, backward = lines.forward(), lines.backward()
    arrived = tuple(meanings.arrived(lines))
    passes = (runs.forward, runs.backward)
    is_decided = any(each.is_decided for each in passes)
    given = tuple(each for each in arrived if not each.is_gradient)
    inputs = names.gradient_inputs()
    results = [getattr(each, "value", each) for each in runs.backward.results]
    return PairDerivation(
        tuple(replace(each, arrived=given, is_decided=is_decided) for each in forward),
        tuple(replace(each, arrived=arrived, is_decided=is_decided) for each in backward),
        tuple(meanings.symbols(lines)),
        tuple(meanings.kept(lines)),
        tuple(meanings.given(lines, subject.arrays)),
        tuple(meanings.incoming(lines)),
        tuple(meanings.arriving(lines)),
        dict(zip(inputs, results, strict=False)),
        glossary,
        next((scope.counter(each) for each in loops.values() if not each.of_backward), None),
        lines.behind_parameters(),
    )
