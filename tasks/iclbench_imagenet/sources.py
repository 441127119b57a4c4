"""Where images come from: emoji of a font, a folder, IDX files, or a data set of the hub."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iclbench import UsageError, digest_of

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = {".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"}

#: Debian's fonts-noto-color-emoji and unicode-data.
FONT = Path("/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf")
EMOJI_TEST = Path("/usr/share/unicode/emoji/emoji-test.txt")
#: The font's only size.
FONT_SIZE = 109
#: Subgroups with fewer emoji are not used as classes.
FEWEST_EMOJI = 15
_VARIATION = "FE0F"
EMOJI_LICENCE = "SIL Open Font License 1.1 (Noto Color Emoji), Unicode License (emoji-test.txt)"

#: SHA-256 of the pixels of Fashion-MNIST's 60,000 training images.
FASHION_PIXELS = "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012"
FASHION_LICENCE = "MIT (Zalando SE)"
#: Its classes in the order of their numbers, with the kind of clothing that each belongs to.
FASHION_CLASSES = {
    "T-shirt/top": "top",
    "Trouser": "trousers",
    "Pullover": "top",
    "Dress": "top",
    "Coat": "top",
    "Sandal": "footwear",
    "Shirt": "top",
    "Sneaker": "footwear",
    "Bag": "bag",
    "Ankle boot": "footwear",
}


class Source(ABC):
    """Images with their classes, in a fixed order.

    `data` describes the source; `classes` are the names; `labels` (n,) their numbers; `groups`, if
    known, the family of each class; `identity` changes with the content, and is known without
    reading every image.
    """

    data: str
    licence: str | None = None
    classes: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    labels: np.ndarray
    identity: str

    @abstractmethod
    def images(self, rows: Sequence[int]) -> list[Image]:
        """These images in RGB; raises UsageError if one can't be read."""


def pillow() -> Any:
    """Import Pillow; raises UsageError if it is not installed."""
    try:
        from PIL import Image, ImageDraw, ImageFont  # noqa: F401
    except ImportError as error:
        raise UsageError(f"images need Pillow: pip install 'iclbench[emoji]' ({error})") from None
    import PIL

    return PIL


class Emoji(Source):
    """Colour emoji of a font, in the subgroups of emoji-test.txt with 15 one-code-point members.

    Fully qualified emoji count; variation selectors are ignored. They are drawn on white in the
    font's own size.
    """

    def __init__(self, font: Path, table: Path) -> None:
        """Read font and table; raises UsageError if one is missing or has too little."""
        pil = pillow()
        for path, package in ((font, "fonts-noto-color-emoji"), (table, "unicode-data")):
            if not path.is_file():
                raise UsageError(f"--data emoji: there is no {path}; it is in Debian's {package}")
        subgroups = _subgroups(table)
        if len(subgroups) < 2:
            raise UsageError(f"{table} has {len(subgroups)} subgroups of {FEWEST_EMOJI} emoji")
        self.characters = [character for members in subgroups.values() for character in members]
        self.classes = tuple(name for _, name in subgroups)
        self.groups = tuple(group for group, _ in subgroups)
        sizes = [len(members) for members in subgroups.values()]
        self.labels = np.repeat(np.arange(len(subgroups)), sizes)
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (font, table)]
        self.data, self.licence = "emoji", EMOJI_LICENCE
        self.identity = digest_of(digests)
        try:
            layout = pil.ImageFont.Layout.BASIC
            self.font = pil.ImageFont.truetype(str(font), FONT_SIZE, layout_engine=layout)
        except OSError as error:
            raise UsageError(f"the font {font} can't be used: {error}") from None
        self.pil = pil

    def images(self, rows: Sequence[int]) -> list[Image]:
        """See `Source.images`."""
        return [self._drawn(self.characters[row]) for row in rows]

    def _drawn(self, character: str) -> Image:
        left, top, right, bottom = (int(v) for v in self.font.getbbox(character))
        image: Image = self.pil.Image.new("RGB", (right - left, bottom - top), "white")
        pen = self.pil.ImageDraw.Draw(image)
        pen.text((-left, -top), character, font=self.font, embedded_color=True)
        return image


def _subgroups(table: Path) -> dict[tuple[str, str], list[str]]:
    """The one-code-point emoji of each (group, subgroup), in the table's order."""
    members: dict[tuple[str, str], list[str]] = {}
    headings = {"group": "", "subgroup": ""}
    for line in table.read_text("utf-8").splitlines():
        heading = re.match(r"# (group|subgroup): (.+)", line)
        entry = re.match(r"([0-9A-F ]+); fully-qualified ", line)
        if heading:
            headings[heading[1]] = heading[2].strip()
        elif entry:
            points = [point for point in entry[1].split() if point != _VARIATION]
            if len(points) == 1:
                key = (headings["group"], headings["subgroup"])
                members.setdefault(key, []).append(chr(int(points[0], 16)))
    return {key: drawn for key, drawn in members.items() if len(drawn) >= FEWEST_EMOJI}


