"""Benchmarks: the protocol with its contenders, and tables made from results. Nothing is timed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import handgrad as hg
from benchmarks import bursts, machine, peers, picture, readme, results, scaling, workloads
from benchmarks.contender import Job
from benchmarks.tables import tables


def handgrad(steps: list[float]) -> Job:
    """A contender that only waits for requests."""
    return Job(lambda count: steps.append(count), "1.0", flops=100, losses=(1.0,))


torch = torch_bf16 = handgrad


def jax(steps: list[float]) -> Job:
    raise MemoryError("too\nlarge")


def spread(median: float) -> dict[str, float]:
    return {"median": median, "low": 0.9 * median, "high": 1.1 * median}


RESULT: dict[str, Any] = {
    "date": "2026-01-02",
    "machine": {"cpu": "A CPU", "cores": 2, "system": "Linux", "python": "3.11.0"},
    "load": 0.0,
    "stolen": 0.0,
    "sections": {
        "steps": {
            "mlp": {
                "flops": 1_000_000_000,
                "threads": 2,
                "rounds": 3,
                "contenders": {
                    "handgrad": {"version": "1", "losses": [1.0], "steps": 9, **spread(0.004)},
                    "torch": {"version": "2", "losses": [1.0], "steps": 9, **spread(0.008)},
                    "jax": {"version": "3", "losses": [1.0], "steps": 9, **spread(0.005)},
                },
                "ratios": {"torch": spread(2.0), "jax": spread(1.25)},
                "differs": [],
                "peak": 5e11,
            }
        },
        "torch_modules": {
            "gru": {
                "threads": 2,
                "contenders": {"handgrad": spread(0.04), "torch": spread(0.1)},
                "ratios": {"torch": spread(2.5)},
                "differs": [],
                "aim": 2.0,
            }
        },
        "memory": {"examples": 60_000, "threads": 2, "bytes": {"handgrad": 10**8, "torch": 3e8}},
        "accuracy": {"digits": {"threads": 2, "accuracy": [0.99, 1.0], "seconds": [4.0, 5.0]}},
    },
}


def test_contenders_take_turns_in_processes_of_their_own() -> None:
    found = bursts.compare(
        [("handgrad", {"steps": []}), ("torch", {"steps": []})],
        __name__,
        threads=1,
        rounds=2,
        burst=1e-5,
    )
    assert found["flops"] == 100
    assert set(found["contenders"]) == {"handgrad", "torch"}
    assert set(found["ratios"]) == {"torch"}


def test_a_peer_that_fails_is_reported_and_the_others_go_on() -> None:
    names = ("handgrad", "torch-bf16", "jax")
    contenders = [(name, {"steps": []}) for name in names]
    found = bursts.compare(contenders, __name__, threads=1, rounds=1, burst=1e-5)
    assert found["failed"] == {"jax": "jax ended with exit code 1: MemoryError: too"}
    assert set(found["contenders"]) == {"handgrad", "torch-bf16"}
    assert found["ratios"] == {}, "bf16 beside float32"
    measured = {"steps": {"cnn": found | {"differs": []}}}
    steps, *_ = tables(RESULT | {"sections": measured})
    assert steps.header[2] == "JAX"
    assert steps.rows[0][2] == "failed"
    assert steps.notes == ("cnn: jax ended with exit code 1: MemoryError: too.",)
    assert steps.notes[0] in steps.markdown()


def test_a_contender_that_ends_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(bursts.ContenderError, match="nobody ended with exit code 1"):
        bursts.Contender("nobody", __name__, {}, threads=1)
    assert "has no attribute 'nobody'" in capfd.readouterr().err


def test_spread_is_median_and_quartiles() -> None:
    assert bursts.Spread.of([4, 1, 3, 2, 5]) == bursts.Spread(3, 2, 4)
    assert bursts.Spread.of([2.0]) == bursts.Spread(2.0, 2.0, 2.0)


def test_products_count_what_each_layer_multiplies() -> None:
    rng = np.random.default_rng(0)
    model = hg.Sequential(
        hg.Conv2d(1, 2, 3, rng=rng), hg.Flatten(), hg.Dense(2 * 4 * 4, 5, rng=rng)
    )
    convolution, dense = 2 * 9 * 16, 2 * 16 * 5
    assert workloads.products(model, (1, 6, 6)) == 2 * (2 * convolution + 3 * dense)


def test_tables_say_ratios_best_peer_and_part_of_the_limit() -> None:
    steps, memory, accuracy, modules = tables(RESULT)
    assert steps.rows == [
        (
            "mlp",
            "4.00 (3.60–4.40)",
            "8.00 (2.00×)",
            "5.00 (1.25×)",
            "1.25× (1.12–1.38, JAX)",
            "50 %",
        )
    ]
    assert memory.rows[1] == ("PyTorch", "300 MB", "3.00×")
    assert accuracy.rows == [("digits", "2 (seeds 0–1)", "99.50 %", "99.00 %", "4.50")]
    assert modules.rows == [("gru", "40.0", "100 (2.50×)", "–", "–", "2.0×")]
    for table in (steps, memory, accuracy):
        assert all(len(row) == len(table.header) for row in table.rows)
        assert table.markdown().count("\n") == 3 + len(table.rows)
        assert table.rich().row_count == len(table.rows)


def test_bf16_has_a_table_of_its_own() -> None:
    mlp = RESULT["sections"]["steps"]["mlp"]
    more = {name: {**mlp["contenders"]["torch"], "peak_bytes": 5_000_000} for name in BF16}
    one = {
        **mlp,
        "contenders": mlp["contenders"] | more,
        "ratios": mlp["ratios"] | {"torch-bf16": spread(1.5)},
        "peak_bf16": 1e12,
    }
    steps, bf16 = tables({"sections": {"steps": {"mlp": one}}})
    assert "PyTorch bf16" not in steps.header
    assert bf16.rows == [("mlp", "8.00 (7.20–8.80)", "8.00 (1.50×)", "12 %")]


BF16 = ("handgrad-bf16", "torch-bf16")


def test_neighbours_and_scaling_have_tables() -> None:
    one = {**RESULT["sections"]["steps"]["mlp"]}
    for about in one["contenders"].values():
        about |= {"peak_bytes": 9_000_000, "grown_bytes": 2_000_000}
    slow = {str(count): spread(1.0 + count) for count in (0, 1, 2)}
    both = {"handgrad": slow, "torch": slow}
    sections = {
        "neighbour": {"lstm": {"threads": 2, "contenders": both, "slowdown": both}},
        **{name: {"T 64": one} for name in scaling.SECTIONS},
    }
    found = tables({"sections": sections})
    assert len(found) == len(scaling.SECTIONS) + 2
    for table in found:
        assert table.rows
        assert all(len(row) == len(table.header) for row in table.rows)
    assert found[-1].rows[1][1] == "2,000 (1,800–2,200), 2.00×"


def test_points_of_scaling_hold_as_many_steps_and_pixels() -> None:
    for section, points in scaling.POINTS.items():
        for point in points:
            assert point.workload in (*workloads.NAMES, "attention")
            if point.label.startswith("T ") and point.workload == "gpt_mini":
                assert point.sizes["steps"] * point.sizes["batch"] == 4096, section


def test_the_picture_has_a_dot_for_every_ratio() -> None:
    drawing = picture.svg(RESULT)
    ratios, legend = 2, 2
    assert drawing.count("<circle") == ratios + legend
    assert ">mlp<" in drawing
    assert not picture.drawn({"sections": {}})


def test_saving_keeps_what_else_was_measured_that_day(tmp_path: Path) -> None:
    path, drawing = results.save(RESULT, tmp_path)
    assert path.name == "2026-01-02-a-cpu.json"
    assert drawing.name == "2026-01-02-a-cpu.svg"
    other = RESULT | {"sections": {"steps": {"cnn": RESULT["sections"]["steps"]["mlp"]}}}
    assert results.save(other, tmp_path)[0] == path
    sections = json.loads(path.read_text("utf-8"))["sections"]
    assert set(sections["steps"]) == {"mlp", "cnn"}
    assert "memory" in sections


def test_newest_result_of_every_cpu_comes_first(tmp_path: Path) -> None:
    later = RESULT | {"date": "2026-02-03"}
    other = RESULT | {"date": "2026-01-20", "machine": RESULT["machine"] | {"cpu": "Another"}}
    for result in (RESULT, later, other):
        results.save(result, tmp_path)
    found = [(result["date"], result["machine"]["cpu"]) for result in results.newest(tmp_path)]
    assert found == [("2026-02-03", "A CPU"), ("2026-01-20", "Another")]


def test_the_headline_goes_between_the_comments() -> None:
    text = f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n"
    new = readme.with_figures(text, readme.headline([RESULT]))
    assert new.startswith("before\n")
    assert new.endswith("\nafter\n")
    assert "old" not in new
    assert "from 1.25 to 1.25 times" in " ".join(new.split())
    assert readme.with_figures(new, readme.headline([RESULT])) == new


def test_no_headline_without_workloads() -> None:
    assert readme.headline([RESULT | {"sections": {}}]) == readme.NONE_YET


def test_tables_stand_below_their_picture() -> None:
    text = readme.page([RESULT])
    assert "(2026-01-02-a-cpu.svg)" in text
    assert text.index(".svg)") < text.index("1.25× (1.12–1.38, JAX)")


def test_a_result_of_a_busy_machine_says_so() -> None:
    assert "Not quiet" in readme.section(RESULT | {"load": 1.5})
    assert "Not quiet" not in readme.section(RESULT)


def test_written_tables_are_up_to_date() -> None:
    for path, text in readme.written().items():
        assert path.read_text("utf-8") == text, f"{path.name}: run python -m benchmarks.readme"


def test_a_missing_peer_is_one_line_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    here, missing = peers.installed(["jax"])
    assert here == []
    assert missing == ["JAX is not installed and is left out; pip install jax"]
    assert len(peers.installed(["torch", "torch-compile"])[1]) == 1


def test_file_names_come_from_the_cpu() -> None:
    assert machine.slug("Intel(R) Xeon(R) CPU @ 2.60GHz") == "intel-xeon-cpu"
