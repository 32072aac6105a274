"""Models in files: weights with a description, Hugging Face folders, checkpoints.

These are functions above models; a layer knows nothing of files. `model.save(path)` is short for
`hg.save(model, path)`.
"""

from handgrad.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
