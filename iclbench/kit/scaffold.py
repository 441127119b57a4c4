"""The scaffold: a complete plugin from templates, which passes its own tests."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import jinja2

from ..api.entry import Entry
from ..api.errors import UsageError, unknown
from ..files import is_free, require_writable, staged
from ..plugins import host


@dataclass(frozen=True)
class Kind:
    """What a kind's templates need: the catalog's name of it, its hook, and what the README says.

    `NAME` stands for the name of the new entry. `tests` is what its tests do, `names` where the
    other names of `command` are from, and `replace` what an author changes first.
    """

    entry: str
    hook: str
    about: str
    summary: str
    command: str
    names: str
    tests: str
    replace: str = "Replace its formula, and name your source."
    imports_torch: bool = True


_RUN = "iclbench run --model {} --task {} --recipe smoke --seeds 2 --eval-prompts 64{}"

#: What `iclbench new` does not write, and where it is described.
_GUIDE = "docs/guide/{}.md has a complete plugin of that kind"
ELSEWHERE = {
    "mixer": "it comes with an architecture: iclbench new architecture NAME",
    "construction": "it comes with an architecture; " + _GUIDE.format("construction"),
    **dict.fromkeys(("recipe", "optimizer", "suite"), _GUIDE.format("recipe")),
    **{kind: _GUIDE.format(kind) for kind in ("command", "grader", "observer")},
    "tracker": "docs/plugins.md describes it",
}

KINDS = {
    "architecture": Kind(
        "model",
        "iclbench_architectures",
        "It mixes tokens by an average whose weights decay exponentially.",
        "average with exponentially decaying weights",
        _RUN.format("NAME", "TASK", ""),
        names="`iclbench describe NAME` lists the tasks that it supports.",
        tests="compare the mixer with its formula",
    ),
    "task": Kind(
        "task",
        "iclbench_tasks",
        "It asks for the mean of the normal distribution that a prompt's samples come from.",
        "the mean behind N samples",
        _RUN.format("MODEL", "NAME", ""),
        names="`iclbench ls models` lists the models.",
        tests="compare the floor with its formula",
    ),
    "solver": Kind(
        "model",
        "iclbench_architectures",
        "It solves ridge regression on the examples of a prompt.",
        "ridge regression on the prompt's examples",
        _RUN.format("NAME", "TASK", ""),
        names="`iclbench describe NAME` lists the tasks that it supports.",
        tests="check that the gradient of its objective vanishes",
    ),
    "metric": Kind(
        "metric",
        "iclbench_metrics",
        "It measures the signed error of predictions.",
        "the mean signed error",
        _RUN.format("MODEL", "TASK", " --metrics NAME"),
        names="`iclbench describe NAME` lists the tasks that it applies to, "
        "and `iclbench ls models` the models.",
        tests="measure predictions whose errors are known",
    ),
    "executor": Kind(
        "executor",
        "iclbench_executors",
        "It runs every job of a sweep as a command of its own.",
        "every job is a command of its own",
        "iclbench sweep FILE.toml --executor NAME",
        names="FILE.toml is a sweep file, which lists the runs.",
        tests="run jobs that succeed and jobs that fail",
        replace="Replace `_start` and `_result` to run the jobs elsewhere, such as on a cluster.",
        imports_torch=False,
    ),
}


def write_plugin(kind: str, name: str, folder: Path) -> list[Path]:
    """Write the distribution iclbench-NAME into a new folder; return its files.

    Raises UsageError for an unknown kind, an invalid or taken name, and a folder that holds files.
    Nothing is left where it is interrupted.
    """
    if kind in ELSEWHERE:
        raise UsageError(f"{kind}: {ELSEWHERE[kind]}")
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    _require_free(kind, name)
    if not is_free(folder):
        raise UsageError(f"{folder} already exists; choose another name, or use --out")
    require_writable(folder.parent)
    files = _contents(kind, name)
    with staged(folder) as new:
        for path, text in files.items():
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_text(text, "utf-8", newline="\n")
    return [folder / path for path in files]


def source(kind: str, name: str) -> str:
    """The module with the entry that `write_plugin` writes, for the documentation."""
    module = _distribution(name).replace("-", "_")
    return _contents(kind, name)[f"{module}/{kind}.py"]


def _require_free(kind: str, name: str) -> None:
    """Raise UsageError for a name that an entry or a class can't have, or that is taken."""
    problem = Entry(name, "any", None).problem()
    if problem is None and not name[0].isalpha():
        problem = f"{name!r} is not a name: begin with a letter"
    if problem is not None:
        raise UsageError(problem)
    distribution = _distribution(name)
    if any(entry.name == name for _, entry in host().entries(KINDS[kind].entry)):
        plugin, _ = host().provider(KINDS[kind].entry, name)
        raise UsageError(f"{KINDS[kind].entry} {name!r} is taken by {plugin.label}")
    for plugin in host().plugins:
        if name == plugin.name or distribution == plugin.distribution:
            raise UsageError(f"the name {name!r} is taken by plugin {plugin.label}")


def _distribution(name: str) -> str:
    return f"iclbench-{name}"


def _class_name(name: str, kind: str, source: str) -> str:
    """The name in CamelCase, and no other word of the template or of Python."""
    camel = "".join(word.capitalize() for word in name.split("-"))
    used = (re.search(rf"\b{word}\b", source) for word in (camel, f"{camel}Config"))
    taken = keyword.iskeyword(camel) or any(used)
    return f"{camel}{kind.capitalize()}" if taken else camel


def _contents(kind: str, name: str) -> dict[str, str]:
    """The plugin's files by their paths below its folder."""
    about = KINDS[kind]
    module = _distribution(name).replace("-", "_")
    major, minor = map(int, re.findall(r"\d+", metadata.version("iclbench"))[:2])
    loader = jinja2.PackageLoader("iclbench.kit")
    environment = jinja2.Environment(
        loader=loader,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    source, _, _ = loader.get_source(environment, f"{kind}.py.jinja")
    values = {
        **vars(about),
        "kind": kind,
        "name": name,
        "module": module,
        "distribution": _distribution(name),
        "class_name": _class_name(name, kind, source),
        "value_name": name.replace("-", "_"),
        "command": about.command.replace("NAME", name),
        "names": about.names.replace("NAME", name),
        "version": f"{major}.{minor}",
        # The first version that may break a plugin, as docs/stability.md says.
        "next_version": f"{major + 1}" if major else f"0.{minor + 1}",
    }
    templates = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        ".gitignore": "gitignore",
        f"{module}/__init__.py": "__init__.py",
        f"{module}/{kind}.py": f"{kind}.py",
        f"tests/test_{kind}.py": f"test_{kind}.py",
    }
    return {
        path: environment.get_template(f"{template}.jinja").render(values)
        for path, template in templates.items()
    }
