"""Changes of code as they come from others, in a folder that git tracks."""

import pytest

from hpsearch.domain.facts import CodeVerdict
from hpsearch.domain.records import Revision
from hpsearch.errors import UserError
from hpsearch.running.creation.seal import differing, seal_of
from hpsearch.running.study_run.revision import MOST_BYTES, revision_content
from support.files.changed_code import GAIN, METRIC, NOISE, READS, TASK, ChangedCode
from support.studies.small import spec_with
from trials.contract import Code, ProgramFailed
from trials.tasks.command.checkout import apply, check_out


@pytest.fixture
def code(tmp_path):
    return ChangedCode(tmp_path / "code")


def spec_of(code: ChangedCode, **changes: object):
    return spec_with(base=code.folder, task={**TASK, **changes})


def refusal(code: ChangedCode, patch: str, **changes: object) -> str:
    with pytest.raises(UserError) as refused:
        revision_content(spec_of(code, **changes), [], "", patch=patch)
    return str(refused.value)


def kept(content: dict[str, object], number: int = 1) -> Revision:
    return Revision(number, 0.0, "ada", **content, trial=0, verdict=CodeVerdict.KEEP)


def test_a_patch_is_asked_for_with_its_base_and_the_digests_of_what_measures_it(code):
    patch = code.patch(*GAIN)
    content = revision_content(spec_of(code), [], "more data", patch=patch)
    assert content["commit"] == code.git("rev-parse", "HEAD").strip()
    assert "+guess = sum(random.choices(numbers, k=900)) / 900\n" in content["patch"]
    assert sorted(content["harness"]) == ["data/valid", "measure.py"]
    assert code.git("status", "--porcelain") == ""


def test_a_commit_is_asked_for_by_what_it_has_that_the_base_has_not(code):
    first = revision_content(spec_of(code), [], "", patch=code.patch(*GAIN))
    code.git("branch", "main-line")
    code.change(*GAIN)
    code.change(*NOISE)
    commit = code.commit()
    code.git("checkout", "--quiet", "main-line")
    found = revision_content(spec_of(code), [kept(first)], "", commit=commit)["patch"]
    assert "+random.seed(seed + 1)\n" in found
    assert "+guess" not in found
    with pytest.raises(UserError, match="patch failed"):
        revision_content(spec_of(code), [kept(first)], "", patch=first["patch"])


def test_a_kept_change_is_the_base_of_the_next_until_another_commit_is(code):
    first = kept(revision_content(spec_of(code), [], "", patch=code.patch(*GAIN)))
    on_it = code.patch("k=9)) / 9", "k=900)) / 900 + x").replace(
        "-guess = sum(random.choices(numbers, k=9)) / 9",
        "-guess = sum(random.choices(numbers, k=900)) / 900",
    )
    assert "+ x" in revision_content(spec_of(code), [first], "", patch=on_it)["patch"]
    code.change(*GAIN)
    code.commit()
    assert "+ x" in revision_content(spec_of(code), [first], "", patch=on_it)["patch"]


def test_what_reaches_for_the_harness_or_out_of_its_folder_is_refused(code):
    assert "measure.py belongs to the harness" in refusal(code, code.patch(*METRIC, "measure.py"))
    assert "it names data/valid" in refusal(code, code.patch(*READS))
    (code.folder / "link").symlink_to("/etc/passwd")
    code.git("add", "--all")
    link = code.git("diff", "--cached")
    code.git("reset", "--quiet", "--hard")
    assert "link is a link" in refusal(code, link)
    outside = code.patch(*GAIN).replace("train.py", "../train.py")
    assert "git apply: error: ../train.py" in refusal(code, outside)
    assert "it is empty" in refusal(
        code, code.patch(*GAIN).replace("k=900", "k=9").replace("/ 900", "/ 9")
    )
    assert "larger than 1 MiB" in refusal(
        code, code.patch("import json", f"#{'x' * MOST_BYTES}\nimport json")
    )
    assert "git apply" in refusal(code, "no patch")


