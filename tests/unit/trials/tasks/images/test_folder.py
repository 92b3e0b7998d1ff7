"""Images of a folder: which files are read, and the colours of every kind of file."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps

from trials.contract import TaskError
from trials.tasks.images import folder

SIDE = 4
GREYS = np.array([[0, 60], [128, 255]], dtype=np.uint8).repeat(2, axis=0).repeat(2, axis=1)
"""Four grey squares, which make an image of `SIDE`."""


def photo() -> Image.Image:
    """Four squares in four colours."""
    colours = np.array([[[200, 30, 40], [20, 220, 60]], [[30, 50, 210], [250, 250, 250]]])
    return Image.fromarray(colours.astype(np.uint8).repeat(2, axis=0).repeat(2, axis=1))


def saved(path, image, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


def as_lab(image):
    profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    return ImageCms.applyTransform(image, ImageCms.buildTransform(*profiles, "RGB", "LAB"))


GREY_FILES = {
    "1 bit": lambda path: saved(path / "a.png", Image.fromarray(GREYS > 100)),
    "8 bits": lambda path: saved(path / "a.png", Image.fromarray(GREYS)),
    "with alpha": lambda path: saved(path / "a.png", Image.fromarray(GREYS).convert("LA")),
    "16 bits in PNG": lambda path: saved(path / "a.png", Image.fromarray(GREYS * np.uint16(257))),
    "16 bits in TIFF": lambda path: saved(path / "a.tif", Image.fromarray(GREYS * np.uint16(257))),
    "16 bits, high byte first": lambda path: saved(
        path / "a.tif", Image.frombytes("I;16B", (4, 4), (GREYS * np.uint16(257)).astype(">u2"))
    ),
    "16 bits in PGM": lambda path: saved(path / "a.pgm", Image.fromarray(GREYS * np.int32(257))),
    "16 bits in 32": lambda path: saved(path / "a.tiff", Image.fromarray(GREYS * np.int32(257))),
    "8 bits in 32": lambda path: saved(path / "a.tiff", Image.fromarray(GREYS.astype(np.int32))),
    "floats to 1": lambda path: saved(path / "a.tiff", Image.fromarray(np.float32(GREYS / 255))),
    "floats to 255": lambda path: saved(path / "a.tiff", Image.fromarray(np.float32(GREYS))),
}


@pytest.mark.cases(len(GREY_FILES))
@pytest.mark.parametrize("kind", GREY_FILES)
def test_grey_of_every_depth_is_as_bright_as_in_8_bits(tmp_path, kind):
    found = folder.square(GREY_FILES[kind](tmp_path), SIDE)
    expected = np.where(GREYS > 100, 255, 0) if kind == "1 bit" else GREYS
    assert (found == expected[..., None]).all()


def test_grey_of_12_bits_is_scaled_by_its_own_range(tmp_path):
    path = tmp_path / "a.tif"
    white = Image.frombytes("I;16", (4, 4), np.full((4, 4), 4095, dtype="<u2"))
    white.save(path, tiffinfo={258: 12})
    content = bytearray(path.read_bytes())
    place = content.index(bytes([2, 1, 3, 0, 1, 0, 0, 0]))  # the tag of the bits in a sample
    content[place + 8] = 12
    packed = bytes([0xFF]) * 24  # 16 numbers of 12 bits
    path.write_bytes(bytes(content[: content.index(b"\xff\x0f" * 16)]) + packed + bytes(8))
    with Image.open(path) as image:
        assert (image.mode, image.tag_v2[258]) == ("I;16", (12,))
    assert (folder.square(path, SIDE) == 255).all()


COLOUR_FILES = {
    "RGB": lambda path: saved(path / "a.png", photo()),
    "RGBA": lambda path: saved(path / "a.png", photo().convert("RGBA")),
    "palette": lambda path: saved(path / "a.png", photo().quantize(16)),
    "palette with alpha": lambda path: saved(
        path / "a.tif", photo().convert("RGBA").quantize(16).convert("PA")
    ),
    "CMYK in JPEG": lambda path: saved(path / "a.jpg", photo().convert("CMYK"), quality=100),
    "CMYK in TIFF": lambda path: saved(path / "a.tif", photo().convert("CMYK")),
    "LAB": lambda path: saved(path / "a.tif", as_lab(photo())),
    "GIF": lambda path: saved(path / "a.gif", photo()),
    "WebP": lambda path: saved(path / "a.webp", photo().convert("RGBA"), lossless=True),
    "BMP": lambda path: saved(path / "A.BMP", photo()),
    "PPM": lambda path: saved(path / "a.ppm", photo()),
    "TGA": lambda path: saved(path / "a.tga", photo()),
}


@pytest.mark.cases(len(COLOUR_FILES))
@pytest.mark.parametrize("kind", COLOUR_FILES)
def test_colours_are_those_that_a_person_sees(tmp_path, kind):
    found = folder.square(COLOUR_FILES[kind](tmp_path), SIDE)
    assert np.abs(found.astype(int) - np.asarray(photo()).astype(int)).max() <= 14


def see_through(mode):
    """Black where it is opaque, and nothing else: its left half."""
    image = Image.new("LA", (4, 4), (0, 0))
    image.paste((0, 255), (0, 0, 2, 4))
    return image.convert(mode)


def with_colour_key(path):
    """Grey without an alpha channel, in which one brightness is transparent."""
    image = Image.new("L", (4, 4), 9)
    image.paste(0, (0, 0, 2, 4))
    return saved(path / "a.png", image, transparency=9)


def written_png(path, kind, key):
    """Black, and a brightness or colour of 16 bits that is transparent: Pillow cannot write it."""

    def chunk(name, content):
        checked = name + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", 4, 1, 16, kind, 0, 0, 0)
    row = zlib.compress(b"\0" + np.array([*[0] * 2 * len(key), *key, *key], dtype=">u2").tobytes())
    parts = [(b"IHDR", head), (b"tRNS", np.array(key, dtype=">u2").tobytes()), (b"IDAT", row)]
    file = path / "a.png"
    file.write_bytes(
        b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in [*parts, (b"IEND", b"")])
    )
    return file


SEE_THROUGH = {
    "a brightness of 16 bits": lambda path: written_png(path, 0, [30_000]),
    "a colour of 16 bits": lambda path: written_png(path, 2, [30_000, 9, 9]),
    "LA": lambda path: saved(path / "a.png", see_through("LA")),
    "RGBA": lambda path: saved(path / "a.png", see_through("RGBA")),
    "WebP": lambda path: saved(path / "a.webp", see_through("RGBA"), lossless=True),
    "palette": lambda path: saved(path / "a.png", see_through("RGBA").quantize(4)),
    "GIF": lambda path: saved(path / "a.gif", see_through("RGBA")),
    "a colour key": with_colour_key,
}


@pytest.mark.cases(len(SEE_THROUGH))
@pytest.mark.parametrize("kind", SEE_THROUGH)
def test_what_is_transparent_is_white(tmp_path, kind):
    found = folder.square(SEE_THROUGH[kind](tmp_path), SIDE)
    assert (found[:, :2] == 0).all()
    assert (found[:, 2:] == 255).all()


@pytest.mark.cases(16)
@pytest.mark.parametrize("suffix", ["jpg", "png", "tif", "webp"])
@pytest.mark.parametrize("orientation", [2, 3, 6, 8])
def test_an_image_is_turned_as_its_camera_says(tmp_path, suffix, orientation):
    turned = Image.new("RGB", (8, 8))
    turned.paste(photo().resize((8, 8), Image.Resampling.NEAREST))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(tmp_path / f"a.{suffix}", turned, exif=exif, quality=100)
    tagged = turned.copy()
    tagged.getexif()[0x0112] = orientation
    upright = np.asarray(ImageOps.exif_transpose(tagged)).astype(int)
    found = folder.square(path, 8).astype(int)
    assert np.abs(found[::7, ::7] - upright[::7, ::7]).max() <= 40


@pytest.mark.parametrize(
    "brightness", [np.float32([[-1, 2]]), np.float32([[0, 300]]), np.float32([[0, np.nan]])]
)
def test_a_brightness_without_a_range_is_refused(tmp_path, brightness):
    path = saved(tmp_path / "a.tiff", Image.fromarray(brightness))
    with pytest.raises(TaskError, match="write it in 8 or 16 bits"):
        folder.squares([path], "task.train", SIDE)


def test_the_first_folder_is_the_class_however_deep_an_image_lies(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    root = tmp_path / "photos"
    for place in ("cat/a.png", "cat/2024/may/b.JPG", "dog/c.tiff", "dog/d.jfif"):
        saved(root / place, photo(), format="PNG")
    saved(elsewhere / "e.ppm", photo())
    (root / "owl").symlink_to(elsewhere)
    (root / "dog" / "again").symlink_to(root)
    found = folder.files_in(root, "task.train")
    places = [str(path.relative_to(root)) for path in found.paths]
    assert places == ["cat/2024/may/b.JPG", "cat/a.png", "dog/c.tiff", "dog/d.jfif", "owl/e.ppm"]
    assert found.names == ["cat", "cat", "dog", "dog", "owl"]
    assert found.notes == ["images in a folder inside a class's folder belong to that class: 1"]


def test_what_is_left_out_is_said(tmp_path):
    for place in ("a/1.png", "b/2.png", "loose.png", "a/.hidden.png", "__MACOSX/a/._1.png"):
        saved(tmp_path / place, photo())
    for place in ("a/notes.txt", "labels.csv", "b/film.mpg", "b/README", "b/.DS_Store"):
        (tmp_path / place).write_text("no image")
    found = folder.files_in(tmp_path, "task.train")
    assert found.names == ["a", "b"]
    assert found.notes == [
        "files that are not images are left out: 4 (.csv, .mpg, .txt, no ending)",
        "images in no class's folder are left out: 1",
    ]


@pytest.mark.parametrize("names", [("train", "test"), ("images",)])
def test_folders_of_folders_are_not_taken_for_classes(tmp_path, names):
    for name in names:
        saved(tmp_path / name / "cat" / "a.png", photo())
        saved(tmp_path / name / "dog" / "a.png", photo())
    with pytest.raises(TaskError, match=rf"are not classes; name {tmp_path}/{sorted(names)[0]}"):
        folder.files_in(tmp_path, "task.train")


def test_a_program_for_a_printer_is_not_run(tmp_path):
    drawing = saved(tmp_path / "a" / "drawing.eps", photo())
    saved(tmp_path / "a" / "photo.mpo", photo(), format="JPEG")
    assert [path.name for path in folder.files_in(tmp_path, "task.train").paths] == ["photo.mpo"]
    disguised = drawing.rename(tmp_path / "a" / "drawing.png")
    with pytest.raises(TaskError, match="cannot be read as an image"):
        folder.squares([disguised], "task.train", SIDE)


def test_every_broken_file_is_named_with_its_reason(tmp_path):
    good = saved(tmp_path / "good.png", photo().resize((64, 64)))
    content = good.read_bytes()
    cut, torn, empty, text = (tmp_path / f"{name}.png" for name in ("cut", "torn", "empty", "text"))
    cut.write_bytes(content[: len(content) // 2])
    torn.write_bytes(content[:20] + bytes(30) + content[50:])
    empty.write_bytes(b"")
    text.write_text("<html>")
    with pytest.raises(TaskError) as caught:
        folder.squares([cut, good, torn, empty, text], "task.train", SIDE)
    what = caught.value.problems[0].what
    assert what.startswith(f"{cut} cannot be read as an image (")
    assert what.endswith(f"and neither can 3 more: {torn}, {empty}, {text}; fix or remove them")
