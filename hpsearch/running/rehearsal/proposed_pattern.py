"""`report:` patterns for what a command has printed, where none of it was a report.

A number has its name before it, above it in the header of a table, or by its position, as the
counts of tqdm, XGBoost and CatBoost. A proposal says what a study would read with it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import yaml

from hpsearch.study_file.starters.starters import direction_of
from trials.contract import ProgramFailed, Unit
from trials.descriptions.report_pattern import NUMBER, RESOURCE, ReportPattern, visible
from trials.tasks.command.report_stream import PatternLines, ReportLine

MOST_LINES, MOST_METRICS, MOST_COUNTERS = 10_000, 6, 3  # limits of what patterns are tried with

_LABELLED = re.compile(
    r"(?P<label>(?<![\w./@-])(?P<name>(?:(?:train(?:ing)?|val(?:id(?:ation)?)?|dev|test|eval)\s+)?"
    r"[a-z](?:'s |[\w./@-])*)['\"\]]?\s*[:=|│]?\s*['\"]?(?:tensor|np\.float\d\d)?[\[(]?#?)"
    rf"(?<![\d.])(?P<number>{NUMBER})(?=(?:%|[mµ]?s)?(?![\w.]))",
    re.IGNORECASE,
)
"""A number with the word before it."""
_BAR = re.compile(r"%\|[^|]*\|\s*\d+/\d+ \[")
_ROUND = re.compile(r"(?P<begin>\[?)\d+(?P<end>\]|:)\s")
"""The counts of tqdm's bars, and of lines of XGBoost, LightGBM and CatBoost."""
_TIME = re.compile(r"\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?")
_VARYING = re.compile(r"[\d.,+-]+|[━█▏▎▍▌▋▊▉=>#\s]+")
_COUNTERS = {
    Unit.EPOCHS: re.compile(r"epoch|(?:^|[_/])ep$", re.IGNORECASE),
    Unit.STEPS: re.compile(r"step|iter|update|round|(?:^|[_/])it$", re.IGNORECASE),
}
_COUNTER = re.compile(r"epoch|step|iter|round|batch|update|resource|(?:^|_)(?:ep|it)$", re.I)
_LIMIT = re.compile(r"(?:max|min|num|every)_", re.IGNORECASE)
_NOT_A_METRIC = re.compile(
    r"(?:^|[_/ -])(?:lr|learning_rate|\w*time\w*|dur|duration|elapsed|eta|secs?|seconds?|speed|took"
    r"|mem\w*|fps|gpus?|cpus?|seed|size|params?|parameters|grad_?norm|rank|node|host|v_num|info"
    r"|debug|warning|error|patience|at|for|in|of|on|to|using|with"
    r"|samples|line|port|pid|version|device|cuda|total|s"
    r"|file|number|dataloader|remaining|hours?|min|minutes?)\d*$|\.(?:py|cc|cpp|log)$|per_sec"
    r"|(?:^|[_/ -])(?:best|num|n)[_ ]|^best$",
    re.IGNORECASE,
)
_PARTS = (
    (5, re.compile(r"(?<![a-z])val(?:id(?:ation)?)?(?![a-z])", re.IGNORECASE)),
    (4, re.compile(r"(?<![a-z])(?:dev|eval(?:uation)?)(?![a-z])", re.IGNORECASE)),
    (3, re.compile(r"(?<![a-z])test(?:ing)?(?![a-z])", re.IGNORECASE)),
    (1, re.compile(r"(?<![a-z])(?:train(?:ing)?|learn)(?![a-z])", re.IGNORECASE)),
)
"""The names of parts of the data; the higher, the better to compare trials by."""
UNNAMED = 2
NAME = "\0"  # stands for the name of a metric in a pattern
_HEADER = re.compile(r"(?!.*(?<![\w@/.-])\d).*(?:epoch|step|iter|round)", re.IGNORECASE)
_MARKS = {"[|│┃]": "|│┃", ",": ",", ";": ";", r"\t": "\t", r"\s": " "}
"""Expressions of marks between the cells of a table, and the marks."""


@dataclass(frozen=True)
class Number:
    """A number in a line, and the expressions around it."""

    name: str
    before: str
    position: int  # the letters before it; in a table, the columns
    after: str = ""
    part: tuple[int, str] | None = None
    """The position and the word before it that names a part of the data; None without one."""
    rank: int = UNNAMED  # that of the part
    mark: str = ""  # in a table, the expression between two cells

    @property
    def is_counter(self) -> bool:
        return _COUNTER.search(self.name) is not None and not _LIMIT.match(self.name)


@dataclass
class PrintedMetric:
    """A metric, and the patterns that may read it, with `\\0` for its name."""

    name: str
    rank: int
    patterns: dict[tuple[str, ...], None] = field(default_factory=dict)