class Folder(Source):
    """A folder with one folder of images per class; both in alphabetical order."""

    def __init__(self, folder: Path) -> None:
        """List the images; raises UsageError if there are none."""
        self.pil = pillow()
        files_of: dict[str, list[Path]] = {}
        for part in sorted(path for path in folder.iterdir() if path.is_dir()):
            files = sorted(f for f in part.rglob("*") if f.suffix.lower() in SUFFIXES)
            if files:
                files_of[part.name] = files
        if not files_of:
            raise UsageError(f"{folder} holds no images in a folder for each class")
        self.files = [file for files in files_of.values() for file in files]
        self.classes = tuple(files_of)
        self.labels = np.repeat(
            np.arange(len(files_of)), [len(files) for files in files_of.values()]
        )
        self.data = folder.name
        listed = [[str(f.relative_to(folder)), f.stat().st_size] for f in self.files]
        self.identity = digest_of(listed)

    def images(self, rows: Sequence[int]) -> list[Image]:
        """See `Source.images`."""
        return [self._read(self.files[row]) for row in rows]

    def _read(self, file: Path) -> Image:
        try:
            with self.pil.Image.open(file) as image:
                converted: Image = image.convert("RGB")
        except (OSError, ValueError, SyntaxError, self.pil.Image.DecompressionBombError) as error:
            raise UsageError(f"image {file} can't be read: {error}") from None
        return converted


class IDX(Source):
    """A pair of IDX files, such as those of MNIST; the classes are digits.

    Fashion-MNIST is recognized by its pixels, and gets its name, licence, classes and groups.
    """

    def __init__(self, images: Path) -> None:
        """Read both files; raises UsageError if one is missing or they don't match."""
        self.pil = pillow()
        labels = images.with_name(images.name.replace("images-idx3", "labels-idx1"))
        self.pixels, self.labels = _idx(images, 3), _idx(labels, 1).astype(np.int64)
        if len(self.pixels) != len(self.labels):
            raise UsageError(f"{images} has {len(self.pixels)} images, {labels} {len(self.labels)}")
        self.classes = tuple(str(c) for c in range(int(self.labels.max(initial=-1)) + 1))
        self.data = f"{images.parent.name}/{images.name.split('-')[0]}"
        contents = (self.pixels.tobytes(), self.labels.tobytes())
        digests = [hashlib.sha256(content).hexdigest() for content in contents]
        self.identity = digest_of(digests)
        if digests[0] == FASHION_PIXELS:
            self.data, self.licence = "fashion-mnist", FASHION_LICENCE
            self.classes, self.groups = tuple(FASHION_CLASSES), tuple(FASHION_CLASSES.values())

    def images(self, rows: Sequence[int]) -> list[Image]:
        """See `Source.images`."""
        return [self.pil.Image.fromarray(self.pixels[row]).convert("RGB") for row in rows]


def _idx(path: Path, dimensions: int) -> np.ndarray:
    """The bytes of an IDX file as an array with that many dimensions."""
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} can't be read: {error}") from None
    header = 4 + 4 * dimensions
    shape = tuple(int.from_bytes(raw[i : i + 4], "big") for i in range(4, header, 4))
    bytes_only = raw[:4] == bytes([0, 0, 8, dimensions])
    if not bytes_only or len(raw) != header + int(np.prod(shape)):
        raise UsageError(
            f"{path} is not an IDX file of bytes in {dimensions} dimensions, or is cut off"
        )
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)


def find_source(data: str, split: str, font: Path, table: Path) -> Source:
    """The source of that name: emoji, a folder, or a data set on the hub; raises UsageError."""
    if data == "emoji":
        return Emoji(font, table)
    folder = Path(data)
    if folder.is_dir():
        pattern = {"train": "train", "test": "t10k"}.get(split, split)
        idx = sorted(folder.glob(f"{pattern}-images-idx3-ubyte*"))
        if idx:
            return IDX(idx[0])
        if any(folder.rglob("*.parquet")) or any(folder.rglob("*.arrow")):
            from .hub import Hub

            return Hub(data, split)
        return Folder(folder)
    if data.startswith(("/", "./", "../", "~")) or data.count("/") > 1:
        raise UsageError(f"--data {data}: there is no such folder")
    from .hub import Hub

    return Hub(data, split)
