"""Ten tables as people have them, each trained by one command, beside scikit-learn's boosted trees.

    python -m benchmarks.own_tables [--only survival,…] [--rows 1200] [--seeds 5]

Every table is made here, once by each seed: mixed types, missing cells, a rare class, dates, many
columns, few rows, many levels, written as spreadsheets write them. `handgrad train TABLE.csv
--target NAME` learns four fifths of the rows; HistGradientBoosting gets the same rows, cleaned,
with its own encoders. Both are judged on the fifth that is left: accuracy of classes, R² of
numbers, beside the baseline, the most frequent class or the mean. Figures are means over the seeds;
a table is reached where that of the trees is at most two points higher.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

#: By so much the trees may be better.
_POINTS: Final = 0.02

Rows = tuple[list[str], list[list[Any]]]
Maker = Callable[[np.random.Generator, int], Rows]


def _with_holes(rng: np.random.Generator, values: Any, share: float) -> list[Any]:
    return ["" if rng.random() < share else value for value in values]


def _chance(rng: np.random.Generator, score: Any) -> Any:
    return rng.random(len(score)) < 1 / (1 + np.exp(-score))


def _table(**columns: Any) -> Rows:
    return list(columns), [list(row) for row in zip(*columns.values(), strict=True)]


def survival(rng: np.random.Generator, n: int) -> Rows:
    """Passengers: a running number, names, sex, class, ages that are missing, fares, ports."""
    sex = rng.choice(["male", "female"], n, p=[0.65, 0.35])
    rank = rng.choice([1, 2, 3], n, p=[0.24, 0.21, 0.55])
    age = np.clip(rng.normal(30, 13, n), 1, 80).round(1)
    fare = np.abs(rng.normal(90 / rank, 12)).round(2)
    score = 2.6 * (sex == "female") - 1.1 * (rank - 2) - 0.03 * (age - 30) - 0.9
    return _table(
        passenger=np.arange(1, n + 1),
        survived=_chance(rng, 1.5 * score).astype(int),
        rank=rank,
        name=[f"Somebody, the {i}th" for i in range(n)],
        sex=sex,
        age=_with_holes(rng, age, 0.2),
        fare=[f"{value:.2f}" for value in fare],
        port=_with_holes(rng, rng.choice(["S", "C", "Q"], n), 0.01),
    )


def income(rng: np.random.Generator, n: int) -> Rows:
    """Adults: many categories, a question mark where nobody knows."""
    school = rng.choice(["none", "school", "college", "bachelor", "master", "doctor"], n)
    years = {"none": 0, "school": 9, "college": 12, "bachelor": 15, "master": 17, "doctor": 20}
    learned = np.array([years[each] for each in school])
    age = rng.integers(17, 80, n)
    hours = rng.integers(10, 70, n)
    work = rng.choice(["private", "state", "own", "none"], n)
    score = 0.3 * (learned - 12) + 0.08 * (hours - 40) - 0.004 * (age - 48) ** 2 + (work == "own")
    country = rng.choice([f"country {i}" for i in range(45)], n)
    return _table(
        age=age,
        work=_with_holes(rng, work, 0.05),
        school=school,
        country=["?" if rng.random() < 0.03 else each for each in country],
        hours=hours,
        income=np.where(_chance(rng, 1.5 * score), ">50K", "<=50K"),
    )


def prices(rng: np.random.Generator, n: int) -> Rows:
    """Houses: a number to predict with its currency, areas, districts, a year."""
    area = rng.integers(30, 300, n)
    district = rng.choice(["centre", "north", "south", "lake", "hill"], n)
    worth = {"centre": 2.0, "north": 1.0, "south": 0.8, "lake": 1.6, "hill": 1.3}
    year = rng.integers(1900, 2024, n)
    price = 1500 * area * np.array([worth[each] for each in district])
    price = price * (1 + 0.3 * (year > 1990)) * np.exp(rng.normal(0, 0.1, n))
    return _table(
        area=area,
        district=district,
        year=year,
        garden=rng.choice(["yes", "no"], n),
        price=[f"${value:,.0f}" for value in price],
    )


def leaving(rng: np.random.Generator, n: int) -> Rows:
    """Customers: dates of entry, percent, a class of one in twelve."""
    months = rng.integers(0, 60, n)
    entry = np.datetime64("2020-01-15") + months * 30
    used = rng.random(n)
    plan = rng.choice(["basic", "plus", "family"], n, p=[0.6, 0.3, 0.1])
    score = 3 * (months / 60 - 0.5) - 4 * (used - 0.5) + (plan == "basic") - 3.2
    return _table(
        customer=[f"C{i:05d}" for i in range(n)],
        entry=[str(day) for day in entry],
        used=[f"{100 * value:.1f} %" for value in used],
        plan=plan,
        left=np.where(_chance(rng, 1.5 * score), "Yes", "No"),
    )


def wide(rng: np.random.Generator, n: int) -> Rows:
    """Eighty measurements, of which eight say which of three kinds it is."""
    x = rng.normal(size=(n, 80))
    kind = (x[:, :8] @ rng.normal(size=(8, 3))).argmax(axis=1)
    named = {f"m{i}": x[:, i].round(3) for i in range(80)}
    return _table(**named, label=np.array(["a", "b", "c"])[kind])


def long(rng: np.random.Generator, n: int) -> Rows:
    """Ten times the rows, a smooth function of few columns, decimal commas."""
    x = rng.uniform(-2, 2, (10 * n, 4))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + x[:, 2] ** 2 + 0.1 * rng.normal(size=10 * n)
    cells = {f"x{i}": [f"{v:.3f}".replace(".", ",") for v in x[:, i]] for i in range(4)}
    return _table(**cells, height=[f"{v:.3f}".replace(".", ",") for v in y])


def rare(rng: np.random.Generator, n: int) -> Rows:
    """One payment in thirty is a fraud."""
    amount = rng.lognormal(3, 1, n)
    hour = rng.integers(0, 24, n)
    shop = rng.choice([f"shop {i}" for i in range(60)], n)
    abroad = rng.choice(["true", "false"], n, p=[0.1, 0.9])
    night = (hour < 5) | (hour > 22)
    score = 1.5 * np.log(amount) + 3 * night + 3 * (abroad == "true") - 11
    return _table(
        amount=[f"€ {v:,.2f}" for v in amount],
        time=[f"2026-03-{1 + i % 28:02d} {h:02d}:30" for i, h in enumerate(hour)],
        shop=shop,
        abroad=abroad,
        fraud=_chance(rng, 2 * score).astype(int),
    )


def few(rng: np.random.Generator, n: int) -> Rows:
    """Flowers, a hundred and fifty of them."""
    kind = rng.integers(0, 3, 150)
    size = kind[:, None] * [1.0, -0.4, 1.8, 0.8] + [5.0, 3.4, 1.5, 0.3]
    size = size + rng.normal(0, [0.4, 0.3, 0.4, 0.2], (150, 4))
    named = {f"length {i}": size[:, i].round(1) for i in range(4)}
    return _table(**named, species=np.array(["setosa", "virginica", "versicolor"])[kind])


def sales(rng: np.random.Generator, n: int) -> Rows:
    """Sold pieces by day, shop and weather: a number, dates of which the weekday counts."""
    day = np.datetime64("2024-01-01") + rng.integers(0, 700, n)
    weekday = (day.astype("datetime64[D]").view("int64") - 4) % 7
    shop = rng.choice(["north", "south", "harbour"], n)
    warm = rng.normal(15, 8, n)
    sold = 50 + 30 * (weekday >= 5) + 2 * warm + 40 * (shop == "harbour") + rng.normal(0, 8, n)
    return _table(
        day=[f"{str(each)[8:10]}.{str(each)[5:7]}.{str(each)[:4]}" for each in day],
        shop=shop,
        warm=_with_holes(rng, warm.round(1), 0.1),
        sold=np.maximum(sold, 0).round(0).astype(int),
    )


def answers(rng: np.random.Generator, n: int) -> Rows:
    """A questionnaire: grades from 1 to 5 with holes, texts of every length, five outcomes."""
    grades = rng.integers(1, 6, (n, 12))
    total = grades[:, :6].sum(axis=1) + rng.normal(0, 1.5, n)
    outcome = np.digitize(total, [13, 16, 20, 23])
    named = {f"q{i + 1}": _with_holes(rng, grades[:, i], 0.08) for i in range(12)}
    remarks = ["" if i % 3 else f"remark number {i}" for i in range(n)]
    return _table(**named, remarks=remarks, outcome=np.array(list("ABCDE"))[outcome])


#: Each table with the name of its target.
TABLES: Final[dict[str, tuple[Maker, str]]] = {
    "survival": (survival, "survived"),
    "income": (income, "income"),
    "prices": (prices, "price"),
    "leaving": (leaving, "left"),
    "wide": (wide, "label"),
    "long": (long, "height"),
    "rare": (rare, "fraud"),
    "few": (few, "species"),
    "sales": (sales, "sold"),
    "answers": (answers, "outcome"),
}


def trained(folder: Path, path: Path, target: str) -> Any:
    """The model of one command, with the encoding that it made itself."""
    import handgrad as hg
    from handgrad.cli.app import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(folder):
        app(["train", str(path), "--target", target, "--quiet"], standalone_mode=False)
        return hg.load(f"runs/{path.stem}")


def boosted(frame: Any, target: Any, train: Any, test: Any, classes: bool) -> Any:
    """The answers of scikit-learn's boosted trees for the rows `test`."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=254
    )
    encoded = make_column_transformer(
        (encoder, make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    model = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    pipeline = make_pipeline(encoded, model(random_state=0))
    return pipeline.fit(frame.iloc[train], target[train]).predict(frame.iloc[test])


def score(found: Any, expected: Any, classes: bool) -> float:
    """The accuracy, or R²."""
    if classes:
        return float(np.mean(np.asarray(found, str) == np.asarray(expected, str)))
    error = ((np.asarray(found, float) - expected) ** 2).sum()
    return float(1 - error / ((expected - expected.mean()) ** 2).sum())


def compared(table: str, count: int, seed: int, folder: Path) -> list[float]:
    """The scores of the baseline, of one command and of the trees."""
    import pandas as pd

    from handgrad.data.cells import number_of
    from handgrad.data.dataset import TEST_FRACTION, split_indices
    from handgrad.data.table import load_csv

    maker, target = TABLES[table]
    names, rows = maker(np.random.default_rng(seed), count)
    path = folder / f"{table}.csv"
    separator, decimal = (";", ",") if table == "long" else (",", ".")
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows([names, *rows])

    classes = bool(load_csv(table, path, target=target).classes)
    frame = pd.read_csv(path, sep=separator, decimal=decimal)
    answers = frame.pop(target).astype(str)
    values: Any = answers.to_numpy(object)
    if not classes:
        values = np.array([number_of(cell) for cell in values], float)
    codes = np.unique(values, return_inverse=True)[1] if classes else values
    train, test = split_indices(codes, TEST_FRACTION, 0)

    model = trained(folder, path, target)
    cells = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)
    has_plan = model.preprocessing.steps[0].name == "table"
    mine = model.predict((cells if has_plan else frame).iloc[test])

    # The trees are given numbers where cells hold them, as somebody would clean them.
    for column in frame.select_dtypes(exclude="number"):
        cleaned = frame[column].map(lambda cell: number_of(str(cell)))
        if cleaned.notna().mean() > 0.7:
            frame[column] = cleaned.astype(float)
    trees = boosted(frame, values, train, test, classes)
    usual = Counter(values[train]).most_common(1)[0][0] if classes else values[train].mean()
    told = [np.full(len(test), usual, values.dtype), mine, trees]
    return [score(each, values[test], classes) for each in told]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.own_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--rows", type=int, default=1200)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'table':10}{'baseline':>10}{'handgrad':>10}{'trees':>10}{'difference':>12}")
    tables, reached = options.only.split(","), 0
    for table in tables:
        scores = []
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as name:
                scores.append(compared(table, options.rows, seed, Path(name)))
        means = np.mean(scores, axis=0)
        difference = means[1] - means[2]
        reached += difference >= -_POINTS
        print(f"{table:10}" + "".join(f"{each:10.3f}" for each in means), end="")
        print(f"{difference:+12.3f}", flush=True)
    print(f"reached: {reached} of {len(tables)}")


if __name__ == "__main__":
    main()
