"""The table of forwards that the other files of this folder fill, as their authors would write."""

from dataclasses import dataclass, field

N, T, D, H, K = "NTDHK"


@dataclass
class Case:
    forward: object
    given: dict = field(default_factory=dict)
    loops: int = 0  # at least this many stay loops
    sizes: int = 2  # 1: a guard holds the program to the sizes of the example


CASES = {}


def case(loops=0, sizes=2, **given):
    """Puts a forward into the table; `given` are the shapes of its arrays."""

    def keep(f):
        name = getattr(f, "__name__", type(f).__name__)
        assert name not in CASES
        CASES[name] = Case(f, given, loops, sizes)
        return f

    return keep
