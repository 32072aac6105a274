"""Small files whose work would grow exponentially, or whose weights would fill the memory."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import handgrad as hg

MOST = 30_000_000


def written(folder: Path, nodes: Sequence[onnx.NodeProto], constant: np.ndarray) -> Path:
    """A graph from x to y, with one constant c."""
    x, y = (helper.make_tensor_value_info(name, 1, None) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(constant, "c")])
    onnx.save(helper.make_model(graph), folder / "model.onnx")
    return folder / "model.onnx"


def refused(path: Path) -> str:
    """The sentence for a file, which must not take memory either."""
    tracemalloc.start()
    try:
        with pytest.raises(hg.errors.DataError) as caught:
            hg.import_onnx(path)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    return str(caught.value)


def grown(kind: str, **settings: int) -> list[onnx.NodeProto]:
    """16 readers at each of eight levels: 16⁸ values if each were computed."""
    return [
        helper.make_node(kind, [f"c{i or ''}"] * 16, [f"c{i + 1}"], **settings) for i in range(8)
    ]


@pytest.mark.parametrize("length", [0, 1])
def test_a_shape_of_exponential_size_is_refused(length: int, tmp_path: Path) -> None:
    nodes = [*grown("Concat", axis=0), helper.make_node("Reshape", ["x", "c8"], ["y"])]
    assert "Reshape" in refused(written(tmp_path, nodes, np.ones(length, np.int64)))


def test_products_of_exponential_work_are_refused(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mul", [f"c{i or ''}"] * 2, [f"c{i + 1}"]) for i in range(11)]
    nodes = [*nodes, helper.make_node("Reshape", ["x", "c11"], ["y"])]
    assert "Reshape" in refused(written(tmp_path, nodes, np.ones(2, np.int64)))


def test_weights_of_exponential_size_are_refused(tmp_path: Path) -> None:
    nodes = [*grown("Concat", axis=0), helper.make_node("MatMul", ["x", "c8"], ["y"])]
    assert "MatMul" in refused(written(tmp_path, nodes, np.ones((1, 1), np.float32)))


def test_layers_that_share_a_constant_are_bounded_by_the_file(tmp_path: Path) -> None:
    values = ["x", *(f"v{i}" for i in range(999)), "y"]
    nodes = [
        helper.make_node("MatMul", [before, "c"], [after])
        for before, after in itertools.pairwise(values)
    ]
    path = written(tmp_path, nodes, np.ones((300, 300), np.float32))
    assert "HANDGRAD_DATA_MB" in refused(path)
    few = written(tmp_path, [*nodes[:2], helper.make_node("MatMul", ["v1", "c"], ["y"])], np.eye(3))
    assert len(hg.import_onnx(few).model.layers) == 3


LONG = "x" * 3000


@pytest.mark.parametrize(
    "nodes",
    [
        [helper.make_node(LONG, ["x"], ["y"], LONG)],
        [helper.make_node(LONG, ["x"], ["y"])],
        [helper.make_node("Relu", ["x"], [LONG], LONG)],
        [helper.make_node("Relu", ["x"], [""], LONG)],
        [helper.make_node("Relu", ["x"], ["y"], **{LONG: LONG})],
        [helper.make_node("MatMul", ["x", LONG], ["y"], LONG)],
        [helper.make_node("MaxPool", ["x"], ["y"], LONG, kernel_shape=[2] * 3000)],
        [helper.make_node("GRU", ["x", "c", "c"], ["y"], LONG, **{LONG: LONG})],
        [helper.make_node(LONG, ["x"], [f"y{i}" * 1000], LONG) for i in range(3)],
    ],
)
def test_names_of_many_letters_make_no_long_sentence(
    nodes: Sequence[onnx.NodeProto], tmp_path: Path
) -> None:
    path = written(tmp_path, nodes, np.eye(3, dtype=np.float32))
    assert len(refused(path)) < len(str(path)) + 500


def test_a_graph_of_many_inputs_names_some(tmp_path: Path) -> None:
    several = [helper.make_tensor_value_info(f"{i}{LONG}", 1, None) for i in range(2000)]
    node = helper.make_node("Relu", [several[0].name], ["y"])
    graph = helper.make_graph([node], "g", several, [helper.make_tensor_value_info("y", 1, None)])
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")
    sentence = refused(tmp_path / "model.onnx")
    assert "and 1,992 more; expected one, or start=" in sentence
    assert len(sentence) < 700
