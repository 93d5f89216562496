#!/bin/sh
# Makes an OCI image without a registry: a static busybox with its applets, and a pause program.
#   image.sh OUT.tar NAME [PROGRAM[,PROGRAM]... [WORD]]     imported with: ctr -n k8s.io images import OUT.tar
# The first PROGRAM is what a container of the image runs, with WORD if that says nothing else. They are in / too, and take the places of
# the applets of their names. One that is not static has its libraries with it.
# Needs busybox-static, cc with a static libc, sha256sum, tar.
set -eu
out=${1:?tarball} name=${2:?image name} program=${3:-} word=${4:-} busybox=$(command -v busybox)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/etc" "$root/tmp" "$root/proc" "$root/sys" "$root/dev"
chmod 755 "$root"

cp "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
# The first process of a pod: it reaps orphans, and ends at once when it is told to.
printf '%s\n' '#include <signal.h>' '#include <sys/wait.h>' '#include <unistd.h>' \
  'static void end(int s) { (void)s; _exit(0); }' 'static void reap(int s) { (void)s; while (waitpid(-1, 0, WNOHANG) > 0) {} }' \
  'int main(void) { signal(SIGTERM, end); signal(SIGINT, end); signal(SIGCHLD, reap); for (;;) pause(); }' |
  cc -O2 -static -x c -o "$root/pause" -

runs='"Cmd":["/pause"]'
for one in $(echo "$program" | tr , ' '); do
  cp --remove-destination "$one" "$root/bin/"
  ln -s "bin/${one##*/}" "$root/${one##*/}"
  for library in $(ldd "$one" 2>/dev/null | grep -o '/[^ ]*'); do
    mkdir -p "$root${library%/*}"
    cp -L "$library" "$root$library"
  done
done
if [ -n "$program" ]; then
  first=${program%%,*}
  runs='"Entrypoint":["/bin/'${first##*/}'"]'
  [ -z "$word" ] || runs=$runs',"Cmd":["'$word'"]'
fi
"$(dirname "$0")/../../../scripts/pack_image" "$root" "$out" "$name" "$runs"',"Env":["PATH=/bin"]'
