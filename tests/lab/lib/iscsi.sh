# An iSCSI target on the second machine, and the initiator of this one; sourced after server.sh.
#   iscsi_target_start SIZE_MB    one target, $iscsi_target, with lun 1
#   iscsi_target_stop             in order
#   iscsi_target_kill             SIGKILL: the kernel closes its connections
#   iscsi_target_pause, iscsi_target_resume
#   iscsi_target_lun LUN SIZE_MB  one more
#   iscsi_target_resize LUN SIZE_MB
#   iscsi_target_chap USER PASSWORD   of sessions, from now on
#   iscsi_login                   prints the by-path device
#   iscsi_logout
# server_cut is what a crashed or unreachable target looks like.
iscsi_target=iqn.2026-01.lab:target
iscsi_path=/dev/disk/by-path/ip-$server_address:3260-iscsi-$iscsi_target-lun-1
target_admin() { on_server tgtadm --lld iscsi "$@"; }
target_process() { cat "$lab_state/tgtd.pid"; }
iscsi_target_start() {
  truncate -s "${1:-64}M" /srv/lun.img
  # Not through a function: its process id is wanted.
  ip netns exec server tgtd -f >"$lab_state/tgtd.log" 2>&1 &
  echo $! >"$lab_state/tgtd.pid"
  wait_until 20 target_admin --mode sys --op show || fail "tgtd: $(cat "$lab_state/tgtd.log")"
  must target_admin --mode target --op new --tid 1 --targetname $iscsi_target
  must target_admin --mode logicalunit --op new --tid 1 --lun 1 --backing-store /srv/lun.img
  must target_admin --mode logicalunit --op update --tid 1 --lun 1 --params scsi_sn=iscsi-vol-1
  must target_admin --mode target --op bind --tid 1 --initiator-address ALL
}
iscsi_target_lun() {
  truncate -s "$2M" "/srv/lun$1.img"
  must target_admin --mode logicalunit --op new --tid 1 --lun "$1" --backing-store "/srv/lun$1.img"
  must target_admin --mode logicalunit --op update --tid 1 --lun "$1" --params "scsi_sn=iscsi-vol-$1"
}
# tgtd reads the size of a backing store when it opens it: the LUN is made again, under the session.
iscsi_target_resize() {
  local image=/srv/lun$1.img
  [[ -e $image ]] || image=/srv/lun.img
  truncate -s "$2M" "$image"
  # tgtd refuses while a command of the initiator is under way.
  must wait_until 20 target_admin --mode logicalunit --op delete --tid 1 --lun "$1"
  must target_admin --mode logicalunit --op new --tid 1 --lun "$1" --backing-store "$image"
  must target_admin --mode logicalunit --op update --tid 1 --lun "$1" --params "scsi_sn=iscsi-vol-$1"
}
iscsi_target_chap() {
  must target_admin --mode account --op new --user "$1" --password "$2"
  must target_admin --mode account --op bind --tid 1 --user "$1"
}
iscsi_target_kill() {
  kill -9 "$(target_process)"
  wait "$(target_process)" 2>/dev/null || true
}
iscsi_target_stop() {
  target_admin --mode target --op delete --force --tid 1
  target_admin --mode sys --op delete
  wait "$(target_process)"
}
iscsi_target_pause() { kill -STOP "$(target_process)"; }
iscsi_target_resume() { kill -CONT "$(target_process)"; }
# iscsi_initiator [SECONDS]: how long a lost path is waited for before reads and writes fail.
iscsi_initiator() {
  must modprobe iscsi_tcp
  mkdir -p /run/lock/iscsi
  echo "InitiatorName=iqn.2026-01.lab:node" >/etc/iscsi/initiatorname.iscsi
  sed -i "s/^node.session.timeo.replacement_timeout = .*/node.session.timeo.replacement_timeout = ${1:-5}/
    s/^node.conn\[0\].timeo.noop_out_\(interval\|timeout\) = .*/node.conn[0].timeo.noop_out_\1 = 2/" /etc/iscsi/iscsid.conf
  must systemctl start iscsid
}
iscsi_login() {
  must iscsiadm -m discovery -t sendtargets -p $server_address
  must iscsiadm -m node -T $iscsi_target -p $server_address --login
  wait_until 20 test -e "$iscsi_path" || fail "$iscsi_path does not appear"
  echo "$iscsi_path"
}
iscsi_logout() { must iscsiadm -m node -T $iscsi_target -p $server_address --logout; }
