title "a disk of an iSCSI target: logged in for the first pod, logged out after the last"
iscsi_target_start 64
iscsi_initiator
demo_iscsi_uid=77777777-0000-4000-8000-000000000003
demo_iscsi=$volumed_root/pods/$demo_iscsi_uid/volumes/kubernetes.io~iscsi/lun
sessions() { iscsiadm -m session 2>/dev/null | wc -l; }
show_yaml iscsi-app <<YAML
apiVersion: v1
kind: Pod
metadata: {name: iscsi-app, uid: $demo_iscsi_uid}
spec:
  containers: [{name: main, image: busybox, volumeMounts: [{name: lun, mountPath: /lun}]}]
  volumes:
    - name: lun
      iscsi: {targetPortal: "$server_address:3260", iqn: $iscsi_target, lun: 1, fsType: ext4}
YAML
show volumectl wait iscsi-app --for ready --timeout 180
show iscsiadm -m session
show findmnt -rno SOURCE,FSTYPE,TARGET "$demo_iscsi"
echo "from the pod" >"$demo_iscsi/note"
must sync -f "$demo_iscsi"
rm /etc/volumed/manifests/iscsi-app.yaml
show volumectl wait iscsi-app --for gone --timeout 180
no_session() { (($(sessions) == 0)); }
must wait_until 60 no_session
expect "sessions that are left" "$(sessions)" 0
