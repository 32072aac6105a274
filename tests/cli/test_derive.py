"""`handgrad derive`: source on the terminal, pages in files, and sentences for what is wrong."""

import pytest

FORWARD = """
import numpy as np

def forward(x, gamma, eps=1e-6):
    ms = np.mean(x * x, axis=-1, keepdims=True)
    r = 1 / np.sqrt(ms + eps)
    return gamma * x * r
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mine(here):
    (here / "mine.py").write_text(FORWARD)
    return ("derive", "mine.py:forward", "--shape", "x=N,D", "--shape", "gamma=D")


def test_source_is_printed(handgrad, mine):
    result = handgrad(*mine)
    assert result.exit_code == 0
    assert result.stdout.startswith("import numpy as np\n\n\ndef forward(x, gamma, eps=1e-06):")
    assert "mean(-1, keepdims=True) * r * r * x) * r" in result.stdout


def test_page_and_source_stand_in_files(handgrad, mine, here):
    assert handgrad(*mine, "-o", "page.html").stdout == "page.html\n"
    assert "<math" in (here / "page.html").read_text()
    assert handgrad(*mine, "--to", "torch", "-o", "made.py", "-q").stdout == ""
    assert "torch.autograd.Function" in (here / "made.py").read_text()
    assert handgrad(*mine, "--to", "c", "-o", "made.c").stdout == "made.c\n"
    assert "void backward(ptrdiff_t N, ptrdiff_t D," in (here / "made.c").read_text()


def test_source_that_keeps_the_least(handgrad, mine):
    assert "gamma, x, eps = cache" in handgrad(*mine, "--save", "least").stdout


def test_op_is_derived_by_name(handgrad):
    assert "sum(-1, keepdims=True)" in handgrad("derive", "softmax").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shape", "x"), "derive: --shape x; allowed: NAME=N,D"),
        (("--to", "keras"), "derive: --to keras; allowed: numpy, torch, jax, c"),
        (("--to", "c", "-o", "made.py"), "derive: --out made.py; allowed: a file in .html, .tex, "),
        (("--save", "most"), "derive: save is 'most'; allowed: 'least'"),
        (("-o", "page.docx"), "derive: --out page.docx; allowed: a file in .html"),
        (("--assume", "x > 0"), "derive: --assume x > 0; allowed: such as"),
        (("--wrt", "z"), "derive: wrt is ['z']; allowed: arrays of floats: x, gamma"),
    ],
)
def test_wrong_arguments_end_in_a_sentence(refused, mine, arguments, message):
    assert message in refused(*mine, *arguments)
