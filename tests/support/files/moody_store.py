"""A store for `moody://` that neither says what is in it nor removes single files, by errors of no
kind that is known. A process that imports this module knows it."""

from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem


class MoodyStore(LocalFileSystem):  # type: ignore[misc]
    protocol = "moody"

    @classmethod
    def _strip_protocol(cls, path: str) -> Any:
        return super()._strip_protocol(path.removeprefix("moody://"))

    def find(self, path: str, maxdepth: int | None = None, **options: Any) -> Any:
        if maxdepth is None:
            raise RuntimeError("slow down")
        return super().find(path, maxdepth, **options)

    def rm_file(self, path: str) -> None:
        raise RuntimeError("slow down")


fsspec.register_implementation("moody", MoodyStore, clobber=True)
