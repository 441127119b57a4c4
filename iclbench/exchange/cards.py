"""Cards: the README of a repository, with the front matter that the hub reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from ..api.prompts import UNASKED
from ..api.record import Record
from ..console import counted
from ..display.boards import board_table, legend
from ..display.formats import as_markdown
from ..leaderboards import formats
from ..leaderboards.board import Board
from ..leaderboards.escaping import markdown, markdown_table
from ..leaderboards.sizes import known_parameters
from .document import is_ours

if TYPE_CHECKING:
    from .document import Column, Export

TAGS = ["in-context-learning", "iclbench"]


def front_matter(values: Mapping[str, Any]) -> str:
    """YAML between lines of dashes."""
    content = yaml.safe_dump(dict(values), allow_unicode=True, sort_keys=False)
    return f"---\n{content}---\n"


def _about_targets(columns: Mapping[str, Column]) -> str:
    """What the targets are: numbers, or ids of which some are not asked for."""
    target = columns.get("target")
    if target is not None and target.dtype.startswith("int"):
        return f"Targets are ids; {UNASKED} marks a position that is not asked for."
    return "Targets are in float64 and answer the rounded prompt."


def task_card(export: Export) -> str:
    """The card of a task's dataset."""
    columns = {column.name: column for file in export.files for column in file.columns}
    fields = markdown_table(["column", "dtype", "shape per prompt"], list(_columns(export)))
    return f"""{_task_front_matter(export)}
# {export.task}

{markdown(export.summary)}.

These are evaluation prompts of the in-context learning task `{export.task}`, version
{export.task_version}, with their targets. Each row is one prompt. Prompts are in {export.dtype}.
{_about_targets(columns)}

{fields}

{markdown(export.about)}

A model should predict `target`. Columns named `truth_…` are only for the task: don't show them to a
model.

- ranked by: `{export.metric}`
- floor: {markdown(export.floor)}
- digest of the draws: `{export.digest}`. Records of runs on the same prompts have the same digest.

```python
from datasets import load_dataset

prompts = load_dataset("FOLDER OR REPOSITORY", {_config(export)}split="test")
prompts = prompts.with_format("arrow")[:]
```
{_of_cases(export)}
Arrow keeps every digit; the NumPy format of `datasets` rounds to float32.

{_how_it_was_made(export)}"""


def _columns(export: Export) -> Iterator[list[str]]:
    """A line for each column, and for each of its shapes with the cases that have it."""
    cases: dict[str, dict[tuple[str, str], list[str]]] = {}
    for file in export.files:
        for column in file.columns:
            shape = " × ".join(map(str, column.shape)) or "number"
            forms = cases.setdefault(column.name, {})
            forms.setdefault((column.dtype, shape), []).append(file.split)
    for name, forms in cases.items():
        for (dtype, shape), splits in forms.items():
            yield [name, dtype, shape if len(forms) == 1 else f"{shape} in {', '.join(splits)}"]


def _config(export: Export) -> str:
    """The argument that names the first of several configurations; nothing where there is one."""
    return "" if len(export.files) == 1 else json.dumps(export.files[0].split) + ", "


def _of_cases(export: Export) -> str:
    """What the configurations are called; nothing where there is one."""
    if len(export.files) == 1:
        return ""
    names = ", ".join(f"`{file.split}`" for file in export.files)
    return f"\nEach case of the task is a configuration: {names}.\n"


def _task_front_matter(export: Export) -> str:
    license_ = {"license": "apache-2.0"} if is_ours(export) else {}
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
            "tags": [*TAGS, "mlcroissant"],
            "configs": configs,
        }
    )


def _how_it_was_made(export: Export) -> str:
    arguments = markdown_table(
        ["argument", "value"], [[k, json.dumps(v)] for k, v in export.task_args.items()]
    )
    files = markdown_table(
        ["file", "prompts", "SHA-256"],
        [[file.path, f"{file.rows:,}", file.sha256] for file in export.files],
    )
    sources = ""
    if export.provenance:
        text = json.dumps(export.provenance, indent=1)
        sources = (
            f"\n## Sources\n\nThis data is not generated. It comes from:\n\n```json\n{text}\n```\n"
        )
    return f"""## How it was made

```text
{export.command}
```

With the same versions of iclbench and pyarrow, the command gives the same bytes.

{arguments}

{files}
{sources}"""


