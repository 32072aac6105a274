"""Training on several machines: the ranks that mpirun starts share every batch.

    mpirun -n 4 handgrad train digits

In Python, every rank runs the same program, and the trainer is given the ranks:

    import handgrad as hg
    from handgrad.mpi import Ranks

    trainer = hg.Trainer(model, "cross_entropy", "adam", parts=8, replicas=Ranks())

It needs `pip install 'handgrad[mpi]'`. Only `Ranks()` imports mpi4py, and so begins MPI.
"""

from handgrad.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
