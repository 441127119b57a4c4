"""The published schema of records."""

from __future__ import annotations

import json
from pathlib import Path

from iclbench.api.record import record_schema

DOCS = Path(__file__).parents[2] / "docs"


def test_published_schema_matches_the_record():
    assert json.loads((DOCS / "record.schema.json").read_text()) == record_schema()
