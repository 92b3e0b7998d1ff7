"""A study file from a command line: its numbers become parameters, and its length the budget."""

import ast
import math
import re
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hpsearch.errors import UserError
from hpsearch.study_file.starters import hydra_overrides
from hpsearch.study_file.starters.draft import flow
from hpsearch.study_file.starters.shell_loops import HINT, is_script
from hpsearch.study_file.starters.starters import quoted
from hpsearch.study_file.text import value_of
from trials.contract import Unit
from trials.descriptions.cells import number_in
from trials.descriptions.command_line import BUDGET, FOLDER, GIVEN, RESUME, SEED

_COUNTS = {
    Unit.EPOCHS: ("epoch",),
    Unit.STEPS: ("step", "iter", "updates"),
    Unit.SECONDS: ("seconds", "max_time"),
}
"""Parts of the names of flags that count a training in a unit."""
_WRITTEN = re.compile(
    r"(out|output|outputs|save|saved|ckpt|checkpoint|checkpoints|log|logging|logs|run|runs|result"
    r"|results|work|export|artifacts?|tensorboard|tb|onnx|snapshots?|experiments?)"
    r"(_?(dir|directory|path|folder|file|to|name|model|as))?|workdir|onnx_export|save_model_path"
)
"""Names of flags whose value is a place that the program writes to."""
_A_PLACE = re.compile(r"(dir|directory|path|folder|file|to)$|^(out|output|outputs|save|workdir)$")
"""The parts of these names that say so whatever the value looks like."""
_RESUMES = ("resume", "resume_from", "resume_from_checkpoint")
_FIXED = re.compile(
    r"worker|thread|port|gpu|device|node|nproc|proc|rank|print|log|verbos|every|interval|freq"
    r"|eval|valid|test|patience|milestone|t_max|(decay|step|schedule)_(iter|step|epoch|size)"
    r"|seed|random_state|save|load(?!ing)|checkpoint|ckpt|display|record|video|plot|keep|jobs|split"
    r"|(^|num_|n_|max_|gen_)samples?$|(^|_)world|^(year|version|id|limit|timeout)$"
)
"""Parts of the names of numbers that do not change the result, that a machine decides, that
measure, print or save, or that follow the length of a training."""
_FRACTIONS = re.compile(r"lr|.*(_lr|lr_).*|.*learning_rate.*|eta|.*decay|clip.*|.*_coef|alpha|tau")
"""Names of numbers that are fractions also where they are written as whole ones."""
_RATIOS = re.compile(r"dropout|drop_|smooth|warmup|ratio|prob|mix")
_PARTS = re.compile(
    r"sampl|colsample|fraction|quantile|percentile|threshold|clip_(coef|range|eps|ratio)|percent"
)
"""Names of shares that must be above 0."""
_NEAR_ONE = re.compile(
    r"momentum|beta|ema|gamma|(?<!reg_)lambda|polyak|discount|rho|tau|decay|alpha"
)
_SEEDS = re.compile(r"(random_|rand_|global_|manual_|rng_|torch_|np_)?seed|random_state")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_FLAG = re.compile(r"--?([A-Za-z][\w.-]*)")
_ASSIGNED = re.compile(r"((?:--?|\+{1,2})?([A-Za-z][\w./@:-]*)=)(.*)", re.DOTALL)
_SET = re.compile(r"[A-Za-z_]\w*=[^{}]*")  # before a program: a variable of its environment
_PROGRAM = re.compile(r".*\.py")
_ENDING = re.compile(r"\.[A-Za-z]\w*")
_SAFE = re.compile(r"[\w@%+=:,./{}-]+")
MOST_WHOLE = 10**9  # larger numbers are not searched as whole ones
Text = str  # YAML


@dataclass
class SearchedCommand:
    """A command line as a study that searches its numbers."""

    words: list[str] = field(default_factory=list)  # with placeholders
    space: dict[str, Text] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    """The values that the command line gives to the parameters."""
    choices: dict[str, Sequence[Any]] = field(default_factory=dict)
    """The grids of parameters that the command line has as variables."""
    unit: Unit = Unit.EPOCHS  # the unit of the budget
    total: str | None = None  # the budget; None if the command line has none
    fixed: list[str] = field(default_factory=list)  # the names of numbers that are left as they are
    is_hydra: bool = False
    """It is an application of Hydra, whose parameters are named as its keys are."""

    @property
    def first_values(self) -> dict[str, Any]:
        return {**self.values, **{name: each[0] for name, each in self.choices.items()}}

    @property
    def run(self) -> str:
        words = [word if _SAFE.fullmatch(word) else shlex.quote(word) for word in self.words]
        return " ".join(words)

    def as_names(self) -> dict[str, str]:
        lines = [f"  {name}: {text}" for name, text in self.space.items()]
        values = ", ".join(f"{name}: {_number(value)}" for name, value in self.values.items())
        tried = f"enqueue: [{{{values}}}]   # what the command line had is tried first\n"
        resumes = "\n  resumes: false   # true if it goes on from what it finds in {folder}"
        return {
            "run": quoted(self.run),
            "report": resumes if self.is_hydra else "",
            "space": "\n".join(lines),
            "enqueue": tried if values else "",
            "counted": self.unit.value,
            "total": self.total or "1",
        }


