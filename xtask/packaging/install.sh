# Installs Debian packages for real, on a copy of this machine that is gone afterwards, and uses
# what they bring. To be run in a mount namespace of its own.
#
#   install.sh SCRATCH PROGRAM.c PACKAGE…
set -eu
scratch=$1 program=$2
shift 2
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/root" "$scratch/given"
cp "$program" "$scratch/given/program.c"
cp "$@" "$scratch/given"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/root"
root=$scratch/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir "$root/given"
mount --bind "$scratch/given" "$root/given"
# The paths, not the shell's own, are searched: nothing of the outside may be found.
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
  chroot "$root" sh -euc '
    cd /given
    dpkg --install ./*.deb >&2
    dpkg --audit >&2
    gcc -O1 -Wall -Wextra -D_GNU_SOURCE -o program program.c \
      $(pkg-config --cflags --libs libuv) -lpthread
    ldd program | grep -q "libuv.so.1 => /lib/x86_64-linux-gnu/libuv.so.1\|libuv.so.1 => /usr/lib/x86_64-linux-gnu/libuv.so.1"
    ./program
    blacklight run --require -- ./program 2> told > /dev/null
    grep -q "runs on /usr/lib/x86_64-linux-gnu/libuv.so.1.0.0" told
    # CMake is a program of Debian'"'"'s that runs its children on libuv.
    test "$(cmake -E env echo works)" = works
  '
