# Devices that fail, are slow, or hang under local volumes of ext4, xfs and btrfs, with the shipped
# unit: errors name the device, other pods go on, what is slow or stuck is counted and ends when the
# device is back.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/dm.sh
uid() { echo "66666666-0000-4000-8000-00000000000$1"; }
declare -A number=([bad-ext4]=1 [bad-xfs]=2 [bad-btrfs]=3 [good]=4 [slow]=5 [other]=6)
bad=(bad-ext4 bad-xfs bad-btrfs)
wanted() { pod "$1" "$(uid "${number[$1]}")" "$1" | manifest "$1"; }
unwanted() { rm "/etc/volumed/manifests/$1.yaml"; }
place() { volume_path "$(uid "${number[$1]}")" "$1"; }
note() { cat "$(place "$1")/note"; }
metric() { curl -sS http://127.0.0.1:9788/metrics | awk -v name="$1" 'index($1, name) == 1 { sum += $2 } END { print sum + 0 }'; }
counts() { (($(metric "$1") > 0)); }
counts_none() { (($(metric "$1") == 0)); }
goes_on() {
  echo "$1" >>"$(place good)/note"
  must sync -f "$(place good)"
  volumectl get pods good | grep -q Ready || fail "the good pod is not ready: $(volumectl explain good)"
  echo "ok: the good pod goes on, $1"
}

install_volumed
# Short, as nothing here is waited for in earnest.
configure "deadline-unmount: 5s"
for name in "${bad[@]}" good slow; do
  size=96
  [[ $name != bad-xfs ]] || size=320
  [[ $name != bad-btrfs ]] || size=256
  must dm_make "$name" "$(plug virtio-scsi "$name" $size)"
done
{
  for type in ext4 xfs btrfs; do local_volume bad-$type /dev/mapper/bad-$type $type; done
  local_volume good /dev/mapper/good ext4
  local_volume slow /dev/mapper/slow ext4
} | manifest volumes
start_volumed
for name in "${bad[@]}" good; do wanted "$name"; done
for name in "${bad[@]}" good; do
  wait_ready "$name" 90
  echo "of $name" >"$(place "$name")/note"
  sync -f "$(place "$name")"
done

say "three devices fail under their pods"
for name in "${bad[@]}"; do dm_error "$name"; done
for name in "${bad[@]}"; do
  if (echo lost >"$(place "$name")/lost" && sync -f "$(place "$name")") 2>/dev/null; then fail "$name takes writes"; fi
done
goes_on "while three devices fail"
for name in "${bad[@]}"; do unwanted "$name"; done
for name in "${bad[@]}"; do wait_gone "$name" 60; done
must wait_until 60 not findmnt -n --source /dev/mapper/bad-ext4
echo "ok: the pods of the failed devices could leave"

say "pods that want them are told which device fails, and how"
for name in "${bad[@]}"; do wanted "$name"; done
for name in "${bad[@]}"; do
  must wait_until 60 explains "$name" "/dev/mapper/$name"
  must wait_until 60 explains "$name" "Input/output error"
  volumectl explain "$name" | grep -m1 error:
done
goes_on "while three pods cannot be set up"

say "the devices are back"
for name in "${bad[@]}"; do dm_heal "$name"; done
for name in "${bad[@]}"; do
  must volumectl retry "$name"
  wait_ready "$name" 90
  expect "its note" "$(note "$name")" "of $name"
done

say "a device that fails now and then, at a set-up"
unwanted bad-xfs
wait_gone bad-xfs 60
must wait_until 30 not findmnt -n --source /dev/mapper/bad-xfs
dm_flakey bad-xfs 0 1000
wanted bad-xfs
must wait_until 60 explains bad-xfs "Input/output error"
dm_heal bad-xfs
# By the back-off alone.
wait_ready bad-xfs 120

say "a slow device: its mkfs is past its deadline, is counted, and is not cut off"
configure "deadline-unmount: 5s" "deadline-mount: 3s"
must systemctl reload volumed
dm_delay slow 400
wanted slow
must wait_until 60 counts 'volumed_workers{state="slow"}'
echo "ok: a slow worker is counted"
configure "deadline-unmount: 5s"
must systemctl reload volumed
goes_on "while a device is slow"
dm_heal slow
wait_ready slow 120
must wait_until 30 counts_none 'volumed_workers{state="slow"}'

say "a device that hangs while its pod leaves"
dm_hang bad-ext4
unwanted bad-ext4
must wait_until 90 counts 'volumed_stuck_operations{'
volumectl explain bad-ext4
must wait_until 30 explains bad-ext4 "cannot be ended"
goes_on "while a worker is stuck"
agent=$(property MainPID)
must systemctl restart volumed
expect "another agent" "$([[ $(property MainPID) != "$agent" ]] && echo yes)" yes
goes_on "after a restart with a stuck worker"
dm_heal bad-ext4
wait_gone bad-ext4 120
must wait_until 60 counts_none 'volumed_stuck_operations{'
must wait_until 60 not findmnt -n --source /dev/mapper/bad-ext4
must e2fsck -fn /dev/mapper/bad-ext4
expect "every line of the good pod" "$(wc -l <"$(place good)/note")" 6
say "up for $(now) s"
