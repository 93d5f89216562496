# For the tests of the lab, which run in its virtual machine as root; sourced. Words for claims, and
# for devices that come and go. dm.sh, nfs.sh, iscsi.sh and volumed.sh build on it.
#
# A device is called by a name of the test's choice, which is also its serial number:
#   plug virtio-blk|virtio-scsi|nvme NAME SIZE_MB   prints its /dev/disk/by-id path
#   replug NAME [SERIAL]   the same disk again, with what is on it; by another serial number, if given
#   unplug NAME       refuses a device that is mounted
#   yank NAME         surprise removal, whoever uses it
#   resize NAME SIZE_MB
set -eEuo pipefail
# A command that fails ends the test; where, is told only if it is the test that ends.
lab_where=
trap 'lab_where="${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND"' ERR
trap 'status=$?; ((status == 0 || status == 77)) || echo "ended by $lab_where" >&2' EXIT
export LC_ALL=C
lab_state=/run/lab
mkdir -p $lab_state/disks $lab_state/slots

say() { printf '# %s\n' "$*"; }
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# expect WHAT GOT WANTED
expect() {
  [[ "$2" == "$3" ]] || fail "$1: expected '$3', got '$2'"
  echo "ok: $1: $2"
}
# expect_text WHAT TEXT PART
expect_text() {
  [[ "$2" == *"$3"* ]] || fail "$1: expected '...$3...', got '$2'"
  echo "ok: $1: $3"
}
# must COMMAND...: it succeeds, or the test ends.
must() {
  local output
  output=$("$@" 2>&1) || fail "$*: $output"
}

now() { cut -d' ' -f1 /proc/uptime; }
# since TIME: seconds, with a fraction.
since() { awk -v from="$1" '{ printf "%.2f", $1 - from }' /proc/uptime; }

# Limits are for a machine that does nothing else; others may use it too.
lab_patience=3
# wait_until SECONDS COMMAND...: false when it was not so in time.
wait_until() {
  local limit=$(($1 * lab_patience)) from
  from=$(now)
  shift
  until "$@" >/dev/null 2>&1; do
    awk -v from="$from" -v limit="$limit" '{ exit !($1 - from < limit) }' /proc/uptime || return 1
    sleep 0.05
  done
}
not() { ! "$@"; }

# QEMU's monitor, over a virtio port. One command at a time; events are skipped.
lab_host=$(cat /lab/.host)
qmp() {
  local line
  {
    flock 8
    [[ -e $lab_state/qmp ]] || { echo '{"execute":"qmp_capabilities"}' >&7; read -r -t 10 line <&7; touch $lab_state/qmp; }
    echo "$1" >&7
    while IFS= read -r -t 20 line <&7; do
      case $line in
        *'"error"'*) echo "QEMU refuses $1: $line" >&2; return 1 ;;
        *'"return"'*) return 0 ;;
        *) ;;  # an event, or the greeting
      esac
    done
  } 7<>/dev/virtio-ports/lab.qmp 8>>$lab_state/qmp.lock
  echo "QEMU does not answer: $1" >&2
  return 1
}

free_slot() {
  local number
  for number in 1 2 3 4 5 6; do
    mkdir "$lab_state/slots/slot$number" 2>/dev/null && { echo "slot$number"; return; }
  done
  return 1
}

# by_id SERIAL: the path that udev gives the device, or nothing.
by_id() {
  local path
  for path in /dev/disk/by-id/virtio-"$1" /dev/disk/by-id/scsi-*_"$1" /dev/disk/by-id/nvme-QEMU*_"$1"; do
    [[ -e $path ]] && { echo "$path"; return 0; }
  done
  return 1
}

