"""The pytest plugin: `pytest --iclbench` adds a test for each check of the conformance kit.

pytest loads it in every project of the environment, so it imports nothing heavy by itself.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .cases import Case


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --iclbench and --iclbench-package."""
    group = parser.getgroup("iclbench", "conformance of iclbench plugins")
    group.addoption(
        "--iclbench",
        action="store_true",
        help="also run iclbench's conformance kit on the plugins of this project",
    )
    group.addoption(
        "--iclbench-package",
        metavar="NAME",
        help="the distribution to check; default: the project's name in pyproject.toml",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the kit's checks, before other plugins choose among the tests."""
    if config.getoption("--iclbench"):
        kit = Kit.from_parent(session, name="iclbench", nodeid="iclbench")
        items.extend(kit.collect())


class Kit(pytest.Collector):
    """The checks of one distribution."""

    def collect(self) -> Iterator[Check]:
        """Yield a test per check; raises pytest.UsageError where there is no such plugin."""
        from ..api.errors import UsageError
        from .cases import cases_of

        try:
            cases = cases_of(_package(self.config))
        except UsageError as error:
            raise pytest.UsageError(f"--iclbench: {error}") from None
        for case in cases:
            yield Check.from_parent(self, name=case.label, case=case)


class Check(pytest.Item):
    """One check of one entry."""

    def __init__(self, case: Case, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.case = case

    def runtest(self) -> None:
        """Run the check; skipped where it can't be made."""
        from .trials import NotCheckedError

        try:
            self.case.check()
        except NotCheckedError as reason:
            pytest.skip(str(reason))

    def repr_failure(self, excinfo: Any, style: Any = None) -> str:
        """What is wrong, in a sentence, and the traceback only of an unexpected error."""
        from ..api.errors import IclbenchError

        if isinstance(excinfo.value, IclbenchError):
            return f"{self.case.label}: {excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Any, None, str]:
        """Where the test is reported: under the project, by its label."""
        return self.config.rootpath, None, f"iclbench: {self.case.label}"


def _package(config: pytest.Config) -> str:
    """The distribution to check; raises pytest.UsageError where none is named."""
    name = config.getoption("--iclbench-package")
    if name is None:
        try:
            text = (config.rootpath / "pyproject.toml").read_text(encoding="utf-8")
            name = tomllib.loads(text)["project"]["name"]
        except (OSError, ValueError, KeyError):
            raise pytest.UsageError(
                f"--iclbench: {config.rootpath} has no pyproject.toml with a project's name; "
                "give --iclbench-package NAME"
            ) from None
    return str(name)
