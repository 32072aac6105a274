"""The user's functions that run in a pass, as trees that can be changed, compiled and put in force.

A changed function takes the place of the original by its code object, so that whatever holds the
function, such as a class, a dict of activations or a wrapper, runs the changed one.
"""

from __future__ import annotations

import ast
import gc
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any, Final

from handgrad.checking.alignment.reach import Reach, is_memory, is_unsound, makes_memory
from handgrad.checking.alignment.wording import mark_modules
from handgrad.program.functions import comes_from_library
from handgrad.program.source import nested

#: Where code lies that is not the user's.
_LIBRARIES: Final = tuple(
    str(Path(each).resolve())
    for each in (
        str(Path(__file__).parents[2]),
        *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    )
)
Function = ast.FunctionDef | ast.Lambda


@dataclass(eq=False)
class Call:
    """What was seen of a function: the values of its variables when it came back last."""

    code: CodeType
    names: dict[str, Any] = field(default_factory=dict)
    scope: dict[str, Any] = field(default_factory=dict)
    times: int = 0
    #: The arguments of its first call, as they came in.
    given: dict[str, Any] = field(default_factory=dict)
    #: The results of calls that its lines made last, by their text.
    results: dict[str, Any] = field(default_factory=dict)


def is_users(code: CodeType) -> bool:
    """Return whether code has a source that is neither ours nor a library's."""
    path = code.co_filename
    return code.co_name != "<module>" and bool(linecache.getlines(path)) and not _is_librarys(path)


@cache
def _is_librarys(path: str) -> bool:
    return str(Path(path).resolve()).startswith(_LIBRARIES)


@dataclass(eq=False)
class Observed:
    """A run: its result, the user's functions that it called, in this order, and their reach."""

    result: Any
    calls: dict[CodeType, Call]
    leads_out: bool


def as_it_is(names: Mapping[str, Any]) -> dict[str, Any]:
    """Variables as they are now: an object of the user's has other attributes after other runs."""
    return {name: _held(value) for name, value in names.items()}


def _held(value: Any) -> Any:
    """An object with the attributes that it has now, and the lists and dictionaries in them."""
    if not isinstance(getattr(value, "__dict__", None), dict) or comes_from_library(type(value)):
        return value
    try:
        twin = object.__new__(type(value))
        twin.__dict__.update(
            {
                name: each.copy() if type(each) in (dict, list) else each
                for name, each in vars(value).items()
            }
        )
    except Exception:  # a class that is made in another way
        return value
    return twin


def observed(run: Callable[[], Any]) -> Observed:
    """A run with its calls watched."""
    calls: dict[CodeType, Call] = {}
    known: dict[CodeType, bool] = {}
    unsound: list[CodeType] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return"):
            return
        if code not in known:
            known[code] = is_users(code)
            if is_memory(code) or is_unsound(str(frame.f_globals.get("__name__", ""))):
                unsound.append(code)
        if not known[code]:
            return
        call = calls.setdefault(code, Call(code))
        if event == "call":
            call.times += 1
            if call.times == 1:
                call.given = dict(frame.f_locals)
        else:
            call.names, call.scope = as_it_is(frame.f_locals), frame.f_globals

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        result = run()
    finally:
        sys.setprofile(before)
    reach = Reach()
    leads_out = unsound or any(
        reach.leads_out(code, call.names, call.scope) or _makes_memory(code)
        for code, call in calls.items()
    )
    return Observed(result, calls, bool(leads_out))


def _makes_memory(code: CodeType) -> bool:
    tree = _tree(code)
    return tree is not None and makes_memory(tree)


@dataclass(eq=False)
class CodePiece:
    """A function of the user's: its tree, and those who run its code.

    regions: the functions in it of which lines may be changed, each with what was seen of it.
    """

    code: CodeType
    functions: list[FunctionType]
    tree: Function
    module: ast.Module
    regions: list[tuple[Function, Call]]
    in_forward: bool

    def compiled(self) -> CodeType:
        """The code of the tree as it is now. Raises ValueError where there is none."""
        try:
            whole = compile(self.module, self.code.co_filename, "exec", dont_inherit=True)
        except (SyntaxError, TypeError) as error:
            raise ValueError(str(error)) from error
        for each in nested(whole):
            if each.co_name == self.code.co_name and each.co_freevars == self.code.co_freevars:
                return each
        raise ValueError("the function's free variables have changed")

    def called(self, call: Call) -> FunctionType:
        """The function that a call ran: another one of this code has other variables around it."""
        for each in self.functions:
            around = zip(self.code.co_freevars, each.__closure__ or (), strict=True)
            if all(_contents(cell) is call.given.get(name) for name, cell in around):
                return each
        return self.functions[0]

    @contextmanager
    def in_force(self, code: CodeType) -> Iterator[None]:
        """Another code in the place of the function's."""
        before = [function.__code__ for function in self.functions]
        try:
            for function in self.functions:
                function.__code__ = code
            yield
        finally:
            for function, own in zip(self.functions, before, strict=True):
                function.__code__ = own


