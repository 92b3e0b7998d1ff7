"""Every mistake that can be made in a study file, and how it is reported."""

from pathlib import Path

import pytest
import yaml

from hpsearch.errors import SpecError
from hpsearch.study_file.reading import parse
from support.files.study_files import GOOD, problems_of
from support.studies.small import spec_with


def changed(*replacements: tuple[str, str]) -> str:
    text = GOOD
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    return text


# A case a line, however long: a piece of the good file, what replaces it, and what is reported.
# fmt: off
MISTAKES = {
    "unknown key": ("seed: 7", "sed: 7", "study.yaml:2: sed: unknown key; did you mean seed?"),
    "unknown nested key": ("trials: 40", "trails: 40", "study.yaml:21: budget.trails: unknown key; did you mean trials?"),
    "a key that is gone": ("workers: auto", "workers: 2, priority: 2", "resources.priority: unknown key; to share a cluster, give each study a number of workers"),
    "unknown key of a parameter": ("high: 4}", "hihg: 4}", "study.yaml:18: space.freeze_layers.hihg: unknown key; did you mean high?"),
    "missing key": ("objective: {metric: accuracy, ", "objective: {", "study.yaml:19: objective.metric: is missing; add"),
    "number as text": ("low: 1.0e-5", "low: 1e-5", "study.yaml:14: space.learning_rate.low: should be a valid number, not '1e-5' (YAML reads 1e-5 as text; write 1.0e-5)"),
    "whole number as text": ("trials: 40", "trials: 4e1", "study.yaml:21: budget.trials: should be a valid integer, not '4e1' (YAML reads 4e1 as text; write 40)"),
    "endless number as text": ("trials: 40", "trials: 1e400", "study.yaml:21: budget.trials: should be a valid integer, not '1e400' (YAML reads 1e400 as text"),
    "number in quotes": ("trials: 40", "trials: '40'", "should be a valid integer, not '40'; write it without quotes"),
    "true for a number": ("trials: 40", "trials: true", "budget.trials: should be a valid integer, not true"),
    "low above high": ("low: 0.5, high: 0.9", "low: 0.9, high: 0.5", "study.yaml:17: space.momentum.low: 0.9 is above high (0.5); swap them"),
    "log from zero": ("low: 1.0e-5", "low: 0", "space.learning_rate.low: a logarithmic scale needs bounds above 0"),
    "step that does not divide": ("high: 0.9, when", "high: 0.9, step: 0.3, when", "space.momentum.step: 0.3 does not divide high - low (0.4)"),
    "negative step": ("high: 0.9, when", "high: 0.9, step: -1, when", "space.momentum.step: must be above 0, not -1"),
    "minute step": ("high: 0.9, when", "high: 0.9, step: 1.0e-300, when", "space.momentum.step: 1e-300 is too small"),
    "step with log": ("high: 1.0e-3,", "high: 1.0e-3, step: 1,", "a logarithmic scale has no step"),
    "infinite bound": ("high: 1.0e-3", "high: .inf", "space.learning_rate.high: should be"),
    "no choices": ("[16, 32, 64]", "[]", "space.batch_size.choices: is empty; give at least one value"),
    "choices twice": ("[16, 32, 64]", "[16, 32, 16]", "study.yaml:15: space.batch_size.choices[2]: 16 is listed twice; remove one"),
    "choices twice, and more": ("[16, 32, 64]", "[16, 16, 32]", "study.yaml:15: space.batch_size.choices[1]: 16 is listed twice; remove one"),
    "equal choices": ("[16, 32, 64]", "[1, true]", "space.batch_size.choices[1]: true counts as equal to 1"),
    "list as a choice of a number": ("[16, 32, 64]", "[16, [32]]", "space.batch_size.choices[1]: must be a whole number,"),
    "infinite choice": ("[16, 32, 64]", "[16, .inf]", "space.batch_size.choices[1]: must be a finite number, text,"),
    "parameter without a type": ("{type: int, low: 0", "{low: 0", "space.freeze_layers: has no type; add type: float"),
    "unknown type": ("{type: int", "{type: itn", "space.freeze_layers.type: 'itn' is not a type of parameter; did you mean int?"),
    "parameter that is a number": ("{type: int, low: 0, high: 4}", "4", "space.freeze_layers: should be a mapping (key: value) such as"),
    "fixed and searched": ("schedule: cosine", "freeze_layers: 1", "space.freeze_layers: is also fixed under settings; keep it in one of the two"),
    "unknown setting": ("schedule:", "shedule:", "study.yaml:11: settings.shedule: the task has no such setting; did you mean schedule?"),
    "unknown parameter": ("freeze_layers:", "freeze_layer:", "space.freeze_layer: the task has no such setting; did you mean"),
    "setting out of range": ("max_grad_norm: 1.0", "max_grad_norm: 0", "settings.max_grad_norm: must be above 0, not 0"),
    "bound out of range": ("low: 0, high: 4", "low: -2, high: 4", "space.freeze_layers.low: must be at least 0, not -2"),
    "choice out of range": ("[adamw, sgd]", "[adamw, sgdd, sgd]", "space.optimizer.choices[1]: must be one of adamw"),
    "float for a whole number": ("{type: int,", "{type: float,", "space.freeze_layers.type: the setting is a whole number"),
    "prior outside the range": ("{type: int, low: 0, high: 4}", "{type: int, low: 0, high: 4, prior: 5}", "study.yaml:18: space.freeze_layers.prior: must be from 0 to 4, not 5"),
    "prior off the grid": ("high: 0.9, when", "high: 0.9, step: 0.2, prior: 0.6, when", "space.momentum.prior: must be 0.5 plus a multiple of 0.2, not 0.6"),
    "prior that is no choice": ("[16, 32, 64]}", "[16, 32, 64], prior: 48}", "study.yaml:15: space.batch_size.prior: must be one of 16, 32, 64, not 48"),
    "a bound in all its digits": ("trials: 40", "trials: 9007199254740993", "budget.trials: should be less than or equal to 9007199254740992, not 9007199254740993"),
    "prior as text": ("high: 1.0e-3,", "high: 1.0e-3, prior: 3e-4,", "space.learning_rate.prior: should be a valid number, not '3e-4' (YAML reads 3e-4 as text; write 0.0003)"),
    "prior of a whole number": ("low: 0, high: 4}", "low: 0, high: 4, prior: 1.5}", "space.freeze_layers.prior: should be a valid integer, not 1.5"),
    "unknown confidence": ("[16, 32, 64]}", "[16, 32, 64], prior: 32, confidence: hihg}", "space.batch_size.confidence: should be"),
    "prior that the sampler ignores": ("[16, 32, 64]}", "[16, 32, 64], prior: 32}", "space.batch_size.prior: the sampler tpe does not take priors into account; use curve_gp"),
    "condition on nothing": ("when: {optimizer", "when: {optimiser", "space.momentum.when.optimiser: no parameter of the space has this name; did you mean optimizer?"),
    "condition on a fixed setting": ("when: {optimizer: sgd", "when: {schedule: cosine", "schedule is fixed under settings"),
    "condition on itself": ("when: {optimizer: sgd", "when: {momentum: 0.5", "a parameter cannot depend on itself"),
    "impossible condition": ("when: {optimizer: sgd", "when: {optimizer: adam", "space.momentum.when.optimizer: the condition must be one of 'adamw', 'sgd', not 'adam'"),
    "empty condition": ("when: {optimizer: sgd", "when: {optimizer: []", "lists no value, so the parameter is never active"),
    "cycle of conditions": ("{type: categorical, choices: [adamw, sgd]}", "{type: categorical, choices: [adamw, sgd], when: {momentum: 0.5}}", "the conditions form a cycle ("),
    "unknown metric": ("metric: accuracy", "metric: acuracy", "study.yaml:19: objective.metric: the task does not report 'acuracy'; did you mean accuracy?"),
    "direction": ("direction: maximize", "direction: max", "objective.direction: should be 'minimize' or 'maximize', not 'max'"),
    "an objective of several": ("objective: {metric: accuracy, direction: maximize}", "objective: [{metric: accuracy, direction: maximize}, {metric: loss, direction: down}]", "objective[1].direction: should be 'minimize' or 'maximize', not 'down'"),
    "an unknown metric of several": ("objective: {metric: accuracy, direction: maximize}", "objective: [{metric: accuracy, direction: maximize}, {metric: los, direction: minimize}]", "objective[1].metric: the task does not report 'los'; did you mean loss?"),
    "a metric twice": ("objective: {metric: accuracy, direction: maximize}", "objective: [{metric: loss, direction: minimize}, {metric: loss, direction: maximize}]", "objective[1].metric: is already the metric of objective[0]; name another one"),
    "no objective": ("objective: {metric: accuracy, direction: maximize}", "objective: []", "objective: is missing; add"),
    "a sampler of one objective": ("objective: {metric: accuracy, direction: maximize}", "objective: [{metric: accuracy, direction: maximize}, {metric: loss, direction: minimize}]", "search.confirm: repeats the best trials by one objective, and there are several; remove it"),
    "a limit on nothing": ("seed: 7", "constraints: {los: {max: 1}}", "constraints.los: the task does not report 'los'"),
    "a limit without bounds": ("seed: 7", "constraints: {loss: {}}", "constraints.loss: has no bound; give max, min"),
    "limits the wrong way": ("seed: 7", "constraints: {loss: {min: 2, max: 1}}", "constraints.loss.min: 2 is above max (1); swap them"),
    "no trials": ("trials: 40", "trials: 0", "budget.trials: should be greater than 0, not 0"),
    "negative hours": ("gpu_hours: 1.5", "gpu_hours: -1", "budget.gpu_hours: should be greater than 0, not -1"),
    "no limit": ("  trials: 40\n  gpu_hours: 1.5\n  wall_clock: 1h30m\n", "", "study.yaml:20: budget: sets no limit for the study; give trials, gpu_hours or wall_clock"),
    "cost without a price": ("gpu_hours: 1.5", "cost: 3", "budget.cost: needs a price; add cost_per_gpu_hour"),
    "a price below zero": ("gpu_hours: 1.5", "cost_per_gpu_hour: {A100: 2, T4: -1}", "budget.cost_per_gpu_hour: must be a price above 0, or one for each type of GPU, such as"),
    "no unit": ("{epochs: 3}", "{}", "budget.per_trial: sets no length; give one of steps"),
    "two units": ("{epochs: 3}", "{epochs: 3, steps: 5}", "budget.per_trial.epochs: cannot be combined with steps"),
    "half a step": ("{epochs: 3}", "{steps: 5.5}", "budget.per_trial.steps: should be a valid integer, not 5.5"),
    "reports past the end": ("{epochs: 3}", "{epochs: 3, report_every: 4}", "report_every: 4.0 is more than the whole trial (3 epochs)"),
    "too many reports": ("{epochs: 3}", "{epochs: 30000}", "budget.per_trial.epochs: 30000 reports a trial are more than 10000"),
    "fractional report grid": ("{epochs: 3}", "{steps: 3, report_every: 1.5}", "report_every: must be a whole number of steps"),
    "duration": ("1h30m", "2 hours", "study.yaml:23: budget.wall_clock: must be a duration such as 2h"),
    "base 60": ("1h30m", "1:30", "budget.wall_clock: must be a duration such as 2h, 90m, 1h30m or 45s, or a number of seconds, not '1:30'"),
    "zero duration": ("1h30m", "0m", "budget.wall_clock: must be a time above zero"),
    "unknown sampler": ("sampler: tpe", "sampler: tep", "search.sampler: 'tep' is not a sampler; did you mean tpe?"),
    "unknown sampler argument": ("sampler: tpe", "sampler: {kind: tpe, n_startup: 3}", "search.sampler.n_startup: unknown key; did you mean n_startup_trials?"),
    "seed of the sampler": ("sampler: tpe", "sampler: {kind: tpe, seed: 3}", "search.sampler: the seed is derived from the study's seed"),
    "type of an argument": ("sampler: tpe", "sampler: {kind: tpe, n_startup_trials: many}", "search.sampler.n_startup_trials: should be a valid integer, not 'many'"),
    "endless search": ("sampler: tpe", "sampler: brute_force", "space.learning_rate: brute_force tries every value"),
    "unknown pruner": ("{kind: promotion, eta: 3}", "medina", "search.pruner: 'medina' is not a pruner; did you mean median?"),
    "missing argument": ("{kind: promotion, eta: 3}", "percentile", "search.pruner.percentile: is missing; add percentile: and its value"),
    "argument out of range": ("{kind: promotion, eta: 3}", "{kind: percentile, percentile: 300.0}", "search.pruner.percentile: should be less than or equal to 100, not 300.0"),
    "arguments that exclude each other": ("{kind: promotion, eta: 3}", "{kind: threshold, lower: 2.0, upper: 1.0}", "search.pruner: Optuna refuses it: lower should be"),
    "no candidates": ("sampler: tpe", "sampler: {kind: tpe, n_ei_candidates: 0}", "search.sampler.n_ei_candidates: should be greater than or equal to 1, not 0"),
    "wrapped pruner": ("{kind: promotion, eta: 3}", "{kind: patient, patience: 2, wrapped_pruner: {kind: media}}", "search.pruner.wrapped_pruner: 'media' is not a pruner"),
    "eta": ("eta: 3", "eta: 1", "search.pruner.eta: should be greater than or equal to 2, not 1"),
    "argument of promotion": ("eta: 3", "etta: 3", "search.pruner.etta: unknown key; did you mean eta?"),
    "first rung past the end": ("eta: 3", "first_rung: 5", "search.pruner.first_rung: 5 is above the trial budget (3 epochs)"),
    "warm start": ("  sampler: tpe", "  sampler: curve_gp\n  warm_start: {name: before}", "search.warm_start: must be a list of 1 to 16 names of studies, or auto, not "),
    "warm start with nothing": ("  sampler: tpe", "  sampler: curve_gp\n  warm_start: []", "search.warm_start: must be a list of 1 to 16 names of studies, or auto, not "),
    "warm start with a study twice": ("  sampler: tpe", "  sampler: curve_gp\n  warm_start: [before, before]", "search.warm_start: must name each study once, not "),
    "warm start with no name": ("  sampler: tpe", "  sampler: curve_gp\n  warm_start: [be fore]", "search.warm_start: must be a list of 1 to 16 names of studies, or auto, not "),
    "warm start of itself": ("  sampler: tpe", "  sampler: curve_gp\n  warm_start: [before, banking-intents]", "search.warm_start[1]: is the name of this study; name earlier ones"),
    "warm start that the sampler ignores": ("  sampler: tpe", "  sampler: tpe\n  warm_start: auto", "search.warm_start: the sampler tpe does not take earlier studies into account; use curve_gp, or remove warm_start"),
    "confirm": ("top: 3", "top: 0", "search.confirm.top: should be greater than 0, not 0"),
    "no workers": ("workers: auto", "workers: 0", "resources.workers: must be a whole number of at least 1, or auto, not 0"),
    "negative cores": ("cpu: 1", "cpu: -1", "resources.cpu: should be greater than 0, not -1"),
    "GPUs that nothing trains on": ("gpu: 0.5", "gpu: 2", "resources.gpu: a trial of this task trains on one GPU, and 2 would be reserved; use 1 or a share"),
    "a batch smaller than its processes": ("gpu: 0.5", "gpu: 1, processes: 40", "study.yaml:15: space.batch_size.choices[0]: a batch of 16 leaves some of 40 processes without a sample; use"),
    "a share of a GPU for each of several processes": ("gpu: 0.5", "gpu: 0.5, processes: 2", "resources.gpu: each of several processes trains on a GPU of its own, not 0.5; use 1, or 0"),
    "no processes": ("gpu: 0.5", "gpu: 0.5, processes: 0", "resources.processes: should be greater than or equal to 1, not 0"),
    "a GPU and a half": ("gpu: 0.5", "gpu: 1.5", "resources.gpu: must be a share of at most 1 or a whole"),
    "path in the name": ("study: banking-intents", "study: ../x", "study.yaml:1: study: must be 1 to 100 letters"),
    "number as the name": ("study: banking-intents", "study: 12", "study: should be a valid string, not 12; put it in quotes"),
    "unknown task": ("kind: text_classification", "kind: text_clasification", "task.kind: 'text_clasification' is not a kind of task; did you mean"),
    "no kind": ("  kind: text_classification\n", "", "task.kind: is missing"),
    "unknown part of the task": ("  text: text", "  texts: text", "study.yaml:7: task.texts: is not a key of a text_classification task"),
    "condition on an unknown name": ("when: {optimizer: sgd}", "when: optimiser == 'sgd'", "study.yaml:17: space.momentum.when: no other parameter is named 'optimiser'; did you mean"),
    "condition on itself in an expression": ("when: {optimizer: sgd}", "when: momentum > 0.6", "space.momentum.when: no other parameter is named 'momentum'"),
    "condition that never holds": ("when: {optimizer: sgd}", "when: optimizer == 'sdg'", "space.momentum.when: 'optimizer' is never 'sdg'; did you mean sgd?"),
    "condition that cannot be read": ("when: {optimizer: sgd}", "when: optimizer ==", "space.momentum.when: expected a value, found the end"),
    "cycle of expressions": ("choices: [adamw, sgd]}", "choices: [adamw, sgd], when: momentum > 0.6}", "the conditions form a cycle"),
    "requirement of an unknown name": ("objective:", "requires: [batch_size < freeze_layer]\nobjective:", "study.yaml:19: requires[0]: no parameter or fixed setting is named 'freeze_layer'; did you"),
    "requirement between text and a number": ("objective:", "requires: [batch_size < optimizer]\nobjective:", "requires[0]: 'batch_size' is a number, never text"),
    "requirement that calculates with a text": ("objective:", "requires: [schedule * 2 < batch_size]\nobjective:", "study.yaml:19: requires[0]: 'schedule' is text, and * takes numbers"),
    "requirement of settings alone": ("objective:", "requires: [max_grad_norm < 2]\nobjective:", "requires[0]: names no parameter of the space"),
    "requirement that is not text": ("objective:", "requires: [3]\nobjective:", "requires[0]: must be text, such as"),
    "requirement that nothing keeps": ("objective:", "requires: [batch_size > 64 * max_grad_norm]\nobjective:", "requires[0]: none of 10000 random configurations keeps it; loosen it"),
    "requirements that exclude each other": ("objective:", "requires: [batch_size > 16, batch_size < 32]\nobjective:", "requires: none of 10000 random configurations keeps all of them; loosen one"),
    "enqueued against a requirement": ("objective:", "requires: [batch_size > 32]\nobjective:", "study.yaml:32: enqueue[0]: breaks the requirement batch_size > 32"),
    "enqueued outside": ("5.0e-4,", "5.0,", "study.yaml:31: enqueue[0].learning_rate: must be from 1e-05 to 0.001, not 5.0"),
    "enqueued unknown": ("batch_size: 32", "batch: 32", "enqueue[0].batch: no parameter of the space has this name; did you mean"),
    "enqueued inactive": ("batch_size: 32", "optimizer: adamw, momentum: 0.6", "enqueue[0].momentum: is not active while optimizer is 'adamw'"),
    "key twice": ("seed: 7", "seed: 7\nseed: 8", "study.yaml:3: seed: is written twice, in lines 2 and 3; keep one"),
    "tag": ("seed: 7", "seed: !!python/name:os.system 7", "study.yaml:2: not valid here: found the tag"),
    "tab": ("  trials: 40", "\ttrials: 40", "study.yaml:21: not valid here: found character '\\t'"),
    "bracket": ("[16, 32, 64]", "[16, 32, 64", "study.yaml:15: not valid here"),
    "key that is not text": ("seed: 7", "seed: 7\non: 1", "study.yaml:3: on: YAML does not read this key as text"),
}
# fmt: on


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_reported_with_its_line_and_remedy(case):
    old, new, expected = MISTAKES[case]
    found = problems_of(changed((old, new)))
    assert any(expected in problem for problem in found), found


