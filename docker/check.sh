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
export PIP_NO_COMPILE=no PYTHONDONTWRITEBYTECODE='' # most of what is installed is never imported here
chmod 755 "$work"

bring() { # bring PATH...: copy files of the repository to the same places
    for path; do
        mkdir -p "$work/source/$(dirname "$path")"
        cp -R "$root/$path" "$work/source/$path"
    done
}

# The dependencies are installed from what the Dockerfile copies, the rest from the whole build context.
copied=$(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' "$root/docker/Dockerfile")
context=$(sed -n 's/^!//p' "$root/docker/Dockerfile.dockerignore")
bring $copied
cp "$root/docker/try.sh" "$work/"

if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
    "$root/docker/clean-root.sh" "$work" sh -euc '
        VARIANT=cpu /source/docker/install.sh dependencies /opt/hpsearch
        /source/docker/user.sh'
    bring $context
    "$root/docker/clean-root.sh" "$work" sh -euc '
        /source/docker/install.sh project /opt/hpsearch
        cd /study
        exec env HOME=/home/hpsearch PYTHONPYCACHEPREFIX=/study/compiled setpriv --reuid=10001 --regid=10001 --clear-groups \
            --no-new-privs --bounding-set=-all --inh-caps=-all /try.sh /opt/hpsearch /checkpoints'
    echo "docker/check.sh: the steps of the image work in a clean root, and the image's user has no rights"
else
    VARIANT=cpu "$work/source/docker/install.sh" dependencies "$work/prefix"
    bring $context
    "$work/source/docker/install.sh" project "$work/prefix"
    mkdir "$work/study"
    cd "$work/study"
    "$work/try.sh" "$work/prefix" "$work/checkpoints"
    echo "docker/check.sh: the install steps work from an empty folder; the others need root"
fi
