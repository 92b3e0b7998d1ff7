#!/bin/sh
# Install hpsearch into PREFIX, a virtual environment, in the versions that constraints.txt pins.
#
#   docker/install.sh dependencies PREFIX   make the environment, with all that hpsearch needs; reads
#                                           only pyproject.toml and constraints.txt
#   docker/install.sh project PREFIX        add hpsearch itself
#
# VARIANT      the PyTorch build to install, cpu or cuda (default: cpu). The result is checked.
# TORCH_INDEX  the address of an additional package index for PyTorch, such as its index of CPU builds,
#              which PyTorch's installation page names (default: none). Without it, PyTorch comes from
#              pip's default index, whose build for Linux is the large one with CUDA.
# PYTHON       the interpreter that creates the environment (default: python3)
set -eu

source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
python=${PYTHON:-python3}
variant=${VARIANT:-cpu}

if [ "$#" -ne 2 ] || { [ "$1" != dependencies ] && [ "$1" != project ]; }; then
    echo "usage: docker/install.sh dependencies|project PREFIX" >&2
    exit 2
fi
prefix=$2
case $variant in
    cpu | cuda) ;;
    *)
        echo "VARIANT is '$variant'; it must be cpu or cuda" >&2
        exit 2
        ;;
esac

if [ "$1" = project ]; then
    "$prefix/bin/python" -m pip install --no-deps "$source"
    "$prefix/bin/python" -m pip check
    "$prefix/bin/hpsearch" --help >/dev/null
    echo "hpsearch is installed in $prefix"
    exit
fi

if [ -d "$prefix" ] && [ -n "$(ls -A "$prefix")" ]; then
    echo "$prefix is not empty; name a new folder, or empty this one first" >&2
    exit 2
fi
"$python" -m venv "$prefix"
set -- --constraint "$source/constraints.txt"
if [ -n "${TORCH_INDEX:-}" ]; then
    set -- "$@" --extra-index-url "$TORCH_INDEX"
fi
# PyTorch first: it is the largest part, and the variant determines which build is needed.
"$prefix/bin/python" -m pip install "$@" torch
requirements=$(mktemp)
"$prefix/bin/python" - "$source/pyproject.toml" >"$requirements" <<'END'
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
print(*project["dependencies"], *extras["dashboard"], "ray[default]", sep="\n")  # with a job server
END
"$prefix/bin/python" -m pip install "$@" --requirement "$requirements"
rm "$requirements"

built_for=$("$prefix/bin/python" -c 'import torch; print("cuda" if torch.version.cuda else "cpu")')
if [ "$variant" = cuda ] && [ "$built_for" = cpu ]; then
    echo "VARIANT is cuda, but pip found a PyTorch without CUDA; set TORCH_INDEX to an index with CUDA builds" >&2
    exit 1
fi
if [ "$variant" = cpu ] && [ "$built_for" = cuda ]; then
    echo "note: PyTorch came with CUDA, which runs on CPUs but is several GB larger; set TORCH_INDEX for a CPU build"
fi
echo "the dependencies of hpsearch are installed in $prefix (PyTorch for $built_for)"
