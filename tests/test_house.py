"""The house: which room may import which, no circle of files, one class name for one thing."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Final

from docs import house

#: Files at the top that import no room, and that every room may import.
HELPERS: Final = {
    "__init__",
    "absent",
    "arrays",
    "console",
    "default_type",
    "elsewhere",
    "errors",
    "escaping",
    "forward_backward",
    "importing",
    "initializers",
    "keywords",
    "lazy",
    "paths",
    "printing",
    "seeding",
    "spelling",
    "streams",
    "suggestions",
    "unforeseen",
    "writing",
}
#: The rooms, each with those that it imports beside the helpers: downward, but that kernels read
#: the settings of dispatch, which calls them.
MAY_IMPORT: Final = """
geometry:
kernels: dispatch geometry
dispatch: kernels
ops: dispatch geometry
calls: dispatch
conversion: dispatch kernels
memory: kernels
products: dispatch kernels ops
data: dispatch
layers: calls conversion dispatch geometry kernels ops
losses: calls conversion dispatch ops
optimizers: calls dispatch kernels layers ops
models: data dispatch geometry kernels layers ops
inference: data dispatch kernels layers models ops
io: data dispatch inference layers models
lora: data io layers models
torch: dispatch kernels layers losses ops
interop: layers losses torch
jax: dispatch layers losses optimizers program
training: calls data dispatch documents inference io jax kernels layers lora losses models ops
 optimizers
onnx: data dispatch geometry inference io layers losses models ops optimizers program
sklearn: data dispatch layers losses models ops optimizers training
mpi: dispatch layers optimizers training
recipes: data inference io layers lora losses models ops optimizers training
targets: ops recipes
program:
differences: dispatch layers
checking: deriving differences dispatch interop layers ops program targets
documents:
equations: differences dispatch documents layers losses models ops optimizers program recipes
 targets
deriving: documents equations ops program
limits: dispatch documents equations geometry layers models ops recipes training
exercises: checking targets
cli: checking data deriving dispatch documents equations exercises inference kernels layers limits
 losses mpi ops program recipes targets training
