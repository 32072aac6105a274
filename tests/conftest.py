"""Pytest's side of `tests.rows`, and signals as a terminal has them."""

from __future__ import annotations

import signal

import pytest

from tests import rows


def pytest_configure() -> None:
    # A process in the background of a shell ignores SIGINT, and so would every process of a test.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row", default="", help="run the rows whose label contains this text")
    parser.addoption("--rows", action="store_true", help="with --collect-only: list every row")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for column in rows.columns_of(metafunc.definition):
        metafunc.parametrize(column.names, column.groups())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not rows.columns_of(pyfuncitem):
        return None
    rows.run(pyfuncitem, pyfuncitem.config.getoption("row"))
    return True


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.getoption("rows"):
        for item in session.items:
            several = isinstance(item, pytest.Function) and rows.columns_of(item)
            labels = [name for name, _ in rows.rows_of(item)] if several else [""]
            for name in labels:
                print(f"row {item.nodeid} {name}".rstrip())
