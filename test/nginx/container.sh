#!/bin/sh
# What a container engine makes of this machine's root: read-only, /dev/shm of its own, one folder
# that everybody may write to (as a volume is), a user that no passwd knows, no rights. CGROUP: a folder
# that its control group looks like.
#
#   container.sh ROOT SHM_SIZE USER COMMAND...   (in mount and PID namespaces of its own)
set -eu

root=$1 shm=$2 user=$3
shift 3
mount --make-rprivate /
mount --rbind / "$root"
awk -v root="$root" 'index($5, root) == 1 { print $5 }' /proc/self/mountinfo |
    while read -r folder; do
        mount -o remount,bind,ro "$folder" 2>/dev/null || :
    done
mount -t proc proc "$root/proc"
mount -t tmpfs -o "mode=1777,size=$shm" tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=0777 tmpfs "$root/mnt"
[ -z "${CGROUP:-}" ] || mount --bind "$CGROUP" "$root/sys/fs/cgroup"
exec chroot "$root" setpriv --reuid="$user" --regid=0 --clear-groups --no-new-privs \
    --bounding-set=-all --inh-caps=-all "$@"
