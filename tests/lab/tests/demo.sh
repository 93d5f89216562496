# What scripts/demo --lab shows: the installed product under systemd, in a machine of its own, with
# disks and servers that come and go. Each step is a file of tests/lab/demo.
# needs: product demo
. /lab/lib/lab.sh
. /lab/lib/volumed.sh
. /lab/lib/server.sh
. /lab/lib/nfs.sh
. /lab/lib/iscsi.sh
. /lab/lib/demo.sh
export SYSTEMD_COLORS=0 SYSTEMD_URLIFY=0
for step in /lab/demo/[0-9]*.sh; do
  # shellcheck source=/dev/null
  . "$step"
done
printf '\n'
say "done: all of it held; the machine was up for $(now) s"
