# Sourced by scripts/demo: a snapshot of the pool's volume while its pod writes, and a claim that is made of it.

# The pod of examples/pool.yaml under another name, for the restored claim.
restored_pod() {
  sed -n '/^kind: Pod$/,$p' examples/pool.yaml | sed '1i apiVersion: v1' |
    sed "s/name: database,/name: restored,/; s/a2011/a2013/; s/claimName: database/claimName: database-before-upgrade/"
}

# object_count KIND: how many lines `get` prints, but for the heading.
object_count() { ctl get "$1" | tail -n +2 | wc -l; }
cut_count() { find "$scratch/fast/cuts" -name image | wc -l; }

demo_snapshot() {
  local uid=0f3f1a52-6f6a-4b0e-8f63-0c1d1f6a2013 volume restored
  say "a VolumeSnapshot of the claim, while its pod has it (examples/snapshot.yaml)"
  sed 's/storage: 2Gi/storage: 3Gi/' examples/snapshot.yaml | ctl apply -f -
  until_text true ctl get volumesnapshots
  ctl get volumesnapshots
  ctl get snapshots
  echo "spoiled by the upgrade" >"$place/note"

  say "a claim with the snapshot as its dataSource: what was in the volume then, beside the volume as it is now"
  restored_pod | ctl apply -f -
  ctl wait restored --for ready --timeout 60
  ctl get pvc
  volume=$(ctl get pvc database-before-upgrade -o json | jq -r '.persistent_volume_claims[0].volume')
  restored=$root/pods/$uid/volumes/volumed.io~pool/$volume
  expect "the note in the restored volume" "$(cat "$restored/note")" "written by the pod"
  expect "the note in the volume itself" "$(cat "$place/note")" "spoiled by the upgrade"
  echo "written by the pod" >"$place/note"
  findmnt -rno SOURCE,FSTYPE,UUID,TARGET | grep -F "$root/pods" | grep -F pool
  expect "filesystems with a UUID of their own" \
    "$(findmnt -rno UUID,TARGET | grep -F "$root/pods" | grep -F pool | cut -d' ' -f1 | sort -u | wc -l)" 2

  say "the snapshot is deleted: what was made of it stays"
  ctl delete volumesnapshot before-upgrade
  until_is "VolumeSnapshots" 0 object_count volumesnapshots
  expect "the note in the restored volume" "$(cat "$restored/note")" "written by the pod"
  ctl delete pod restored
  ctl delete pvc database-before-upgrade
  ctl wait restored --for gone --timeout 30
  until_is "cuts in the pool" 0 cut_count
}