def pieces(forward: dict[CodeType, Call], backward: dict[CodeType, Call]) -> list[CodePiece]:
    """The functions that run in backward, then those that run in forward alone."""
    every = {**backward, **{code: call for code, call in forward.items() if code not in backward}}
    inner = {each for code in every for each in nested(code) if each is not code}
    outer = [code for code in every if code not in inner]
    holders: dict[int, list[FunctionType]] = {}
    for each in gc.get_referrers(*outer) if outer else ():
        if isinstance(each, FunctionType):
            holders.setdefault(id(each.__code__), []).append(each)
    found = []
    for code in outer:
        piece = _piece(code, every, backward, holders.get(id(code), []))
        if piece is not None:
            found.append(piece)
    return sorted(found, key=lambda each: each.in_forward)


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _piece(
    code: CodeType,
    every: dict[CodeType, Call],
    backward: dict[CodeType, Call],
    functions: list[FunctionType],
) -> CodePiece | None:
    tree = _tree(code)
    if tree is None or not functions:
        return None
    own = [each for each in nested(code) if each in every]
    late = [each for each in own if each in backward]
    regions = []
    for each in late or own:
        for node in ast.walk(tree):
            if isinstance(node, Function) and _is_of(node, each):
                regions.append((node, every[each]))
                mark_modules(node, {**every[each].scope, **every[each].names})
                break
    module = _module(tree, code.co_freevars)  # which takes decorators away, and with them lines
    return CodePiece(code, functions, tree, module, regions, not late)


def _is_of(node: ast.AST, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        return False
    return code.co_firstlineno in (node.lineno, *(d.lineno for d in node.decorator_list))


def _tree(code: CodeType) -> Function | None:
    """The function's tree, of its own."""
    text = "".join(linecache.getlines(code.co_filename))
    try:
        whole = ast.parse(text)
    except SyntaxError:
        return None
    found = [n for n in ast.walk(whole) if isinstance(n, Function) and _is_of(n, code)]
    if isinstance(found[0] if found else None, ast.Lambda):
        found = [n for n in found if _same(n, code)]
    for each in found[:1]:
        _with_signs(each)
    return found[0] if found else None


def _with_signs(function: Function) -> None:
    """Let a number that is given, or an index, have its sign: −1 is one number there."""
    for node in ast.walk(function):
        match node:
            case ast.Call(args=several) | ast.Tuple(several) | ast.List(several):
                several[:] = map(_signed, several)
            case ast.keyword():
                node.value = _signed(node.value)
            case ast.Subscript():
                node.slice = _signed(node.slice)


def _signed(node: ast.expr) -> ast.expr:
    match node:
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)):
            return ast.copy_location(ast.Constant(-value), node)
    return node


def _same(node: Function, code: CodeType) -> bool:
    whole = compile(_module(node, code.co_freevars), code.co_filename, "exec", dont_inherit=True)
    return any((c.co_code, c.co_consts) == (code.co_code, code.co_consts) for c in nested(whole))


def _module(tree: Function, free: tuple[str, ...]) -> ast.Module:
    """A module with the function alone, inside another that has the names of its closure."""
    if isinstance(tree, ast.FunctionDef):
        tree.decorator_list, tree.returns = [], None
        statement: ast.stmt = tree
        if free:  # asked for in vain, so that no change takes one of them away
            asked = ast.parse("if 0:\n    " + "; ".join(free)).body[0]
            tree.body.insert(0, asked)
    else:
        statement = ast.Assign([ast.Name("function", ast.Store())], tree)
    if free:
        around = ast.parse("def around():\n    pass").body[0]
        assert isinstance(around, ast.FunctionDef)
        values = [ast.Assign([ast.Name(n, ast.Store())], ast.Constant(None)) for n in free]
        around.body = [*values, statement]
        statement = around
    return ast.fix_missing_locations(ast.Module([statement], []))
