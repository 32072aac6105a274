"""A training step as an ONNX graph: traced through the references, one rule per primitive."""
