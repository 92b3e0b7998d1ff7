"""Whether the installed version of a training library is one that an adapter knows.

An adapter relies on the order in which its library calls callbacks. That order is not promised from
one version to the next, so each adapter names the versions that it was tested with.
"""

from __future__ import annotations

from importlib import metadata

from packaging.specifiers import SpecifierSet

TRANSFORMERS = SpecifierSet(">=5.0,<6")
LIGHTNING = SpecifierSet(">=2.6,<2.7")


def require(library: str, versions: SpecifierSet) -> None:
    """Make sure that a library is installed in one of the versions.

    Raises:
        ImportError: It is not installed, or in another version.
    """
    advice = f"pip install '{library}{versions}'"
    try:
        installed = metadata.version(library)
    except metadata.PackageNotFoundError:
        raise ImportError(f"{library} is not installed; {advice}") from None
    if not versions.contains(installed, prereleases=True):
        what = f"{library} {installed} is installed, which hpsearch's callback does not support"
        raise ImportError(f"{what}; {advice}")
