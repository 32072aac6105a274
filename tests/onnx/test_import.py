from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import handgrad as hg
from handgrad.errors import DataError, HandgradError
from handgrad.inference.preprocessing import Preprocessing, Standardization
from handgrad.io.identity import compare, describe_model
from tests.onnx.running import (
    EXPORTED,
    MODELS,
    RECURRENT,
    SIZES,
    Case,
    feeds,
    made,
    outputs,
    session,
)
from tests.tolerances import assert_close

onnx = pytest.importorskip("onnx")


@pytest.mark.parametrize("case", [*RECURRENT, *MODELS], ids=lambda case: case.name)
def test_models_that_were_exported_come_back(case: Case, tmp_path) -> None:
    model, path = made(case), tmp_path / "model.onnx"
    hg.export_onnx(model, path, **case.settings)
    found = hg.import_onnx(path).model
    assert list(compare(describe_model(model), describe_model(found))) == []
    given = feeds(session(path), case, SIZES[1])
    np.testing.assert_array_equal(outputs(found, given), outputs(model, given))


@pytest.mark.parametrize("case", EXPORTED, ids=lambda case: case.name)
def test_layers_that_were_exported_come_back(case, tmp_path) -> None:
    model, path = case.make(np.random.default_rng(1)), tmp_path / "model.onnx"
    hg.export_onnx(model, path, input_shape=case.shape[1:])
    found = hg.import_onnx(path).model
    assert type(found) is type(model)
    y, _ = model.forward_y(case.batch())
    np.testing.assert_array_equal(found.forward_y(case.batch())[0], y)


def test_what_belongs_to_the_use_comes_back(tmp_path) -> None:
    trained = hg.TrainedModel(
        hg.MLP([2, 3], rng=np.random.default_rng(0)),
        task="classification",
        classes=("no", "ñ", "yes"),
        preprocessing=Preprocessing((Standardization((0.0, 1.0), (2.0, 3.0)),)),
    )
    hg.export_onnx(trained, tmp_path / "model.onnx")
    found, x = hg.import_onnx(tmp_path / "model.onnx"), np.array([[1.0, 2.0], [3.0, -4.0]])
    assert found.predict(x).tolist() == trained.predict(x).tolist()
    assert found.preprocessing == trained.preprocessing


def written(tmp_path, model: hg.layers.Layer, change=None):
    """The path of a model's file, whose protocol buffer `change` has changed."""
    path = tmp_path / "model.onnx"
    hg.export_onnx(model, path)
    proto = onnx.load(path)
    if change is not None:
        change(proto)
    onnx.save(proto, path)
    return path


def test_a_graph_that_was_changed_is_read_as_it_is(tmp_path) -> None:
    def change(proto) -> None:
        (weight,) = (each for each in proto.graph.initializer if each.name == "linear1.weight")
        array = 2 * onnx.numpy_helper.to_array(weight)
        weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
        (node,) = (each for each in proto.graph.node if each.op_type == "Relu")
        node.op_type = "Tanh"

    model = hg.MLP([2, 3, 4], rng=np.random.default_rng(0))
    found = hg.import_onnx(written(tmp_path, model, change)).model
    x = np.random.default_rng(1).standard_normal((5, 2)).astype(np.float32)
    (expected,) = session(tmp_path / "model.onnx").run(None, {"x": x})
    assert type(found) is hg.Sequential
    assert_close(found(x), expected, "float32")


FIXTURES = sorted((Path(__file__).parent / "files").glob("*.onnx"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_files_of_pytorch_are_read(path: Path) -> None:
    """The files are those of tests/onnx/files/make.py."""
    time_first = path.stem.removesuffix("-traced").endswith("time-first")
    found, other = hg.import_onnx(path, time_first=time_first).model, session(path)
    (given,) = other.get_inputs()
    sizes = {
        axis: 2 + i for i, axis in enumerate(each for each in given.shape if isinstance(each, str))
    }
    shape = [sizes.get(axis, axis) for axis in given.shape]
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape, np.float32)
    if given.type == "tensor(int64)":
        x = rng.integers(0, 7, shape)
    (expected,) = other.run(None, {given.name: x})
    if time_first:
        x = np.ascontiguousarray(x.swapaxes(0, 1))
        expected = expected.swapaxes(0, 1) if expected.ndim == 3 else expected
    assert_close(found.forward_y(x)[0], expected, "float32")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("Relu", lambda node: setattr(node, "op_type", "Tanh")),
        ("Squeeze", lambda node: node.input.__setitem__(0, node.input[0] + "-another")),
        ("Concat", lambda node: node.input.reverse()),
        ("Add", lambda node: node.input.append("x")),
        ("Slice", lambda node: node.input.__setitem__(1, "of-no-number")),
    ],
)
def test_steps_that_are_no_rnn_stay_steps(kind: str, change, tmp_path) -> None:
    proto = onnx.load(Path(__file__).parent / "files" / "rnn.onnx")
    change([each for each in proto.graph.node if each.op_type == kind][-1])
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([np.nan]), "of-no-number"))
    onnx.save(proto, tmp_path / "file.onnx")
    with pytest.raises(DataError, match="expected an RNN as one node"):
        hg.import_onnx(tmp_path / "file.onnx")


