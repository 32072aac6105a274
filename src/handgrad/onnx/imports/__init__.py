"""From an ONNX graph to layers: the graphs of `export_onnx`, and chains of what layers compute."""
