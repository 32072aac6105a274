"""Estimators of scikit-learn whose networks are handgrad's: for pipelines, searches, calibration.

    from handgrad.sklearn import MLPClassifier  # in place of sklearn.neural_network

`MLPClassifier` and `MLPRegressor` take scikit-learn's own arguments; `ConvNetClassifier` takes
training. docs/scikit-learn.md says more. Needs scikit-learn: `pip install 'handgrad[sklearn]'`.
"""

from handgrad.sklearn.mlp import MLPClassifier, MLPRegressor

__all__ = [
    "MLPClassifier",
    "MLPRegressor",
]
