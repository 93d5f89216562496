# Sourced by scripts/demo, which has started the daemon: volumes of the node's own pool, on an xfs in a file.

pool_disk=  # the loop device of the pool's own disk

pool_loops() { losetup --list --noheadings --output NAME,BACK-FILE | grep -F " $scratch/fast/volumes/" | cut -d' ' -f1 || true; }
pool_loop_count() { pool_loops | wc -l; }
pool_files() { find "$scratch/fast" -mindepth 2 -type f | wc -l; }

# For the end of the demo, however it ends: after the mounts of the volumes.
end_pool() {
  local loop
  for loop in $(pool_loops); do losetup --detach "$loop"; done
  ! mountpoint -q "$scratch/fast" || umount "$scratch/fast"
  [[ -z $pool_disk ]] || losetup --detach "$pool_disk"
  pool_disk=
}

restart_daemon() {
  stop_daemon
  start_daemon
}

# Its own first start with a pool: mkfs, mount and one line of the configuration are all that it takes.
make_pool() {
  pool_disk=$(new_disk "$scratch/fast.img" 8G)
  mkfs.xfs -q "$pool_disk"
  mkdir -p "$scratch/fast"
  mount "$pool_disk" "$scratch/fast"
  echo "pool: {fast: $scratch/fast}" >>"$scratch/config.yaml"
  restart_daemon
  until_text pool.volumed ls "$scratch/fast"
  ls -l "$scratch/fast"
}

# expect_note WHEN: the pod's file is there, through the pod's own path.
expect_note() { expect "the pod's file, $1" "$(cat "$place/note")" "written by the pod"; }

demo_pool() {
  local uid=0f3f1a52-6f6a-4b0e-8f63-0c1d1f6a2011 volume place image loop
  say "a pool: an empty directory on a disk, and \`pool: {fast: DIRECTORY}\` in the configuration"
  make_pool

  say "a claim of a class with provisioner pool.volumed.io, and its pod (examples/pool.yaml)"
  ctl apply -f examples/pool.yaml
  ctl wait database --for ready --timeout 60
  ctl get pvc database
  ctl get pv
  volume=$(ctl get pvc database -o json | jq -r '.persistent_volume_claims[0].volume')
  place=$root/pods/$uid/volumes/volumed.io~pool/$volume
  image=$(find "$scratch/fast/volumes" -name image)
  ls -ls "$image"
  losetup --list --output NAME,LOG-SEC,DIO,BACK-FILE $(pool_loops)
  findmnt -rno SOURCE,TARGET,FSTYPE | grep -F "$root/" | grep -F pool
  expect "size of its file" "$(stat -c %s "$image")" $((2 << 30))
  expect "filesystem of the claim" "$(stat -fc %T "$place")" xfs
  echo "written by the pod" >"$place/note"

  say "the claim asks for more, and its volume grows while the pod uses it"
  sed 's/storage: 2Gi/storage: 3Gi/' examples/pool.yaml | ctl apply -f - | { grep -v unchanged || true; }
  until_larger "$place" 2900
  expect "size of its file" "$(stat -c %s "$image")" $((3 << 30))
  expect_note "after the growth"
  ctl get pvc database

  say "a claim for more than the pool can promise is told how much is left"
  sed 's/name: database/name: greedy/; s/storage: 2Gi/storage: 9Gi/; s/claimName: database/claimName: greedy/; s/a2011/a2012/' \
    examples/pool.yaml | ctl apply -f -
  until_text "can promise" ctl explain greedy
  ctl explain greedy
  ctl delete pod greedy
  ctl delete pvc greedy
  ctl wait greedy --for gone --timeout 30

  demo_snapshot

  say "kill -9 of the daemon: the pod's volume stays, and a new daemon takes it over"
  loop=$(pool_loops)
  kill -9 "$daemon"
  wait "$daemon" 2>/dev/null || true
  expect_note "with no daemon"
  echo "written with no daemon" >"$place/second"
  start_daemon
  ctl wait database --for ready --timeout 30
  expect "its loop device" "$(pool_loops)" "$loop"
  expect_note "with the new daemon"

  say "the pod leaves: unmounted, without a loop device; the next pod finds all of it"
  ctl delete pod database
  ctl wait database --for gone --timeout 30
  until_is "loop devices of the pool" 0 pool_loop_count
  sed 's/storage: 2Gi/storage: 3Gi/' examples/pool.yaml | ctl apply -f - | { grep -v unchanged || true; }
  ctl wait database --for ready --timeout 60
  expect_note "for the next pod"
  expect "its second file" "$(cat "$place/second")" "written with no daemon"

  say "the claim is deleted while the pod has it: nothing goes before the pod"
  ctl delete pvc database
  until_text Terminating ctl describe pvc database
  ctl get pvc database
  expect_note "with its claim deleted"
  ctl delete pod database
  ctl wait database --for gone --timeout 30
  until_is "files of volumes in the pool" 0 pool_files
  expect "loop devices of the pool" "$(pool_loop_count)" 0
  ctl get pv
  ls -l "$scratch/fast/volumes"

  say "the pool's disk is not mounted at the next start: its mount point is taken for no pool"
  stop_daemon
  umount "$scratch/fast"
  start_daemon
  until_text "pool fast" ctl status
  ctl status | grep -F "pool fast"
  expect "files at the mount point" "$(find "$scratch/fast" -mindepth 1 | wc -l)" 0
  sed -i '/^pool: /d' "$scratch/config.yaml"
  restart_daemon
  end_pool
}
