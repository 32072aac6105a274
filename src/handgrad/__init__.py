"""handgrad: neural networks with every gradient written out."""