def test_a_command_starts_its_processes_itself():
    text = yaml.safe_dump(
        {
            **yaml.safe_load(GOOD),
            "task": {"kind": "command", "run": "train.sh"},
            "resources": {"processes": 2, "gpu": 1},
        }
    )
    found = "\n".join(problems_of(text))
    assert "a trial of command is trained by one process here; let the command start them" in found


def test_a_gpu_is_shared_by_trials_of_every_kind_but_those_that_are_asked_for():
    def file_of(task):
        return yaml.safe_dump(
            {**yaml.safe_load(GOOD), "task": task, "settings": {}, "resources": {"gpu": "share"}}
        )

    refused = "the program that asks for trials puts them on GPUs; write the share of each"
    assert refused in "\n".join(problems_of(file_of({"kind": "ask"})))
    for task in ({"kind": "command", "run": "train.sh"}, {"kind": "own:train"}):
        others = "\n".join(problems_of(file_of(task).replace("seed: 7", "seed: -1")))
        assert "resources.gpu" not in others


def test_one_mistake_is_one_problem():
    single = """\
unknown nested key; choices twice, and more; number as text; step with log; duration; base 60; \
no limit; no trials"""
    for case in single.split("; "):
        old, new, _ = MISTAKES[case]
        (problem,) = problems_of(changed((old, new)))
        assert problem.count(", not ") <= 1


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file():
    listed = """\
unknown key; unknown setting; number as text; choices twice; low above high; unknown metric; \
direction; negative hours; duration; unknown sampler argument; unknown pruner; confirm; no workers"""
    cases = listed.split("; ")
    found = problems_of(changed(*((MISTAKES[case][0], MISTAKES[case][1]) for case in cases)))
    for case in cases:
        expected = MISTAKES[case][2]
        assert any(expected in problem for problem in found), (case, found)
    lines = [int(problem.split(":")[1]) for problem in found]
    assert lines == sorted(lines)


