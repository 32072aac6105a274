"""ONNX: models to files that other runtimes run, and such files to models.

    hg.export_onnx(model, "model.onnx")
    hg.import_onnx("model.onnx").model

Needs onnx: `pip install 'handgrad[onnx]'`; docs/onnx.md says more.
"""

from handgrad.errors import ArgumentError

try:
    from handgrad.onnx.export.file import export_onnx
    from handgrad.onnx.imports.file import import_onnx
except ModuleNotFoundError as error:
    if error.name != "onnx":
        raise
    raise ArgumentError(
        "handgrad.onnx: onnx is not installed; allowed: after pip install 'handgrad[onnx]'"
    ) from None

__all__ = ["export_onnx", "import_onnx"]
