"""From layers to an ONNX graph: one file per family of layers, and one table of all."""