@dataclass(frozen=True)
class ProposedPattern:
    """Patterns with the reports that they read, and the line of the last one."""

    metric: str
    patterns: Sequence[str]
    reports: Sequence[ReportLine]
    line: str

    @property
    def key(self) -> str:
        """The key of a study file, as YAML."""
        value = self.patterns[0] if len(self.patterns) == 1 else list(self.patterns)
        text: str = yaml.safe_dump(
            value, default_style="'", default_flow_style=True, allow_unicode=True, width=10_000
        )
        return f"report: {text.strip()}"

    @property
    def reading(self) -> str:
        """The reports in words."""
        last, count = self.reports[-1], len(self.reports)
        read = f"{self.metric} {last.metrics[self.metric]:g} at {last.resource:g}"
        reports = f"{count} report{'s' if count > 1 else ''}"
        return f"reads {reports}, at last {read}; matches {self.line.strip()[:80]}"


def proposals(lines: Sequence[bytes], metric: str, unit: Unit) -> list[ProposedPattern]:
    """Patterns for what a program has printed, the likeliest metric first; none where nothing says
    how far the training is, or nothing else is measured."""
    metrics = _metrics_in(_numbers_in(lines), unit)
    metrics.sort(key=lambda each: _likelihood(each, metric), reverse=True)
    is_alone = len({each.name for each in metrics}) == 1
    none_is_alike = not any(_likeness(each.name, metric) for each in metrics)
    with_digits = [line for line in lines if re.search(rb"\d", line)][:MOST_LINES]
    found: dict[str, ProposedPattern] = {}
    for each in metrics[:MOST_METRICS]:
        is_only_a_part = none_is_alike and not _words_of(each.name)
        may_be_it = is_alone and direction_of(each.name) == direction_of(metric)
        is_wanted = may_be_it or is_only_a_part or _likeness(each.name, metric) > 0
        name = metric if is_wanted else re.sub(r"'s |[^\w./@-]+", "_", each.name)
        tried = [_tried(patterns, name, with_digits) for patterns in each.patterns]
        useful = [proposal for proposal in tried if proposal is not None]
        if useful:
            best = max(useful, key=lambda proposal: len(proposal.reports))
            found.setdefault(best.key, best)
    most = max((len(each.reports) for each in found.values()), default=0)
    return [each for each in found.values() if 2 * len(each.reports) >= most]


def likeliest(names: Iterable[str], metric: str) -> str | None:
    """The name that is likeliest meant by that of a metric, or else best to compare trials by; None
    if none is of a metric."""
    known = [each for each in names if not (_COUNTER.search(each) or _NOT_A_METRIC.search(each))]
    found = [PrintedMetric(each, _rank_of(each)) for each in known]
    best = max(found, key=lambda each: _likelihood(each, metric), default=None)
    return None if best is None else best.name


def _likelihood(found: PrintedMetric, wanted: str) -> tuple[bool, int, int]:
    likeness, of_part = _likeness(found.name, wanted), _rank_of(wanted)
    is_part = of_part != UNNAMED and of_part == found.rank
    return likeness > 0, len(_PARTS) + 2 if is_part else found.rank, likeness


def _likeness(name: str, wanted: str) -> int:
    """How many words of two names are alike, without those that name a part of the data."""
    own, others = _words_of(name), _words_of(wanted)
    alike = [a[:3] == b[:3] or (len(b) > 2 and b in a) for a in own for b in others]
    return alike.count(True) + int(name == wanted)


def _words_of(name: str) -> list[str]:
    """The words of a name but for those that name a part of the data."""
    return [each for each in re.findall(r"[a-z]+\d*", name.lower()) if _rank_of(each) == UNNAMED]


def _rank_of(text: str) -> int:
    return next((rank for rank, words in _PARTS if words.search(text)), UNNAMED)


def _numbers_in(lines: Iterable[bytes]) -> list[list[Number]]:
    """The numbers of every line that differs from others in more than numbers."""
    found: dict[str, list[Number]] = {}
    header = ""
    for text in (visible(state) for line in lines for state in line.split(b"\r")):
        if _HEADER.match(text):
            header = text
        shape = f"{header}\n{_VARYING.sub('0', text)}"
        if shape not in found:
            found[shape] = list(_in_row(text, header)) or list(_in_line(text))
    return list(found.values())


def _in_row(text: str, header: str) -> Iterator[Number]:
    """The numbers of a row of a table, by its header."""
    mark = next((mark for mark, letters in _MARKS.items() if set(letters) & set(header)), None)
    if mark is None:
        return
    names, cells = (re.split(rf"\s*{mark}\s*", each.strip(" |│┃")) for each in (header, text))
    columns = list(zip(names, cells, strict=False))
    if len(cells) > len(names) or not any(_COUNTER.search(name) for name, _ in columns):
        return
    for position, (name, cell) in enumerate(columns):
        if ReportPattern("^{x}$").numbers_in(cell):
            rank = _rank_of(name)
            yield Number(name.strip("\"' "), "", position, rank=rank, mark=mark)
        elif _COUNTER.search(name):
            return


