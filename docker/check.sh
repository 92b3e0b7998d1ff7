#!/bin/sh
# Run the image's install steps in an empty folder, with the files that the Dockerfile copies and no others, and try
# what was installed. Needs no container engine; takes some minutes and about 3 GB.
#
#   docker/check.sh
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The sources of the COPY lines of the build stage, each to the same place.
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
# The migrations are easily left out of a package: a database is made only where they came along.
"$work/prefix/bin/python" -c 'from hpsearch.store.store import Store; Store.open("sqlite:///check.db").close()'
echo "docker/check.sh: the install steps work from an empty folder"
