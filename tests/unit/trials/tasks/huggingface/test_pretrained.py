"""Models that bring code: refused without the study file's word, and trained, resumed and written
with it."""

import json
import shutil
import sys

import pandas
import pytest
import torch
import transformers
from transformers import dynamic_module_utils

from support.files.remote_models import MODELING, ran, write_model
from trials import tasks
from trials.contract import TaskError
from trials.running.arithmetic import Arithmetic
from trials.running.report_grid import budget_from
from trials.tasks.final import training as final
from trials.tasks.final.parts import FinalParts
from trials.tasks.huggingface import templates

CONFIGURATION, MODEL, TOKENIZER = "configuration_bag", "modeling_bag", "tokenization_bag"
PARAMS = {"learning_rate": 1e-2, "batch_size": 8}


def texts(lab):
    return pandas.read_csv(lab.folder / "train.csv").text.tolist()


def write_test(lab):
    pandas.read_csv(lab.folder / "train.csv").head(30).to_csv(lab.folder / "test.csv", index=False)


def modules_of_models():
    return {
        name
        for name in sys.modules
        if name.startswith(dynamic_module_utils.TRANSFORMERS_DYNAMIC_MODULE_NAME)
    }


@pytest.fixture(autouse=True)
def _own_place_for_code(tmp_path, monkeypatch):
    """Where transformers copies the code of models to, and imports it from."""
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in modules_of_models():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("HPSEARCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nobody is asked"))


@pytest.fixture
def model(lab):
    return write_model(lab.folder / "bag", texts(lab))


@pytest.fixture
def own_tokenizer(lab):
    return write_model(lab.folder / "bag", texts(lab), own_tokenizer=True)


def refusal_of(call):
    with pytest.raises(TaskError) as refused:
        call()
    (problem,) = refused.value.problems
    return f"{problem.where}: {problem.what}"


def expected_refusal(folder):
    what = f"{str(folder)!r} brings code of its own, which would run with your rights"
    return f"task.model: {what}; if you trust it, write trust_remote_code: true under task"


def trusting(lab, **changes):
    return lab.task(model="bag", trust_remote_code=True, **changes)


# --------------------------------------------------------------------------------------------------
# without the word


def test_without_the_word_a_model_that_needs_code_is_refused_and_its_code_does_not_run(lab, model):
    for changes in ({}, {"trust_remote_code": False}):
        task = lab.task(model="bag", **changes)
        assert refusal_of(lambda task=task: task.prepare({})) == expected_refusal(model)
    assert ran(model) == set()


def test_a_tokenizer_that_needs_code_is_refused_like_a_model(lab, own_tokenizer):
    transformers.ViTConfig().save_pretrained(
        own_tokenizer
    )  # known to transformers, which has no tokenizer for it
    assert refusal_of(lambda: lab.task(model="bag").prepare({})) == expected_refusal(own_tokenizer)
    assert ran(own_tokenizer) == set()


KINDS = {
    "text_classification": {"text": "text", "label": "topic"},
    "token_classification": {"train": "words.conll"},
    "language_modeling": {},
    "sequence_to_sequence": {"source": "text", "target": "topic"},
    "image_classification": {"train": "images.npz"},
}


@pytest.mark.cases(len(KINDS))
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_task_refuses_it_in_the_same_words(lab, model, kind):
    (lab.folder / "words.conll").write_text("Ada\tB-PER\nsleeps\tO\n\n" * 8)
    part = {"kind": kind, "train": "train.csv", "validation": 0.25, "model": "bag", **KINDS[kind]}
    assert refusal_of(lambda: tasks.load(part, lab.folder).prepare({})) == expected_refusal(model)
    assert ran(model) == set()


