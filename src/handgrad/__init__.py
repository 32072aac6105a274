"""handgrad: neural networks with every gradient written out.

    import handgrad as hg

    rng = np.random.default_rng(0)
    model = hg.Sequential(hg.Dense(64, 32, activation="relu", rng=rng), hg.Dense(32, 10, rng=rng))
    y, cache = model.forward(x)
    loss, loss_cache = hg.losses.CrossEntropy().forward(y, target)
    dy = hg.losses.CrossEntropy().backward(loss_cache)
    dx, gradients = model.backward(dy, cache)

Every op is `hg.ops.<name>.forward` and `.backward`; everything else is built from them. Names are
loaded when first used, so that importing handgrad costs little, and so that the command line can
say in one sentence that HANDGRAD_ENGINE or HANDGRAD_ISA is wrong.
"""

from handgrad.lazy import attach

__version__ = "0.2.0"

__getattr__, __dir__ = attach(__name__, __file__)
