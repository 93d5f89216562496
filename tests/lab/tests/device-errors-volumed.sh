# Devices that fail under local volumes of ext4, xfs and btrfs, with the shipped unit: pods can leave,
# errors name the device, other pods go on, and all is as it was when the devices are back.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/dm.sh
. /lab/lib/sick.sh
bad=(bad-ext4 bad-xfs bad-btrfs)

install_volumed
{
  sick_disk bad-ext4 ext4
  sick_disk bad-xfs xfs 320
  sick_disk bad-btrfs btrfs 256
  sick_disk good ext4
} | manifest volumes
start_volumed
for name in "${bad[@]}" good; do sick_pod "$name"; done
for name in "${bad[@]}" good; do
  wait_ready "$name" 90
  echo "of $name" >"$(sick_place "$name")/note"
  sync -f "$(sick_place "$name")"
done

say "three devices fail under their pods"
for name in "${bad[@]}"; do dm_error "$name"; done
for name in "${bad[@]}"; do
  if (echo lost >"$(sick_place "$name")/lost" && sync -f "$(sick_place "$name")") 2>/dev/null; then fail "$name takes writes"; fi
done
goes_on "while three devices fail"
for name in "${bad[@]}"; do no_sick_pod "$name"; done
for name in "${bad[@]}"; do wait_gone "$name" 60; done
must wait_until 60 not findmnt -n --source /dev/mapper/bad-ext4
echo "ok: the pods of the failed devices could leave"

say "pods that want them are told which device fails, and how"
for name in "${bad[@]}"; do sick_pod "$name"; done
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
  expect "its note" "$(cat "$(sick_place "$name")/note")" "of $name"
done

say "a device that fails now and then, at a set-up"
no_sick_pod bad-xfs
wait_gone bad-xfs 60
must wait_until 30 not findmnt -n --source /dev/mapper/bad-xfs
dm_flakey bad-xfs 0 1000
sick_pod bad-xfs
must wait_until 60 explains bad-xfs "Input/output error"
dm_heal bad-xfs
# By the back-off alone.
wait_ready bad-xfs 120
say "errors that the tool cannot correct: told, and tried no more often than the back-off says"
no_sick_pod bad-ext4
wait_gone bad-ext4 60
must wait_until 30 not findmnt -n --source /dev/mapper/bad-ext4
must debugfs -w -R 'clri <2>' /dev/mapper/bad-ext4
must debugfs -w -R 'ssv state 2' /dev/mapper/bad-ext4
sick_pod bad-ext4
must wait_until 60 explains bad-ext4 "could not correct"
sleep 15
volumectl explain bad-ext4
# 0.5 s, doubled each time.
tried=$(attempts bad-ext4)
expect "a handful of attempts in a quarter of a minute (there were $tried)" "$((tried <= 8))" 1
goes_on "while a disk is not mended"
say "up for $(now) s"
