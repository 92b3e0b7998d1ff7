"""A `report:` pattern for the lines that a command has printed, where none was a report."""

import re
from collections.abc import Iterator, Sequence

import yaml

from trials.descriptions.report_pattern import NUMBER, RESOURCE, ReportPattern

_LABELLED = re.compile(
    rf"(?P<label>(?P<name>(?:(?:train(?:ing)?|val(?:id(?:ation)?)?|test|eval)\s+)?[A-Za-z][\w./@-]*)['\"\]]?\s*[:=]?\s*\[?\(?#?)(?P<number>{NUMBER})(?![\w.])"
)
"""A number with the word before it."""
_COUNTED = re.compile(r"epoch|step|iter|round|batch|update|resource|(?:^|_)ep$|(?:^|_)it$", re.I)
"""In the names of numbers that say how far a training is."""
_VALIDATION = re.compile(r"(?:val(?:id(?:ation)?)?|eval|test|dev)(?![a-z])", re.I)


def proposed(lines: Sequence[str], metric: str) -> str | None:
    """The pattern of a study's metric that most lines match, as YAML, with the line that shows it;
    None if no line has both a count and another number."""
    found: dict[str, list[str]] = {}
    for text in reversed(lines):
        for pattern in _patterns_in(text, metric):
            matched = [line for line in lines if ReportPattern(pattern).numbers_in(line)]
            found[pattern] = matched
    if not found:
        return None
    best = max(found, key=lambda pattern: (f"{{{metric}}}" in pattern, len(found[pattern])))
    quoted = yaml.safe_dump(best, default_style="'", allow_unicode=True, width=10_000).strip()
    return f"report: {quoted}   # matches {found[best][-1].strip()[:80]}"


def _patterns_in(text: str, metric: str) -> Iterator[str]:
    numbers = list(_LABELLED.finditer(text))
    count = next((each for each in numbers if _COUNTED.search(each["name"])), None)
    others = [each for each in numbers if each is not count]
    if count is None or not others:
        return
    measured = max(others, key=lambda each: _rank(each["name"], metric))
    is_metric = _likeness(measured["name"], metric) > 0 or len(others) == 1
    name = metric if is_metric else re.sub(r"\s+", "_", measured["name"])
    from_0 = float(count["number"]) == 0
    named = {count: f"{{{RESOURCE}{'+1' if from_0 else ''}}}", measured: f"{{{name}}}"}
    if name != RESOURCE:
        ordered = sorted(named, key=lambda each: each.start())
        yield ".*".join(_label(each["label"]) + named[each] for each in ordered)


def _label(text: str) -> str:
    words = re.split(r"\s+", text)
    return r"\s*".join(map(re.escape, words))


def _rank(name: str, metric: str) -> tuple[int, bool]:
    """The most alike comes first, and of those of validation data."""
    return _likeness(name, metric), bool(_VALIDATION.match(name))


def _likeness(name: str, metric: str) -> int:
    own, wanted = (re.findall(r"[a-z]+\d*", each.lower()) for each in (name, metric))
    alike: int = sum(a[:3] == b[:3] for a in own for b in wanted)
    return 2 * (name == metric) + alike