def test_a_folder_below_the_root_is_changed_within_itself(tmp_path):
    code = ChangedCode(tmp_path / "code")
    inner = code.folder / "inner"
    inner.mkdir()
    for name in ("train.py", "measure.py", "data"):
        (code.folder / name).rename(inner / name)
    (code.folder / "other.py").write_text("A = 1\n")
    code.commit()
    spec = spec_with(base=inner, task=TASK)
    content = revision_content(spec, [], "", patch=code.patch(*GAIN, "inner/train.py"))
    assert "inner/train.py" in content["patch"]
    with pytest.raises(UserError, match=r"other\.py is outside of inner"):
        revision_content(spec, [], "", patch=code.patch("1", "2", "other.py"))


def test_a_study_that_cannot_test_a_change_says_what_it_needs(code):
    patch = code.patch(*GAIN)
    without = {key: TASK[key] for key in ("kind", "run")}
    spec = spec_with(base=code.folder, task=without)
    with pytest.raises(UserError, match="would measure itself: the study has no measure"):
        revision_content(spec, [], "", patch=patch)
    unseeded = TASK["run"].replace(" {seed}", "")
    assert "pass {seed}" in refusal(code, patch, run=unseeded)
    code.change(*GAIN)
    assert "train.py is not committed" in refusal(code, patch)
    (code.folder / ".git").rename(code.folder.parent / "git")
    assert f"commit the code to a git repository in {code.folder}" in refusal(code, patch)


def test_the_harness_is_sealed_with_the_study(code):
    before = seal_of(spec_of(code)).binding
    (code.folder / "data" / "valid").write_text("0\n")
    assert differing(before, seal_of(spec_of(code)).binding) == ["data/valid"]


def test_a_checkout_has_the_change_and_the_data_and_nothing_of_the_harness(code, tmp_path):
    content = revision_content(spec_of(code), [], "", patch=code.patch(*GAIN))
    made = Code(content["commit"], (content["patch"],), content["harness"])
    home = tmp_path / "study" / "trial" / "attempt"
    home.mkdir(parents=True)
    place = check_out(made, code.folder, content["harness"], home)
    names = {str(each.relative_to(place)) for each in place.rglob("*") if not each.is_dir()}
    assert names == {".gitignore", "train.py", "data/train"}
    assert "k=900" in (place / "train.py").read_text()
    assert (place / "data" / "train").resolve() == code.folder / "data" / "train"
    with pytest.raises(ProgramFailed):
        apply(place, content["patch"])


def test_a_file_that_a_change_removes_is_gone_from_its_checkout(code, tmp_path):
    (code.folder / "helper.py").write_text("A = 1\n")
    code.commit()
    code.git("rm", "--quiet", "helper.py")
    patch = code.git("diff", "--cached")
    code.git("reset", "--quiet", "--hard")
    content = revision_content(spec_of(code), [], "", patch=patch)
    home = tmp_path / "study" / "trial" / "attempt"
    home.mkdir(parents=True)
    made = Code(content["commit"], (content["patch"],), content["harness"])
    place = check_out(made, code.folder, content["harness"], home)
    assert not (place / "helper.py").exists()
    assert (place / "train.py").exists()


def test_a_word_that_a_folder_of_the_harness_is_called_may_be_used_otherwise(code):
    (code.folder / "eval").mkdir()
    (code.folder / "eval" / "numbers").write_text("1\n")
    code.commit()
    spec = spec_with(base=code.folder, task={**TASK, "harness": ["eval"]})
    plain, named = "x = model_eval = eval", "x = open('eval/numbers')"
    begin = "random.seed(seed)"
    revision_content(spec, [], "", patch=code.patch(begin, f"{begin}; {plain}"))
    with pytest.raises(UserError, match="it names eval"):
        revision_content(spec, [], "", patch=code.patch(begin, f"{begin}; {named}"))
