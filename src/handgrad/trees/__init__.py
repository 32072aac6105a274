"""An op's source as data: one tree, to be run, changed and printed.

tree = trees.read(hg.ops.layer_norm.backward)
gradients = trees.run(tree, dy, cache)        # the op's own result, bit for bit
"""

from handgrad.trees.evaluate import Step, Trace, evaluate, run, trace
from handgrad.trees.nodes import Store, walk
from handgrad.trees.reader import Function, Parameter, TreeError, read

__all__ = [
    "Function",
    "Parameter",
    "Step",
    "Store",
    "Trace",
    "TreeError",
    "evaluate",
    "read",
    "run",
    "trace",
    "walk",
]
