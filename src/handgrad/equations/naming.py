"""The names of a forward and a backward, and which of them is the gradient of which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from handgrad.documents.formulas.formula import Formula, FormulaRow, Script, Symbol, Text
from handgrad.equations.glossary import Glossary, canonical, is_word
from handgrad.equations.pairing import Statement, is_number, statements
from handgrad.equations.subject import Subject, parameters
from handgrad.equations.tracing import NotesRecorder, Runs, in_order
from handgrad.program import Node, leaves
from handgrad.program.functions import is_array

#: Names of a gradient that comes in, which say nothing about what it is the gradient of.
_ANY_OUTPUT: Final = frozenset({"dout", "dO", "grad", "grad_output", "gradient", "upstream", "g"})
#: Endings of the names of all steps together.
_ENDINGS: Final = ("_run", "_steps")


def glossary_of(
    subject: Subject, runs: Runs, statements: Mapping[bool, list[Statement]], counters: set[str]
) -> Glossary:
    """The glossary of a pair, from what ran; `counters` count the steps of loops."""
    names = StatementNames(subject, runs, statements)
    outputs = [name for name, _ in names.outputs()]
    values = names.values()
    capitals = _capitals(subject)
    if capitals:  # what is made of matrices is one as well
        found = (name for name, value in values.items() if len(name) == 1 and _axes(value) > 1)
        capitals = capitals.union(found)
    is_last = subject.cotangent is None
    first = Glossary(
        known=frozenset(values),
        capitals=capitals,
        vectors=frozenset(name for name, value in values.items() if _axes(value) < 2),
        loss=outputs[0] if is_last and len(outputs) == 1 else "",
        inputs=frozenset(each.name for each in parameters(subject.forward)),
    )
    dependent = names.dependent()
    gradients = names.gradients(first, outputs, dependent, counters)
    gradients |= {f"d{name}": name for name in names.gradient_inputs()}
    derivatives = frozenset(
        name
        for name in values
        if len(name) > 1 and name[0] == "d" and name[1:] in values and name not in dependent
    )
    returned = {names.name_of(each) for each in runs.backward.results if isinstance(each, Node)}
    glossary = replace(
        first,
        gradients=gradients,
        derivatives=derivatives,
        results=frozenset({*returned, *outputs} - {""}),
    )
    glossary = replace(glossary, given=_given(glossary, values))
    return replace(glossary, letters=_letters(glossary, values, names.loop_names()))


class StatementNames:
    """The names that the statements of a pair give to nodes."""

    def __init__(
        self, subject: Subject, runs: Runs, statements: Mapping[bool, list[Statement]]
    ) -> None:
        self.subject, self.runs, self.statements = subject, runs, statements
        self._last: dict[Node, str] = {}
        self._frames = {each.frame for each in statements[True]}
        for program in (runs.forward, runs.backward):
            for each in program.assignments:
                if each.frame is program.frame and isinstance(each.value, Node):
                    self._last[each.value] = each.name

    def name_of(self, node: Any) -> str:
        """The last name that a node was given; of an input that of the argument."""
        if not isinstance(node, Node):
            return ""
        return self._last.get(node, node.name if node.op == "input" else "")

    def first_name(self, node: Node) -> str:
        """The name that an argument's part is taken apart into."""
        for several in self.statements.values():
            for each in several:
                for name, value in zip(each.names, each.values, strict=True):
                    if value is node:
                        return name
        return node.name

    def outputs(self) -> list[tuple[str, Any]]:
        """The outputs of forward before its cache: a name for each output, and its node.

        An output goes by the name in backward's first argument: `loss` for `dloss`.
        """
        result = self.runs.forward.result
        items = list(in_order(result[0] if isinstance(result, tuple) and result else result))
        incoming = parameters(self.subject.backward)[0].name
        stem = incoming[1:] if incoming[0] == "d" and incoming not in _ANY_OUTPUT else ""
        found = []
        for position, item in enumerate(items):
            own = self.name_of(item)
            name = (stem or own or "y") if len(items) == 1 else (own or f"y{position + 1}")
            found.append((name, item))
        return found

    def gradient_inputs(self) -> tuple[str, ...]:
        """The input that each gradient belongs to, in the order in which backward returns them."""
        if self.subject.gradients is not None:
            return self.subject.gradients
        names = [each.name for each in parameters(self.subject.forward)]
        found = []
        for position, item in enumerate(self.runs.backward.results):
            own = self.name_of(item)[1:]
            found.append(own if own in names else names[min(position, len(names) - 1)])
        return tuple(found)

    def values(self) -> dict[str, Any]:
        """Every variable of the two functions whose value is an array, a number or a list of
        arrays."""
        found: dict[str, Any] = {}
        programs = self.runs.forward, self.runs.backward
        for program, of_backward in zip(programs, (False, True), strict=True):
            own: dict[str, Any] = dict(program.arguments)
            for each in self.statements[of_backward]:
                own |= dict(zip(each.names, each.values, strict=True))
            for name in sorted(own):
                value = own[name]
                first = value[0] if isinstance(value, list) and value else value
                plain = first.value if isinstance(first, Node) else first
                if is_array(plain) or is_number(plain) or isinstance(plain, float):
                    found.setdefault(name, value if isinstance(value, list) else plain)
        return found

    def dependent(self) -> set[str]:
        """The names of backward that depend on the gradient that comes in."""
        backward = self.runs.backward
        given = list(leaves(self.runs.incoming))
        moved = {*given, *backward.moved_by(given)}
        found = {parameters(self.subject.backward)[0].name}
        for each in self.statements[True]:
            for name, value in zip(each.names, each.values, strict=True):
                if not moved.isdisjoint(leaves(value)):
                    found.add(name)
        return found

    def gradients(
        self, glossary: Glossary, outputs: Sequence[str], dependent: set[str], counters: set[str]
    ) -> dict[str, str]:
        """Of every gradient's name, the name it is the gradient of."""
        incoming = parameters(self.subject.backward)[0].name
        found = {incoming: outputs[0]} if len(outputs) == 1 else {}
        found |= self._of_outputs(outputs)
        names = {*dependent, *self.loop_names()} - {incoming, *found}
        same = self._other_names()
        for name in {*names, *(stem(each, counters) for each in names)}:
            of = name[1:]
            if name[0] == "d" and of and glossary.reads(of):
                found[name] = same.get(of, of)
        return found

    def _other_names(self) -> dict[str, str]:
        """Names of forward that only stand for a value with a name: of each, that name."""
        forward = self.runs.forward
        own = [each for each in forward.assignments if each.frame is forward.frame]
        times = Counter(each.name for each in own)
        first: dict[Node, str] = {}
        found = {}
        for each in own:
            if isinstance(each.value, Node):
                name = first.setdefault(each.value, each.name)
                if name != each.name and times[each.name] == 1:
                    found[each.name] = name
        return found

    def _of_outputs(self, outputs: Sequence[str]) -> dict[str, str]:
        """The output that each gradient is one of, where a tuple of them comes in."""
        given = self.runs.incoming
        if not isinstance(given, tuple | list):
            return {}
        items = list(in_order(given))
        by_node = {
            value: name
            for each in reversed(self.statements[True])
            for name, value in zip(each.names, each.values, strict=True)
            if isinstance(value, Node) and value.op == "input"
        }
        pairs = zip(items, outputs, strict=False)
        return {by_node[item]: name for item, name in pairs if item in by_node}

    def loop_names(self) -> set[str]:
        """The variables of comprehensions, which carry gradients as lists do."""
        return {
            each.name
            for (frame, _), several in self.runs.counters.items()
            for each in several
            if each.name.isidentifier() and frame in self._frames
        }


