"""Study files that cannot be: broken text, YAML that is none, names that are no names, values that
make no sense."""

from __future__ import annotations

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
    Case("name that is a number", named("1234"), "study.yaml:1: study:", "put it in quotes"),
    # values
    Case("seed of 5,000 digits", changed(("7", "9" * 5000)), "study.yaml:2: seed:", "put it in quotes"),
    Case("seed of 30 digits", changed(("7", "9" * 30)), "study.yaml:2: seed:", "must be below"),
    Case("seed below zero", changed(("7", "-1")), "study.yaml:2: seed:", "at least 0"),
    Case("unknown key", changed(("seed", "sede")), "study.yaml:2: sede:", "did you mean seed?"),
    Case("kind misspelt", changed(("text_classification", "text_clasification")), "study.yaml:4: task.kind:", "did you"),
    Case("kind that is a list", changed(("text_classification", "[a]")), "study.yaml:4: task.kind:", "known are"),
    Case("path that is a number", changed(("data/train.csv", "7")), "study.yaml:5: task.train:", "must be text"),
    Case("path of 5,000 letters", changed(("data/train.csv", "x" * 5000 + ".csv")), "study.yaml:5:", "check the path"),
    Case("fraction of 2", changed(("0.25", "2")), "study.yaml:6: task.validation:", "between 0 and 1"),
    Case("fraction that is no number", changed(("0.25", ".nan")), "study.yaml:6:", "between 0 and 1"),
    Case("model that is missing", changed(("{scratch: {layers: 1, width: 16}}", "./nowhere")),
         "study.yaml:9: task.model:", "a hub id"),
    Case("model with a NUL", changed(("{scratch: {layers: 1, width: 16}}", '"a\\0b"')), "study.yaml:9:", "a hub id"),
    Case("model of no layers", changed(("layers: 1", "layers: 0")), "study.yaml:9: task.model.scratch.layers:", "above 0"),
    Case("setting unknown", changed(("schedule:", "shedule:")), "study.yaml:11: settings.shedule:", "did you mean"),
    Case("setting of another kind", changed(("cosine", "cos")), "study.yaml:11: settings.schedule:", "must be one of"),
    Case("setting out of bounds", changed(("schedule: cosine", "max_length: 1000000000")), "study.yaml:11:", "at most"),
    Case("bounds swapped", changed(("low: 1.0e-5, high: 1.0e-3", "low: 1.0e-3, high: 1.0e-5")),
         "study.yaml:13: space.learning_rate.low:", "swap them"),
    Case("bound infinite", changed(("high: 1.0e-3", "high: .inf")), "study.yaml:13:", "must be a finite number"),
    Case("number that YAML reads as text", changed(("low: 1.0e-5", "low: 1e-5")), "study.yaml:13:", "write 1.0e-5"),
    Case("prior out of bounds", changed(("high: 1.0e-3", "high: 1.0e-3, prior: 1.0e-2")),
         "study.yaml:13: space.learning_rate.prior:", "must be from 1e-05 to 0.001"),
    Case("prior that is no choice", changed(("[2, 4]", "[2, 4], prior: 3")),
         "study.yaml:14: space.batch_size.prior:", "must be one of 2, 4"),
    Case("prior infinite", changed(("high: 1.0e-3", "high: 1.0e-3, prior: .nan")), "study.yaml:13:", "finite number"),
    Case("confidence misspelt", changed(("[2, 4]", "[2, 4], prior: 2, confidence: hihg")),
         "study.yaml:14: space.batch_size.confidence:", "'low', 'medium' or 'high'"),
    Case("prior that the sampler ignores", changed(("[2, 4]", "[2, 4], prior: 2"), ("resources:", "search: {sampler: tpe}\nresources:")),
         "study.yaml:14: space.batch_size.prior:", "use curve_gp, or remove prior"),
    Case("no choices", changed(("[2, 4]", "[]")), "study.yaml:14: space.batch_size.choices:", "at least one value"),
    Case("20,000 choices", changed(("[2, 4]", str(list(range(20_000))))), "study.yaml:14:", "at least 1"),
    Case("parameter of SQL", changed(("batch_size:", "'batch size; DROP TABLE trials':")), "study.yaml:14:", "known are"),
    Case("condition on itself", changed(("log: true}", "log: true, when: {learning_rate: 1.0}}")),
         "study.yaml:13: space.learning_rate.when.learning_rate:", "name another"),
    Case("metric misspelt", changed(("metric: accuracy", "metric: acuracy")), "study.yaml:15: objective", "did you mean"),
    Case("direction", changed(("maximize", "up")), "study.yaml:15: objective", "'minimize' or 'maximize'"),
    Case("no trials", changed(("trials: 4", "trials: 0")), "study.yaml:17: budget.trials:", "above 0"),
    Case("no end", changed(("  trials: 4\n", "")), "study.yaml:16: budget:", "give trials"),
    Case("two units", changed(("epochs: 1", "epochs: 1, steps: 2")), "study.yaml:18: budget.per_trial", "keep one"),
    Case("cost without a price", changed(("trials: 4", "cost: 5")), "study.yaml:17: budget.cost:", "cost_per_gpu_hour"),
    Case("wall clock", changed(("trials: 4", "wall_clock: soon")), "study.yaml:17: budget.wall_clock:", "such as 2h"),
    Case("wall clock in base 60", changed(("trials: 4", "wall_clock: 1:30")), "study.yaml:17:", "1h30m"),
    Case("sampler misspelt", also("search: {sampler: tpee}"), "study.yaml:19: search.sampler:", "did you mean tpe?"),
    Case("pruner's eta", also("search: {pruner: {kind: promotion, eta: 1}}"), "study.yaml:19: search", "at least 2"),
    Case("workers", changed(("workers: 1", "workers: 0")), "study.yaml:19: resources.workers:", "at least 1"),
    Case("enqueued outside the space", also("enqueue: [{learning_rate: 5}]"), "study.yaml:19: enqueue[0]", "must be from"),
    Case("checkpoints in no store", also("checkpoints: nosuch://bucket"), "nosuch://bucket", "give a folder"),
    Case("checkpoints that may take nothing", also("checkpoints: {max_gb: 0}"),
         "study.yaml:19: checkpoints.max_gb:", "above 0"),
    Case("checkpoints with a misspelt limit", also("checkpoints: {max_gbs: 3}"),
         "study.yaml:19: checkpoints.max_gbs:", "did you mean max_gb?")
]
