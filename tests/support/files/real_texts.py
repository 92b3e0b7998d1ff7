"""Real texts and code that every Python brings: its reference manual and its library."""

import inspect
import io
import itertools
import keyword
import re
import tokenize
from pydoc_data import topics
from types import ModuleType

import pandas as pd

CHAPTERS = ("compound", "specialnames", "string-methods", "debugger", "typesseq")
FEWEST_WORDS = 8


def paragraphs(chapter: str) -> list[str]:
    """The paragraphs of a chapter of the reference manual, in one line each."""
    parts = re.split(r"\n\s*\n", topics.topics[chapter])
    lines = [" ".join(part.split()) for part in parts]
    return [line for line in lines if len(line.split()) >= FEWEST_WORDS]


def by_chapter() -> pd.DataFrame:
    """Paragraphs (`text`) with the chapter (`topic`) that alone has them, in a random order."""
    rows = [(line, chapter) for chapter in CHAPTERS for line in paragraphs(chapter)]
    frame = pd.DataFrame(rows, columns=["text", "topic"]).drop_duplicates("text")
    return frame.sample(frac=1.0, random_state=0).reset_index(drop=True)


def calls_in(*modules: ModuleType) -> pd.DataFrame:
    """Lines of code as words (`tokens`), and which of them name what is called (`tags`, IOB2): the
    three words of ``self.parse(`` before its bracket."""
    rows = []
    for module in modules:
        words: list[str] = []
        source = io.StringIO(inspect.getsource(module))
        for token in tokenize.generate_tokens(source.readline):
            if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER):
                words.append(token.string)
            elif token.type == tokenize.NEWLINE:
                if 3 < len(words) < 24:
                    rows.append((words, _tags(words)))
                words = []
    return pd.DataFrame(rows, columns=["tokens", "tags"])


def _tags(words: list[str]) -> list[str]:
    tags = ["O"] * len(words)
    for place, (name, bracket) in enumerate(itertools.pairwise(words)):
        if bracket != "(" or not name.isidentifier() or keyword.iskeyword(name):
            continue
        begin = place
        while begin > 1 and words[begin - 1] == "." and words[begin - 2].isidentifier():
            begin -= 2
        tags[begin] = "B-CALL"
        tags[begin + 1 : place + 1] = ["I-CALL"] * (place - begin)
    return tags