def test_a_sampler_that_needs_a_missing_package_says_which(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (problem,) = problems_of(changed(("sampler: tpe", "sampler: cmaes")))
    assert "cmaes needs the package cmaes; pip install cmaes" in problem


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        (
            "sampler: curve_gp",
            "search.sampler: curve_gp supports only one objective; use one of tpe, random, gp, nsgaii",
        ),
        ("sampler: cmaes", "search.sampler: "),
        (
            "pruner: median",
            "search.pruner: median supports only one objective; use none or promotion",
        ),
    ],
)
def test_what_takes_one_objective_is_refused_for_several(search, expected):
    several = (
        "objective: [{metric: accuracy, direction: maximize}, {metric: loss, direction: minimize}]"
    )
    text = GOOD.replace("objective: {metric: accuracy, direction: maximize}", several)
    start, end = text.index("search:"), text.index("resources:")
    problems = problems_of(f"{text[:start]}search: {{{search}}}\n{text[end:]}")
    assert any(expected in problem for problem in problems), problems


def test_what_an_hour_is_worth_needs_one_objective():
    both = [{"metric": name, "direction": "minimize"} for name in ("loss", "size")]
    budget = {"trials": 9, "worth": {"gain": 0.1}, "per_trial": {"epochs": 9}}
    with pytest.raises(SpecError, match=r"budget.worth: is a gain of one objective"):
        spec_with(budget=budget, objective=both)


