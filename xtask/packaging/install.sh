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
    # Newer Debians have the library in a package of another name, which others need by that name.
    make() {
      mkdir -p "$1/DEBIAN"
      printf "%s\n" "Package: $1" "Version: $2" "Maintainer: Nobody <nobody@localhost>" "Description: $1" "$3" \
        > "$1/DEBIAN/control"
      dpkg-deb --build "$1" "$1.newer" >&2
    }
    lib=usr/lib/x86_64-linux-gnu
    mkdir -p "libuv1t64/$lib"
    cp -P /$lib/libuv.so.1 /$lib/libuv.so.1.0.0 "libuv1t64/$lib"
    make libuv1t64 1.50.0-2 "Architecture: amd64"
    make needs-libuv "1" "Architecture: amd64
Depends: libuv1t64 (>= 1.42.0)"
    dpkg --install --force-overwrite ./libuv1t64.newer ./needs-libuv.newer >&2
    dpkg --install ./*.deb >&2
    test -z "$(dpkg --audit)"
    test "$(dpkg-query --show --showformat="\${db:Status-Status}" needs-libuv)" = installed
    if dpkg-query --show --showformat="\${db:Status-Status}" libuv1t64 | grep -q "^installed"; then exit 1; fi
    gcc -O1 -Wall -Wextra -D_GNU_SOURCE -o program program.c \
      $(pkg-config --cflags --libs libuv) -lpthread
    gcc -O1 -Wall -Wextra -D_GNU_SOURCE -o inside program.c \
      $(pkg-config --cflags --libs libuv-static) -lpthread
    test "$(./inside)" = "$(./program)"
    ldd program | grep -q "libuv.so.1 => /lib/x86_64-linux-gnu/libuv.so.1\|libuv.so.1 => /usr/lib/x86_64-linux-gnu/libuv.so.1"
    ./program
    blacklight run --require -- ./program 2> told > /dev/null
    grep -q "runs on /usr/lib/x86_64-linux-gnu/libuv.so.1.0.0" told
    # CMake is a program of Debian'"'"'s that runs its children on libuv.
    test "$(cmake -E env echo works)" = works
  '