def test_a_model_that_only_offers_code_needs_no_trust_and_none_runs(lab, model):
    """transformers has a network of that type itself, and takes it."""
    config = transformers.BertConfig(
        vocab_size=120, hidden_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    config.auto_map = json.loads((model / "config.json").read_text())["auto_map"]
    transformers.BertForSequenceClassification(config).save_pretrained(model)
    task = lab.task(model="bag")
    *_, last = task.start(lab.setup("run", {"epochs": 1}), task.prepare({}))
    assert last.metrics
    assert ran(model) == set()


# --------------------------------------------------------------------------------------------------
# with the word


def test_with_the_word_it_is_trained(lab, model):
    task = trusting(lab)
    params = {"learning_rate": 5e-2, "batch_size": 16, "weight_decay": 0.0}
    *_, last = task.start(lab.setup("run", {"epochs": 25}, **params), task.prepare(params))
    assert last.metrics["accuracy"] > 0.9
    assert ran(model) == {CONFIGURATION, MODEL}


def test_the_word_holds_for_a_model_that_a_setting_names(lab, model):
    params = {**PARAMS, "model": "bag"}
    task = lab.task(trust_remote_code=True)
    *_, last = task.start(lab.setup("run", {"epochs": 1}, **params), task.prepare(params))
    assert last.metrics
    untrusting = lab.task()
    assert refusal_of(lambda: untrusting.prepare(params)) == expected_refusal(model)


def test_a_resumed_run_takes_the_code_from_the_model_and_none_from_the_checkpoint(
    lab, model, without_timings
):
    task = trusting(lab)
    data = task.prepare(PARAMS)
    whole = [r for r in task.start(lab.setup("whole", {"epochs": 2}, **PARAMS), data) if r]
    first = task.start(lab.setup("cut", {"epochs": 2}, **PARAMS), data)
    half = next(report for report in first if report)
    first.close()
    templates.pretrained.cache_clear()
    modules = modules_of_models()
    resumed = task.start(lab.setup("cut", {"epochs": 2}, half.checkpoint, **PARAMS), data)
    rest = [r for r in resumed if r]
    assert without_timings([half, *rest]) == without_timings(whole)
    assert modules_of_models() == modules, "none but those of the model"


def test_trust_and_its_absence_share_nothing_in_a_warm_process(lab, model):
    task = trusting(lab)
    task.start(lab.setup("run", {"epochs": 1}), data := task.prepare({}))
    assert refusal_of(lambda: lab.task(model="bag").prepare({})) == expected_refusal(model)
    untrusting = lab.task(model="bag")
    assert refusal_of(
        lambda: untrusting.start(lab.setup("other", {"epochs": 1}), data)
    ) == expected_refusal(model)
    assert trusting(lab).data_key({}) != lab.task(model="bag").data_key({})


def test_a_written_model_has_its_code_and_asks_for_trust_itself(lab, model):
    task = trusting(lab)
    run = task.start(lab.setup("run", {"epochs": 1}, **PARAMS), task.prepare(PARAMS))
    *_, last = run
    written = lab.folder / "elsewhere"
    shutil.copytree(last.checkpoint, written)
    shutil.rmtree(model)
    with pytest.raises(ValueError, match="trust_remote_code"):
        transformers.AutoModelForSequenceClassification.from_pretrained(
            written, trust_remote_code=False
        )
    assert ran(model) == set()
    model.mkdir()  # where the code notes that it runs
    classify = transformers.pipeline(
        "text-classification", str(written), trust_remote_code=True, device="cpu"
    )
    assert {result["label"] for result in classify(["my new card", "the rate today"])} <= {
        "card",
        "fee",
        "rate",
    }
    trained = run._workload.model.state_dict()
    assert all(
        torch.equal(value, trained[name]) for name, value in classify.model.state_dict().items()
    )


def test_a_tokenizer_that_brings_code_reads_the_test_file_too(lab, own_tokenizer):
    write_test(lab)
    task = trusting(lab, test="test.csv")
    data = task.prepare({})
    assert ran(own_tokenizer) == {CONFIGURATION, TOKENIZER}
    tested = FinalParts(task).on_test({})
    assert len(tested.validation_labels) == 30
    assert tested.validation.tokens.max() < data.vocabulary


@pytest.mark.thorough
def test_its_final_training_is_measured_and_keeps_its_code(lab, own_tokenizer):
    write_test(lab)
    params = {**PARAMS, "max_length": 16, "monitor": "accuracy"}
    plan = final.Plan(params, 5, budget_from({"epochs": 2}), False, "cpu", {}, Arithmetic(1))
    version = final.train(
        trusting(lab, test="test.csv"), plan, lab.folder / "models", lambda line: None
    )
    about = json.loads((version / "training.json").read_text())
    assert about["metrics"]["test"]["accuracy"] > 0
    assert {path.name for path in version.glob("*.py")} == {
        f"{name}.py" for name in (CONFIGURATION, MODEL, TOKENIZER)
    }
    tokenizer = transformers.AutoTokenizer.from_pretrained(version, trust_remote_code=True)
    assert type(tokenizer).__name__ == "BagTokenizer"


def test_a_package_that_the_code_lacks_is_the_users_mistake(lab):
    write_model(lab.folder / "bag", texts(lab), modeling=f"import no_such_package\n{MODELING}")
    task = trusting(lab)
    data = task.prepare({})
    refusal = refusal_of(lambda: task.start(lab.setup("run", {"epochs": 1}), data))
    assert "cannot be loaded: " in refusal
    assert "no_such_package" in refusal


def name_of_data(lab, **changes):
    task = lab.task(**changes)
    return task.name_of_data(task.SETTINGS.parse({}))


def test_prepared_data_of_code_is_not_kept(lab, own_tokenizer):
    assert name_of_data(lab, model="bag") is not None
    assert name_of_data(lab, model="bag", trust_remote_code=True) is None
    assert name_of_data(lab, model="somebody/model", trust_remote_code=True) is None
