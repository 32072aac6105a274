"""The tests of handgrad.sklearn need scikit-learn; where it is absent none is collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("sklearn") else ["test_*.py"]