def test_several_objectives_have_defaults_that_can_weigh_them():
    several = (
        "objective: [{metric: accuracy, direction: maximize}, {metric: loss, direction: minimize}]"
    )
    text = GOOD.replace("objective: {metric: accuracy, direction: maximize}", several)
    start, end = text.index("search:"), text.index("resources:")
    spec = parse(text[:start] + text[end:], base=Path())
    assert (spec.search.sampler.kind, spec.search.pruner.kind) == ("tpe", "none")
    assert [objective.metric for objective in spec.objectives] == ["accuracy", "loss"]
    assert spec.objective.metric == "accuracy"


def test_training_code_of_ones_own_may_use_several_gpus():
    assert spec_with(resources={"gpu": 2}).resources.gpu == 2.0


@pytest.mark.parametrize("name", ["$x", "", "a\nb"])
def test_a_parameter_has_a_name_that_can_be_typed(name):
    with pytest.raises(SpecError, match="is not a name; use letters, digits and marks"):
        spec_with(space={name: {"type": "float", "low": 0.0, "high": 1.0}})


TWO_MODELS = {"model": {"type": "categorical", "choices": ["gpt2", "a/llama"]}}
PARTS_OF_TOKENS = {
    "language_modeling": {"train": "train.txt", "text": "text"},
    "sequence_to_sequence": {"train": "train.csv"},
}