def test_biases_of_two_lengths_are_no_rnn(tmp_path) -> None:
    proto = onnx.load(Path(__file__).parent / "files" / "rnn-max-time-first.onnx")
    (bias,) = (each for each in proto.graph.initializer if each.name.endswith("bias_hh_l0_reverse"))
    bias.CopyFrom(onnx.numpy_helper.from_array(np.zeros(3, F), bias.name))
    onnx.save(proto, tmp_path / "file.onnx")
    with pytest.raises(DataError, match="expected an RNN as one node"):
        hg.import_onnx(tmp_path / "file.onnx", time_first=True)


def test_a_file_that_reads_some_of_the_steps_is_no_rnn(tmp_path) -> None:
    proto = onnx.load(Path(__file__).parent / "files" / "rnn.onnx")
    for each in (*proto.graph.value_info, *proto.graph.input):
        for axis in each.type.tensor_type.shape.dim:
            axis.dim_value += axis.dim_value == 7
    onnx.save(proto, tmp_path / "file.onnx")
    with pytest.raises(DataError, match="expected an RNN as one node"):
        hg.import_onnx(tmp_path / "file.onnx")


def test_time_that_stands_first_is_said(tmp_path) -> None:
    path = Path(__file__).parent / "files" / "lstm-last-time-first.onnx"
    with pytest.raises(DataError, match=r"a LSTM; expected .* or time_first=True, with which"):
        hg.import_onnx(path)
    constants = {"w": np.eye(3, dtype=F)}
    nodes = [node("MatMul", "x", "w"), node("Softmax", "MatMul.y", axis=0)]
    assert hg.import_onnx(file_of(tmp_path, nodes[:1], constants), time_first=True).model
    with pytest.raises(DataError, match="acts on each step alone where time stands first"):
        hg.import_onnx(file_of(tmp_path, nodes, constants), time_first=True)


def test_a_mean_over_an_image_may_leave_its_axes_out(tmp_path) -> None:
    nodes = [node("Conv", "x", "w"), node("ReduceMean", "Conv.y", axes=[2, 3], keepdims=0)]
    path = file_of(tmp_path, nodes, {"w": np.ones((2, 1, 3, 3), F)})
    x = np.random.default_rng(0).standard_normal((4, 1, 5, 6), F)
    model = hg.import_onnx(path).model
    assert_close(model(x), model.layers["0"](x).mean((2, 3)), "float32")
    nodes[1] = node("ReduceMax", "Conv.y", axes=[2, 3], keepdims=0)
    with pytest.raises(DataError, match="ReduceMax; expected a mean over all positions"):
        hg.import_onnx(file_of(tmp_path, nodes, {"w": np.ones((2, 1, 3, 3), F)}))


def test_a_part_of_a_graph_is_read(tmp_path) -> None:
    model = hg.Sequential(hg.Standardize(), hg.Conv2d(2, 3, 3, rng=np.random.default_rng(0)))
    hg.export_onnx(model, tmp_path / "model.onnx", input_shape=(2, 5, 5))
    names = [each.output[0] for each in onnx.load(tmp_path / "model.onnx").graph.node]
    path = written(tmp_path, model)
    found = hg.import_onnx(path, start=names[-3], end="y").model
    x = np.random.default_rng(1).standard_normal((1, 2, 5, 5), np.float32)
    np.testing.assert_array_equal(found(x), model.layers["1"](x))
    with pytest.raises(hg.errors.DataError, match="start is 'none'"):
        hg.import_onnx(path, start="none")


LSTM_STATES = {
    "R": np.zeros((1, 8, 2), np.float32),
    "W": np.zeros((1, 8, 3), np.float32),
    "zero": np.asarray(0),
    "one": np.asarray([1]),
    "minus": np.asarray(-1),
    "rows": np.asarray([-1, 1]),
}


