"""Past runs that cannot be imported, and search files that cannot become study files."""

from pathlib import Path

from malformed import Case, Make, nothing, written

GOOD = "id,lr,loss,epoch,state\na,0.1,0.5,1,done\nb,0.2,0.6,1,done\n"
NAMED = ("import", "runs.csv", "--name", "old", "--params", "lr")
MEASURED = ("--metric", "loss", "--direction", "minimize")
CSV = (*NAMED, *MEASURED)
SWEEP = "program: train.py\nmetric: {name: loss}\n"
SPEC = ("init", "--from", "sweep.yaml", "made.yaml")


def runs(content: bytes | str) -> Make:
    return written("runs.csv", content)


def folder(name: str) -> Make:
    def make(place: Path) -> None:
        (place / name).mkdir()

    return make


# A case a line, however long: a table is read by its columns.
# fmt: off
CASES = [
    # the command line
    Case("no such source", nothing, "no such file: nothing.csv", "nothing.csv", ("import", "nothing.csv", *CSV[2:])),
    Case("a source of another kind", written("runs.txt", "a"), "runs.txt is not a source that is known", ".csv", ("import", "runs.txt", *CSV[2:])),
    Case("a folder", folder("runs"), "runs is not a source that is known", ".csv", ("import", "runs", *CSV[2:])),
    Case("a name that is none", runs(GOOD), "--name a b", "letters, digits", ("import", "runs.csv", "--name", "a b", *CSV[4:])),
    Case("no metric", runs(GOOD), "no metric is named to compare the runs by", "--metric NAME", NAMED),
    Case("no direction", runs(GOOD), "1 metrics and 0 directions", "--direction minimize", (*NAMED, "--metric", "loss")),
    Case("an odd direction", runs(GOOD), "--direction down", "minimize or maximize", (*NAMED, "--metric", "loss", "--direction", "down")),
    Case("two metrics and one direction", runs(GOOD), "2 metrics and 1 directions", "for each --metric", (*CSV, "--metric", "epoch")),
    Case("no parameters", runs(GOOD), "which columns of runs.csv are parameters", "--params", ("import", "runs.csv", "--name", "old", *MEASURED)),
    Case("parameters twice", runs(GOOD), "lr appears twice", "--params", (*CSV, "--params", "lr=loss")),
    Case("a parameter without a column", runs(GOOD), '--params "lr="', "NAME=COLUMN", ("import", "runs.csv", "--name", "old", "--params", "lr=", *MEASURED)),
    Case("a study of a table", runs(GOOD), "--study is for a storage of Optuna's", "leave it out", (*CSV, "--study", "a")),
    # tables
    Case("an empty table", runs(""), "runs.csv is empty", "name a file with data", CSV),
    Case("a header alone", runs("lr,loss\n"), "runs.csv has no rows", "a header and a row", CSV),
    Case("a missing column", runs(GOOD.replace("loss", "los")), "loss: did you mean los?", "lacks columns", CSV),
    Case("a column twice", runs("lr,lr,loss\n1,2,3\n"), "its header names the column 'lr' twice", "runs.csv", CSV),
    Case("a row that is long", runs(f"{GOOD}c,0.3,1,1,done,9\n"), "runs.csv cannot be read as CSV", "line 4, saw 6", CSV),
    Case("another encoding", runs(GOOD.encode() + b"\xff,1,1,1,done\n"), "runs.csv is not UTF-8", "save it as UTF-8", CSV),
    Case("a table of UTF-16 without a mark", runs(GOOD.encode("utf-16-le")), "runs.csv", "iconv -f UTF-16LE -t UTF-8", CSV),
    Case("a table that is compressed", runs(b"\x1f\x8b\x08\x00abc"), "runs.csv is not UTF-8", "save it as UTF-8", CSV),
    Case("no Parquet", written("runs.parquet", "PAR1 no"), "runs.parquet cannot be read as PARQUET", "runs.parquet", ("import", "runs.parquet", *CSV[2:])),
    Case("a result that is a word", runs(GOOD.replace("0.5", "low")), "runs.csv row 1: loss is 'low'", "not a number", CSV),
    Case("no result", runs(GOOD.replace("0.5", "")), "runs.csv row 1: is complete and has no loss", "nothing was imported", CSV),
    Case("a run twice", runs(GOOD.replace("b,", "a,")), "runs.csv row 2: a occurs twice, first at runs.csv row 1", "remove one", (*CSV, "--run", "id")),
    Case("an odd state", runs(GOOD.replace("done\nb", "dome\nb")), "runs.csv row 1: state: 'dome' is not a known state", "did you mean done?", (*CSV, "--state", "state")),
    # search files
    Case("no search file", nothing, "sweep.yaml: there is no such file", "check the path", SPEC),
    Case("YAML of another kind", written("a.yaml", "a: 1\n"), "a.yaml has no parameters", "name a sweep of W&B", ("init", "--from", "a.yaml", "made.yaml")),
    Case("a study file already", nothing, "study.yaml is a study file already", "hpsearch check", ("init", "--from", "study.yaml", "made.yaml")),
    Case("broken YAML", written("a.yaml", "a: {\n"), "a.yaml:", "problem found", ("init", "--from", "a.yaml", "made.yaml")),
    Case("a sweep of nothing", written("a.yaml", f"{SWEEP}parameters: {{}}\n"), "a.yaml:3: parameters: ", "must be a mapping of names", ("init", "--from", "a.yaml", "made.yaml")),
    Case("a sweep of odd things", written("a.yaml", "parameters: {x: {distribution: odd}, y: 3}\n"), "a.yaml:1: parameters.x: has the distribution 'odd'", "parameters.y: must be a mapping", ("init", "--from", "a.yaml", "made.yaml")),
    Case("a study file that is there", written("sweep.yaml", f"{SWEEP}parameters: {{x: {{values: [1, 2]}}}}\n"), "study.yaml already exists", "--force", ("init", "--from", "sweep.yaml"))
]
# fmt: on
