"""A table with a column of each kind, as spreadsheets have them."""

from __future__ import annotations

ROWS = 60
HEADER = "id,who,age,city,member,price,since,same,outcome"


def people(path, rows=ROWS):
    """A table with a column of each kind; outcome follows from city and age."""
    lines = [HEADER]
    for i in range(rows):
        city = ("Iași", "Cluj", "Arad")[i % 3]
        age = "" if i % 7 == 0 else str(20 + i % 40)
        since = f"{1 + i % 28:02d}.{1 + i % 12:02d}.20{10 + i % 9}"
        outcome = "yes" if city == "Cluj" else "no"
        price = f"{1000 + i:,}.5"
        member = ("t", "f")[i % 5 < 2]
        lines.append(f'{100 + i},n{i},{age},{city},{member},"${price}",{since},x,{outcome}')
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path