@pytest.mark.parametrize(
    ("following", "said"),
    [
        ([], "node 'the-LSTM', a LSTM; expected that its steps or its last state Y_h are read"),
        ([("Squeeze", ["h", "one"], {})], "node 'the-Squeeze', a Squeeze; expected the last state"),
        (
            [("Gather", ["h", "zero"], {"axis": 1})],
            "node 'the-Gather', a Gather; expected the",
        ),
        (
            [("Concat", ["h", "other"], {"axis": 0}), ("Gather", ["Concat.y", "minus"], {})],
            "node 'the-Concat', a Concat; expected the states of all layers",
        ),
        (
            [("Transpose", ["h"], {"perm": [1, 0, 2]}), ("Reshape", ["Transpose.y", "rows"], {})],
            "node 'the-Transpose', a Transpose; expected the last state",
        ),
    ],
)
def test_another_part_of_the_last_state_is_named(following, said, tmp_path) -> None:
    recurrent = onnx.helper.make_node(
        "LSTM", ["Transpose.x", "W", "R"], ["steps", "h"], name="the-LSTM"
    )
    swap = onnx.helper.make_node("Transpose", ["x"], ["Transpose.x"], perm=[1, 0, 2])
    nodes = [swap, recurrent, *(node(kind, *inputs, **said_) for kind, inputs, said_ in following)]
    path = file_of(tmp_path, nodes, LSTM_STATES, outputs=["end"])
    with pytest.raises(hg.errors.DataError, match=re.escape(said)):
        hg.import_onnx(path)


def node(kind: str, *inputs: str, **attributes):
    return onnx.helper.make_node(kind, inputs, [f"{kind}.y"], name=f"the-{kind}", **attributes)


def file_of(tmp_path, nodes, constants=None, domain="", inputs=("x",), outputs=None):
    """A file of these nodes, of which nothing is checked."""
    kind = onnx.TensorProto.FLOAT
    tensors = [onnx.numpy_helper.from_array(a, name) for name, a in (constants or {}).items()]
    graph = onnx.helper.make_graph(
        nodes,
        "graph",
        [onnx.helper.make_tensor_value_info(name, kind, None) for name in inputs],
        [
            onnx.helper.make_tensor_value_info(name, kind, None)
            for name in outputs or [nodes[-1].output[0]]
        ],
        tensors,
    )
    path = tmp_path / "file.onnx"
    onnx.save(onnx.helper.make_model(graph), path)
    return path


F = np.float32
LSTM = {"W": np.zeros((1, 8, 3), F), "R": np.zeros((1, 8, 2), F), "B": np.zeros((1, 16), F)}
SWAP = node("Transpose", "x", perm=[1, 0, 2])
SQUEEZE = node("Squeeze", "LSTM.y", "one")


@pytest.mark.parametrize(
    ("nodes", "constants", "said"),
    [
        ([node("Cosh", "x")], {}, "node 'the-Cosh', a Cosh; expected what one of handgrad's"),
        ([node("Gemm", "x", "w", alpha=2.0)], {"w": np.zeros((2, 2), F)}, "alpha 1.0, not 2.0"),
        ([node("Gemm", "x", "z")], {}, "a constant for its input 'z'"),
        ([node("MatMul", "x", "w")], {"w": np.zeros((2, 2), np.float16)}, "of float16"),
        ([node("Conv", "x", "w", pads=[1, 0])], {"w": np.zeros((2, 2, 3), F)}, "the same padding"),
        ([node("Conv", "x", "w")], {"w": np.zeros((2, 2), F)}, "a weight of 3 or 4 axes"),
        ([node("Conv", "x", "w", group=3)], {"w": np.zeros((2, 2, 3), F)}, "no Conv1d can be made"),
        ([node("MaxPool", "x")], {}, "windows of 1 or 2 axes"),
        ([node("MaxPool", "x", kernel_shape=[2], ceil_mode=1)], {}, "ceil_mode 0, not 1"),
        ([node("LSTM", "x", "W", "R", "B")], LSTM, "a Transpose of batch and time before it"),
        ([SWAP, node("LSTM", "Transpose.y", "W", "R", "z")], LSTM, "constants for W, R and B"),
        ([SWAP, node("LSTM", "Transpose.y", "W", "R", "B", "", "z")], LSTM, "initial_h of zeros"),
        ([SWAP, node("LSTM", "Transpose.y", "W", "R", clip=1.0)], LSTM, "no clip 1.0"),
        ([SWAP, node("GRU", "Transpose.y", "W", "R")], LSTM, "linear_before_reset 1"),
        ([SWAP, node("LSTM", "Transpose.y", "W", "R")], LSTM, "has time before the batch"),
        ([SWAP, node("Relu", "Transpose.y")], {}, "has time before the batch"),
        ([node("Add", "x", "b")], {"b": np.zeros(2, F)}, "added to what a MatMul gave"),
        ([node("Reshape", "x", "s")], {"s": np.array([2, 3, 4])}, "Reshape to (batch, features)"),
        ([node("Relu", "other")], {}, "nothing reads 'x'"),
        ([node("Exp", "x"), node("Mul", "x", "Exp.y")], {}, "is read by 'the-Exp', a Exp and"),
        ([node("Relu", "Relu.y")], {}, "nothing reads 'x'"),
        (
            [SWAP, node("LSTM", "Transpose.y", "W", "R"), SQUEEZE, node("ReduceMean", "Squeeze.y")],
            LSTM | {"one": np.array([1])},
            "the steps alone, with keepdims 0",
        ),
        (
            [*(node("Slice", "x", "a", "b"),) * 2, node("Tanh", "Slice.y"), node("Tanh", "x")],
            {},
            "read by 'the-Slice', a Slice and 'the-Slice', a Slice and 'the-Tanh', a Tanh; expected"
            " an RNN as one node, which torch.onnx.export writes with dynamo=False",
        ),
    ],
)
def test_a_node_that_no_layer_computes_is_named(nodes, constants, said, tmp_path) -> None:
    with pytest.raises(hg.errors.DataError, match=re.escape(said)):
        hg.import_onnx(file_of(tmp_path, nodes, constants))


