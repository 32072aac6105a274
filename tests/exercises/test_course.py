"""The course: solutions are right, files to start from are not, and mistakes are named."""

from __future__ import annotations

import inspect

import pytest

from handgrad.checking import CheckReport
from handgrad.checking.kinds import KINDS
from handgrad.errors import ArgumentError
from handgrad.exercises import NAMES, Exercise, exercise
from handgrad.ops import OPS

#: Lines of a solution, the same with a mistake that learners make, and words of what is said of it.
MISTAKES = {
    "relu": [
        ("dy * (x > 0)", "dy", "dx: the mask (x > 0) is forgotten in dy"),
        ("x > 0", "x < 0", "another condition belongs there: x > 0 for x < 0"),
        ("dy * (x > 0)", "x * dy", "multiplied by x, and not by the slope"),
        ("dy * (x > 0)", "(x > 0) * 1.0", "dx: the factor dy is missing"),
    ],
    "dropout": [
        ("np.where(keep, dy / (1 - P), 0)", "dy / (1 - P)", "dx: the mask keep is forgotten"),
        ("dx = np.where(keep, dy / (1 - P), 0)", "dx = np.where(keep, dy, 0)", "x/0.75 with"),
    ],
    "linear": [
        ("dy.sum(axis=0)", "dy", "is not summed over axis 0"),
        ("dy.sum(axis=0)", "dy.mean(axis=0)", "mean(dy) should be a sum"),
        ("dy.T @ x", "x.T @ dy", "dweight: is transposed"),
        ("dx, dweight, dbias\n", "dweight, dx, dbias\n", "dx: is the gradient of weight"),
    ],
    "softmax": [
        (
            "y * (dy - (y * dy).sum(axis=-1, keepdims=True))",
            "y * dy",
            "−y sum(y dy) of softmax's backward",
        ),
        (
            "y * (dy - (y * dy).sum(axis=-1, keepdims=True))",
            "dy * y * (1 - y)",
            "each output depends on all inputs",
        ),
    ],
    "cross_entropy": [
        (" / len(p)", "", "the factor 1/p.shape[0] is missing in dx"),
        ("(p - one_hot)", "p", "dx: the term −one_hot is missing beside p"),
        ("(p - one_hot)", "p * (1 - p)", "slope of one probability by its own score"),
        ("(p - one_hot)", "-one_hot / p", "it still has to go through softmax"),
        ("(p - one_hot)", "(one_hot - p)", "dx: has the wrong sign"),
        ("dloss * ", "", "dx: the factor dloss is missing"),
    ],
    "embedding": [
        ("np.add.at(dweight, tokens, dy)", "dweight[tokens] += dy", "the last one counts"),
    ],
    "layer_norm": [
        ("dx_hat - mean - projection", "dx_hat - projection", "−mean(dx̂) is missing"),
        ("dx_hat - mean - projection", "dx_hat - mean", "−x̂ mean(dx̂ x̂) is missing"),
        ("- mean -", "+ mean -", "mean(dx̂) has the wrong sign"),
        ("dy * gamma", "dy", "dx: the factor γ is missing"),
        (") * inv_std\n    return dx", ")\n    return dx", "dx: the factor inv_std is missing"),
    ],
    "conv1d": [
        ("+= weight[:, :, k].T", "= weight[:, :, k].T", "k:k + steps] is overwritten where a sum"),
        ("weight[:, :, k].T", "weight[:, :, -1 - k].T", "[:, :, k] for [:, :, -1 - k]"),
        ("k : k + steps].transpose", ":steps].transpose", "every k takes the first window"),
        (".sum(axis=0)\n", ".mean(axis=0)\n", "2, 1)) should be a sum"),
    ],
    "rnn": [
        ("da = dh * (1 - y[:, t] ** 2)", "da = dh", "the derivative of tanh, 1 − h_t²"),
        ("da = dh * (1 - y[:, t] ** 2)", "da = dh * y[:, t]", "1 − h_t², and not h_t"),
        ("y[:, t - 1]", "y[:, t]", "the one before belongs, h_{t−1}"),
        ("dh = da @ weight_hh", "dh = 0 * dh", "what comes from the state after is left out"),
        ("reversed(range(x.shape[1]))", "range(x.shape[1])", "from the first to the last"),
        ("dh = dh + dy[:, t]", "dh = dy[:, t]", "what comes from the state after is left out"),
        ("dweight_ih += da.T", "dweight_ih = da.T", "dweight_ih is overwritten where a sum"),
        ("dh = da @ weight_hh\n", "dh = da @ weight_hh.T\n", "weight_hh is transposed and"),
    ],
    "attention": [
        ("ds @ k / math.sqrt(q.shape[-1])", "ds @ k", "dq: is √3 times what it should be"),
        ("(da - (a * da).sum(axis=-1, keepdims=True))", "da", "−a sum(a da) of softmax's"),
        ("(a * da).sum(axis=-1, keepdims=True)", "(a * da).sum(axis=0)", "runs over the queries"),
        ("a.T @ dy", "a @ dy", "a @ dy cannot be computed, a being (5, 7) and dy (5, 2)"),
    ],
}


