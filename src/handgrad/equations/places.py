"""Indices, which count from 1, with whole numbers added to them: t, t − 1, T − t + 1."""

from __future__ import annotations

from handgrad.documents.formulas.formula import Formula, FormulaRow, Number, Sign, row


def moved(index: Formula, by: int) -> Formula:
    """The index `by` places on."""
    base, offset = split(index)
    total = offset + by
    if base is None:
        return Number(str(total)) if total >= 0 else row(Sign("−"), Number(str(-total)))
    if total == 0:
        return base
    return row(base, Sign("+" if total > 0 else "−"), Number(str(abs(total))))


def turned(index: Formula, size: Formula) -> Formula:
    """The index of the same place, counted from the end of `size` places."""
    base, offset = split(index)
    match base:
        case FormulaRow((Number(digits), Sign("−"), inner)) if isinstance(size, Number):
            return moved(inner, int(size.digits) - int(digits) + 1 - offset)
        case FormulaRow((total, Sign("−"), inner)) if total == size:
            return moved(inner, 1 - offset)
    last = moved(size, 1)
    if base is None:
        return moved(last, -offset)
    if isinstance(last, Number):
        return moved(row(last, Sign("−"), base), -offset)
    return moved(row(size, Sign("−"), base), 1 - offset)


def split(index: Formula) -> tuple[Formula | None, int]:
    """The index without the number that is added to it, which may be all there is, and that."""
    match index:
        case Number(digits):
            return None, int(digits)
        case FormulaRow((*before, Sign(("+" | "−") as sign), Number(digits))) if before:
            return row(*before), int(digits) if sign == "+" else -int(digits)
    return index, 0
