#!/bin/sh
# Create the image's user, who is not root, and the folders that are this user's.
#
#   docker/user.sh
set -eu

groupadd --gid 10001 hpsearch
useradd --uid 10001 --gid hpsearch --create-home --shell /usr/sbin/nologin hpsearch
install --directory --owner=hpsearch --group=hpsearch /study /checkpoints
