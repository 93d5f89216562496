#!/bin/sh
# Runs a program as the first process of a machine beside the machine: processes, network and the places that a kubelet and its
# runtime use whatever they are told are its own, so that another one may run. What the program leaves, ends with it.
#   unshare --mount --net --pid --fork --mount-proc --kill-child apart.sh COMMAND...
set -eu
ip link set lo up
for place in /var/lib /var/log /run; do mount -t tmpfs -o mode=755 none "$place"; done
# As on a machine of its own: what is mounted in the namespaces of containers, or of the node, is seen in the others.
mount --make-rshared /
exec "$@"
