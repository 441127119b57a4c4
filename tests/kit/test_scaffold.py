"""`iclbench new`: every plugin that it writes passes its own tests and the conformance kit."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from fake_distributions import install_project
from packaging.requirements import Requirement
from support import run_python

from iclbench import UsageError, check_plugin, host
from iclbench.kit.scaffold import KINDS, write_plugin

ROOT = Path(__file__).parents[2]


@pytest.fixture
def new_plugin(package_folder, monkeypatch):
    """Writes a plugin and installs it; returns its folder."""
    written = []

    def write(kind, name):
        project = package_folder / f"iclbench-{name}"
        write_plugin(kind, name, project)
        monkeypatch.syspath_prepend(project)
        written.append(install_project(package_folder, project).replace("-", "_"))
        host.cache_clear()
        return project

    yield write
    for module in [name for name in sys.modules if name.split(".")[0] in written]:
        del sys.modules[module]


@pytest.mark.parametrize("kind", ["task", "solver", "metric"])
def test_a_new_plugin_conforms(kind, new_plugin):
    project = new_plugin(kind, f"fresh-{kind}")
    problems = [o.text for o in check_plugin(project.name) if o.status != "ok"]
    assert problems == []


@pytest.mark.slow
def test_new_plugins_are_installed_and_pass_their_own_tests(tmp_path):
    packages = tmp_path / "packages"
    projects = {kind: tmp_path / kind for kind in KINDS}
    for kind, project in projects.items():
        write_plugin(kind, f"own-{kind}", project)
    pip = ("-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--no-deps")
    offline = ("--no-index", "--no-build-isolation", "--target", packages, *projects.values())
    done = run_python(*map(str, (*pip, *offline)), path=tmp_path)
    assert done.returncode == 0, done.stderr
    for kind, project in projects.items():
        # What `pytest` does in the project's folder, where the plugin is an entry point.
        plugin = ("-p", "iclbench.kit.pytest_plugin", "-p", "no:cacheprovider")
        done = run_python("-m", "pytest", *plugin, f"--rootdir={project}", str(project),
                          path=packages, PYTEST_ADDOPTS="")  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "skipped" not in done.stdout
        assert "iclbench" in done.stdout
        assert f"own-{kind}" in (project / "README.md").read_text("utf-8")


def test_new_plugins_are_formatted(tmp_path):
    for kind in KINDS:
        write_plugin(kind, f"clean-{kind}", tmp_path / kind)
    # As a third party's project sees it: iclbench is a dependency, the package its own.
    order = ('known-third-party=["iclbench"]', 'known-first-party=["iclbench_*"]')
    settings = [word for one in order for word in ("--config", f"lint.isort.{one}")]
    rules = ("--select", "E,F,I,N,UP,B,ANN,SIM,RET", "--ignore", "ANN401", "--line-length", "100")
    for command in (("format", "--check"), ("check", *rules, "--exclude", "test_*.py")):
        options = ("--isolated", *(settings if "check" in command else ["--line-length", "100"]))
        done = run_python("-m", "ruff", *command, *options, str(tmp_path), path=tmp_path)
        assert done.returncode == 0, done.stdout


def test_a_class_is_not_named_like_what_its_module_imports(new_plugin):
    project = new_plugin("metric", "metric")
    assert "class MetricMetric(Metric):" in (project / "iclbench_metric/metric.py").read_text()


@pytest.mark.parametrize(
    ("kind", "name"), [("task", "none"), ("solver", "true"), ("metric", "false")]
)
def test_a_class_is_not_named_like_a_word_of_python(kind, name, tmp_path):
    paths = write_plugin(kind, name, tmp_path / name)
    modules = [path for path in paths if path.suffix == ".py"]
    assert len(modules) > 1
    for path in modules:
        compile(path.read_text("utf-8"), str(path), "exec")


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_readme_of_a_new_plugin_names_no_other_plugin(kind, tmp_path):
    write_plugin(kind, "any-name", tmp_path / kind)
    taken = {entry.name for kind in ("model", "task") for _, entry in host().entries(kind)}
    assert not taken & set(KINDS[kind].command.split())
    for path in [tmp_path / kind / "README.md", *(tmp_path / kind / "tests").iterdir()]:
        words = set(path.read_text("utf-8").replace('"', " ").split())
        assert not words & {"least-squares", "transformer"}, path


def test_the_readme_of_an_executor_speaks_of_jobs(tmp_path):
    write_plugin("executor", "any-name", tmp_path / "new")
    text = (tmp_path / "new" / "README.md").read_text("utf-8")
    assert "formula" not in text
    assert "run jobs that succeed and jobs that fail" in text
    assert "Replace `_start` and `_result`" in text


def about(project):
    return tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_example_plugin_needs_the_same_release_as_a_new_one(tmp_path):
    write_plugin("architecture", "any-name", tmp_path / "new")
    example = about(ROOT / "examples" / "iclbench-plugin-hyena-lite")
    assert example["dependencies"] == about(tmp_path / "new")["dependencies"]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_new_plugin_needs_this_release_of_iclbench(kind, tmp_path):
    write_plugin(kind, "any-name", tmp_path / kind)
    project = about(tmp_path / kind)
    own = about(ROOT)["version"]
    (need,) = (r for r in map(Requirement, project["dependencies"]) if r.name == "iclbench")
    assert need.specifier.contains(own)
    major, minor = map(int, own.split(".")[:2])
    assert not need.specifier.contains(f"{major}.{minor + 1}" if major == 0 else f"{major + 1}.0")


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("mixer", "any-name", "mixer: it comes with an architecture: iclbench new architecture"),
        ("suite", "any-name", "docs/guide/recipe.md has a complete plugin of that kind"),
        ("tasks", "any-name", "unknown kind 'tasks'; did you mean 'task'"),
        ("task", "My Task", "is not a name"),
        ("task", "3d", "begin with a letter"),
        ("task", "least-squares", "taken by least-squares"),
        ("solver", "transformer", "taken by transformer"),
        ("executor", "local", "taken by builtins"),
        ("metric", "solvers", "taken by plugin solvers"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(kind, name, reason, tmp_path):
    with pytest.raises(UsageError, match=reason):
        write_plugin(kind, name, tmp_path / "project")
    assert not (tmp_path / "project").exists()


def test_an_existing_folder_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UsageError, match="already exists"):
        write_plugin("task", "any-name", tmp_path)


def test_an_interrupted_scaffold_leaves_nothing_and_can_be_repeated(tmp_path, monkeypatch):
    make = Path.mkdir

    def interrupt(path, *args, **options):
        if path.name == "tests":
            raise KeyboardInterrupt
        make(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_plugin("task", "any-name", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    assert write_plugin("task", "any-name", tmp_path / "new")
