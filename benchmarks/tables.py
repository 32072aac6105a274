"""Results as tables: the same rows for the terminal and for Markdown."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.peers import TITLES

Result = dict[str, Any]


class Table(NamedTuple):
    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def markdown(self) -> str:
        lines = [_row(self.header), _row("---" for _ in self.header)]
        return "\n".join([f"**{self.title}**", "", *lines, *map(_row, self.rows)])

    def rich(self) -> Any:
        from rich.table import Table as RichTable

        table = RichTable(title=self.title, title_justify="left")
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
        "steps": _steps,
        "matmul": _matmul,
        "memory": _memory,
        "footprint": _footprint,
        "accuracy": _accuracy,
    }
    return [make(sections[name]) for name, make in makers.items() if sections.get(name)]


def _number(value: float) -> str:
    """Three significant digits without an exponent: 0.0472, 4.11, 86.9, 1,538."""
    if value == 0:
        return "0"
    places = 2
    for limit in (100.0, 10.0, 1.0, 0.1, 0.01, 0.001):
        if abs(value) >= limit:
            break
        places += 1
    return f"{value:,.{max(0, places - 2)}f}"


def _spread(spread: dict[str, float], scale: float = 1.0) -> str:
    median, low, high = (_number(scale * spread[key]) for key in ("median", "low", "high"))
    return f"{median} ({low}–{high})"


def _peers(measured: dict[str, Any]) -> list[str]:
    """Every contender beside handgrad that any of these comparisons has."""
    found = {name: None for one in measured.values() for name in one["ratios"]}
    return [name for name in TITLES if name in found]


def _best_peer(one: dict[str, Any]) -> str:
    times = {name: one["contenders"][name]["median"] for name in one["ratios"]}
    return min(times, key=lambda name: times[name]) if times else ""


def _ratio(one: dict[str, Any], name: str) -> str:
    return f"{one['ratios'][name]['median']:.2f}×" if name in one["ratios"] else "–"


def _against(one: dict[str, Any]) -> str:
    best = _best_peer(one)
    return f"{_ratio(one, best)} ({TITLES[best]})" if best else "–"


def _of_peak(one: dict[str, Any]) -> str:
    peak = one.get("peak")
    if not peak:
        return "–"
    share = one["flops"] / one["contenders"]["handgrad"]["median"] / peak
    return f"{100 * share:.0f} %"


def _threads(measured: dict[str, Any]) -> str:
    counts = sorted({one["threads"] for one in measured.values()})
    return f"{', '.join(map(str, counts))} {'thread' if counts == [1] else 'threads'}"


def _steps(measured: dict[str, Any]) -> Table:
    peers = _peers(measured)
    rows = []
    for work, one in measured.items():
        note = f" (losses differ: {', '.join(one['differs'])})" if one["differs"] else ""
        times = [
            _spread(one["contenders"][name], 1e3) if name in one["contenders"] else "–"
            for name in ("handgrad", *peers)
        ]
        ratios = [_ratio(one, name) for name in peers]
        rows.append((work + note, *times, *ratios, _against(one), _of_peak(one)))
    header = (
        "work",
        *(TITLES[name] for name in ("handgrad", *peers)),
        *(f"vs {TITLES[name]}" for name in peers),
        "vs best peer",
        "of limit",
    )
    title = (
        f"One training step in ms, median (quartiles), {_threads(measured)}; "
        "vs: the peer's time over handgrad's, burst by burst; "
        "limit: the FLOPs of the products at the machine's peak"
    )
    return Table(title, header, rows)


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
    return Table(f"Matrix product in GFLOP/s, median, {_threads(measured)}", header, rows)


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
    threads = _threads(measured)
    return Table(f"`handgrad train`, {threads}", header, rows)