def _in_line(text: str) -> Iterator[Number]:
    """The numbers of a line by the words before them, and by their position."""
    text = _TIME.sub(lambda found: "_" * len(found[0]), text)
    words = [(each.start(), each[0]) for each in re.finditer(r"\b[a-z]+\b", text, re.IGNORECASE)]
    parts = [each for each in words if _rank_of(each[1]) != UNNAMED]
    for found in _LABELLED.finditer(text):
        before = r"\s*".join(map(re.escape, re.split(r"\s+", found["label"])))
        is_inside = re.search(rf"[./@-]{re.escape(found['name'])}", text)
        before = (r"(?<![\w./@-])" if is_inside else r"\b") + before
        rank, part = _rank_of(found["name"]), None
        if rank == UNNAMED:
            part = max((each for each in parts if each[0] < found.start()), default=None)
            rank = UNNAMED if part is None else _rank_of(part[1])
        yield Number(found["name"], before, found.start(), part=part, rank=rank)
    bar, count = _BAR.search(text), _ROUND.match(text)
    if bar is not None:
        yield Number("batch", r"%\|[^|]*\|\s*", bar.start(), "/")
    if count is not None:
        yield Number("round", f"^{re.escape(count['begin'])}", 0, re.escape(count["end"]))


def _joined(*named: tuple[Number, str]) -> str:
    """The pattern of numbers of one line, with their names in it."""
    ordered = sorted(named, key=lambda each: each[0].position)
    mark = ordered[0][0].mark
    if not mark:
        pieces = [(each.position, f"{each.before}{{{name}}}{each.after}") for each, name in ordered]
        for number, name in ordered:
            if number.part is not None and name != RESOURCE:
                pieces.append((number.part[0], rf"\b{number.part[1]}\b"))
        return ".*?".join(piece for _, piece in sorted(pieces))
    between, cell = (
        (r"\s+", r"\S+") if mark == r"\s" else (rf"\s*{mark}\s*", rf"[^{mark.strip('[]')}]*?")
    )
    text, column = (rf"^\s*{mark}\s*" if "|" in mark else r"^\s*"), 0
    for number, name in ordered:
        passed = number.position - column
        text += between if column else ""
        text += f"(?:{cell}{between}){{{passed}}}" if passed > 1 else passed * (cell + between)
        text += f"{{{name}}}"
        column = number.position + 1
    return rf"{text}(?:{between}|\s*$)"


def _metrics_in(lines: Iterable[Sequence[Number]], unit: Unit) -> list[PrintedMetric]:
    """The metrics of lines, with patterns of lines that count, too, or else of two lines."""
    found: dict[tuple[str, int], PrintedMetric] = {}
    alone: list[tuple[PrintedMetric, Number]] = []
    counters: dict[str, Number] = {}
    preference = _preference(unit)
    for numbers in lines:
        counter = min(filter(lambda each: each.is_counter, numbers), key=preference, default=None)
        if counter is not None:
            counters.setdefault(_joined((counter, RESOURCE)), counter)
        for number in numbers:
            if number.is_counter or _NOT_A_METRIC.search(number.name):
                continue
            place = number.name, number.rank
            metric = found.setdefault(place, PrintedMetric(*place))
            if counter is None:
                alone.append((metric, number))
            else:
                metric.patterns[(_joined((counter, RESOURCE), (number, NAME)),)] = None
    best = sorted(counters, key=lambda pattern: preference(counters[pattern]))[:MOST_COUNTERS]
    for metric, number in alone:
        for counter_pattern in best:
            pair = counter_pattern, _joined((number, NAME))
            metric.patterns |= dict.fromkeys((pair, pair[::-1]))
    return list(found.values())


def _preference(unit: Unit) -> Callable[[Number], tuple[bool, bool, int]]:
    """The order in which numbers are taken for the count of a training, the best first."""
    usual = _COUNTERS.get(unit, _COUNTERS[Unit.STEPS])

    def order(number: Number) -> tuple[bool, bool, int]:
        is_of_all = re.search(r"total|global|epoch", number.name, re.IGNORECASE)
        return usual.search(number.name) is None, is_of_all is None, number.position

    return order


def _tried(patterns: Sequence[str], name: str, lines: Sequence[bytes]) -> ProposedPattern | None:
    """The reports that patterns read; None without any. They may count from 0."""
    from_1 = [pattern.replace(NAME, name) for pattern in patterns]
    from_0 = [
        pattern.replace(f"{{{RESOURCE}}}", f"{{{RESOURCE}+1}}").replace(r"%\|", r"(?<!100)%\|", 1)
        for pattern in from_1
    ]
    for each in (from_1, from_0):
        try:
            reports, line = _read(each, lines)
        except (ProgramFailed, ValueError):
            continue
        if reports:
            return ProposedPattern(name, each, reports, line)
    return None


def _read(patterns: Sequence[str], lines: Sequence[bytes]) -> tuple[list[ReportLine], str]:
    """The reports of lines, and the last line with one."""
    reader = PatternLines([ReportPattern(each) for each in patterns], note=lambda remark: None)
    reports: list[ReportLine] = []
    shown = ""
    for line in [*lines, None]:
        for report in reader.held() if line is None else reader.reports_in(line):
            if not reports or report.resource > reports[-1].resource:
                reports.append(report)
                shown = shown if line is None else visible(line)
    return reports, shown
