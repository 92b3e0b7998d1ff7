"""Command lines that cannot be: options, names, expressions, URLs and places to write."""

import gzip
import os
from contextlib import closing
from pathlib import Path

from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Outcome, StudyRecord, Trial
from hpsearch.store.store import Store
from malformed import STUDY, TABLE, Case, both, nothing, written


def study(folder: Path) -> None:
    """A database with a study of three trials."""
    with closing(Store.open(f"sqlite:///{folder}/study.db")) as store:
        record = StudyRecord(0, "flowers", STUDY, ("maximize",), base=str(folder))
        record.checkpoints = str(folder / "checkpoints")
        store.create_study(record)
        trials = [
            Trial(n, State.COMPLETE, {"lr": 0.1 * n}, value=n / 10, resource=1.0, gpu_seconds=1.0)
            for n in range(3)
        ]
        attempts = [
            Attempt(n, 1, "w", 1.0, ended=2.0, outcome=Outcome.COMPLETE, gpu_seconds=1.0)
            for n in range(3)
        ]
        store.commit(record.id, Changes(trials=trials, attempts=attempts))


RUN = ("run", "study.yaml")
INIT = ("init", "new.yaml", "--train", "new.csv")
HELP = "Try 'hpsearch"
DIGITS = "9" * 30
# A case a line, however long: a table is read by its columns.
# fmt: off
CASES = [
    # options and arguments
    Case("no such command", nothing, "'serach'", HELP, ("serach",)),
    Case("no such option", study, "--tops", "--top", ("best", "--tops", "3")),
    Case("an argument missing", nothing, "'STUDY'", HELP, ("run",)),
    Case("an argument too many", nothing, "(other)", HELP, ("check", "study.yaml", "other")),
    Case("none of the best", study, "'--top'", "greater than or equal to 1", ("best", "--top", "0")),
    Case("many of the best", study, "'--top'", "valid integer", ("best", "--top", "many")),
    Case("30 digits of the best", study, "'--top'", "less than or equal", ("best", "--top", DIGITS)),
    Case("30 digits of trials", study, "'--limit'", "less than or equal", ("trials", "--limit", DIGITS)),
    Case("a limit below zero", study, "'--limit'", "greater than or equal", ("trials", "--limit", "-1")),
    Case("a format", study, "'xml'", "'table', 'json', 'yaml', 'csv'", ("best", "--format", "xml")),
    Case("no workers", nothing, "--workers 0", "whole number from 1", (*RUN, "--workers", "0")),
    Case("workers below zero", nothing, "--workers -1", "whole number from 1", (*RUN, "--workers", "-1")),
    Case("a superscript of workers", nothing, "--workers ²", "whole number from 1", (*RUN, "--workers", "²")),
    Case("30 digits of workers", nothing, "--workers 999", "to 100000", (*RUN, "--workers", DIGITS)),
    Case("a port", study, "'--port'", "less than or equal to 65535", ("dashboard", "--port", "99999")),
    # the database's URL
    Case("a storage that is a word", nothing, "not given as a database URL", "use sqlite", ("ls", "--storage", "hello")),
    Case("no storage", nothing, "not given as a database URL", "use sqlite", ("ls", "--storage", "")),
    Case("another database", nothing, "mysql", "use sqlite", ("ls", "--storage", "mysql://u:secret@h/d")),
    Case("two slashes", nothing, "does not name a file", "three slashes", ("ls", "--storage", "sqlite://study.db")),
    Case("options for SQLite", nothing, "mode", "leave out", ("ls", "--storage", "sqlite:///x.db?mode=rwc&uri=true")),
    Case("a port that is a word", nothing, "database URL", "use sqlite", ("ls", "--storage", "postgresql://u:p@h:port/d")),
    Case("no server", nothing, "u:***@127.0.0.1:1/d", "check the URL",
         ("ls", "--storage", "postgresql://u:secret@127.0.0.1:1/d"), 3),
    Case("an unknown option for PostgreSQL", nothing, '"nonsense"', "check the options after the ?",
         ("ls", "--storage", "postgresql://u:secret@127.0.0.1:1/d?nonsense=1")),
    Case("a database in memory", nothing, "sqlite://", "name another", ("ls", "--storage", "sqlite://")),
    Case("a folder that is missing", nothing, "nowhere does not exist", "mkdir -p",
         ("db", "upgrade", "--storage", "sqlite:///nowhere/x.db")),
    Case("no database", nothing, "study.db", "--storage", ("best", "flowers")),
    # expressions
    Case("half a test", study, "lr <\n        ^", "expected a value", ("trials", "--where", "lr <")),
    Case("an unknown column", study, "'lrr'", "did you mean lr?", ("trials", "--where", "lrr < 1")),
    Case("another statement", study, "';' means nothing here", "^", ("trials", "--where", "lr<1; DROP TABLE trials")),
    Case("a union", study, "'UNION'", "expected 'and', 'or'", ("trials", "--where", "lr < 1 UNION SELECT 1")),
    Case("a comment", study, "'-' calculates", "only conditions in a study file calculate", ("trials", "--where", "lr < 1 -- x")),
    Case("a quote never closed", study, "never closed", "^", ("trials", "--where", "state = 'x")),
    Case("a function", study, "'('", "such as:", ("trials", "--where", "load_extension('x') = 1")),
    Case("an order by nothing", study, "'nothing'", "known are", ("trials", "--sort", "nothing")),
    Case("an order and a statement", study, "';' means nothing here", "^", ("trials", "--sort", "lr; DROP TABLE x")),
    # studies and trials
    Case("an unknown study", study, "flower in", "did you mean flowers?", ("best", "flower")),
    Case("a study with a NUL", study, "no study is named", "did you mean", ("best", "flo\0wers")),
    Case("a study that is no UTF-8", study, "no study is named", "known are flowers", ("best", "\udcff")),
    Case("a study of SQL", study, "' OR '1'='1", "known are flowers", ("best", "x' OR '1'='1")),
    Case("a study in another folder", study, "../../x", "known are flowers", ("status", "../../x")),
    Case("a trial that is a word", study, "'flowers seven'", "for example: hpsearch show", ("show", "flowers", "seven")),
    Case("a trial that is missing", study, "no trial 99", "it has trials 0 to 2", ("show", "flowers", "99")),
    Case("a trial of 5,000 digits", study, "the number of a trial", "for example", ("show", "flowers", "9" * 5000)),
    Case("a trial to train that is missing", study, "no trial 99", "0 to 2", ("train", "flowers", "--trial", "99")),
    Case("a trial to train of 30 digits", study, "'--trial'", "less than", ("train", "flowers", "--trial", DIGITS)),
    Case("a study to remove", study, "remove study flowers", "--yes", ("rm", "flowers")),
    Case("a study to stop", study, "other", "known are flowers", ("stop", "other")),
    Case("a study to resume", study, "other", "known are flowers", ("resume", "other")),
    Case("a study to look at", study, "other", "known are flowers", ("dashboard", "other", "--port", "0")),
    Case("a study that is there", study, "flowers is already", "hpsearch resume flowers", RUN),
    # what is written and read
    Case("an export of another kind", study, "out.xlsx", "--to out.csv", ("export", "--to", "out.xlsx")),
    Case("an export that is there", both(study, written("out.csv", "x")), "out.csv already exists", "--force",
         ("export", "--to", "out.csv")),
    Case("an export to nowhere", study, "nowhere/out.csv", "check the folder", ("export", "--to", "nowhere/out.csv")),
    Case("an export of 300 letters", study, "too long", "choose another", ("export", "--to", "x" * 300 + ".csv")),
    Case("an unknown starter", nothing, "'nothing'", "use one of", ("init", "x.yaml", "--kind", "nothing")),
    Case("a study file that is there", nothing, "study.yaml already exists", "--force", ("init", "study.yaml")),
    Case("a study file nowhere", nothing, "nowhere/", "check the folder", ("init", "nowhere/x.yaml")),
    Case("a study file of 300 letters", nothing, "too long", "choose another", ("init", "x" * 300)),
    Case("columns of no file", nothing, "new.csv", "check the path", INIT),
    Case("columns of gzip", written("new.csv", gzip.compress(TABLE.encode())), "byte 0x8b", "save it as UTF-8", INIT),
    Case("columns of a pipe", lambda folder: os.mkfifo(folder / "new.csv"), "not a plain file", "name a file", INIT),
    Case("an address without a port", nothing, "'nothing'", "use host:6379", (*RUN, "--address", "nothing")),
    Case("an address of port 99999", nothing, "'h:99999'", "use host:6379", (*RUN, "--address", "h:99999")),
    Case("an address of Ray's client", nothing, "names no host and port", "use host:6379", (*RUN, "--address", "ray://h:10001")),
    Case("an address where nobody is", nothing, "127.0.0.1:1", "check the address", (*RUN, "--address", "127.0.0.1:1"), 3),
    Case("checkpoints in no store", nothing, "nosuch://x", "give a folder", (*RUN, "--checkpoints", "nosuch://x")),
    Case("checkpoints in a file", written("file", ""), "file is not a folder", "name another", (*RUN, "--checkpoints", "file")),
    Case("checkpoints below a file", written("file", ""), "file is not a folder", "name another",
         (*RUN, "--checkpoints", "file/below")),
    Case("checkpoints in another study's folder", written("hpsearch-study.json", '{"study": "trees", "uid": "1"}'),
         "another study, trees", "name another", (*RUN, "--checkpoints", ".")),
    Case("checkpoints in a folder with a damaged mark", written("hpsearch-study.json", "{"),
         "cannot be read", "name another", (*RUN, "--checkpoints", ".")),
    Case("checkpoints with a NUL", nothing, "a\\x00b", "name a folder", (*RUN, "--checkpoints", "a\0b")),
]
