"""Results as tables: the same rows for the terminal and for Markdown."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any, NamedTuple

from benchmarks.peers import TITLES, precision

Result = dict[str, Any]


class Table(NamedTuple):
    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        lines = [_row(self.header), _row("---" for _ in self.header)]
        notes = (line for note in self.notes for line in ("", note))
        return "\n".join([f"**{self.title}**", "", *lines, *map(_row, self.rows), *notes])

    def rich(self) -> Any:
        from rich.table import Table as RichTable

        caption = "\n".join(self.notes) or None
        table = RichTable(
            title=self.title, title_justify="left", caption=caption, caption_justify="left"
        )
        for i, name in enumerate(self.header):
            table.add_column(name, justify="right" if i else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def tables(result: Result) -> list[Table]:
    """Every table that a result has the figures for."""
    sections = result["sections"]
    makers = {
        "steps": (_steps, _bf16, _memory_of_workloads),
        "matmul": (_matmul,),
        "matmul_sweep": (_matmul,),
        "scaling_gpt": (_scaling_gpt,),
        "scaling_attention": (_attention, _memory_of_attention),
        "scaling_convolution": (_scaling_convolution,),
        "scaling_threads": (_scaling_threads,),
        "neighbour": (_neighbour,),
        "calls": (_calls,),
        "memory": (_memory,),
        "footprint": (_footprint,),
        "accuracy": (_accuracy,),
        "headlines": (_headlines,),
        "sklearn": (_sklearn,),
        "torch_modules": (_torch_modules,),
        "onnx": (_onnx,),
    }
    found = (
        make(sections[name]) for name, some in makers.items() if sections.get(name) for make in some
    )
    return [table for table in found if table.rows]


def _number(value: float) -> str:
    """Three significant digits without an exponent: 0.0472, 4.11, 86.9, 1,538."""
    if value == 0:
        return "0"
    decimals = 2
    for limit in (100.0, 10.0, 1.0, 0.1, 0.01, 0.001):
        if abs(value) >= limit:
            break
        decimals += 1
    return f"{value:,.{max(0, decimals - 2)}f}"


def _spread(spread: dict[str, float], scale: float = 1.0) -> str:
    median, low, high = (_number(scale * spread[key]) for key in ("median", "low", "high"))
    return f"{median} ({low}–{high})"


def _peers(measured: dict[str, Any], kind: str = "float32") -> list[str]:
    """Every contender of this precision beside handgrad that any of these comparisons has."""
    found = {name for one in measured.values() for name in (*one["ratios"], *one.get("failed", {}))}
    return [
        name
        for name in TITLES
        if name in found and precision(name) == kind and not name.startswith("handgrad")
    ]


def best_peer(one: dict[str, Any], kind: str = "float32") -> str:
    """The fastest of this precision, of those that compute the same losses."""
    times = {
        name: one["contenders"][name]["median"]
        for name in one["ratios"]
        if precision(name) == kind and name not in one.get("differs", ())
    }
    return min(times, key=lambda name: times[name]) if times else ""


def _ratio(one: dict[str, Any], name: str) -> str:
    return f"{one['ratios'][name]['median']:.2f}×" if name in one["ratios"] else "–"


def _against(one: dict[str, Any]) -> str:
    """The ratio to the best peer with its quartiles, and which it is."""
    best = best_peer(one)
    if not best:
        return "–"
    ratio = one["ratios"][best]
    return f"{_ratio(one, best)} ({ratio['low']:.2f}–{ratio['high']:.2f}, {TITLES[best]})"


def _of_peak(one: dict[str, Any], own: str = "handgrad", peak: str = "peak") -> str:
    if not one.get(peak):
        return "–"
    share = one["flops"] / one["contenders"][own]["median"] / one[peak]
    return f"{100 * share:.0f} %"


def _beside(one: dict[str, Any], name: str) -> str:
    """A peer's time in ms, and over handgrad's."""
    if name in one.get("failed", {}):
        return "failed"
    if name not in one["contenders"]:
        return "–"
    time = _number(1e3 * one["contenders"][name]["median"])
    return f"{time} ({_ratio(one, name)})" if name in one["ratios"] else time


def _failures(measured: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{label}: {reason}."
        for label, one in measured.items()
        for reason in one.get("failed", {}).values()
    )


def threads(measured: dict[str, Any]) -> str:
    counts = sorted({one["threads"] for one in measured.values()})
    return f"{', '.join(map(str, counts))} {'thread' if counts == [1] else 'threads'}"


def _comparison(title: str, first: str, measured: dict[str, Any]) -> Table:
    """Times in float32 of handgrad and every peer, a row for each comparison."""
    peers = _peers(measured)
    rows = []
    for label, one in measured.items():
        differs = ", ".join(TITLES[name] for name in one.get("differs", ()))
        rows.append(
            (
                label + (f" (losses differ: {differs})" if differs else ""),
                _spread(one["contenders"]["handgrad"], 1e3),
                *(_beside(one, name) for name in peers),
                _against(one),
                _of_peak(one),
            )
        )
    header = (first, *(TITLES[name] for name in ("handgrad", *peers)), "vs best peer", "of limit")
    return Table(title, header, rows, _failures(measured))


def _steps(measured: dict[str, Any]) -> Table:
    title = (
        f"One training step in ms, float32, {threads(measured)}: median, of handgrad with "
        "quartiles, of a peer with its time over handgrad's, burst by burst; "
        "limit: the FLOPs of the products at the machine's peak"
    )
    return _comparison(title, "workload", measured)


def _bf16(measured: dict[str, Any]) -> Table:
    """The contenders whose products are in bf16; no rows where there are none."""
    both = {
        workload: one for workload, one in measured.items() if any(map(_is_bf16, one["contenders"]))
    }
    peers = _peers(both, "bf16") or [name for name in TITLES if name == "torch-bf16"]
    own = "handgrad-bf16"
    rows = []
    for workload, one in both.items():
        here = own in one["contenders"]
        rows.append(
            (
                workload,
                _spread(one["contenders"][own], 1e3) if here else "–",
                *(_beside(one, name) for name in peers),
                _of_peak(one, own, "peak_bf16") if here else "–",
            )
        )
    header = ("workload", *(TITLES[name] for name in (own, *peers)), "of bf16 limit")
    title = f"One training step in ms with products in bf16, {threads(measured)}"
    return Table(title, header, rows)


def _is_bf16(name: str) -> bool:
    return precision(name) == "bf16"


def _bytes_table(title: str, first: str, measured: dict[str, Any], key: str) -> Table:
    """Bytes of every contender, a row for each comparison that has them."""
    known = {
        label: one["contenders"]
        for label, one in measured.items()
        if key in one["contenders"]["handgrad"]
    }
    names = [name for name in TITLES if any(name in contenders for contenders in known.values())]
    rows = [
        (
            label,
            *(_megabytes(contenders[name][key]) if name in contenders else "–" for name in names),
        )
        for label, contenders in known.items()
    ]
    return Table(title, (first, *(TITLES[name] for name in names)), rows)


def _memory_of_workloads(measured: dict[str, Any]) -> Table:
    title = (
        "Peak memory of the process of each workload, interpreter, library and compiling included"
    )
    return _bytes_table(title, "workload", measured, "peak_bytes")


def _scaling_gpt(measured: dict[str, Any]) -> Table:
    title = (
        f"GPT of 2 blocks, one training step in ms, {threads(measured)}: width 384 over T steps, "
        "4,096 in a batch; then the width over 256 steps, 8 sequences"
    )
    return _comparison(title, "size", measured)


def _attention(measured: dict[str, Any]) -> Table:
    title = (
        f"Causal attention alone, forward and backward in ms, {threads(measured)}: "
        "one sequence of T steps, 6 heads of 64 features"
    )
    return _comparison(title, "size", measured)


def _memory_of_attention(measured: dict[str, Any]) -> Table:
    title = "What a process grows by for this attention, inputs and gradients included"
    return _bytes_table(title, "size", measured, "grown_bytes")


def _scaling_convolution(measured: dict[str, Any]) -> Table:
    title = f"convnet over the size of its images, as many pixels, in ms, {threads(measured)}"
    return _comparison(title, "image", measured)


def _scaling_threads(measured: dict[str, Any]) -> Table:
    return _comparison("One training step in ms by the number of threads", "workload", measured)


def _neighbour(measured: dict[str, Any]) -> Table:
    names = [name for name in TITLES if any(name in one["contenders"] for one in measured.values())]
    rows = [
        (
            f"{workload}, {beside} beside",
            *(
                f"{_spread(one['contenders'][name][beside], 1e3)}, "
                f"{one['slowdown'][name][beside]['median']:.2f}×"
                for name in names
            ),
        )
        for workload, one in measured.items()
        for beside in one["contenders"]["handgrad"]
    ]
    title = (
        f"One training step in ms, {threads(measured)}, beside processes that spin on the same "
        "cores, and over the quiet step; on 2 cores a fair share is 1.5× beside one, 2× beside two"
    )
    return Table(title, ("workload", *(TITLES[name] for name in names)), rows)


def _matmul(measured: dict[str, Any]) -> Table:
    peers = _peers(measured)
    rows = []
    for product, one in measured.items():
        speeds = [
            _number(one["flops"] / one["contenders"][name]["median"] / 1e9)
            if name in one["contenders"]
            else "–"
            for name in ("handgrad", *peers)
        ]
        unit = f" ({one['unit']})" if one.get("unit") else ""
        peak = _number(one["peak"] / 1e9) if one.get("peak") else "–"
        rows.append((product + unit, *speeds, peak, _of_peak(one), _against(one)))
    header = (
        "product M×N×K",
        *(TITLES[name] for name in ("handgrad", *peers)),
        "machine's peak",
        "of peak",
        "vs best peer",
    )
    return Table(f"Matrix product in GFLOP/s, median, {threads(measured)}", header, rows)


def _calls(measured: dict[str, Any]) -> Table:
    rows = [
        (op, *(_spread(one[name], 1e6) for name in ("forward", "backward")))
        for op, one in measured.items()
    ]
    return Table("Calling an op, in µs beyond its kernel", ("op", "forward", "backward"), rows)


def _megabytes(count: int) -> str:
    return f"{_number(count / 1e6)} MB"


def _memory(measured: dict[str, Any]) -> Table:
    used = measured["bytes"]
    rows = [
        (TITLES[name], _megabytes(count), f"{count / used['handgrad']:.2f}×")
        for name, count in used.items()
    ]
    title = f"Peak memory of a process that trains mnist-cnn on {measured['examples']:,} images"
    return Table(title, ("library", "peak", "÷ handgrad"), rows)


def _footprint(measured: dict[str, Any]) -> Table:
    rows = []
    for name, seconds in measured["import"].items():
        installed = measured["installed_bytes"].get(name)
        wheel = measured["wheel_bytes"] if name == "handgrad" else None
        sizes = (_megabytes(count) if count else "–" for count in (installed, wheel))
        rows.append((TITLES.get(name, name), _spread(seconds, 1e3), *sizes))
    header = ("library", "import beyond NumPy, ms", "installed, own files", "wheel")
    return Table("Import time and size", header, rows)


def _accuracy(measured: dict[str, Any]) -> Table:
    rows = []
    for recipe, one in measured.items():
        accuracy = [100 * value for value in one["accuracy"]]
        count = len(accuracy)
        rows.append(
            (
                recipe,
                f"{count} ({'seed 0' if count == 1 else f'seeds 0–{count - 1}'})",
                f"{sum(accuracy) / count:.2f} %",
                f"{min(accuracy):.2f} %",
                _number(sum(one["seconds"]) / count),
            )
        )
    header = ("recipe", "runs", "test accuracy, mean", "lowest", "training, s (mean)")
    return Table(f"`handgrad train`, {threads(measured)}", header, rows)


def _headlines(measured: dict[str, Any]) -> Table:
    rows = [
        (
            f"{one['source']}: {one['network']}",
            one["reported"],
            library,
            found["figure"],
            _number(found["seconds"]),
            f"`{recipe}`",
        )
        for recipe, one in measured.items()
        for library, found in one["found"].items()
    ]
    header = ("source", "reported there", "library", "found", "training, s", "recipe")
    title = f"What the source documents report, with their own settings, {threads(measured)}"
    return Table(title, header, rows)


def _sklearn(measured: dict[str, Any]) -> Table:
    rows = []
    for data, one in measured.items():
        ours, theirs = (one["contenders"][name] for name in ("handgrad", "sklearn"))
        unit = 100.0 if one["score"] == "accuracy" else 1.0
        differences = [
            unit * (a - b) for a, b in zip(ours["scores"], theirs["scores"], strict=True)
        ]
        rows.append(
            (
                data,
                one["score"],
                _score(ours["scores"], unit),
                _score(theirs["scores"], unit),
                f"{fmean(differences):+.2f} ({min(differences):+.2f} to {max(differences):+.2f})",
                _spread(ours),
                _number(theirs["median"]),
                f"{one['ratio']['median']:.1f}× ({one['ratio']['low']:.1f}–"
                f"{one['ratio']['high']:.1f})",
            )
        )
    header = (
        *("data", "score", "handgrad", "scikit-learn", "difference, seed by seed"),
        *("handgrad, s", "scikit-learn, s", "times as fast"),
    )
    seeds = {one["seeds"] for one in measured.values()}
    title = (
        "MLPClassifier and MLPRegressor of handgrad.sklearn and of scikit-learn, the same "
        f"arguments, {' or '.join(map(str, sorted(seeds)))} seeds, {threads(measured)}: score on "
        "test data, mean and standard deviation; seconds of a fit, median and quartiles"
    )
    return Table(title, header, rows)


def _torch_modules(measured: dict[str, Any]) -> Table:
    names = ("handgrad", "torch", "handgrad-bf16", "torch-bf16")
    rows = [
        (
            workload + (" (losses differ)" if one["differs"] else ""),
            *(_beside(one, name) for name in names),
            f"{one['aim']}×",
        )
        for workload, one in measured.items()
    ]
    titles = ("handgrad.torch", "torch.nn", "handgrad.torch, autocast", "torch.nn, autocast")
    title = (
        f"One training step in a loop of PyTorch in ms, {threads(measured)}, medians: with a "
        "module of handgrad.torch, and with PyTorch's own and its time over the other's; autocast "
        "is to bf16"
    )
    return Table(title, ("workload", *titles, "aim"), rows, _failures(measured))


def _onnx(measured: dict[str, Any]) -> Table:
    rows = []
    for model, one in measured.items():
        ours, theirs = (one["contenders"][name] for name in ("handgrad", "onnxruntime"))
        ratio = _spread(one["ratio"]).replace(" (", "× (")
        rows.append((model, _spread(ours, 1e6), _spread(theirs, 1e6), ratio))
    header = ("model", "Session, µs", "onnxruntime, µs", "times as fast")
    title = (
        "One example through a model, by hg.inference.Session and by onnxruntime, "
        f"{threads(measured)}: median and quartiles"
    )
    return Table(title, header, rows)


def _score(scores: list[float], unit: float) -> str:
    scaled = [unit * score for score in scores]
    spread = stdev(scaled) if len(scaled) > 1 else 0.0
    return f"{fmean(scaled):.2f} ± {spread:.2f}{' %' if unit == 100 else ''}"
