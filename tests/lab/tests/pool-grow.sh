# An ext4 of a pool on Linux 6.1, and a clone of it, are made larger while their pods write, as their claims
# ask for more: under the shipped unit, whose agent has CAP_SYS_RESOURCE, and over a kill of it.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
. /lab/lib/pool.sh
pool_is_empty() { [[ -z $(find /srv/fast/volumes /srv/fast/cuts -mindepth 1 -maxdepth 1) && -z $(losetup -nO BACK-FILE | grep -F /srv/fast/) ]]; }

mkdir -p /srv/fast
disk=$(plug virtio-blk pool 1024)
must mkfs.xfs -q "$disk"
must mount "$disk" /srv/fast
install_volumed
configure 'pool: {fast: /srv/fast}'
start_volumed
{ pool_class ext4 fast; pool_claim source ext4 64; pool_pod source; } | apply
wait_ready source 60
grow_fill source
writer_start source
{ pool_claim clone ext4 64 PersistentVolumeClaim source; pool_pod clone; } | apply
wait_ready clone 60
cp $lab_state/sums-source $lab_state/sums-clone
rm "$(grow_place clone)/lines"
writer_start clone

for name in source clone; do
  say "the $name asks for 192 MiB"
  before=$(pool_field "$name" 1)
  of=()
  [[ $name == source ]] || of=(PersistentVolumeClaim source)
  from=$(now)
  pool_claim "$name" ext4 192 "${of[@]}" | apply
  [[ $name == source ]] || pool_kill all
  wait_until 60 grow_has "$name" 192 || fail "$name has $(grow_bytes "$name") bytes: $(volumectl describe pvc "$name")"
  say "$name: $(grow_bytes "$name") bytes after $(since "$from") s"
  expect "its mount is the same" "$(pool_field "$name" 1)" "$before"
  expect "size of its file in MiB" "$(($(blockdev --getsize64 "$(findmnt -no SOURCE "$(grow_place "$name")")") >> 20))" 192
  head -c 100M /dev/zero >"$(grow_place "$name")/more"
  must grow_same "$name"
done
declare -A image
for name in source clone; do
  writer_stop "$name"
  expect "lines of the $name that were lost" "$(writer_lost "$name")" 0
  image[$name]=$(losetup -nO BACK-FILE "$(findmnt -no SOURCE "$(grow_place "$name")")")
done

say "the pods go, and each filesystem is clean; then all is deleted"
pool_gone source clone
for name in source clone; do
  must e2fsck -fn "${image[$name]}"
  volumectl delete pvc "$name"
done
must wait_until 60 pool_is_empty
must wait_until 30 nothing_mounted
say "up for $(now) s"
