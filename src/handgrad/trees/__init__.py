"""An op's source as data: one tree, to be run, changed and printed.

tree = trees.read(hg.ops.layer_norm.backward)
gradients = trees.run(tree, dy, cache)        # the op's own result, bit for bit
"""

from handgrad.program.words import symbol
from handgrad.trees.edits import KINDS, Edit, edits
from handgrad.trees.evaluate import Step, Trace, evaluate, run, trace
from handgrad.trees.insertions import insertions
from handgrad.trees.nodes import Store, walk
from handgrad.trees.reader import Function, Parameter, TreeError, read
from handgrad.trees.terms import AdditiveTerm, additive_terms, gradient_expressions
from handgrad.trees.text import text

__all__ = [
    "KINDS",
    "AdditiveTerm",
    "Edit",
    "Function",
    "Parameter",
    "Step",
    "Store",
    "Trace",
    "TreeError",
    "additive_terms",
    "edits",
    "evaluate",
    "gradient_expressions",
    "insertions",
    "read",
    "run",
    "symbol",
    "text",
    "trace",
    "walk",
]
