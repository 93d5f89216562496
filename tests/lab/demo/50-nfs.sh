title "a volume of an NFS server, which is a machine of its own"
server_up
nfs_start
demo_nfs_uid=77777777-0000-4000-8000-000000000002
demo_nfs=$volumed_root/pods/$demo_nfs_uid/volumes/kubernetes.io~nfs/share
show_yaml nfs-app <<YAML
apiVersion: v1
kind: Pod
metadata: {name: nfs-app, uid: $demo_nfs_uid}
spec:
  containers: [{name: main, image: busybox, volumeMounts: [{name: share, mountPath: /share}]}]
  volumes:
    - {name: share, nfs: {server: $server_address, path: /srv/lab}}
YAML
show volumectl wait nfs-app --for ready --timeout 180
show findmnt -rno SOURCE,FSTYPE,TARGET "$demo_nfs"
echo "from the pod" >"$demo_nfs/note"
expect "on the server" "$(cat /srv/lab/note)" "from the pod"
title "its server stops answering: the other pod goes on; when it is back, so is the volume"
server_cut
echo "while the server is away" >>"$demo_data/note"
must sync -f "$demo_data"
server_is_missed() { volumectl explain nfs-app | grep -q "does not answer"; }
must wait_until 60 server_is_missed
show volumectl explain nfs-app
server_join
# The client finds its server again by itself.
demo_nfs_answers() { timeout 5 cat "$demo_nfs/note"; }
must wait_until 60 demo_nfs_answers
rm /etc/volumed/manifests/nfs-app.yaml
show volumectl wait nfs-app --for gone --timeout 180