def test_several_inputs_or_outputs_are_named(tmp_path) -> None:
    path = file_of(tmp_path, [node("Relu", "x")], inputs=("x", "other"))
    with pytest.raises(
        hg.errors.DataError, match="has the inputs x, other; expected one, or start"
    ):
        hg.import_onnx(path)
    assert hg.import_onnx(path, start="x").model(np.array([-1.0, 2.0])).tolist() == [0, 2]
    path = file_of(tmp_path, [node("Relu", "x")], outputs=("x", "Relu.y"))
    with pytest.raises(hg.errors.DataError, match=r"has the outputs x, Relu\.y; expected one"):
        hg.import_onnx(path)


def test_a_file_that_is_none_is_one_sentence(tmp_path) -> None:
    path = written(tmp_path, hg.MLP([5, 3], rng=np.random.default_rng(0)))
    whole = path.read_bytes()
    for content in (b"", b"no onnx", whole[: len(whole) // 2], whole[:-1], bytes(100)):
        path.write_bytes(content)
        with pytest.raises(hg.errors.DataError, match=re.escape(str(path))):
            hg.import_onnx(path)
    with pytest.raises(hg.errors.DataError, match="is missing"):
        hg.import_onnx(tmp_path / "none.onnx")
    with pytest.raises(hg.errors.DataError, match="cannot be read"):
        hg.import_onnx(tmp_path)


def test_values_in_a_file_beside_it_are_read_and_missed(tmp_path) -> None:
    model, path = hg.MLP([64, 32], rng=np.random.default_rng(0)), tmp_path / "model.onnx"
    hg.export_onnx(model, path)
    onnx.save(
        onnx.load(path), path, save_as_external_data=True, location="values", size_threshold=0
    )
    x = np.ones((1, 64), np.float32)
    np.testing.assert_array_equal(hg.import_onnx(path).model(x), model(x))
    (tmp_path / "values").unlink()
    with pytest.raises(hg.errors.DataError, match="values in a file beside it cannot be read"):
        hg.import_onnx(path)


@pytest.mark.parametrize("field", ["input", "output"])
@pytest.mark.parametrize("case", [*RECURRENT[::8], *MODELS[::4]], ids=lambda case: case.name)
def test_a_node_without_what_its_operator_needs_is_one_sentence(case: Case, field, tmp_path):
    path = tmp_path / "model.onnx"
    hg.export_onnx(made(case), path, **case.settings)
    whole = path.read_bytes()
    for position in range(len(onnx.load_model_from_string(whole).graph.node)):
        proto = onnx.load_model_from_string(whole)
        node = proto.graph.node[position]
        if node.op_type == "Constant" and field == "input":
            continue
        names = list(getattr(node, field))
        for last in range(1, len(names)):
            del getattr(node, field)[last:]
            path.write_bytes(proto.SerializeToString())
            with suppress(HandgradError):  # what is optional may be missing
                hg.import_onnx(path)
            getattr(node, field).extend(names[last:])
        del getattr(node, field)[:]
        path.write_bytes(proto.SerializeToString())
        with pytest.raises(DataError, match=rf"with 0 {field}s; expected \d or more"):
            hg.import_onnx(path)