def gradients_of(subject: Subject) -> tuple[str, ...]:
    """The inputs that backward returns gradients of, as the names of what it returns say."""
    runs = NotesRecorder().runs(subject)
    own = {False: statements(runs.forward), True: statements(runs.backward)}
    return StatementNames(subject, runs, own).gradient_inputs()


def _axes(value: Any) -> int:
    return len(value.shape) if is_array(value) else 0


def _capitals(subject: Subject) -> frozenset[str]:
    """Single letters that are annotated as a matrix: two axes behind those of a batch."""
    found = set()
    for parameter in (*parameters(subject.forward), *parameters(subject.backward)[:1]):
        axes = [each for each in parameter.shape.split() if not each.startswith(("*", "..."))]
        name = parameter.name
        if " or " in parameter.shape or len(axes) != 2 or "*size" in parameter.shape:
            continue
        found.add(name[1:] if len(name) == 2 and name[0] == "d" else name)
    return frozenset(name for name in found if len(name) == 1)


def stem(name: str, counters: set[str]) -> str:
    """`dh` of `dh_t` and `x` of `x_run`, where there is a loop over steps."""
    for ending in (*(f"_{each}" for each in sorted(counters)), *_ENDINGS):
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    return name


def _given(glossary: Glossary, values: dict[str, Any]) -> dict[str, Formula]:
    """Symbols for words of the table whose letter another name has, and for all that is in no
    table."""
    taken: dict[Formula, str] = {}
    without = []
    for name in sorted(values, key=lambda each: (is_word(each), len(each))):
        if name in glossary.gradients or isinstance(values[name], list):
            continue  # an element of a list has an index besides
        symbol = glossary.symbol(name)
        is_new = not isinstance(symbol, Text)
        owner = taken.setdefault(symbol, name) if is_new else ""
        if not owner or (canonical(owner) != canonical(name) and is_word(name)):
            without.append(name)
    found: dict[str, Formula] = {}
    for name in without:
        found[name] = glossary.free(name, {*taken, *found.values()})
    return found


def _letters(glossary: Glossary, values: dict[str, Any], loop_names: set[str]) -> frozenset[str]:
    """Every letter that is a symbol, or a variable of a loop, and so cannot be an index."""
    found = {name for name in loop_names if len(name) == 1}
    for name in values:
        if name not in glossary.gradients:
            found |= set(_symbols(glossary.symbol(name)))
    return frozenset(found)


def _symbols(formula: Formula) -> list[str]:
    match formula:
        case Symbol(name):
            return [name]
        case Script(base, sub, None) if not isinstance(sub, FormulaRow):
            return _symbols(base)
    return []
