# The shipped unit on a real systemd with a kernel of its own: ready, watchdog, restart, reload; then
# an orderly reboot and an orderly power-off, with a disk that a pod has. What the disk looks like
# from outside is looked at by systemd.after.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
uid=11111111-0000-4000-8000-000000000001
data=$(volume_path $uid data)

first_boot() {
  local before pid disk
  mkdir -p /var/log/journal && must journalctl --flush
  disk=$(plug virtio-blk data 128)
  must mkfs.ext4 -q "$disk"
  install_volumed
  mkdir -p /etc/systemd/system/volumed.service.d
  printf '[Service]\nWatchdogSec=5s\n' >/etc/systemd/system/volumed.service.d/lab.conf
  must systemctl daemon-reload
  must systemctl enable --now volumed
  expect "state after start (Type=notify)" "$(property ActiveState)/$(property SubState)" active/running
  expect "the socket" "$(stat -c '%G %a' /run/volumed/volumed.sock)" "volumed 660"

  say "a pod with a disk and all of the node's own volume types"
  { local_volume data "$disk" ext4; pod app $uid data; } >/etc/volumed/manifests/app.yaml
  must volumectl apply -f /lab/examples/objects.yaml -f /lab/examples/pod.yaml
  wait_ready app
  wait_ready web
  before=$(pod_mounts)
  # The disk, the pod's bind of it; four tmpfs and two subPaths of the other pod.
  expect "mounts that PID 1 sees" "$(wc -l <<<"$before")" 8
  echo "written before everything" >"$data/note"

  say "the watchdog"
  pid=$(property MainPID)
  kill -STOP "$pid"
  must wait_until 30 restarted 1
  expect "systemd's word for it" "$(journalctl -b -u volumed | grep -c 'Watchdog timeout')" 1
  wait_ready app
  same_mounts "after the watchdog's kill" "$before"

  say "a restart and a reload"
  must systemctl restart volumed
  wait_ready app
  same_mounts "after a restart" "$before"
  echo 'deadline-mount: 33s' >/etc/volumed/config.yaml
  must systemctl reload volumed
  must wait_until 10 explains app "setUp 33s"
  expect "state after a reload" "$(property ActiveState)" active
  expect "data" "$(cat "$data/note")" "written before everything"
  lab_reboot
}
restarted() { [[ $(property NRestarts) == "$1" && $(property SubState) == running ]]; }
same_mounts() { [[ $(pod_mounts) == "$2" ]] || fail "mounts moved, $1: $(diff <(pod_mounts) <(echo "$2"))"; echo "ok: the same mounts, $1"; }

# last_line TEXT: of the boot before this one.
last_line() { journalctl -b -1 -o short-monotonic --no-pager | grep -nF "$1" | tail -n 1 | cut -d: -f1; }

second_boot() {
  local stopped unmounted
  say "after a reboot"
  wait_until 60 systemctl is-active volumed || fail "not started by the boot: $(systemctl status --no-pager volumed)"
  wait_ready app 60
  wait_ready web 60
  expect "mounts" "$(pod_mounts | wc -l)" 8
  expect "data" "$(cat "$data/note")" "written before everything"
  stopped=$(last_line "Stopped volumed.service")
  unmounted=$(journalctl -b -1 --no-pager | grep -nE 'Unmount(ed|ing) .*var-lib-volumed-pods' | head -n 1 | cut -d: -f1)
  expect "the agent stopped before its mounts went" "$((${stopped:-0} > 0 && ${stopped:-0} < ${unmounted:-0}))" 1
  expect "errors of the unmounting" "$(journalctl -b -1 --no-pager | grep -cE 'Failed unmounting .*volumed' || true)" 0
  echo "written after the reboot" >"$data/note2"
  say "up for $(now) s"
  lab_poweroff
}

if ((LAB_BOOT == 1)); then first_boot; else second_boot; fi
