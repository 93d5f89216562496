#!/bin/sh
# Makes an OCI image without a registry: a static busybox with its applets, and a pause program.
#   image.sh OUT.tar NAME [PROGRAM]     imported with: ctr -n k8s.io images import OUT.tar
# PROGRAM is a static one: what a container of the image runs.
# Needs busybox-static, cc with a static libc, sha256sum, tar.
set -eu
out=${1:?tarball} name=${2:?image name} program=${3:-} busybox=$(command -v busybox)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root blobs=$work/oci/blobs/sha256
mkdir -p "$root/bin" "$root/etc" "$root/tmp" "$root/proc" "$root/sys" "$root/dev" "$blobs"
case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) echo "no name for $(uname -m)" >&2; exit 1 ;; esac

cp "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
# The first process of a pod: it reaps orphans, and ends at once when it is told to.
printf '%s\n' '#include <signal.h>' '#include <sys/wait.h>' '#include <unistd.h>' \
  'static void end(int s) { (void)s; _exit(0); }' 'static void reap(int s) { (void)s; while (waitpid(-1, 0, WNOHANG) > 0) {} }' \
  'int main(void) { signal(SIGTERM, end); signal(SIGINT, end); signal(SIGCHLD, reap); for (;;) pause(); }' |
  cc -O2 -static -x c -o "$root/pause" -

entry= cmd=',"Cmd":["/pause"]'
if [ -n "$program" ]; then
  cp "$program" "$root/bin/"
  entry='"Entrypoint":["/bin/'${program##*/}'"],' cmd=
fi

# blob FILE: moves it to its digest; prints "DIGEST SIZE"
blob() {
  digest=$(sha256sum "$1" | cut -d' ' -f1) size=$(stat -c %s "$1")
  mv "$1" "$blobs/$digest"
  echo "sha256:$digest $size"
}
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$root" -cf "$work/layer" .
# shellcheck disable=SC2046
set -- $(blob "$work/layer")
layer=$1 layer_size=$2
cat >"$work/config" <<EOF
{"architecture":"$arch","os":"linux","config":{$entry"Env":["PATH=/bin"]$cmd},"rootfs":{"type":"layers","diff_ids":["$layer"]}}
EOF
# shellcheck disable=SC2046
set -- $(blob "$work/config")
config=$1 config_size=$2
cat >"$work/manifest" <<EOF
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"$config","size":$config_size},
"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"$layer","size":$layer_size}]}
EOF
# shellcheck disable=SC2046
set -- $(blob "$work/manifest")
cat >"$work/oci/index.json" <<EOF
{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"$1","size":$2,
"annotations":{"io.containerd.image.name":"$name","org.opencontainers.image.ref.name":"${name##*:}"}}]}
EOF
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/oci/oci-layout"
tar -C "$work/oci" -cf "$out" .