def on_tokens(kind: str, metric: str, space: dict[str, object], **more: object) -> str:
    task = {"kind": kind, "validation": 0.1, "model": "gpt2", **PARTS_OF_TOKENS[kind]}
    objective = {"metric": metric, "direction": "minimize"}
    parts = {"task": task, "settings": {}, "space": space, "objective": objective, "enqueue": []}
    return yaml.safe_dump({**yaml.safe_load(GOOD), **parts, **more})


@pytest.mark.parametrize("kind", PARTS_OF_TOKENS)
@pytest.mark.parametrize("metric", ["loss", "perplexity", "train_loss"])
def test_models_that_may_differ_in_their_tokens_are_not_compared_by_the_token(kind, metric):
    (problem,) = problems_of(on_tokens(kind, metric, TWO_MODELS))
    assert f"objective.metric: {metric} is a mean over tokens, and the models of space.model" in (
        problem
    )
    assert problem.endswith("so it does not compare them; use bits_per_byte")
    (problem,) = problems_of(
        on_tokens(kind, "bits_per_byte", TWO_MODELS, constraints={metric: {"max": 3.0}})
    )
    assert f"constraints.{metric}: {metric} is a mean over tokens" in problem


@pytest.mark.parametrize("kind", PARTS_OF_TOKENS)
def test_models_are_compared_by_the_byte_and_one_model_by_the_token(kind):
    parse(on_tokens(kind, "bits_per_byte", TWO_MODELS), base=Path())
    rates = {"learning_rate": {"type": "float", "low": 0.1, "high": 0.2}}
    one = {"model": {"type": "categorical", "choices": ["gpt2"]}}
    parse(on_tokens(kind, "loss", {**rates, **one}), base=Path())


def test_a_certificate_takes_the_place_of_confirmation_and_needs_something_like_defaults():
    confirm = next(line.strip() for line in GOOD.splitlines() if "confirm:" in line)
    (both,) = problems_of(changed((confirm, f"{confirm}\n  certify: true")))
    assert "search.certify: repeats the best trial and the defaults" in both
    (level,) = problems_of(changed((confirm, "certify: 95")))
    assert "search.certify: must be true, or a level such as 0.95" in level
    assert spec_with(search={"certify": 0.9}, enqueue=[{"x": 0.5}]).search.level == 0.9
    with pytest.raises(SpecError, match="today as the first one under enqueue"):
        spec_with(search={"certify": True})
