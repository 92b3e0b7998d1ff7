#!/bin/sh
# Install hpsearch into PREFIX, a new virtual environment, in the versions that constraints.txt pins.
#
#   docker/install.sh PREFIX
#
# VARIANT      the PyTorch build to install, cpu or cuda (default: cpu). The result is checked.
# TORCH_INDEX  the address of an additional package index for PyTorch, such as its index of CPU builds,
#              which PyTorch's installation page names (default: none). Without it, PyTorch comes from
#              pip's default index, whose build for Linux is the large one with CUDA.
# PYTHON       the interpreter that creates the environment (default: python3)
set -eu

if [ "$#" -ne 1 ]; then
    echo "usage: docker/install.sh PREFIX" >&2
    exit 2
fi
prefix=$1
variant=${VARIANT:-cpu}
python=${PYTHON:-python3}
source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

case $variant in
    cpu | cuda) ;;
    *)
        echo "VARIANT is '$variant'; it must be cpu or cuda" >&2
        exit 2
        ;;
esac
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
"$prefix/bin/python" -m pip install "$@" "$source[dashboard,jobs]"
"$prefix/bin/python" -m pip check

built_for=$("$prefix/bin/python" -c 'import torch; print("cuda" if torch.version.cuda else "cpu")')
if [ "$variant" = cuda ] && [ "$built_for" = cpu ]; then
    echo "VARIANT is cuda, but pip found a PyTorch without CUDA; set TORCH_INDEX to an index with CUDA builds" >&2
    exit 1
fi
if [ "$variant" = cpu ] && [ "$built_for" = cuda ]; then
    echo "note: PyTorch came with CUDA, which runs on CPUs but is several GB larger; set TORCH_INDEX for a CPU build"
fi
"$prefix/bin/hpsearch" --help >/dev/null
echo "hpsearch is installed in $prefix (PyTorch for $built_for)"
