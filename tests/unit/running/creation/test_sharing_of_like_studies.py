"""A new study begins with as many trials on a GPU as the latest one like it has found."""

from contextlib import closing
from pathlib import Path
from typing import Any

from hpsearch.domain.facts import SHARING, GpuSharing
from hpsearch.running.creation.study import create_study
from hpsearch.store.store import Store
from support.studies.small import spec_with

FOUND = {"H100": GpuSharing(trials=6, most=16, is_final=True)}


def test_a_study_with_the_same_task_settings_and_space_does(tmp_path: Path) -> None:
    def begins_with(store: Store, name: str, **changes: Any) -> Any:
        resources = changes.pop("resources", {"gpu": "share"})
        spec = spec_with(base=tmp_path, study=name, resources=resources, **changes)
        return create_study(store, spec, None).study.system_attrs.get(SHARING)

    with closing(Store.open(f"sqlite:///{tmp_path}/a.db")) as store:
        spec = spec_with(base=tmp_path, study="first", resources={"gpu": "share"})
        first = create_study(store, spec, None)
        lease = store.acquire(first.study.id, "driver", 60.0)
        first.study.system_attrs = {SHARING: FOUND}
        first.touch_study()
        store.commit(first.study.id, first.drain(), lease)
        assert begins_with(store, "like", budget={"trials": 3, "per_trial": {"epochs": 2}}) == FOUND
        assert begins_with(store, "other", settings={"width": 512}) is None
        assert begins_with(store, "whole", resources={"gpu": 1}) is None
