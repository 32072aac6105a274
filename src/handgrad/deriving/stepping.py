"""The pair of a forward with a loop: the derived parts, called step by step and in reverse."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from handgrad.deriving.emission import Functions, literal
from handgrad.deriving.loops import Loop, NoLoopError, Part, sizes_of


@dataclass
class Stepping:
    """Writes both functions; `derived` are the functions of each part by its name.

    arrays: the arrays that the forward takes, with their axes. settings: its numbers by name.
    wanted: the arrays that get a gradient.
    """

    loop: Loop
    derived: Mapping[str, Functions]
    arrays: Mapping[str, tuple[str | None, ...]]
    settings: Mapping[str, object]
    wanted: Sequence[str]
    _letters: set[str] = field(default_factory=set)

    def functions(self) -> Functions:
        backward = self._backward()
        sizes = sizes_of(self._letters, self.arrays)
        kept = sorted(self._letters)
        cache = [
            *(["cache_before"] if self.loop.before else []),
            "steps",
            *(["cache_after"] if self.loop.after else []),
            *kept,
        ]
        forward = self._forward(sizes, cache)
        unpack = f"    {', '.join(cache)}{',' * (len(cache) == 1)} = cache\n"
        head, _, rest = backward.partition("\n")
        own_forward = [self._own(part, "forward") for part in self._parts]
        own_backward = [self._own(part, "backward") for part in self._parts]
        return Functions(
            "\n\n".join([*own_forward, forward]),
            "\n\n".join([*own_backward, f"{head}\n{unpack}{rest}"]),
            tuple(cache),
        )

    @property
    def _parts(self) -> list[Part]:
        loop = self.loop
        return [part for part in (loop.before, loop.step, loop.after) if part is not None]

    def _own(self, part: Part, which: str) -> str:
        functions = self.derived[part.name]
        source = functions.forward if which == "forward" else functions.backward
        return source.replace(f"def {which}(", f"def {part.name}_{which}(", 1)

    def _call(self, part: Part, names: Mapping[str, str]) -> str:
        given = [names.get(each, each) for each in part.inputs]
        given += [f"{each}={each}" for each in part.settings if self._takes(part, each)]
        return f"{part.name}_forward({', '.join(given)})"

    def _takes(self, part: Part, setting: str) -> bool:
        head = self.derived[part.name].forward.partition("\n")[0]
        return f"{setting}=" in head

    def _forward(self, sizes: Sequence[str], cache: Sequence[str]) -> str:
        loop = self.loop
        lines = list(sizes)
        if loop.before is not None:
            call = self._call(loop.before, {})
            lines.append(f"{_several(loop.before.outputs)}, cache_before = {call}")
        lines += [f"{each.name} = {each.start}" for each in loop.carried]
        lines.append("steps = []")
        lists = {each.name: f"{each.name}_steps" for each in loop.stacks}
        lines += [f"{each} = []" for each in lists.values()]
        lines.append(f"for {loop.variable} in {loop.range}:")
        names = {each.name: f"{each.array}[{each.index}]" for each in loop.slices}
        made = loop.step.outputs
        lines.append(f"    {_several(made)}, step_cache = {self._call(loop.step, names)}")
        lines.append("    steps.append(step_cache)")
        lines += [f"    {lists[each.name]}.append({each.of})" for each in loop.stacks]
        for each in loop.stacks:
            front = f"[{', '.join(each.before)}, *{lists[each.name]}]"
            items = front if each.before else lists[each.name]
            lines.append(f"{each.name} = np.stack({items}, axis={each.axis})")
        lines += [f"{last} = {each}" for each, last in self._lasts.items() if each != last]
        if loop.after is not None:
            results = _several(loop.after.outputs)
            lines.append(f"{results}, cache_after = {self._call(loop.after, {})}")
        lines.append(f"cache = ({', '.join(cache)}{',' * (len(cache) == 1)})")
        lines.append(f"return {_several(loop.results)}, cache")
        settings = [
            f"{name}={literal(value)}"
            for name, value in self.settings.items()
            if any(name in part.settings for part in self._parts)
        ]
        taken = ", ".join([*self.arrays, *(["*", *settings] if settings else [])])
        return f"def forward({taken}):\n" + "".join(f"    {line}\n" for line in lines)

    @property
    def _lasts(self) -> dict[str, str]:
        return dict(self.loop.finals)

    def _backward(self) -> str:
        loop = self.loop
        lines: list[str] = []
        known: set[str] = set()

        def give(array: str, value: str, indent: str = "") -> None:
            sign = "+=" if array in known else "="
            known.add(array)
            if sign == "+=":
                lines.append(f"{indent}d{array} = d{array} + {value}")
            else:
                lines.append(f"{indent}d{array} = {value}")

        taken = [f"d{each}" for each in loop.results]
        duplicates = len(set(taken)) < len(taken)
        if duplicates:
            raise NoLoopError
        head = "dy"
        if loop.after is not None:
            lines.append(f"{self._gradients(loop.after)} = after_backward(dy, cache_after)")
            known.update(loop.after.active)
        else:
            lines.append(f"{', '.join(taken)} = dy")
            known.update(loop.results)
        for stack in loop.stacks:
            if stack.name not in known:
                raise NoLoopError
            for at, start in enumerate(stack.before):
                if start in self._differentiable:
                    give(start, f"d{stack.name}[{':, ' * stack.axis}{at}]")
        for each in loop.carried:
            last = self._lasts.get(each.name)
            zero = f"np.zeros({self._shape(each.start)})"
            lines.append(f"d{each.name} = {f'd{last}' if last in known else zero}")
        arrays = dict.fromkeys(
            [each.array for each in loop.slices if each.name in loop.step.active]
            + [
                n
                for n in loop.step.inputs
                if n in loop.step.active
                and n in self.loop.axes
                and n not in {c.name for c in loop.carried} | {s.name for s in loop.slices}
            ]
        )
        for name in arrays:
            shape = f"np.zeros({self._shape(name)})"
            if name in known:
                lines.append(f"d{name} = d{name} + {shape}")
            else:
                give(name, shape)
        simple = loop.range.startswith("range(") and "," not in loop.range
        variable = loop.variable
        if simple:
            lines.append(f"for {variable} in reversed({loop.range}):")
        else:
            lines.append(f"for at, {variable} in reversed(list(enumerate({loop.range}))):")
        number = variable if simple else "at"
        cotangents = []
        for name in loop.step.outputs:
            parts = [f"d{name}"] if name in {c.name for c in loop.carried} else []
            for stack in loop.stacks:
                if stack.of == name:
                    shift = f" + {len(stack.before)}" if stack.before else ""
                    parts.append(f"d{stack.name}[{':, ' * stack.axis}{number}{shift}]")
            cotangents.append(" + ".join(parts))
        given = cotangents[0] if len(cotangents) == 1 else f"({', '.join(cotangents)})"
        sliced = {each.name: each for each in loop.slices}
        found = [n for n in loop.step.inputs if n in loop.step.active]
        carried = {each.name for each in loop.carried}
        targets = [f"d{n}" if n in carried or n in sliced else f"d{n}_{variable}" for n in found]
        lines.append(f"    {', '.join(targets)} = step_backward({given}, steps[{number}])")
        for name, target in zip(found, targets, strict=True):
            if name in sliced:
                lines.append(f"    d{sliced[name].array}[{sliced[name].index}] += {target}")
            elif name not in carried:
                lines.append(f"    d{name} += {target}")
        for each in loop.carried:
            if each.name in found and each.start in self._differentiable:
                give(each.start, f"d{each.name}")
        if loop.before is not None:
            outputs = loop.before.outputs
            missing = [n for n in outputs if n not in known]
            lines += [f"d{n} = np.zeros({self._shape(n)})" for n in missing]
            dys = ", ".join(f"d{n}" for n in outputs)
            dys = f"({dys})" if len(outputs) > 1 else dys
            active = [n for n in loop.before.inputs if n in loop.before.active]
            if active:
                names = [f"d{n}_before" if n in known else f"d{n}" for n in active]
                lines.append(f"{', '.join(names)} = before_backward({dys}, cache_before)")
                for n, name in zip(active, names, strict=True):
                    if name.endswith("_before") and n in known:
                        lines.append(f"d{n} = d{n} + {name}")
                    known.add(n)
        lines += [f"d{n} = np.zeros({self._shape(n)})" for n in self.wanted if n not in known]
        self._letters |= self._in_range()
        lines.append(f"return {', '.join(f'd{n}' for n in self.wanted)}")
        return f"def backward({head}, cache):\n" + "".join(f"    {line}\n" for line in lines)

    @property
    def _differentiable(self) -> set[str]:
        """Arrays in front of the loop that some input's gradient comes through."""
        outputs = self.loop.before.outputs if self.loop.before is not None else ()
        return {*self.wanted, *outputs}

    def _gradients(self, part: Part) -> str:
        return ", ".join(f"d{n}" for n in part.inputs if n in part.active)

    def _shape(self, name: str) -> str:
        axes = self.loop.axes.get(name, self.arrays.get(name, ()))
        parts = ["1" if each is None else each for each in axes]
        self._letters |= _letters(parts)
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def _in_range(self) -> set[str]:
        return _letters([self.loop.range]) - {"range", "reversed"}


def _several(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _letters(texts: Sequence[str]) -> set[str]:
    return {each for text in texts for each in re.findall(r"[A-Za-z_]\w*", text)}
