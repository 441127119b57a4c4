"""The addresses in a wheel's metadata: those of the repository whose workflow builds it.

A fork that makes a release so names itself. A wheel that is built elsewhere names none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Addresses(MetadataHookInterface):
    """Fills the field `urls`, which pyproject.toml leaves to the build."""

    def update(self, metadata: dict[str, object]) -> None:
        """Called by hatchling with the metadata of [project]."""
        metadata["urls"] = addresses(os.environ)


def addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """The addresses by their labels on a package index; without GitHub's variables, none."""
    server, name = (environment.get(f"GITHUB_{key}") for key in ("SERVER_URL", "REPOSITORY"))
    if not (server and name):
        return {}
    repository = f"{server}/{name}"
    return {
        "Repository": repository,
        "Documentation": f"{repository}/blob/main/docs/index.md",
        "Boards": f"{repository}/blob/main/leaderboards/README.md",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
