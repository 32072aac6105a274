"""The checker on passes in the styles of other people.

`python -m tests.checking.abroad` counts how many it catches and names.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.checking.abroad.case import Program, programs
from tests.checking.abroad.judge import Judge
from tests.checking.abroad.verify import verify
from tests.rows import rows

PROGRAMS = [
    program
    for program in programs()
    if all(importlib.util.find_spec(needed) is not None for needed in program.needs)
]
#: The sample is drawn from pairs of functions that are called as an op is, with a plain fault.
SIMPLE = [
    program
    for program in PROGRAMS
    if program.style in ("functions", "several", "helpers")
    and "TARGET = (" in program.case
    and not program.needs
    and program.variants
    and program.variants[0][0].at == "inputs"
    and not any(word in program.case for word in ("CALL", "NARROWEST", "KINK", "expect"))
]
SAMPLE = SIMPLE[:: max(1, len(SIMPLE) // 20)][:20]
#: Programs of which every wrong variant is named, but for those numbers.
_UNNAMED: dict[str, tuple[int, ...]] = {
    "classes/attention_pool": (),
    "classes/layernorm_obj": (),
    "classes/nested_transformer_ffn": (1,),
    "classes/sequential_layers": (1,),
    "frameworks/torch_rational": (),
    "frameworks/torch_rmsnorm_ctx": (),
    "functions/conv_transpose_pair": (),
    "functions/label_smoothing_masked": (),
    "functions/mish": (0,),
    "functions/pairwise_dist": (),
    "functions/poisson_nll": (),
    "functions/segment_mean": (),
    "functions/separable_conv": (),
    "functions/sparsemax_like_gate": (),
    "functions/triplet_margin": (),
    "helpers/ctx_stack": (),
    "loops/crf_nll": (2,),
    "loops/ema_scan": (2,),
    "loops/gru_reset_after": (),
    "training/gan_generator": (),
    "training/gru_loss": (0,),
    "training/mlp_dict": (),
}
NAMED = [
    (program, number)
    for program in PROGRAMS
    for number in range(len(program.variants))
    if number not in _UNNAMED.get(str(program), (number,))
]


@pytest.mark.slow
@rows("program", SAMPLE)
def test_a_right_program_of_the_sample_raises_no_alarm(program: Program, tmp_path: Path) -> None:
    outcome = Judge(program, tmp_path).right()
    assert outcome.verdict == "right", outcome


@pytest.mark.slow
@rows("program", SAMPLE)
def test_a_wrong_program_of_the_sample_is_caught(program: Program, tmp_path: Path) -> None:
    outcome = Judge(program, tmp_path, seconds=2).wrong(0)
    assert outcome.caught, outcome


@pytest.mark.slow
@rows("case", NAMED, by=lambda case: case[0].style)
def test_the_fault_and_its_line_are_named(case: tuple[Program, int], tmp_path: Path) -> None:
    program, number = case
    outcome = Judge(program, tmp_path).wrong(number)
    assert outcome.named == "strictly", outcome


@pytest.mark.slow
@rows("program", PROGRAMS, by=lambda program: program.style)
def test_the_corpus_is_what_it_says(program: Program, tmp_path: Path) -> None:
    assert verify(program, tmp_path) == []
