"""Things that people do to PyTorch's modules, done to handgrad.torch's: docs/torch-manners.md."""
