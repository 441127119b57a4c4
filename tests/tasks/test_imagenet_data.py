"""The task imagenet: splits, and the features and settings that it refuses."""

from __future__ import annotations

import json
import math

import pytest
import torch
from imagenet_support import SMALL, make_folder, make_task

from iclbench import UsageError
from iclbench_imagenet.split import split_groups
from iclbench_imagenet.store import FILE, read_features
from iclbench_imagenet.task import PACKAGED


def test_the_split_is_seeded_and_a_partition():
    splits = [make_task(task_seed=seed).split for seed in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]
    assert 5 <= len(splits[0].test) <= 10
    assert sorted([*splits[0].training, *splits[0].test]) == list(range(33))


@pytest.mark.parametrize("images", PACKAGED)
@pytest.mark.parametrize("seed", range(8))
def test_neighbouring_classes_are_on_one_side(images, seed):
    task = make_task(images=images, task_seed=seed)
    groups = task.data.about.groups
    training, test = ({groups[number] for number in half} for half in task.split)
    assert training
    assert test
    assert not training & test
    # The number that is filled in gives the same split again.
    assert make_task(images=images, task_seed=seed, **task_args(task)).split == task.split


def task_args(task):
    """The arguments that the task fills in."""
    return {"test_classes": task.config.test_classes, "digest": task.config.digest}


def test_clocks_flags_and_faces_have_neighbours():
    """The groups of the classes are those of Unicode's emoji-test.txt."""
    about = make_task().data.about
    group = dict(zip(about.classes, about.groups, strict=True))
    assert group["time"] == group["sky & weather"] == "Travel & Places"
    assert group["person-role"] == group["person-sport"] == group["body-parts"] == "People & Body"
    assert len(set(about.groups)) == 8


def test_whole_groups_are_chosen_as_long_as_they_fit():
    groups = ["a", "a", "b", "b", "b", "c"]
    splits = {split_groups(groups, seed, 4).test for seed in range(30)}
    assert splits == {(0, 1, 5), (2, 3, 4, 5)}
    # Classes without groups are chosen one by one.
    assert all(len(split_groups("abcdef", seed, 4).test) == 4 for seed in range(30))


def test_a_folder_can_fix_the_split(tmp_path):
    folder = make_folder(tmp_path)
    seeded_digest = make_task(images=str(folder), ways=2, shots=3).config.digest
    (folder / "split.json").write_text('{"training": ["d", "a"], "test": ["b", "c"]}')
    task = make_task(images=str(folder), ways=2, shots=3)
    assert task.split == ((0, 3), (1, 2))
    assert task.config.test_classes == 2
    assert task.config.digest != seeded_digest
    with pytest.raises(UsageError, match=r"test_classes=3: .* has another split"):
        make_task(images=str(folder), ways=2, shots=3, test_classes=3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"training": ["a", "b"], "test": ["b", "c"]}, "class 'b' is in both halves"),
        ({"training": ["a", "z"], "test": ["b", "c"]}, "no class 'z' for training"),
        ({"training": ["a", "d"], "test": ["b", "b"]}, "class 'b' is twice in test"),
        ({"training": ["a", "d"]}, "must hold two lists"),
        ({"training": "a", "test": ["b"]}, "must hold two lists"),
        ({"training": ["a"], "test": ["b", "c"]}, "2-way contexts need 2 classes: 1 of the 4"),
    ],
)
def test_bad_splits_are_refused(tmp_path, content, message):
    folder = make_folder(tmp_path)
    (folder / "split.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=message):
        make_task(images=str(folder), ways=2, shots=3)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"ways": 3}, "3-way contexts need 3 classes: 2 of the 4 classes in .* are for training"),
        ({"test_classes": 9}, "test_classes=9: .* has only 4 classes"),
        ({"shots": 6}, "class 'a' has 6 images; 6 shots and 1 queries need 7"),
        ({"queries": 4}, "class 'a' has 6 images; 3 shots and 4 queries need 7"),
        ({"dim": 4}, "dim=4: features are 3 wide"),
        ({"ways": 1}, "greater than or equal to 2"),
        ({"digest": "0" * 16}, r"their split, have the digest .*, not 0000"),
        ({"digest": "nonsense"}, "should match pattern"),
    ],
)
def test_bad_configurations_are_refused(tmp_path, config, message):
    folder = make_folder(tmp_path)
    with pytest.raises(UsageError, match=message):
        make_task(images=str(folder), **{**SMALL, **config})


def make_broken_folder(path, defect):
    """A folder of features with one defect."""
    n = 30
    nan = torch.zeros(n, 3)
    nan[7, 1] = math.nan
    changes = {
        "nan": {"features": nan},
        "width": {"features": torch.zeros(n, 4)},
        "labels": {"labels": torch.full((n,), 4)},
        "negative": {"labels": torch.full((n,), -1)},
        "few labels": {"labels": torch.zeros(3)},
        "names": {"names": ("a", "b", "a", "c")},
        "groups": {"groups": ("a", "b", "b")},
    }
    make_folder(path, **changes.get(defect, {}))
    file = path / FILE
    if defect == "truncated":
        file.write_bytes(file.read_bytes()[:-10])
    if defect == "other file":
        file.write_bytes(b"hello")
    if defect == "empty":
        file.unlink()
    return path / "nowhere" if defect == "missing" else path


@pytest.mark.parametrize(
    ("defect", "message"),
    [
        ("nan", "features of image 7 are not finite"),
        ("width", r"features are \(30, 4\), not \(30, 3\) as the header says"),
        ("labels", "label 4 is out of range: there are 4 classes"),
        ("negative", "label -1 is out of range"),
        ("few labels", r"labels are \(3,\), not \(30,\)"),
        ("names", "two classes are called 'a', so one could be in both halves"),
        ("groups", "it has 3 groups for 4 classes"),
        ("truncated", "is not a file of features, or is damaged"),
        ("other file", "is not a file of features, or is damaged"),
        ("empty", "holds no features.safetensors; `iclbench features` makes one"),
        ("missing", "there is no folder of features"),
    ],
)
def test_bad_features_are_one_line(tmp_path, cli, defect, message):
    folder = make_broken_folder(tmp_path, defect)
    with pytest.raises(UsageError, match=message):
        read_features(folder)
    args = f"images={folder},ways=2,shots=3"
    result = cli("run", "--model", "nearest-class-mean", "--task", "imagenet", "--task-args", args)
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1
