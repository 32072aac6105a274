"""The one emitter: a program as NumPy source. Each primitive's record spells it; precedence is one scale.

5 sum · 6 product · 7 sign · 8 power · 9 call, index, name. What is used once is written where it is used, unless the user has a
name for it."""

from __future__ import annotations

import keyword

import numpy as np

from handgrad.program.node import PRIMITIVES, Loop, Node, Program
from handgrad.program.primitives.table import HELPERS
from handgrad.program.sizes import Size

CHANGES = ("add_at", "store")


class Emitter:
    """Writes one function. Names of users, letters and adjoints share one space, so none collide."""

    def __init__(self, taken=()):
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.taken = {"np", *keyword.kwlist, *taken}
        self.letters: dict[str, str] = {}
        self.helpers: set[str] = set()
        self.tables: dict[str, np.ndarray] = {}
        self.indent = 1
        self.zero_type = ""

    # names and numbers
    def fresh(self, base):
        base = base or "v"
        name, k = base, 1
        while name in self.taken or not name.isidentifier():
            k += 1
            name = f"{base}_{k}"
        self.taken.add(name)
        return name

    def letter(self, letter):
        if letter not in self.letters:
            self.letters[letter] = self.fresh(letter)
        return self.letters[letter]

    def size(self, s) -> str:
        s = Size.of(s)
        for l in s.letters:
            self.letter(l)
        text = str(s)
        import re

        return re.sub(r"[A-Za-z_]\w*", lambda m: self.letters.get(m.group(), m.group()), text)

    def sizes(self, shape):
        return "(" + ", ".join(map(self.size, shape)) + ("," if len(shape) == 1 else "") + ")"

    def dtype(self):
        return self.zero_type

    def line(self, text):
        self.lines.append("    " * self.indent + text)

    # expressions
    def arg(self, n: Node, above=0) -> str:
        text, precedence = self.expression(n)
        return f"({text})" if precedence <= above and precedence < 9 else text

    def expression(self, n: Node):
        if id(n) in self.names:
            return self.names[id(n)], 9
        if n.op == "const":
            v = n.attrs["value"]
            text = repr(v.item() if isinstance(v, np.generic) else v)
            text = {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}.get(text, text)
            return text, 7 if text.startswith("-") else 9
        if n.op == "size":
            text = self.size(n.attrs["size"])
            return text, 5 if " " in text else 9
        if n.op == "table":
            name = self.fresh("table")
            self.tables[name] = n.attrs["value"]
            self.names[id(n)] = name
            return name, 9
        record = PRIMITIVES[n.op]
        if callable(record.text):
            out = record.text(self, n)
            return out if isinstance(out, tuple) else (out, 9)
        if not record.text[0].isalpha():
            sign, p = record.text, record.precedence
            if len(n.args) == 1:
                return f"{sign}{self.arg(n.args[0], p - 1)}", p
            return (
                f"{self.arg(n.args[0], p if sign == '**' else p - 1)} {sign} {self.arg(n.args[1], p - 1 if sign in '+*' and n.args[1].op == n.op else p)}",
                p,
            )
        if record.text in HELPERS:
            self.helpers.add(record.text)
        return f"{record.text}({', '.join(map(self.arg, n.args))})", 9

    def call(self, helper, args, **keywords):
        self.helpers.add(helper)
        return f"{helper}({', '.join([*map(self.arg, args), *(f'{k}={v}' for k, v in keywords.items())])})"

    def transposed(self, n):
        if (
            n.op == "transpose"
            and id(n) not in self.names
            and n.attrs["axes"] == (*range(n.ndim - 2), n.ndim - 1, n.ndim - 2)
        ):
            return self.arg(n.args[0], 6)
        return f"{self.arg(n, 8)}.T" if n.ndim == 2 else f"{self.arg(n, 8)}.swapaxes(-1, -2)"

    def text(self, n):
        return self.expression(n)[0]

    # statements
    def program(self, program: Program, keep=(), carried=()):
        """Statements for all that the outputs need; nodes in `keep` get a variable. A carried value's next takes over its
        variable where nothing reads the old one any more."""
        body = program.body
        uses: dict[int, int] = {}
        for n in body:
            for a in n.args:
                uses[id(a)] = uses.get(id(a), 0) + 1
        for o in program.outputs:
            uses[id(o)] = uses.get(id(o), 0) + 1
        named = {
            id(n)
            for n in body
            if n.op in ("loop", *CHANGES) or uses.get(id(n), 0) > 1 or n.name or id(n) in keep
        }
        self.uses = uses
        rename = {}
        for c, r in carried:
            if (
                id(r) in named
                and r.op not in ("loop", "part", *CHANGES)
                and r in body
                and last_read(c, body, named, program.outputs) <= body.index(r)
            ):
                rename[id(r)] = self.names[id(c)]
        for n in body:
            if id(n) in self.names or n.op in ("const", "table", "size", "input", "zeros"):
                continue
            if n.op == "loop":
                self.loop(n, [m for m in body if m.op == "part" and m.args[0] is n])
            elif n.op == "part" and n.args[0].op == "loop":
                continue
            elif PRIMITIVES[n.op].parts is not None:
                self.several(n, [m for m in body if m.op == "part" and m.args[0] is n])
            elif n.op in CHANGES:
                self.change(n, uses)
            elif id(n) in named or len(self.text(n)) > 70:
                text = self.text(n)
                self.names[id(n)] = rename.get(id(n)) or self.fresh(n.name)
                self.line(f"{self.names[id(n)]} = {text}")

    def several(self, n, parts):
        """A function's results, those that nobody reads by an underscore."""
        text = self.text(n)
        wanted = {m.attrs["index"]: m for m in parts}
        names = []
        for i in range(len(n.value)):
            if i in wanted:
                self.names[id(wanted[i])] = self.fresh(wanted[i].name or f"{n.op}_{i + 1}")
            names.append(self.names[id(wanted[i])] if i in wanted else "_")
        self.line(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {text}")

    def index(self, n):
        from handgrad.program.primitives.index import index_text

        return index_text(self, n, n.args[2:])

    def change(self, n, uses, into=None):
        """base[index] += value or = value; in place where nobody else reads the base."""
        base, value = n.args[0], n.args[1]
        text, where = self.arg(value), self.index(n)
        if into:
            name = into
        elif base.op in (*CHANGES, "part") and uses.get(id(base)) == 1:
            name = self.names[id(base)]
        else:
            start = (
                f"{self.arg(base, 9)}.copy()"
                if base.op != "zeros" or id(base) in self.names
                else self.text(base)
            )
            name = self.fresh(n.name or "placed")
            self.line(f"{name} = {start}")
        self.names[id(n)] = name
        if n.op == "store":
            self.line(f"{name}[{where}] = {text}")
        elif len(n.args) > 2:
            self.line(f"np.add.at({name}, np.s_[{where}], {text})")
        else:
            self.line(f"{name}[{where}] += {text}")

    def loop(self, node: Node, parts):
        loop: Loop = node.attrs["loop"]
        body = loop.body
        nc, nk = loop.constants, loop.carried
        for inner, outer in zip(body.inputs[:nc], node.args[:nc]):
            if id(outer) not in self.names and outer.op not in ("const", "size"):
                text = self.text(outer)
                self.names[id(outer)] = self.fresh(outer.name)
                self.line(f"{self.names[id(outer)]} = {text}")
            self.names[id(inner)] = self.names.get(id(outer)) or self.text(outer)
        carries, results = body.inputs[nc:], body.outputs[:nk]
        inside = [chain(r, c) for r, c in zip(results, carries)]
        wanted = {m.attrs["index"]: m for m in parts}
        for k, (c, start) in enumerate(zip(carries, node.args[nc:])):
            if results[k] is c:
                if id(start) not in self.names and start.op not in ("const", "size"):
                    text = self.text(start)
                    self.names[id(start)] = self.fresh(c.name)
                    self.line(f"{self.names[id(start)]} = {text}")
                self.names[id(c)] = self.names.get(id(start)) or self.text(start)
                continue
            text = self.arg(start, 9 if inside[k] else 0)
            name = self.fresh(c.name or (wanted[k].name if k in wanted else ""))
            self.names[id(c)] = name
            self.line(f"{name} = {text}" + (".copy()" if inside[k] and start.op != "zeros" else ""))
        stacks = {}
        for i in range(nk, len(body.outputs)):
            if i in wanted:
                name = self.fresh(
                    wanted[i].name
                    or (body.outputs[i].name + "_all" if body.outputs[i].name else "stack")
                )
                stacks[i] = name
                self.line(f"{name} = []")
        counter = (
            self.letter(loop.counter)
            if loop.counter not in self.letters
            else self.letters[loop.counter]
        )
        rounds = f"range({self.size(loop.count)})"
        self.line(f"for {counter} in {f'reversed({rounds})' if loop.reverse else rounds}:")
        self.indent += 1
        start_at = len(self.lines)
        for i, name in stacks.items():
            if any(body.outputs[i] is c for c in carries):
                self.line(
                    f"{name}.append({self.arg(body.outputs[i])}{'.copy()' if inside[[id(c) for c in carries].index(id(body.outputs[i]))] else ''})"
                )
        outer_uses = self.uses
        skip = {id(m) for k in range(nk) for m in inside[k]}
        later = (
            [r for k, r in enumerate(results) if not inside[k]]
            + [o for i, o in enumerate(body.outputs) if i in stacks]
            + [a for k in range(nk) for m in inside[k] for a in m.args[1:]]
        )
        self.program(
            Program(body.inputs, later),
            keep={id(r) for r in results}
            | {id(o) for i, o in enumerate(body.outputs) if i in stacks},
            carried=[(c, r) for k, (c, r) in enumerate(zip(carries, results)) if not inside[k]],
        )
        for i, name in stacks.items():
            if not any(body.outputs[i] is c for c in carries):
                self.line(f"{name}.append({self.arg(body.outputs[i])})")
        readers = {
            k: sum(any(a is carries[k] for a in m.args) for m in body.body) for k in range(nk)
        }
        for k in sorted(
            range(nk), key=readers.get
        ):  # an array that others read, through a view perhaps, changes last
            for m in inside[k]:
                self.change(m, {}, into=self.names[id(carries[k])])
        moves = [
            (self.names[id(c)], r)
            for k, (c, r) in enumerate(zip(carries, results))
            if not inside[k] and r is not c and self.names.get(id(r)) != self.names[id(c)]
        ]
        if (
            len(moves) == 1
            and moves[0][1].op == "add"
            and any(a is carries[results.index(moves[0][1])] for a in moves[0][1].args)
            and id(moves[0][1]) not in self.names
        ):
            name, r = moves[0]
            c = carries[results.index(r)]
            other = r.args[1] if r.args[0] is c else r.args[0]
            self.line(f"{name} = {name} + {self.arg(other, 5)}")
        elif moves:
            self.line(
                ", ".join(n for n, _ in moves) + " = " + ", ".join(self.arg(r) for _, r in moves)
            )
        if len(self.lines) == start_at:
            self.line("pass")
        self.indent -= 1
        self.uses = outer_uses
        for i, name in stacks.items():
            self.line(f"{name} = np.stack({name}{'[::-1]' if loop.reverse else ''})")
        for i, m in wanted.items():
            self.names[id(m)] = self.names[id(carries[i])] if i < nk else stacks[i]


def last_read(node, body, named, outputs):
    """The place in the body of the last statement that reads a node."""
    last = -1
    for u in body:
        if any(a is node for a in u.args):
            while id(u) not in named:
                users = [v for v in body if any(a is u for a in v.args)]
                if len(users) != 1:
                    return len(body)
                u = users[0]
            last = max(last, body.index(u))
    return len(body) if any(o is node for o in outputs) else last


def chain(result, carry):
    """The changes in place that lead from a carried array to its next, in order; none where it is made anew."""
    found = []
    while result.op in CHANGES:
        found.append(result)
        result = result.args[0]
    return found[::-1] if result is carry else []
