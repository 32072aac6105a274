"""The names that a layer's symbols have on its page."""

from __future__ import annotations

import re

import pytest

from handgrad.documents.formulas.latex import to_latex
from handgrad.equations.models.composition import Composer
from handgrad.equations.models.roles import Roles
from tests.equations.test_whole import CASES, chained


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_name_stands_for_two_symbols(case, monkeypatch):
    found = []

    def by_roles(self, composed):
        behind = [*composed.backward, *(part for each in composed.others for part in each.parts)]
        roles = Roles(composed.forward, behind, composed.parameters, mark="", taken=self.taken)
        found.append((roles, composed))
        return original(self, composed)

    original = Composer._by_roles
    monkeypatch.setattr(Composer, "_by_roles", by_roles)
    chained(case)
    for roles, composed in found:
        settings = {each.symbol for part in composed.forward for each in part.settings}
        names = [name for symbol, name in roles.names.items() if symbol not in settings]
        again = {to_latex(each) for each in names if names.count(each) > 1}
        assert not again
        assert not [each for each in names if re.search(r"\d\.\d", to_latex(each))]
