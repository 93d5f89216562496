# A snapshot that a killed tool has left half made in a thin pool, by the real lvm2: noted by LVM, made by
# the thin pool, and not counted by it. The next agent takes it out of there, and lets go on who waits for
# it; also after a power cut, of which device-mapper has no device any more.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/grow.sh
. /lab/lib/pool.sh
modprobe dm_thin_pool || { echo "skipped: needs the kernel module dm_thin_pool"; exit 77; }

counted_by_kernel() { dmsetup status vg0-thin-tpool | awk '{ print $4 }'; }
counted_by_lvm() { lvs --noheadings -o transaction_id vg0/thin | tr -d ' '; }
cuts() { lvs --noheadings -o lv_name --select 'lv_name=~"^s-"' vg0 | tr -d ' '; }
suspended() { dmsetup info -c --noheadings -o name,suspended | grep -c ':Suspended$' || true; }
has_more_lines_than() { (($(wc -l <"$(pool_place data)/lines") > $1)); }
is_cut() { volumectl snapshot create "$volume" --name "$1" | grep -q Ready; }

is_dead() { [[ $(property ActiveState) == inactive || $(property ActiveState) == failed ]]; }
has_no_device() {
  dmsetup remove_all
  ! dmsetup ls | grep -q '^vg0-'
}

# The tool makes the snapshot, and does not come to its end.
hold_tool() {
  rm -f /usr/sbin/lvcreate $lab_state/held
  printf '#!/bin/bash\n/usr/sbin/lvm lvcreate "$@" && touch %s/held\nexec sleep 10000\n' $lab_state >/usr/sbin/lvcreate
  chmod +x /usr/sbin/lvcreate
}
release_tool() { ln -sf lvm /usr/sbin/lvcreate; }
# take_back CUT: LVM's note and the thin pool's number are again what they are between LVM's two messages.
take_back() {
  local number
  number=$(counted_by_kernel)
  must vgcfgbackup -f $lab_state/vg0 vg0
  awk -v name="$1" '{ print } /type = "thin-pool"/ { here = 1 }
    here && /transaction_id = / { printf "message1 {\ncreate = \"%s\"\n}\n", name; here = 0 }' \
    $lab_state/vg0 >$lab_state/vg0-half-made
  must vgcfgrestore --force --yes -f $lab_state/vg0-half-made vg0
  must dmsetup message vg0-thin-tpool 0 "set_transaction_id $number $((number - 1))"
}
# It may be refused while the volume's last pod leaves.
ask_until_held() {
  until [[ -e $lab_state/held ]]; do
    volumectl snapshot create "$volume" --name "$1" >$lab_state/asked 2>&1 || sleep 1
  done
}
# cut_half NAME: with the agent alive, whose tool waits.
cut_half() {
  hold_tool
  ask_until_held "$1" &
  wait_until 60 test -e $lab_state/held || fail "no tool is asked for a snapshot: $(cat $lab_state/asked; journalctl --no-pager -b -u volumed -n 20)"
  release_tool
  take_back "$(cuts | tail -n 1)"
}
# is_mended NAME CUTS: the same call makes it, or finds it; and LVM and the thin pool agree.
is_mended() {
  wait_until 90 is_cut "$1" || fail "$1 is not cut: $(volumectl snapshot create "$volume" --name "$1" 2>&1; lvs -a vg0 2>&1; dmsetup status; journalctl --no-pager -b -u volumed -n 30)"
  expect "snapshots" "$(cuts | wc -l)" "$2"
  expect "the number of LVM and that of the thin pool" "$(counted_by_lvm)" "$(counted_by_kernel)"
  expect "what is suspended" "$(suspended)" 0
}

disk=$(plug virtio-blk pv 1024)
must pvcreate -q "$disk"
must vgcreate -q vg0 "$disk"
must lvcreate -q --type thin-pool -L 800M --poolmetadatasize 8M -n thin vg0
mkdir -p /srv/fast
install_volumed
configure 'pool: {fast: /srv/fast}' 'pool-lvm: {fast: vg0/thin}'
start_volumed
{ pool_class fast fast backend lvm csi.storage.k8s.io/fstype ext4; pool_claim data fast 64; pool_pod data; } | apply
wait_ready data 90
volume=$(lvs --noheadings -o lv_name --select 'lv_name=~"^v-"' vg0 | tr -d ' ')
grow_fill data
writer_start data
must wait_until 20 has_more_lines_than 1

say "agent, workers and tool are killed amid a snapshot: no tool of LVM gets past what is left"
cut_half one
must dmsetup suspend "vg0-${volume//-/--}"
lines=$(wc -l <"$lab_state/told-data")
said=$(lvcreate --yes --type thin -V 4M --thinpool thin -n of-somebody vg0 2>&1) && fail "a tool got past it: $said"
expect_text "what a tool says" "$said" "already contain"
lvremove -q --yes vg0/of-somebody 2>/dev/null || true  # if its note is left
pool_kill all
must wait_until 60 has_more_lines_than $((lines + 1))
is_mended one 1

say "the same, and the node is cut off: device-mapper has nothing of the group any more"
writer_stop data
expect "lines that were lost" "$(writer_lost data)" 0
pool_gone data
must wait_until 30 nothing_mounted
cut_half two
must systemctl stop --no-block volumed
must systemctl kill --signal=KILL --kill-who=all volumed
must wait_until 20 is_dead
must wait_until 20 has_no_device
must vgchange -q -aay vg0  # as at a boot
start_volumed
pool_pod data | apply
wait_ready data 90
must grow_same data
is_mended two 2
say "up for $(now) s"