plug() {
  local kind=$1 name=$2 megabytes=$3 number
  number=$(($(find $lab_state/disks -type d | wc -l)))
  mkdir "$lab_state/disks/$name" || return 1
  echo "$kind" >"$lab_state/disks/$name/kind"
  qmp '{"execute":"blockdev-add","arguments":{"driver":"raw","node-name":"'"$name"'","file":{"driver":"file","filename":"'"$lab_host/disk$number.img"'","discard":"unmap"}}}' || return 1
  qmp '{"execute":"block_resize","arguments":{"node-name":"'"$name"'","size":'$((megabytes << 20))'}}' || return 1
  replug "$name"
}

replug() {
  local name=$1 serial=${2:-$1} kind slot where id count
  kind=$(cat "$lab_state/disks/$name/kind") || return 1
  count=$(($(cat "$lab_state/disks/$name/count" 2>/dev/null || echo 0) + 1))
  echo $count >"$lab_state/disks/$name/count"
  id=dev-$name-$count
  echo "$id" >"$lab_state/disks/$name/id"
  if [[ $kind == virtio-scsi ]]; then
    where='"driver":"scsi-hd","bus":"scsi0.0","lun":'$(($(find $lab_state/disks -type d | wc -l) + 1))
  else
    slot=$(free_slot) || { echo "no slot is free" >&2; return 1; }
    echo "$slot" >"$lab_state/disks/$name/slot"
    [[ $kind == nvme ]] && where='"driver":"nvme"' || where='"driver":"virtio-blk-pci"'
    where+=',"bus":"'$slot'"'
  fi
  qmp '{"execute":"device_add","arguments":{'"$where"',"drive":"'"$name"'","id":"'"$id"'","serial":"'"$serial"'"}}' || return 1
  echo "$serial" >"$lab_state/disks/$name/serial"
  wait_until 20 by_id "$serial" || { echo "$name does not appear" >&2; return 1; }
  basename "$(readlink -f "$(by_id "$serial")")" >"$lab_state/disks/$name/node"
  by_id "$serial"
}

node_is_gone() { [[ ! -e /sys/block/$1 ]]; }

yank() {
  local name=$1 node slot
  node=$(cat "$lab_state/disks/$name/node")
  qmp '{"execute":"device_del","arguments":{"id":"'"$(cat "$lab_state/disks/$name/id")"'"}}' || return 1
  wait_until 20 node_is_gone "$node" || { echo "$name does not go" >&2; return 1; }
  slot=$(cat "$lab_state/disks/$name/slot" 2>/dev/null) || return 0
  # The slot of a port is powered down a moment later than the device goes.
  sleep 1
  rmdir "$lab_state/slots/$slot"
}

unplug() {
  local node
  node=$(disk_node "$1")
  ! findmnt -n --source "$node" >/dev/null || { echo "$1 is mounted" >&2; return 1; }
  must blockdev --flushbufs "$node"
  yank "$1"
}

# disk_node NAME: /dev/..., where it is plugged in.
disk_node() { echo "/dev/$(cat "$lab_state/disks/$1/node")"; }
has_size() { [[ $(blockdev --getsize64 "$1") == "$2" ]]; }
resize() {
  local bytes=$(($2 << 20))
  qmp '{"execute":"block_resize","arguments":{"node-name":"'"$1"'","size":'$bytes'}}' || return 1
  wait_until 20 has_size "$(disk_node "$1")" $bytes || { echo "$1 does not change its size" >&2; return 1; }
}

# What `systemctl reboot` does where no logind runs.
start_target() { systemctl start --no-block --job-mode=replace-irreversibly "$1"; }
# End of the machine, the orderly way. A rebooted one runs the test again, with LAB_BOOT=2.
lab_reboot() {
  mkdir -p $lab_state && touch $lab_state/ending
  date +%s >/var/lib/lab/clock
  start_target reboot.target
  sleep infinity
}
# lab_poweroff: the test has passed so far; its .after script looks at the disks.
lab_poweroff() {
  touch $lab_state/ending
  echo "rc 0" >/dev/virtio-ports/lab.rc
  start_target poweroff.target
  sleep infinity
}
