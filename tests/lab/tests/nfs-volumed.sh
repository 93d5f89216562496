# NFS volumes under the shipped unit: versions 4 and 3, IPv6, read-only, mount options, recycling; and
# the daemon of version 3 outlives the agent.
# needs: product
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/server.sh
. /lab/lib/nfs.sh
uid() { printf '66666666-0000-4000-8000-%012d' "$1"; }
# fact NUMBER VOLUME: type and options of the mount.
fact() { findmnt -n -o FSTYPE,OPTIONS "$(nfs_path "$(uid "$1")" "${2:-data}")"; }
is_empty() { [[ -z $(ls -A "$1") ]]; }
scopes() { systemctl list-units --all --no-legend 'volumed-mount-*.scope' | wc -l; }

server_up
nfs_start 3
mkdir -p /srv/lab/one /srv/lab/two /srv/lab/old
install_volumed
start_volumed
expect_text "scopes" "$(journalctl -b -u volumed)" 'scopes of their own for mount helpers" available=true'

say "over IPv6"
# First: the kernel sees that both addresses are one server, and shows the first one's for both.
nfs_pod six "$(uid 3)" $server_address6 /srv/lab/one >/etc/volumed/manifests/six.yaml
wait_ready six
expect_text "its server" "$(findmnt -n -o SOURCE "$(nfs_path "$(uid 3)")")" "[$server_address6]:/srv/lab/one"

say "version 4: inline, read-only; a persistent volume with mount options"
{
  nfs_pod four "$(uid 1)" $server_address /srv/lab/one
  nfs_pod reads "$(uid 2)" $server_address /srv/lab/one "readOnly: true"
  nfs_volume opts /srv/lab/two "mountOptions: [vers=4.1, noatime, nosuid]"
  pod opts "$(uid 4)" opts
} >/etc/volumed/manifests/four.yaml
for name in four reads six opts; do wait_ready $name; done
expect_text "type" "$(fact 1)" nfs4
echo hello >"$(nfs_path "$(uid 1)")/file"
expect "the other pod sees it" "$(cat "$(nfs_path "$(uid 2)")/file")" hello
expect "over IPv6, too" "$(cat "$(nfs_path "$(uid 3)")/file")" hello
expect "and cannot write" "$(touch "$(nfs_path "$(uid 2)")/no" 2>/dev/null || echo refused)" refused
expect_text "option" "$(fact 4 opts)" vers=4.1
expect_text "option" "$(fact 4 opts)" noatime
expect_text "option" "$(fact 4 opts)" nosuid
expect "mode of what is below" "$(stat -c %a "$(dirname "$(nfs_path "$(uid 1)")")")" 750

say "an export that is not there"
nfs_pod none "$(uid 5)" $server_address /srv/none >/etc/volumed/manifests/none.yaml
must wait_until 40 explains none "mount.nfs"
volumectl explain none >/tmp/none
grep -m1 error: /tmp/none
rm /etc/volumed/manifests/none.yaml
wait_gone none

say "version 3, whose helper asks the server in user space, and which needs rpc.statd"
{
  nfs_volume old /srv/lab/old "mountOptions: [vers=3]"
  pod old "$(uid 6)" old
} >/etc/volumed/manifests/old.yaml
wait_ready old 60
expect_text "type" "$(fact 6 old)" "nfs "
statd=$(pgrep -x rpc.statd) || fail "no rpc.statd runs"
say "rpc.statd is in $(cut -d: -f3 "/proc/$statd/cgroup")"
expect "it is not in the agent's service" "$(grep -c volumed.service "/proc/$statd/cgroup")" 0
must systemctl restart volumed
wait_ready old
must systemctl stop volumed
expect "rpc.statd after a restart and a stop" "$(pgrep -x rpc.statd)" "$statd"
expect "what is mounted without an agent" "$(cat "$(nfs_path "$(uid 1)")/file")" hello
start_volumed
for name in four reads six opts old; do wait_ready $name; done

say "all leave; nothing is left"
rm /etc/volumed/manifests/*.yaml
for name in four reads six opts old; do wait_gone $name; done
must wait_until 30 nothing_mounted
expect "data" "$(cat /srv/lab/one/file)" hello
say "scopes that are left: $(scopes)"

say "a volume that is recycled"
{
  nfs_volume again /srv/lab/one "persistentVolumeReclaimPolicy: Recycle"
  pod again "$(uid 7)" again
} >/tmp/again.yaml
must volumectl apply -f /tmp/again.yaml
wait_ready again
must volumectl delete pod again
wait_gone again
expect "data, while its claim is there" "$(cat /srv/lab/one/file)" hello
must volumectl delete persistentvolumeclaim again
wait_until 60 is_empty /srv/lab/one || fail "not recycled: $(journalctl -b -u volumed --no-pager | tail -n 5)"
expect "the other directories" "$(ls /srv/lab)" "$(printf 'lost+found\nold\none\ntwo')"
expect "mounts of the recycler" "$(grep -c recycler-volumes /proc/1/mountinfo || true)" 0

say "manifests on a server"
mkdir -p /srv/lab/manifests /mnt/manifests
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: served}\n' >/srv/lab/manifests/served.yaml
must mount -t nfs -o vers=4.1 $server_address:/srv/lab/manifests /mnt/manifests
configure 'manifest-dir: [/etc/volumed/manifests, /mnt/manifests]'
has_served() { volumectl get configmaps -o json | grep -q '"served"'; }
must systemctl restart volumed
must wait_until 40 has_served
expect_text "sources" "$(volumectl sources | grep /mnt/manifests)" "yes       yes"
must systemctl stop volumed
must umount /mnt/manifests
say "up for $(now) s"
