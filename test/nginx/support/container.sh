#!/bin/bash
# What a container engine makes of an image, which is this machine's root with a folder over it
# (container.py): a file system that ends with it, /dev/shm of its own, one user.
#
#   container.sh ROOT IMAGE USER:GROUP [OPTION...] -- COMMAND...   (in mount and PID namespaces of its own)
#
#   shm=SIZE         of /dev/shm
#   read-only        but for what is mounted
#   tmpfs=FOLDER     for everybody, as a volume is
#   bind=FROM:TO     a folder or a file of the machine's
#   rights=CAPS      that a process of root's may have (setpriv); none by default
set -eu

place=$1 image=$2 user=$3
shift 3
mount --make-rprivate /
mount -t tmpfs tmpfs "$place"
root=$place/root
mkdir "$place/work" "$root"
# Layers of one file system may not be within each other.
cp -a "$image" "$place/upper"
mount -t overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" overlay "$root"
mount -t proc proc "$root/proc"
for folder in dev sys; do
    mount --rbind "/$folder" "$root/$folder"
done

# A path within, where links mean what they do within.
within() {
    echo "$root$(chroot "$root" realpath --canonicalize-missing "$1")"
}

is_read_only='' rights=-all
while [ "$1" != -- ]; do
    value=${1#*=}
    case $1 in
        shm=*) mount -t tmpfs -o "mode=1777,size=$value" tmpfs "$root/dev/shm" ;;
        read-only) is_read_only=yes ;;
        tmpfs=*)
            to=$(within "$value")
            mkdir -p "$to"
            mount -t tmpfs -o mode=1777 tmpfs "$to"
            ;;
        bind=*)
            from=${value%%:*} to=$(within "${value#*:}")
            mkdir -p "$(dirname "$to")"
            if [ -d "$from" ]; then
                mkdir -p "$to"
            else
                touch "$to"
            fi
            mount --bind "$from" "$to"
            ;;
        rights=*) rights=-all,$value ;;
    esac
    shift
done
shift
[ -z "$is_read_only" ] || mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv "--reuid=${user%:*}" "--regid=${user#*:}" --clear-groups --no-new-privs \
    "--bounding-set=$rights" --inh-caps=-all "$@"
