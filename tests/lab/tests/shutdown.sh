# An orderly reboot and an orderly power-off while pods have a disk: the agent stops first, then its
# mounts go, and after the reboot all is back by itself. shutdown.after looks at the disk from outside.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
uid=11111111-0000-4000-8000-000000000002
data=$(volume_path $uid data)

first_boot() {
  local disk
  mkdir -p /var/log/journal && must journalctl --flush
  disk=$(plug virtio-blk data 128)
  install_volumed
  must systemctl enable --now volumed
  { local_volume data "$disk" ext4; pod app $uid data; } >/etc/volumed/manifests/app.yaml
  wait_ready app
  echo "written before the reboot" >"$data/note"
  lab_reboot
}

# line_of TEXT: the first one of the journal of the boot before that matches.
line_of() { journalctl -b -1 -o cat --no-pager | grep -nE -- "$1" | head -n 1 | cut -d: -f1; }

second_boot() {
  local stopped unmounted
  must wait_until 60 systemctl is-active volumed
  wait_ready app 60
  expect "data after the reboot" "$(cat "$data/note")" "written before the reboot"
  stopped=$(line_of '^Stopped volumed.service')
  unmounted=$(line_of '^Unmount(ed|ing) .*var-lib-volumed-pods')
  expect "the agent stopped before its mounts went (lines $stopped, $unmounted)" \
    "$((${stopped:-0} > 0 && ${stopped:-0} < ${unmounted:-0}))" 1
  expect "unmounts that failed" "$(journalctl -b -1 -o cat --no-pager | grep -cE 'Failed unmounting .*volumed' || true)" 0
  echo "written after the reboot" >"$data/note2"
  say "up for $(now) s"
  lab_poweroff
}

if ((LAB_BOOT == 1)); then first_boot; else second_boot; fi
