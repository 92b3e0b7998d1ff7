"""Study files that cannot be: broken text, YAML that is none, names that are no names, values that
make no sense."""

import gzip
import os

from malformed import STUDY, Case, Make, changed, nothing, replaced, written


def whole(content: bytes | str) -> Make:
    """A study file of this content."""
    return written("study.yaml", content)


def named(name: str) -> Make:
    """The good study file with another name of the study, as YAML."""
    return changed(("study: flowers", f"study: {name}"))


def also(line: str) -> Make:
    """The good study file with one more line."""
    return changed(("resources:", f"{line}\nresources:"))


NAME = ("study.yaml:1: study:", "letters, digits")
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(8)
)
# A case a line, however long: a table is read by its columns.
# fmt: off
CASES = [
    # text that is no YAML, or not one plain document
    Case("empty", whole(""), "study.yaml:1:", "hpsearch init"),
    Case("comments only", whole("\n# nothing\n"), "study.yaml:1:", "hpsearch init"),
    Case("a NUL", whole(STUDY.replace("7", "\0")), "study.yaml:2:", "remove it"),
    Case("a control character", whole(STUDY.replace("flowers", "flow\x07ers")), "study.yaml:1:", "remove it"),
    Case("UTF-16", whole(STUDY.encode("utf-16")), "study.yaml:1:", "save it as UTF-8, such as with: iconv -f UTF-16"),
    Case("Latin-1", whole(STUDY.replace("flowers", "fl\xf6wers").encode("latin-1")), "study.yaml:1:", "UTF-8"),
    Case("gzip", whole(gzip.compress(STUDY.encode())), "study.yaml:1:", "save it as UTF-8"),
    Case("binary", whole(bytes(range(256)) * 10), "study.yaml:2:", "save it as UTF-8"),
    Case("a list", whole("[1, 2, 3]"), "study.yaml:1:", "must be a mapping that starts with study:"),
    Case("a word", whole("hello"), "study.yaml:1:", "must be a mapping that starts with study:"),
    Case("tabs", changed(("  kind", "\tkind")), "study.yaml:4:", "indent with spaces"),
    Case("never closed", changed(("gpu: 0}", "gpu: 0")), "study.yaml:20:", "check indentation, quotes and brackets"),
    Case("two documents", whole(f"{STUDY}---\n{STUDY}"), "study.yaml:20:", "keep one document"),
    Case("a tag that runs code", changed(("seed: 7", "seed: !!python/object/apply:os.system ['touch x']")),
         "study.yaml:2:", "without tags"),
    Case("a tag of one's own", changed(("seed: 7", "seed: !x 7")), "study.yaml:2:", "without tags"),
    Case("a billion aliases", whole(ALIASES), "study.yaml:1:", "shorten the file or its aliases"),
    Case("nested without end", whole("study: " + "[" * 5000), "study.yaml:1:", "use fewer levels"),
    Case("contains itself", whole("study: &a [*a]\n"), "study.yaml:1:", "contains itself"),
    Case("an unknown alias", changed(("seed: 7", "seed: *nope")), "study.yaml:2:", "found undefined alias"),
    Case("a key twice", whole(f"{STUDY}seed: 8\n"), "study.yaml:20: seed", "keep one"),
    # not a file
    Case("no file", replaced("study.yaml", lambda path: None), "study.yaml", "hpsearch init"),
    Case("a folder", replaced("study.yaml", os.mkdir), "study.yaml is a folder", "name a file"),
    Case("a pipe", replaced("study.yaml", os.mkfifo), "study.yaml is not a plain file", "name a file"),
    Case("a link to itself", replaced("study.yaml", lambda path: path.symlink_to(path.name)),
         "study.yaml", "check the path"),
    Case("a device", nothing, "/dev/zero is not a plain file", "name a file", ("check", "/dev/zero")),
    Case("a name of 300 letters", nothing, "x" * 300, "check the path", ("check", "x" * 300)),
    Case("a name that is no UTF-8", nothing, ".yaml", "hpsearch init", ("check", "a\udcff.yaml")),
    # names
    Case("name ../", named("../../etc"), *NAME),
    Case("name absolute", named("/etc/passwd"), *NAME),
    Case("name .", named("'.'"), *NAME),
    Case("name ..", named("'..'"), *NAME),
    Case("name backslash", named("a\\b"), *NAME),
    Case("name of 300 letters", named("x" * 300), *NAME),
    Case("name with a Cyrillic letter", named("fl\u043ewers"), *NAME),
    Case("name with a slash look-alike", named("a\u2215b"), *NAME),
    Case("name with full-width dots", named("\uff0e\uff0e"), *NAME),
    Case("name from right to left", named("a\u202eb"), *NAME),
    Case("name with a zero-width space", named("a\u200bb"), *NAME),
    Case("name with a NUL", named('"a\\0b"'), *NAME),
    Case("name with a newline", named('"a\\nb"'), *NAME),
    Case("name with a terminal's escape", named('"a\\e[31m"'), *NAME),
    Case("name with a script", named('"<script>alert(1)</script>"'), *NAME),
    Case("name like an option", named("--help"), *NAME),
    Case("name empty", named('""'), *NAME),
    # values; other mistakes are in tests/unit/study_file/test_checks.py
    Case("unknown key", changed(("seed", "sede")), "study.yaml:2: sede:", "did you mean seed?"),
    Case("kind misspelt", changed(("text_classification", "text_clasification")), "study.yaml:4: task.kind:", "did you"),
    Case("number that YAML reads as text", changed(("low: 1.0e-5", "low: 1e-5")), "study.yaml:13:", "write 1.0e-5"),
    Case("seed of 5,000 digits", changed(("7", "9" * 5000)), "study.yaml:2: seed:", "put it in quotes"),
    Case("seed of 30 digits", changed(("7", "9" * 30)), "study.yaml:2: seed:", "should be less than"),
    Case("seed below zero", changed(("7", "-1")), "study.yaml:2: seed:", "greater than or equal to 0"),
    Case("kind that is a list", changed(("text_classification", "[a]")), "study.yaml:4: task.kind:", "known are"),
    Case("path that is a number", changed(("data/train.csv", "7")), "study.yaml:5: task.train:", "must be text"),
    Case("path of 5,000 letters", changed(("data/train.csv", "x" * 5000 + ".csv")), "study.yaml:5:", "check the path"),
    Case("fraction of 2", changed(("0.25", "2")), "study.yaml:6: task.validation:", "between 0 and 1"),
    Case("fraction that is no number", changed(("0.25", ".nan")), "study.yaml:6:", "between 0 and 1"),
    Case("model that is missing", changed(("{scratch: {layers: 1, width: 16}}", "./nowhere")),
         "study.yaml:9: task.model:", "a hub id"),
    Case("model with a NUL", changed(("{scratch: {layers: 1, width: 16}}", '"a\\0b"')), "study.yaml:9:", "a hub id"),
    Case("model of no layers", changed(("layers: 1", "layers: 0")), "study.yaml:9: task.model.scratch.layers:", "above 0"),
    Case("setting of another kind", changed(("cosine", "cos")), "study.yaml:11: settings.schedule:", "must be one of"),
    Case("setting out of bounds", changed(("schedule: cosine", "max_length: 1000000000")), "study.yaml:11:", "at most"),
    Case("20,000 choices", changed(("[2, 4]", str(list(range(20_000))))), "study.yaml:14:", "at least 1"),
    Case("parameter of SQL", changed(("batch_size:", "'batch size; DROP TABLE trials':")), "study.yaml:14:", "known are"),
    Case("checkpoints in no store", also("checkpoints: nosuch://bucket"), "nosuch://bucket", "give a folder"),
    Case("checkpoints that may take nothing", also("checkpoints: {max_gb: 0}"),
         "study.yaml:19: checkpoints.max_gb:", "greater than 0"),
    Case("checkpoints with a misspelt limit", also("checkpoints: {max_gbs: 3}"),
         "study.yaml:19: checkpoints.max_gbs:", "did you mean max_gb?")
]
