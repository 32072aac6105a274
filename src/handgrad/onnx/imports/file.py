"""An ONNX file as a model of handgrad's layers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx
from onnx import external_data_helper

from handgrad.arrays import Array
from handgrad.data.files import read_bytes
from handgrad.errors import DataError, HandgradError
from handgrad.escaping import cut, listed, quoted
from handgrad.inference.trained import TrainedModel
from handgrad.io.description import rebuild
from handgrad.io.files import read_trained
from handgrad.layers.base import Layer, walk
from handgrad.layers.recurrent import Recurrent
from handgrad.onnx.export.file import graph_of
from handgrad.onnx.export.recurrent import kind_of
from handgrad.onnx.imports.chain import sequential
from handgrad.onnx.imports.graph import ReadGraph
from handgrad.onnx.imports.recurrent import unpacked
from handgrad.onnx.imports.unrolled import with_whole_rnns
from handgrad.paths import as_path


def read(
    path: str | os.PathLike[str], start: str | None, end: str | None, time_first: bool
) -> TrainedModel:
    """The work of `hg.import_onnx`."""
    location = as_path("import_onnx", path)
    proto = _read(location)
    g = ReadGraph(location, proto.graph)
    metadata = {each.key: each.value for each in proto.metadata_props}
    if start is None and end is None and "handgrad" in metadata:
        own = _own(g, metadata)
        if own is not None:
            return own
    whole = with_whole_rnns(g)
    if all(each is None or whole.has(each) for each in (start, end)):
        g = whole
    first, last = _value(g, "start", start), _value(g, "end", end)
    return TrainedModel(sequential(g, first, last, time_first))


def _read(path: Path) -> onnx.ModelProto:
    """The file with all its values, of which some may stand in files beside it."""
    content = read_bytes(path, "a file of ONNX")
    try:
        proto = onnx.load_model_from_string(content)
    except Exception as error:
        # protobuf has errors of its own, others for each of its implementations.
        raise DataError(f"{path} is no file of ONNX, or not whole: {_first_line(error)}") from None
    if not proto.graph.node:
        raise DataError(f"{path} has no nodes; expected a file of ONNX with a graph")
    _check_nodes(path, proto)
    try:
        external_data_helper.load_external_data_for_model(proto, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise DataError(
            f"{path}: values in a file beside it cannot be read: {_first_line(error)}"
        ) from None
    return proto


def _check_nodes(path: Path, proto: onnx.ModelProto) -> None:
    """Raise DataError for a node with fewer inputs or outputs than its operator has.

    Of one that ONNX does not know, nothing is asked but an output.
    """
    versions = {each.domain: each.version for each in proto.opset_import}
    for node in proto.graph.node:
        version = versions.get(node.domain, onnx.defs.onnx_opset_version())
        least = {"inputs": 0, "outputs": 1}
        with suppress(onnx.defs.SchemaError, TypeError):  # an operator, or a version, of nobody
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
            least = {"inputs": schema.min_input, "outputs": max(schema.min_output, 1)}
        for what, found in (("inputs", node.input), ("outputs", node.output)):
            if len(found) < least[what] or not all(found[: least[what]]):
                given = sum(map(bool, found))
                raise DataError(
                    f"{path}: the node {quoted(node.name)} is a {cut(node.op_type)} with {given} "
                    f"{what}; expected {least[what]} or more"
                )


def _first_line(error: Exception) -> str:
    return cut(str(error).partition("\n")[0], 200)


def _value(g: ReadGraph, what: str, given: str | None) -> str:
    """The name of the value where a chain starts or ends; without one the graph's only one."""
    if given is not None:
        if not g.has(given):
            raise DataError(f"{g.path}: {what} is {quoted(given)}; expected a value of the graph")
        return given
    names = g.inputs if what == "start" else g.outputs
    if len(names) != 1:
        kind = "inputs" if what == "start" else "outputs"
        raise DataError(f"{g.path} has the {kind} {listed(names)}; expected one, or {what}=")
    return names[0]


def _own(g: ReadGraph, metadata: Mapping[str, str]) -> TrainedModel | None:
    """The model that the metadata describe, if the graph is what it would be written as."""
    constants = {each.name: g.array(each) for each in g.proto.initializer}
    try:
        described: Any = json.loads(metadata["handgrad"])["model"]
        model = rebuild(described, {name: array.shape for name, array in constants.items()})
        arrays = _arrays(model, constants)
        trained = read_trained(g.path, arrays, metadata)
        written = graph_of(trained.model, g.inputs)
    except (HandgradError, ValueError, KeyError, TypeError, RecursionError):
        return None
    same_nodes = [each.SerializeToString(deterministic=True) for each in written.nodes] == [
        each.SerializeToString(deterministic=True) for each in g.proto.node
    ]
    same_constants = written.constants == {each.name: each for each in g.proto.initializer}
    return trained if same_nodes and same_constants else None


def _arrays(model: Layer, constants: Mapping[str, Array]) -> dict[str, Array]:
    """The parameters and buffers of a model, from the constants that it was written as."""
    wanted = {**model.parameters, **model.buffers}
    found = {name: constants[name] for name in wanted if name in constants}
    for name, layer in walk(model):
        kind = kind_of(layer) if isinstance(layer, Recurrent) else None
        if kind is None or not isinstance(layer, Recurrent):
            continue
        prefix = f"{name}." if name else ""
        for number in range(layer.num_layers):
            w, r, b = (constants[f"{prefix}{each}_l{number}"] for each in "WRB")
            own = unpacked(kind, number, w, r, b)
            found |= {prefix + key: array for key, array in own.items() if prefix + key in wanted}
    return found