def model_card(record: Record) -> str:
    """The card of one record's models, with its metrics as the hub's results."""
    spec, main = record.spec, record.main
    metrics = [
        {"type": name, "name": name, "value": statistics.mean}
        for name, statistics in main.metrics.items()
        if statistics.mean is not None
    ]
    dataset = {"type": f"iclbench-{spec.task}", "name": f"{main.title} v{spec.task_version}"}
    result = {"task": {"type": "in-context-learning"}, "dataset": dataset, "metrics": metrics}
    head = front_matter(
        {
            "library_name": "iclbench",
            "tags": TAGS,
            **({"model-index": [{"name": spec.model, "results": [result]}]} if metrics else {}),
        }
    )
    seeds = [str(seed.seed) for seed in record.seeds if seed.seed is not None]
    weights = f"`model.safetensors` holds the weights of {_seeds(seeds)}, named `SEED/parameter`."
    if spec.origin == "asked":
        weights = "The weights are those of a language model, which answers in text."
    elif record.weights_file is None:
        weights = "This model has no weights: it is built from a formula or solves each prompt."
    return f"""{head}
# {markdown(spec.model)} on {markdown(main.title)}

A record of iclbench, the benchmark harness for in-context learning: {_facts(record)}.
{weights}

{_metrics(record)}

Ranked by the {record.ranking.statistic} of `{record.ranking.metric}` on
{counted(main.prompts, "prompt")}.
Digits are −log₁₀ of the absolute error.

## Use and check it

```text
iclbench pull THIS/REPOSITORY
```

This copies the record into `results`, measures the model again and compares every number. The
command that made it:

```text
{record.command}
```

## Settings

{markdown_table(["setting", "value"], _settings(record))}
"""


def _facts(record: Record) -> str:
    """The origin, the dtype, and the parameters where they are known."""
    count = known_parameters(record)
    size = [] if count is None else [counted(count, "parameter")]
    return ", ".join([record.spec.origin, record.spec.dtype, *size])


def _seeds(seeds: list[str]) -> str:
    if not seeds:
        return "one model"
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"the {len(seeds)} seeds {', '.join(seeds)}"


def _metrics(record: Record) -> str:
    floor = record.floor
    rows = []
    for name, statistics in record.metrics.items():
        measured = statistics.digits
        digits = "" if measured is None else formats.digits(measured.mean)
        best = formats.linear(floor[name].mean) if name in floor else ""
        values = [formats.linear(value) for value in (statistics.mean, statistics.median)]
        rows.append([name, *values, digits, best])
    return markdown_table(["metric", "mean", "median", "digits", "mean of the floor"], rows)


def _settings(record: Record) -> list[list[str]]:
    values = record.spec.model_dump(mode="json", exclude_none=True)
    rows = [[key, json.dumps(value)] for key, value in values.items() if value not in ((), {}, [])]
    environment = record.environment
    rows.append(["device", formats.device(environment.device, environment.threads)])
    rows += [[f"plugin {p.name}", f"{p.distribution} {p.version}"] for p in record.plugins]
    return [*rows, ["id", record.id], ["digest", record.digest]]


def results_card(boards: Sequence[Board], has_curves: bool) -> str:
    """The card of a results dataset, with the table of every board."""
    names = ["rows", *(["curves"] if has_curves else [])]
    configs = [
        {"config_name": name, "data_files": [{"split": "train", "path": f"{name}.parquet"}]}
        for name in names
    ]
    head = front_matter(
        {"pretty_name": "iclbench results", "tags": TAGS, "configs": configs},
    )
    tables = "\n\n".join(as_markdown(board_table(board)) for board in boards)
    return f"""{head}
# iclbench results

`rows.parquet` has one row per record{"; `curves.parquet` has the curves" * has_curves}. The records
are `TASK/MODEL-ID.json`, and the files that they name are in `objects`.

```text
iclbench pull datasets/THIS/REPOSITORY
iclbench verify results
```

The first command copies the records into `results`; the second measures every model again.

{tables}

{chr(10).join(legend(boards))}
"""