pytest_plugin: checking
__main__: cli
"""
#: A room that is being written anew, with circles and names of its own until it is.
REWRITTEN: Final = frozenset({"kernels"})
#: Classes that stand for one thing in each of two programs, of which the older one is to go.
NAMES_ALIKE: Final = frozenset({"Node", "Program"})

#: The most parameters of a function, its settings by `Unpack` counted as one.
MOST_PARAMETERS: Final = 10
#: Functions that have more, because PyTorch's own of that kind has them.
PYTORCH_SIGNATURES: Final = {
    # scaled_dot_product_attention; attn_mask is bias or mask, and lengths, offset, rng are added.
    "handgrad.ops.attention.forward",
    "handgrad.ops.attention.validate",
    "handgrad.kernels.attention.forward",
    # torch.optim's adam and adamw as functions, of which scale is grad_scale.
    "handgrad.kernels.adam.update",
    "handgrad.kernels.adamw.update",
    # Those of torch.nn.functional.
    "handgrad.program.tensors.attention.multi_head_attention_forward",
    "handgrad.program.tensors.choosing.embedding_bag",
}
#: Functions whose parameters are a table's columns: the options of a command.
LONG_SIGNATURES: Final = {
    f"handgrad.cli.{name}.command" for name in ("check", "lr", "notes", "train")
}


def may_import() -> dict[str, set[str]]:
    lines = MAY_IMPORT.strip().replace("\n ", " ").splitlines()
    return {
        room: set(others.split()) for room, _, others in (line.partition(":") for line in lines)
    }


def circles(graph: Mapping[str, set[str]]) -> set[str]:
    """What is left of a graph once all is taken away that leads to no circle."""
    left = {name: set(others) for name, others in graph.items()}
    while ends := {name for name, others in left.items() if not others & left.keys()}:
        left = {name: others for name, others in left.items() if name not in ends}
    while left and (roots := left.keys() - set[str]().union(*left.values())):
        left = {name: others for name, others in left.items() if name not in roots}
    return set(left)


def test_no_files_import_one_another() -> None:
    """Imports inside functions and for type checkers count as the others do."""
    found = circles(house.file_imports())
    assert {name for name in found if house.room_of(name) not in REWRITTEN} == set()


def test_every_room_imports_the_rooms_that_it_may() -> None:
    found = {
        room: {other for other in others if other not in HELPERS}
        for room, others in house.room_imports().items()
        if room not in HELPERS
    }
    assert found == may_import()


def test_helpers_import_no_room() -> None:
    imports = house.room_imports()
    assert {other for each in HELPERS for other in imports[each]} <= HELPERS


def test_rooms_import_downward() -> None:
    """No circle of rooms, once the line is left out that leads up from kernels to dispatch."""
    downward = {
        room: {other for other in others if (room, other) not in house.UPWARD}
        for room, others in may_import().items()
    }
    assert circles(downward) == set()


def parameters_of(function: ast.FunctionDef) -> list[str]:
    """The names of its parameters, without that of the object it is called on."""
    given = function.args
    several = [given.vararg, *given.kwonlyargs, given.kwarg]
    listed = [*given.posonlyargs, *given.args, *(each for each in several if each is not None)]
    return [each.arg for each in listed if each.arg not in ("self", "cls")]


def test_no_function_has_more_parameters_than_one_can_read() -> None:
    """The lists name what has them today, so that neither of them outlives its reason."""
    found = {
        f"{module}.{node.name}"
        for module, file in house.modules().items()
        for node in ast.walk(house.tree_of(file))
        if isinstance(node, ast.FunctionDef) and len(parameters_of(node)) > MOST_PARAMETERS
    }
    assert found == PYTORCH_SIGNATURES | LONG_SIGNATURES


def test_no_method_is_replaced_when_a_class_is_made() -> None:
    """No class changes the methods of those derived from it, and nothing those of a class."""
    replaced = []
    for module, file in house.modules().items():
        if house.room_of(module) == "kernels":
            continue
        for node in ast.walk(house.tree_of(file)):
            if isinstance(node, ast.Assign):
                replaced += [
                    f"{module}.{ast.unparse(each)}"
                    for each in node.targets
                    if isinstance(each, ast.Attribute)
                    and isinstance(each.value, ast.Name)
                    and (each.value.id == "cls" or each.value.id.istitle())
                    and each.attr in ("__init__", "forward", "backward")
                ]
    assert replaced == []


def pytorch_names() -> set[str]:
    """The modules of handgrad.torch, which stand in the place of PyTorch's under their names."""
    tree = house.tree_of(house.PACKAGE / "torch" / "__init__.py")
    listed = [each.value for each in tree.body if isinstance(each, ast.Assign)]
    return {each for value in listed if isinstance(value, ast.List) for each in literals(value)}


def literals(several: ast.List) -> list[str]:
    names: list[str] = ast.literal_eval(several)
    return names


def test_one_class_name_is_one_thing() -> None:
    """Every op has its own `Cache` by contract; handgrad.torch has PyTorch's names."""
    homes: dict[str, set[str]] = {}
    for module, file in house.modules().items():
        room = house.room_of(module)
        skipped = pytorch_names() if room == "torch" else set[str]()
        for node in ast.walk(house.tree_of(file)) if room not in REWRITTEN else ():
            if isinstance(node, ast.ClassDef) and node.name not in {"Cache", *skipped}:
                homes.setdefault(node.name, set()).add(module)
    assert {name for name, each in homes.items() if len(each) > 1} == NAMES_ALIKE


def test_the_picture_is_that_of_the_imports() -> None:
    assert house.PICTURE.read_text(encoding="utf-8") == house.picture(), "run python -m docs.house"


def test_the_page_has_every_room() -> None:
    page = (house.ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    rooms = {f"`{room}.py`" if room == "targets" else f"`{room}/`" for room in house.drawn_rooms()}
    assert {room for room in rooms if room not in page} == set()


def test_the_page_names_files_that_are_there() -> None:
    page = (house.ROOT / "docs" / "house.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py|/))`", page))
    roots = (house.PACKAGE, house.PACKAGE / "kernels", house.ROOT)
    assert len(named) > 15
    assert {each for each in named if not any((root / each).exists() for root in roots)} == set()
