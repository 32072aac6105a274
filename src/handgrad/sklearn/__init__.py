"""Estimators of scikit-learn whose networks are handgrad's: for pipelines, searches, calibration.

    from handgrad.sklearn import MLPClassifier  # in place of sklearn.neural_network

`MLPClassifier` and `MLPRegressor` take scikit-learn's own arguments; `ConvNetClassifier` takes
images, `TimeSeriesClassifier` and `TimeSeriesTagger` sequences, all with the same arguments for
training. docs/scikit-learn.md says more. Needs scikit-learn: `pip install 'handgrad[sklearn]'`.
"""

try:
    from handgrad.sklearn.convnet import ConvNetClassifier
    from handgrad.sklearn.mlp import MLPClassifier, MLPRegressor
    from handgrad.sklearn.sequences import TimeSeriesClassifier, TimeSeriesTagger
except ModuleNotFoundError as error:
    if error.name != "sklearn":
        raise
    raise ModuleNotFoundError(
        "handgrad.sklearn needs scikit-learn; install it with: pip install 'handgrad[sklearn]'",
        name="sklearn",
    ) from None

__all__ = [
    "ConvNetClassifier",
    "MLPClassifier",
    "MLPRegressor",
    "TimeSeriesClassifier",
    "TimeSeriesTagger",
]
