"""What people do to modules of PyTorch, done to each of handgrad.torch: docs/torch-manners.md."""
