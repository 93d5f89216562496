# A volume of a pool on Linux 6.1, for ext4, xfs and btrfs each: cut while its pod writes, and then it,
# a volume made of the snapshot and two clones are mounted at once, each with a UUID and a filesystem of
# its own and with what was there at its cut. (Before 6.7 a btrfs with the UUID of a mounted one would
# be taken for that.)
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
. /lab/lib/pool.sh
types=(ext4 xfs btrfs)
declare -A size=([ext4]=64 [xfs]=320 [btrfs]=160)
all=()
for type in "${types[@]}"; do all+=("$type" "$type-restored" "$type-clone1" "$type-clone2"); done
declare -A image

device_of() { findmnt -no SOURCE "$(pool_place "$1")"; }
uuid_of() { blkid -p -o value -s UUID "$(device_of "$1")"; }
note() { cat "$(pool_place "$1")/note"; }
# prefix NAME LEAST MOST: the lines are 1, 2, 3 ... up to a number between these.
prefix() {
  local last
  last=$(awk '$1 != NR { exit 1 } END { print NR }' "$(pool_place "$1")/lines") || fail "$1 has other lines than were written"
  ((last >= $2 && last <= $3)) || fail "$1 has $last lines, of $2 to $3"
  echo "ok: $1 has the first $last lines, of $2 to $3"
}
told() { cat "$lab_state/told-$1"; }
distinct() { sort -u | wc -l; }
pool_is_empty() { [[ -z $(find /srv/fast/volumes /srv/fast/cuts -mindepth 1 -maxdepth 1) && -z $(losetup -nO BACK-FILE | grep -F /srv/fast/) ]]; }

say "Linux $(uname -r); a pool on an xfs, and a claim of each filesystem whose pod writes"
mkdir -p /srv/fast
disk=$(plug virtio-blk pool 4096)
must mkfs.xfs -q "$disk"
must mount "$disk" /srv/fast
install_volumed
configure 'pool: {fast: /srv/fast}'
start_volumed
for type in "${types[@]}"; do
  { pool_class "$type" fast csi.storage.k8s.io/fstype "$type"; pool_claim "$type" "$type" "${size[$type]}"; pool_pod "$type"; } | apply
done
for type in "${types[@]}"; do
  wait_ready "$type" 90
  grow_fill "$type"
  echo then >"$(pool_place "$type")/note"
  writer_start "$type"
done
sleep 1

say "cut while it is written to; changed; and two clones of what it is then"
declare -A least most
for type in "${types[@]}"; do
  least[$type]=$(told "$type")
  from=$(now)
  pool_snapshot "$type" "$type" | apply
  wait_until 60 snapshot_ready "$type" || fail "$(volumectl describe volumesnapshot "$type")"
  most[$type]=$(($(told "$type") + 1))
  say "$type: ready to use after $(since "$from") s"
  echo later >"$(pool_place "$type")/note"
  sync -f "$(pool_place "$type")/note"
done
declare -A clone_least
from=$(now)
for type in "${types[@]}"; do
  clone_least[$type]=$(told "$type")
  {
    pool_claim "$type-restored" "$type" "${size[$type]}" VolumeSnapshot "$type"
    pool_pod "$type-restored"
    for clone in "$type-clone1" "$type-clone2"; do
      pool_claim "$clone" "$type" "${size[$type]}" PersistentVolumeClaim "$type"
      pool_pod "$clone"
    done
  } | apply
done
for type in "${types[@]}"; do
  for name in "$type-restored" "$type-clone1" "$type-clone2"; do must wait_until 60 pool_volume "$name"; done
  writer_stop "$type"
  expect "lines of $type that were lost" "$(writer_lost "$type")" 0
done
for name in "${all[@]}"; do wait_ready "$name" 120; done
say "all are mounted after $(since "$from") s"
mounted_at_once() {
  local name
  for name in "${all[@]}"; do
    mountpoint -q "$(pool_place "$name")" || fail "$name is not mounted"
    "$1" "$name"
  done
}
number_of() { stat -c %d "$(pool_place "$1")"; }
sectors_of() { losetup -nO LOG-SEC "$(device_of "$1")"; }

say "each is a filesystem of its own, with what was there at its cut"
expect "volumes with a UUID of their own" "$(mounted_at_once uuid_of | distinct)" "${#all[@]}"
expect "volumes with a device of their own" "$(mounted_at_once device_of | distinct)" "${#all[@]}"
expect "filesystems of their own" "$(mounted_at_once number_of | distinct)" "${#all[@]}"
expect "sectors of the loop devices" "$(mounted_at_once sectors_of | tr -d ' ' | sort -u)" 4096
expect "btrfs that the kernel knows" "$(find /sys/fs/btrfs -mindepth 1 -maxdepth 1 -name '*-*-*' | wc -l)" 4
for type in "${types[@]}"; do
  expect "$type-restored" "$(note "$type-restored")" "then"
  prefix "$type-restored" "${least[$type]}" "${most[$type]}"
  last=$(($(told "$type") + 1))
  for clone in "$type-clone1" "$type-clone2"; do
    expect "$clone" "$(note "$clone")" later
    prefix "$clone" "${clone_least[$type]}" "$last"
  done
  for name in "$type" "$type-restored" "$type-clone1" "$type-clone2"; do
    [[ $name == "$type" ]] || cp $lab_state/sums-"$type" $lab_state/sums-"$name"
    must grow_same "$name"
    echo "of $name" >"$(pool_place "$name")/note"
    sync -f "$(pool_place "$name")/note"
  done
done
pool_kill all
for name in "${all[@]}"; do
  wait_ready "$name" 60
  expect "what was written to it alone" "$(note "$name")" "of $name"
done

say "the pods go, and each filesystem is clean"
for name in "${all[@]}"; do image[$name]=$(losetup -nO BACK-FILE "$(device_of "$name")"); done
pool_gone "${all[@]}"
for name in "${all[@]}"; do
  case $name in
    ext4*) must e2fsck -fn "${image[$name]}" ;;
    xfs*) must xfs_repair -n -f "${image[$name]}" ;;
    btrfs*) must btrfs check "${image[$name]}" ;;
  esac
done

say "all is deleted, and nothing is left of it"
for type in "${types[@]}"; do volumectl delete volumesnapshot "$type"; done
for name in "${all[@]}"; do volumectl delete pvc "$name"; done
must wait_until 60 pool_is_empty
must wait_until 30 nothing_mounted
say "up for $(now) s"
