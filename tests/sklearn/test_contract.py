"""Every estimator passes scikit-learn's own checks of estimators, and none is left out."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from handgrad import sklearn as estimators

QUICK = {"max_iter": 40, "learning_rate_init": 0.03}
CASES = [
    estimators.MLPClassifier(),
    estimators.MLPRegressor(),
    estimators.ConvNetClassifier(channels=(8,), hidden=16, **QUICK),
    estimators.TimeSeriesClassifier(hidden_size=8, **QUICK),
    estimators.TimeSeriesClassifier(cell="gru", hidden_size=8, **QUICK),
    estimators.TimeSeriesClassifier(cell="transformer", hidden_size=8, heads=2, **QUICK),
    estimators.TimeSeriesTagger(hidden_size=8, **QUICK),
]
#: What scikit-learn itself leaves out: a check of other array libraries, which it asks for by an
#: environment variable, and one of a method that its own MLPClassifier does not have either.
LEFT_OUT = {
    "check_array_api_input",
    "check_classifiers_multilabel_output_format_decision_function",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CASES, ids=repr)
def test_check_estimator(estimator: Any) -> None:
    results = check_estimator(estimator, on_fail="raise", on_skip=None)
    assert len(results) > 50
    skipped = {result["check_name"] for result in results if result["status"] != "passed"}
    assert skipped <= LEFT_OUT
    assert not any(result["expected_to_fail"] for result in results)
