#!/bin/sh
# Run a command in a clean root: of this machine it has /usr, the settings of names, certificates and
# pip, the interpreter of python3 and what is in /opt, all of it read-only; no users but root, and none
# of the machine's other files. Needs root, and the right to mount.
#
#   docker/clean-root.sh FOLDER COMMAND...
#
# FOLDER  becomes the root: what it has stays, and what is written remains in it.
set -eu

if [ "${1:-}" != --inside ]; then
    exec unshare --mount --pid --fork --kill-child -- "$0" --inside "$@"
fi
shift
root=$1
shift

shows() { # shows PLACE: let a folder of the machine be seen at the same place
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
}

shows /usr
for place in bin sbin lib lib64; do
    [ -e "$root/$place" ] || ln -s "usr/$place" "$root/$place"
done
interpreter=$(python3 -c 'import sys; print(sys.base_prefix)')
case $interpreter in
    /usr*) ;;
    *) shows "$interpreter" ;;
esac
for place in /opt/*; do
    [ ! -d "$place" ] || [ "$place" = /opt/hpsearch ] || shows "$place"
done

mkdir -p "$root/etc" "$root/proc" "$root/dev" "$root/tmp" "$root/root/.cache/pip"
chmod 1777 "$root/tmp"
for name in alternatives hosts ld.so.cache ld.so.conf ld.so.conf.d login.defs nsswitch.conf pip.conf \
    resolv.conf ssl xdg; do
    [ ! -e "/etc/$name" ] || cp -RL "/etc/$name" "$root/etc/" 2>/dev/null || true
done
echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
echo root:x:0: >"$root/etc/group"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
if [ -d "$HOME/.cache/pip" ]; then # as the image's build keeps it
    mount --bind "$HOME/.cache/pip" "$root/root/.cache/pip"
fi
HOME=/root exec chroot "$root" "$@"
