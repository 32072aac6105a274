"""PyTorch beside handgrad (needs PyTorch)."""