def found_in(
    line: str, grids: Mapping[str, Sequence[str]], folder: Path = Path()
) -> SearchedCommand:
    """Read a command line that runs in a folder and whose numbers are searched; where it has
    variables with a grid, such as `$lr`, or a multirun of Hydra, only these are. Raises UserError
    if it cannot be split, or has nothing to search."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UserError(f"--command cannot be split into words: {error}") from None
    found = SearchedCommand(is_hydra=hydra_overrides.is_application(words, folder))
    words = hydra_overrides.without_sweeper(words) if found.is_hydra else words
    sweeps = _sweeps_in(words) if found.is_hydra else {}
    fractions = set().union(*map(_fractions_in, filter(_PROGRAM.fullmatch, words)))
    begin = next((at for at, word in enumerate(words) if not _SET.fullmatch(word)), 0)
    found.words += ["env", *words[:begin]] if begin else []
    flag: str | None = None
    for word in words[begin:]:
        before, value = "", word
        assigned = _ASSIGNED.fullmatch(word)
        if assigned:
            before, flag, value = assigned.groups()
        escaped = word.replace("{", "{{").replace("}", "}}")
        if grids:
            placeholder = _with_grids(found, flag, value, grids)
        elif word in sweeps:
            placeholder = _swept(found, str(flag), sweeps[word])
        elif sweeps:
            placeholder = None if flag is None else _given(found, flag, value)
        else:
            placeholder = None if flag is None else _placeholder(found, flag, value, fractions)
        found.words.append(escaped if placeholder is None else before + placeholder)
        named = _FLAG.fullmatch(word)
        flag = named[1] if named and placeholder is None else None
    if found.is_hydra:
        found.words.append(hydra_overrides.RUN_FOLDER)
    if not found.space:
        what = "--command has no number after a flag that could be searched"
        script = next((word for word in found.words if is_script(word, "")), None)
        example = 'for example: hpsearch init --command "python train.py --lr 0.1"'
        raise UserError(what, f"for the loops of a script: --from {script}" if script else example)
    return found


def _fractions_in(program: str) -> set[str]:
    """The numbers of a Python file that take fractions, by the type or the default of arguments
    (`add_argument`, `option`) and by the values of names; nothing of a file that is not there."""
    try:
        tree = ast.parse(Path(program).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    found: dict[str, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = {each.arg: each.value for each in node.keywords}
            kind, default = given.get("type"), given.get("default")
            named = kind.id if isinstance(kind, ast.Name) else None
            is_fraction = named == "float" or (named is None and _is_fraction(default))
            flags = [each.value for each in node.args if isinstance(each, ast.Constant)]
            for flag in (each for each in flags if isinstance(each, str)):
                found[_plain(flag.lstrip("-"))] = is_fraction
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            for target in targets:
                if isinstance(target, ast.Name) and _is_fraction(node.value):
                    found.setdefault(target.id, True)
    return {name for name, is_fraction in found.items() if is_fraction}


def _is_fraction(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, float)


def _plain(flag: str) -> str:
    return re.sub(r"[-.]", "_", flag)


def _placeholder(
    found: SearchedCommand, flag: str, value: str, fractions: Container[str]
) -> str | None:
    """The placeholder in place of the value of a flag; None if the value stays."""
    given, number = _given(found, flag, value), _read(value)
    name = flag if found.is_hydra else _plain(flag)
    if given is not None or number is None or name in found.space:
        return given
    last = _last(found, flag)
    if last in fractions or _FRACTIONS.fullmatch(last):
        number = float(number)
    text = _range(_plain(flag), number)
    if text is None or name in GIVEN:
        found.fixed.append(name)
        return None
    found.space[name] = text
    found.values[name] = number
    return f"{{{name}}}"


def _given(found: SearchedCommand, flag: str, value: str) -> str | None:
    """The placeholder for what a study decides of every trial; None for any other value."""
    name, number = _last(found, flag), _read(value)
    if _SEEDS.fullmatch(name) and number is not None:
        return f"{{{SEED}}}"
    if name in _RESUMES:
        return f"{{{RESUME}}}"
    if _is_written(name.lower(), value, number):
        file = Path(value)
        return f"{{{FOLDER}}}/{file.name}" if _ENDING.fullmatch(file.suffix) else f"{{{FOLDER}}}"
    unit = _counted_by(name)
    if unit is not None and found.total is None and number is not None and number > 0:
        found.unit, found.total = unit, _number(number)
        return f"{{{BUDGET}}}"
    return None


def _last(found: SearchedCommand, flag: str) -> str:
    """The name of a flag that says what it is: of a nested key of Hydra the last part."""
    return _plain(flag.rpartition(".")[2] if found.is_hydra else flag)


def _sweeps_in(words: Iterable[str]) -> dict[str, hydra_overrides.Sweep]:
    """What a multirun sweeps, by the words."""
    overrides = filter(None, map(_ASSIGNED.fullmatch, words))
    swept = {each[0]: hydra_overrides.sweep_of(each[3]) for each in overrides}
    return {word: sweep for word, sweep in swept.items() if sweep is not None}


def _swept(found: SearchedCommand, key: str, sweep: hydra_overrides.Sweep) -> str:
    if _SEEDS.fullmatch(_last(found, key)):
        return f"{{{SEED}}}"
    found.space[key] = flow(sweep)
    found.choices[key] = sweep.get("choices") or [sweep["low"]]
    return f"{{{key}}}"


def _with_grids(
    found: SearchedCommand, flag: str | None, value: str, grids: Mapping[str, Sequence[str]]
) -> str | None:
    """A value with placeholders for its variables, whose grids are choices, and for the places and
    lengths that a study decides; None if the value stays."""
    name = _plain(flag or "")
    used, number = _VARIABLE.findall(value), _read(value)
    if flag is not None and _is_written(name.lower(), value, number):
        return f"{{{FOLDER}}}"
    if number is not None and _counted_by(name) is not None and found.total is None:
        return _placeholder(found, name, value, ())
    if not used:
        return None
    if _SEEDS.fullmatch(name):
        return f"{{{SEED}}}"
    for variable in used:
        if _SEEDS.fullmatch(variable.lower()):
            value = re.sub(rf"\$\{{?{variable}\}}?", f"{{{SEED}}}", value)
            continue
        if variable not in grids:
            raise UserError(f"${variable} in {value!r} has no plain values", HINT)
        choices = list(dict.fromkeys(value_of(each) for each in grids[variable]))
        found.space.setdefault(variable, f"{{type: categorical, choices: {flow(choices)}}}")
        found.choices.setdefault(variable, choices)
    return _VARIABLE.sub(r"{\1}", value)


def _is_written(name: str, value: str, number: float | None) -> bool:
    """True for the value of a flag that is a place which the program writes to."""
    if number is not None or not _WRITTEN.fullmatch(name):
        return False
    looks_like_one = "/" in value or bool(_ENDING.fullmatch(Path(value).suffix))
    return looks_like_one or bool(_A_PLACE.search(name))


def _counted_by(name: str) -> Unit | None:
    """The unit that a flag counts the training in; None for any other flag."""
    is_total = re.match(r"(num|max|n|total|train)_|[a-z]+s?$", name)
    if _FIXED.search(name) or "warmup" in name or not is_total:
        return None
    for unit, parts in _COUNTS.items():
        if any(part in name for part in parts):
            return unit
    return None


def _range(name: str, value: float) -> Text | None:
    """A range around a value; None if it should stay."""
    if _FIXED.search(name) or value < 0 or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return _whole_range(name, value)
    if _PARTS.search(name) and 0 < value <= 1:
        high = min(0.95 if value < 1 else 1.0, 2 * value)
        return f"{{type: float, low: {_number(value / 4)}, high: {_number(max(value, high))}}}"
    if _RATIOS.search(name) and value <= 1:
        return f"{{type: float, low: 0.0, high: {0.5 if value <= 0.5 else 1.0}}}"
    if _NEAR_ONE.search(name) and 0.5 <= value <= 1:
        apart = max(1 - value, 0.001)  # a tenth of it to ten times as much
        low, high = max(0.5, 1 - 10 * apart), 1 - apart / 10 if value < 1 else 1.0
        return f"{{type: float, low: {_number(min(low, value))}, high: {_number(high)}}}"
    if value == 0:
        return "{type: float, low: 0.0, high: 0.1}"
    return f"{{type: float, low: {_number(value / 10)}, high: {_number(value * 10)}, log: true}}"


def _whole_range(name: str, value: int) -> Text | None:
    if value == 0:
        return None
    if "batch" in name:
        choices = sorted({max(1, value // 2), value, 2 * value, 4 * value})
        return f"{{type: categorical, choices: {choices}}}"
    if value <= 8:
        return f"{{type: int, low: 1, high: {2 * value}}}"
    return f"{{type: int, low: {value // 4}, high: {value * 4}, log: true}}"


def _read(text: str) -> float | None:
    """The number that a word is; None for any other word."""
    number = number_in(text)
    if number is None or not math.isfinite(number):
        return None
    return number if abs(number) < MOST_WHOLE else float(number)


def _number(value: float) -> str:
    """A number as YAML reads it back: with a point before the exponent."""
    if isinstance(value, int):
        return str(value)
    text = repr(float(f"{value:.6g}"))
    return re.sub(r"^(-?\d+)e", r"\1.0e", text)


def remarks(found: SearchedCommand, *, has_reports: bool) -> Iterator[str]:
    if found.total is None:
        yield f"write {{{BUDGET}}} where the command states how long to train, and set per_trial"
    if found.fixed:
        yield f"left as they are: {', '.join(found.fixed)}"
    if has_reports:
        return
    yield 'the command must print a line such as {"resource": 1, "accuracy": 0.8} after each part;'
    yield "if it prints other lines, hpsearch check finds a pattern that reads them"
