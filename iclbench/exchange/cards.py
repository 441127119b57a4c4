"""Cards: the README of a repository, with the front matter that the hub reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..leaderboards.escaping import markdown

if TYPE_CHECKING:
    from .document import Export


def front_matter(values: Mapping[str, Any]) -> str:
    """YAML between lines of dashes; every value is written as JSON, which YAML contains."""
    lines = [f"{key}: {json.dumps(value, ensure_ascii=True)}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---", ""])


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; its cells are escaped."""
    lines = [header, ["---"] * len(header), *([markdown(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def task_card(export: Export) -> str:
    """The card of a task's data set."""
    columns = {column.name: column for file in export.files for column in file.columns}
    fields = table(
        ["column", "dtype", "shape per prompt"],
        [[c.name, c.dtype, " × ".join(map(str, c.shape)) or "number"] for c in columns.values()],
    )
    return f"""{_task_front_matter(export)}
# {export.task}

{markdown(export.summary)}.

These are evaluation prompts of the in-context learning task `{export.task}`, version
{export.task_version}, with their targets. Each row is one prompt. Prompts are in {export.dtype}.
Targets are in float64 and answer the rounded prompt.

{fields}

{markdown(export.about)}

`target` is what a model should predict. A column `truth_…` is known to the task alone: don't show
it to a model.

- ranked by: `{export.metric}`
- floor: {markdown(export.floor)}
- digest of the draws: `{export.digest}`. A record of a run on the same prompts has the same digest.

```python
from datasets import load_dataset

prompts = load_dataset("FOLDER OR REPOSITORY", split="test").with_format("arrow")[:]
```

Arrow keeps every digit; the NumPy format of `datasets` rounds to float32.

{_how_it_was_made(export)}"""


def _task_front_matter(export: Export) -> str:
    license_ = {} if export.provenance else {"license": "apache-2.0"}
    configs = [
        {
            "config_name": "default" if len(export.files) == 1 else file.split,
            "data_files": [{"split": "test", "path": file.path}],
        }
        for file in export.files
    ]
    return front_matter(
        {
            "pretty_name": f"iclbench: {export.task}",
            **license_,
            "tags": ["in-context-learning", "iclbench", "mlcroissant"],
            "configs": configs,
        }
    )


def _how_it_was_made(export: Export) -> str:
    arguments = table(
        ["argument", "value"], [[k, json.dumps(v)] for k, v in export.task_args.items()]
    )
    files = table(
        ["file", "prompts", "SHA-256"],
        [[file.path, f"{file.rows:,}", file.sha256] for file in export.files],
    )
    sources = ""
    if export.provenance:
        text = json.dumps(export.provenance, indent=1)
        sources = (
            f"\n## Sources\n\nThis data is not drawn. It comes from:\n\n```json\n{text}\n```\n"
        )
    return f"""## How it was made

```text
{export.command}
```

The same command gives the same bytes, with the same versions of iclbench and pyarrow.

{arguments}

{files}
{sources}"""
