#!/usr/bin/env bash
# Boots a real systemd as PID 1 of a container on a copy-on-write view of this machine, runs a script
# in it as a unit, and returns the script's exit code. Nothing of the machine is changed.
#   run_in_systemd.sh BUILD_DIR SCRIPT
set -uo pipefail
build=$1 script=$2
project=$(cd "$(dirname "$0")/../../.." && pwd)

skip() { echo "skipped: needs $1"; exit 77; }
((EUID == 0)) || skip "root"
command -v systemd-nspawn >/dev/null || skip "systemd-nspawn"
[[ -x /lib/systemd/systemd ]] || skip "systemd"

# All mounts of the test lie in a mount namespace of its own and go with it.
if [[ -z ${VOLUMED_SYSTEMD_TEST_NS:-} ]]; then
  exec env VOLUMED_SYSTEMD_TEST_NS=1 unshare -m --propagation private "$0" "$@"
fi

machine=volumed-test-$$
work=$(mktemp -d /tmp/$machine.XXXX)
cgroups=()
clean_up() {
  for group in "${cgroups[@]}"; do
    echo $$ >"$(dirname "$group")/cgroup.procs"
    find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null
  done
  umount -R "$work" && rmdir "$work"
  rmdir "/run/systemd/nspawn/propagate/$machine" 2>/dev/null
}
trap clean_up EXIT

mount -t tmpfs lab "$work"
mkdir "$work"/{upper,work,root,share}
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root" ||
  skip "overlayfs"
root=$work/root
install -m 755 "$build"/src/agent/volumed "$build"/src/os/volumed-worker "$build"/src/cli/volumectl "$root/usr/bin/"
sed "s#^ExecStart\(Pre\)\?=.*/bin/#ExecStart\1=/usr/bin/#" "$build/systemd/volumed.service" \
  >"$root/etc/systemd/system/volumed.service"
mkdir -p "$root"/etc/volumed "$root"/etc/tmpfiles.d "$root"/etc/sysusers.d
cp "$project/systemd/volumed.tmpfiles.conf" "$root/etc/tmpfiles.d/volumed.conf"
cp "$project/systemd/volumed.sysusers.conf" "$root/etc/sysusers.d/volumed.conf"
cp -r "$project/examples" "$work/share/"
cp "$script" "$work/share/run.sh"
cat >"$root/etc/systemd/system/lab.service" <<'UNIT'
[Unit]
SuccessAction=poweroff
FailureAction=poweroff
[Service]
Type=oneshot
ExecStart=/bin/bash -c '/bin/bash /lab/run.sh; echo $? >/lab/status'
StandardOutput=append:/lab/log
StandardError=append:/lab/log
UNIT
cat >"$root/etc/systemd/system/lab.target" <<'UNIT'
[Unit]
Requires=basic.target
After=basic.target
Wants=lab.service
AllowIsolate=yes
UNIT

# nspawn makes groups beside its own: not in the root group.
for hierarchy in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
  [[ -w $hierarchy/cgroup.procs ]] || continue
  mkdir "$hierarchy/$machine" && cgroups+=("$hierarchy/$machine")
  echo $$ >"$hierarchy/$machine/cgroup.procs"
done
SYSTEMD_NSPAWN_API_VFS_WRITABLE=1 timeout -k 5 120 systemd-nspawn -q -D "$root" -M "$machine" -b \
  --register=no --keep-unit --private-network --capability=all --bind="$work/share:/lab" \
  -- systemd.unit=lab.target </dev/null >"$work/boot.log" 2>&1
cat "$work/share/log" 2>/dev/null
status=$(cat "$work/share/status" 2>/dev/null || echo 125)
[[ $status != 125 ]] || tail -n 25 "$work/boot.log"
exit "$status"