@pytest.fixture
def examined(tmp_path):
    """Examine a text as the answer to an exercise."""

    def examine(chosen: Exercise, text: str) -> CheckReport:
        file = tmp_path / f"answer_{chosen.name}.py"
        file.write_text(text, "utf-8")
        return chosen.examine(file)

    return examine


@pytest.fixture(params=range(1, len(NAMES) + 1), ids=NAMES)
def chosen(request) -> Exercise:
    return exercise(request.param)


def answered(chosen: Exercise, solution: str) -> str:
    """The file to start from, with backward as in `solution`."""
    unwritten = chosen.start.index("def backward")
    return chosen.start[:unwritten] + solution


def test_a_solution_is_right(chosen, examined):
    report = examined(chosen, answered(chosen, chosen.solution))
    assert report.ok, str(report)


def test_a_file_to_start_from_is_not_written_yet(chosen, examined):
    report = examined(chosen, chosen.start)
    assert report.verdict == "undecided"
    assert "backward is not written yet" in report.faults[0].message
    line = 1 + chosen.start.splitlines().index(
        '    raise NotImplementedError("backward is not written yet")'
    )
    assert f"(line {line} of " in report.faults[0].message


def test_a_file_to_start_from_gives_nothing_away(chosen):
    for line in chosen.solution.splitlines()[-3:]:
        assert line not in chosen.start
    assert "HINTS" not in chosen.start
    assert chosen.forward in chosen.start


@pytest.mark.parametrize(
    ("name", "right", "wrong", "words"),
    [(name, *mistake) for name, mistakes in MISTAKES.items() for mistake in mistakes],
)
def test_a_mistake_is_named(name, right, wrong, words, examined):
    chosen = exercise(NAMES.index(name) + 1)
    assert right in chosen.solution
    report = examined(chosen, answered(chosen, chosen.solution.replace(right, wrong)))
    assert not report.ok
    assert words in " ".join(fault.message for fault in report.faults)


def test_a_mistake_of_the_list_is_one_of_the_solution(chosen):
    for right, _, kind, words in getattr(chosen.module, "MISTAKES", ()):
        assert right in chosen.solution
        assert kind in KINDS
        assert words.startswith("d")


def test_an_exercise_says_its_op_and_gives_hints(chosen):
    assert chosen.op in OPS
    assert len(chosen.hints) == 3
    assert chosen.title.endswith(".")
    assert "Shapes: " in chosen.task
    gradient, cache = inspect.signature(chosen.module.backward).parameters
    assert (gradient[0], cache) == ("d", "cache")


@pytest.mark.parametrize("number", [0, 11, -1])
def test_a_number_outside_the_course_is_refused(number):
    with pytest.raises(ArgumentError, match="allowed: 1 to 10"):
        exercise(number)


def test_another_forward_is_refused(examined):
    first, second = exercise(1), exercise(2)
    with pytest.raises(ArgumentError, match=r"forward in .* is not that of exercise 1"):
        examined(first, second.start)
    with pytest.raises(ArgumentError, match=r"forward in .* is not that of exercise 1"):
        examined(first, first.start.replace("np.maximum(x, 0)", "np.maximum(x, 0.1)"))


def test_more_may_be_kept(examined):
    first = exercise(1)
    text = answered(first, first.solution).replace("return y, x", "return y, (x, y)")
    assert examined(first, text.replace("x = cache", "x, y = cache")).ok
