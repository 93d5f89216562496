# Device-mapper devices whose behaviour a test changes while they are in use; sourced after lab.sh.
#   dm_make NAME DEVICE       prints /dev/mapper/NAME, all of DEVICE
#   dm_error NAME             every read and write fails with EIO
#   dm_flakey NAME UP DOWN    works for UP seconds, fails for DOWN seconds, and again
#   dm_delay NAME MS [MS]     each read takes that much longer, each write as the second says, if given
#   dm_hang NAME              reads and writes wait, until:
#   dm_heal NAME              as at first
#   dm_remove NAME
# A process that waits for a hung device cannot be killed: start it in the background.
modprobe -a dm_mod dm_delay dm_flakey

dm_table() {  # NAME, then what follows the size in the table; DEVICE stands for the device's number
  local name=$1 device sectors
  shift
  device=$(cat "$lab_state/dm-$name")
  sectors=$(blockdev --getsz "$device")
  # What is in flight is not waited for: a delayed or dead device would keep it.
  must dmsetup suspend --noflush --nolockfs "$name"
  must dmsetup reload "$name" --table "0 $sectors ${*//DEVICE/$device}"
  must dmsetup resume "$name"
}
dm_make() {
  echo "$2" >"$lab_state/dm-$1"
  must dmsetup create "$1" --table "0 $(blockdev --getsz "$2") linear $2 0"
  udevadm settle
  echo "/dev/mapper/$1"
}
dm_error() { dm_table "$1" error; }
dm_flakey() { dm_table "$1" flakey DEVICE 0 "$2" "$3"; }
dm_delay() { dm_table "$1" delay DEVICE 0 "$2" DEVICE 0 "${3:-$2}"; }
dm_hang() { must dmsetup suspend --noflush --nolockfs "$1"; }
dm_heal() { dm_table "$1" linear DEVICE 0; }
dm_remove() { must dmsetup remove --retry "$1"; }
