#!/bin/sh
# Run the image's steps in a clean root that has only the files that the Dockerfile copies, and try the
# result as the image's user. Needs no container engine. The download of PyTorch takes most of the time.
# Without root, or the right to mount, only the installation is run and tried, in an empty folder.
#
#   docker/check.sh
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# Copy the sources of the build stage's COPY lines to the same places.
sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' "$root/docker/Dockerfile" | tr ' ' '\n' | while read -r path; do
    mkdir -p "$work/source/$(dirname "$path")"
    cp -R "$root/$path" "$work/source/$path"
done
cp "$root/docker/try.sh" "$work/"

if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
    "$root/docker/clean-root.sh" "$work" sh -euc '
        VARIANT=cpu /source/docker/install.sh /opt/hpsearch
        /source/docker/user.sh
        cd /study
        exec env HOME=/home/hpsearch setpriv --reuid=10001 --regid=10001 --clear-groups \
            --no-new-privs --bounding-set=-all --inh-caps=-all /try.sh /opt/hpsearch /checkpoints'
    echo "docker/check.sh: the steps of the image work in a clean root, and the image's user has no rights"
else
    VARIANT=cpu "$work/source/docker/install.sh" "$work/prefix"
    mkdir "$work/study"
    cd "$work/study"
    "$work/try.sh" "$work/prefix" "$work/checkpoints"
    echo "docker/check.sh: the install steps work from an empty folder; the others need root"
fi
