#!/bin/sh
# Run the image's install steps in an empty folder that has only the files that the Dockerfile copies,
# and try the result. Needs no container engine. Takes some minutes and about 3 GB.
#
#   docker/check.sh
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Copy the sources of the build stage's COPY lines to the same places.
sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' "$root/docker/Dockerfile" | tr ' ' '\n' | while read -r path; do
    mkdir -p "$work/source/$(dirname "$path")"
    cp -R "$root/$path" "$work/source/$path"
done

VARIANT=cpu "$work/source/docker/install.sh" "$work/prefix"

cd "$work"
"$work/prefix/bin/python" -c '
import pathlib, sys, hpsearch, trials
for package in (hpsearch, trials):
    place = pathlib.Path(package.__file__)
    if not place.is_relative_to(sys.prefix):
        sys.exit(f"{package.__name__} was imported from {place}, not from {sys.prefix}")
'
"$work/prefix/bin/hpsearch" --help >/dev/null
"$work/prefix/bin/ray" --version
# Creating a database fails if the package lacks its migrations, which are easily left out.
"$work/prefix/bin/python" -c 'from hpsearch.store.store import Store; Store.open("sqlite:///check.db").close()'
echo "docker/check.sh: the install steps work from an empty folder"
