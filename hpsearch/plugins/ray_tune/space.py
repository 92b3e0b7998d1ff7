"""Ray Tune's search spaces as the space of a study file, and the constants between them.

Ray Tune's own objects are read, so that every expression of a user's code means what it meant
there. Parts with no counterpart are refused.
"""

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ray.tune.search import sample

from hpsearch.errors import UserError

GRID = "grid_search"
Values = dict[str, Any]


@dataclass
class ReadSpace:
    """A `param_space` in a study file's terms."""

    space: dict[str, Values] = field(default_factory=dict)
    """The parameters by their dotted names, as a study file writes them."""
    constants: dict[str, Any] = field(default_factory=dict)
    """The values that are the same in every trial, nested as in the config."""
    grids: dict[str, list[Any]] = field(default_factory=dict)
    """The values of each `grid_search`, by its parameter."""
    tuples: list[str] = field(default_factory=list)
    """Parameters whose choices hold tuples, which a study file has as lists."""

    def grid_points(self) -> list[Values]:
        """Every combination of the grids' values; one empty one where there is no grid."""
        columns = [[(name, value) for value in values] for name, values in self.grids.items()]
        return [dict(point) for point in itertools.product(*columns)]


def read_space(param_space: Mapping[str, Any]) -> ReadSpace:
    """A `param_space` in a study file's terms. Raises UserError if it has no counterpart."""
    found = ReadSpace()
    _read_level(param_space, "", found.constants, found)
    if not found.space:
        what = "param_space has nothing to search"
        raise UserError(what, 'give at least one range, such as "lr": tune.loguniform(1e-5, 1e-1)')
    return found


def _read_level(
    level: Mapping[str, Any], prefix: str, constants: dict[str, Any], found: ReadSpace
) -> None:
    for key, value in level.items():
        name = prefix + _checked(key, prefix)
        if isinstance(value, sample.Categorical):
            found.space[name] = _categorical(name, value.categories, found)
        elif isinstance(value, sample.Domain):
            found.space[name] = _range(name, value)
        elif isinstance(value, Mapping) and set(value) == {GRID}:
            found.space[name] = _categorical(name, list(value[GRID]), found)
            found.grids[name] = list(found.space[name]["choices"])
        elif isinstance(value, Mapping):
            inner: dict[str, Any] = {}
            constants[key] = inner
            _read_level(value, f"{name}.", inner, found)
        else:
            constants[key] = _constant(name, value)


def _checked(key: Any, prefix: str) -> str:
    if isinstance(key, str) and key and "." not in key and not key.startswith(("$", "_tune")):
        return key
    place = prefix.rstrip(".") or "param_space"
    what = f"the key {key!r} of {place} cannot be part of a parameter's name"
    raise UserError(what, "use a text without a point, such as 'lr'")


def _range(name: str, domain: Any) -> Values:
    """A range of numbers. Ray Tune's of whole numbers ends below `upper`, unless it has steps."""
    hint = (
        "give a range of uniform, loguniform, randint or lograndint, and compute the rest from it"
    )
    if isinstance(domain, sample.Function):
        raise UserError(f"{name}: tune.sample_from cannot be carried over", hint)
    sampler = domain.get_sampler()
    step = None
    if isinstance(sampler, sample.Quantized):
        sampler, step = sampler.get_sampler(), sampler.q
    if isinstance(sampler, sample.Normal):
        raise UserError(f"{name}: a normal distribution has no bounds", hint)
    log = {"log": True} if isinstance(sampler, sample.LogUniform) else {}
    if log and step not in (None, 1):
        what = f"{name}: a logarithmic range with steps of {step} cannot be carried over"
        raise UserError(what, hint)
    if not isinstance(domain, sample.Integer):
        low, high = float(domain.lower), float(domain.upper)
        steps = {} if step is None or log else {"step": float(step)}
        return {"type": "float", "low": low, "high": high, **log, **steps}
    low, high = int(domain.lower), int(domain.upper)
    if step is None or step == 1:
        return {"type": "int", "low": low, "high": high - 1, **log}
    first, last = math.ceil(low / step) * step, math.floor(high / step) * step
    return {"type": "int", "low": first, "high": last, "step": int(step)}


def _categorical(name: str, choices: list[Any], found: ReadSpace) -> Values:
    if not choices:
        raise UserError(f"{name}: there is nothing to choose from", "give at least one value")
    has_tuples, has_lists = (_has_any(of, choices) for of in (tuple, list))
    if has_tuples and has_lists:
        what = f"{name}: its choices hold both lists and tuples"
        raise UserError(what, "a study keeps no difference between them: use one of the two")
    if has_tuples:
        found.tuples.append(name)
    plain = [_plain(choice) for choice in choices]
    for choice in plain:
        if not is_plain(choice):
            what = f"{name}: the choice {choice!r:.80} is not a plain value"
            hint = "choose among names, and look the object up in the trainable"
            raise UserError(what, f"{hint}: {{'relu': nn.ReLU}}[config['act']]")
    return {"type": "categorical", "choices": plain}


def _has_any(kind: type, values: Iterable[Any]) -> bool:
    for value in values:
        inner = value.values() if isinstance(value, dict) else value
        has_parts = isinstance(value, list | tuple | dict)
        if isinstance(value, kind) or (has_parts and _has_any(kind, inner)):
            return True
    return False


def _constant(name: str, value: Any) -> Any:
    plain = _plain(value)
    if is_plain(plain) and not _has_any(tuple, [value]):
        return plain
    what = f"{name}: the constant {value!r:.80} is not a plain value"
    hint = "make it in the trainable, or give it with tune.with_parameters as a global"
    raise UserError(what, f"{hint} of the trainable's module")


def _plain(value: Any) -> Any:
    """Numpy's numbers as Python's, and tuples as lists; others as they are."""
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else value


def is_plain(value: Any) -> bool:
    """True for a value that a study file can hold, and gives back the same."""
    try:
        same: bool = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError):
        return False
    return same
