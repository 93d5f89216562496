#include "unit/operation/record_samples.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace volumed {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kMost32 = std::numeric_limits<uint32_t>::max();
constexpr const char* kText = "d\xc3\xa4ta \xe2\x82\xac \xf0\x9f\x92\xbe";  // of 2, 3 and 4 bytes

// Bytes that are no text.
std::string Bytes(const std::string& behind) { return std::string("\0\xff\xc3", 3) + behind; }

StorageObject SomeObject(uint64_t inode) {
  return {Bytes("ext4"), "0b3c-" + std::to_string(inode), inode, "1:00ff"};
}

DeviceIdentity SomeDevice() {
  return {.size_bytes = int64_t{1} << 40,
          .device_major = 8,
          .device_minor = kMost32,
          .disk_sequence = kMost,
          .stable_id = "wwid:naa.5000",
          .uuid = ""};
}

PodVolumeRecord SmallestPodVolume() {
  PodVolumeRecord record;
  record.key = {PodUid("uid-1"), SpecName("data")};
  return record;
}

PodVolumeRecord FullPodVolume() {
  PodVolumeRecord record;
  record.key = {PodUid("uid-1"), SpecName(kText)};
  record.pod_namespace = "default";
  record.pod_name = "web-n1";
  record.pod_base_name = "web";
  record.plugin_name = "kubernetes.io/empty-dir";
  record.fault_domain = "nfs:server";
  record.state = VolumeState::kSetUp;
  record.uncertain = true;
  record.boot_id = BootId("boot-a");
  record.volume_json = R"({"name":"data","emptyDir":{}})";
  record.started_at_unix_ms = 1'767'323'045'678;
  record.attempt = kMost;
  record.sub_paths = {{"app", 0}, {"", 300}, {kText, -1}};
  record.unique_name = UniqueVolumeName("kubernetes.io/local-volume/pv");
  record.has_device = true;
  record.is_block = true;
  record.published.mac = Bytes("mac");
  record.published.fs_type = "tmpfs";
  record.published.tokens = Freshness{1, 1'767'323'045'679};
  record.storage.own = {"fs:8:1:/a", Bytes("own"), ""};
  record.storage.within = {"dev:8:0", Bytes("within")};
  record.storage.objects = {SomeObject(kMost), {}};
  return record;
}

DeviceRecord SmallestDevice() {
  DeviceRecord record;
  record.key = UniqueVolumeName("p/v");
  record.spec = SpecName("v");
  record.state = VolumeState::kDetached;
  return record;
}

DeviceRecord FullDevice() {
  DeviceRecord record;
  record.key = UniqueVolumeName("kubernetes.io/iscsi/disk");
  record.plugin_name = "kubernetes.io/iscsi";
  record.spec = SpecName("disk");
  record.device_mount_path = "/var/lib/kubelet/plugins/x";
  record.fault_domain = "device 8:16";
  record.state = VolumeState::kMountingDevice;
  record.uncertain = true;
  record.boot_id = BootId("boot-a");
  record.volume_json = "{}";
  record.started_at_unix_ms = -1;
  record.attempt = 7;
  record.format = FormatRecord{SomeDevice(), "xfs", "0b3c", true, BootId("boot-b")};
  record.source = MountedSource{Bytes("/dev/sdb"), 259, 16};
  record.is_block = true;
  record.mapped = MappedDeviceRecord{SomeDevice(), "/dev/loop0", BootId("boot-c")};
  record.size_bytes = int64_t{1} << 33;
  record.target_bytes = int64_t{1} << 34;
  record.attachable = true;
  record.device_path = "/dev/sdb";
  record.limit_key = "storage-limits-x";
  return record;
}

// With what only a volume of a driver has.
DeviceRecord FullDeviceOfDriver() {
  DeviceRecord record = SmallestDevice();
  record.publish_context = {{"device", "/dev/sdb"}, {"", kText}};
  record.attach_way = AttachWay::kByController;
  record.staged = StagedState::kNot;
  record.only_pod = PodUid("uid-1");
  record.node_id = "node-\xc3\xa4";
  return record;
}

PodRecord FullPod() {
  return {.uid = PodUid("uid-1"),
          .ns = "default",
          .name = kText,
          .source = "manifests:/m",
          .terminating = true,
          .terminating_since_unix_ms = 42,
          .deletion_grace_seconds = 30,
          .pod_json = "{}",
          .reason = "Evicted",
          .file = "/m/web.yaml",
          .left_source = true,
          .known_since_unix_ms = 1};
}

ClaimResize FullResize() {
  ClaimResize resize;
  resize.capacity = Quantity::Parse("1Gi").value();
  resize.allocated = Quantity::Parse("1500M").value();
  resize.status = "NodeResizePending";
  resize.seen = "1Gi/2Gi/";
  resize.conditions = {{"Resizing", "True", "why", kText, 17},
                       {"NodeResizeError", "False", "", "", std::nullopt},
                       {"", "", "", "", 0}};
  return resize;
}

ClaimBindingRecord FullBinding() {
  ClaimBindingRecord record;
  record.binding = {{"default", "data"}, "c-1", "pv", BindingState::kReleased};
  record.volume_json = "{}";
  record.deleted = true;
  record.resize = FullResize();
  record.pod_uid = PodUid("uid-1");
  return record;
}

ProvisionRecord FullProvision() {
  return {.volume_name = "pv",
          .claim = {"default", "data"},
          .claim_uid = "c-1",
          .plugin_name = "kubernetes.io/host-path",
          .state = ProvisionState::kProvisioned,
          .volume_json = R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv"},)"
                         R"("spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],)"
                         R"("hostPath":{"path":"/srv/pv"}}})"};
}

KnownObjectRecord FullKnownObject() {
  return {.object = {ObjectKind::kSecret, "default", kText},
          .uid = "u",
          .source = "manifests:/m",
          .file = "/m/s.yaml",
          .object_json = "{}",
          .missing = true,
          .missing_since_unix_ms = 77,
          .mark = ContentMark{"Opaque", true, Bytes("salt"), Bytes("data"), Bytes("binary")}};
}

ObjectSourceRecord FullSource() {
  ObjectSourceRecord record{"manifests:/m", {"ext4", "0b3c", kMost, -1, KnownDirectory::kPutBack}};
  record.unproven[{ObjectKind::kPod, "default", "web"}] = "the directory was empty";
  record.unproven[{ObjectKind::kPersistentVolume, "", kText}] = "";
  return record;
}

StorageOwnerRecord FullOwner() {
  return {.volume = "pv",
          .name = {"/srv/\xe9", "host"},
          .object = SomeObject(2),
          .claim_uid = "c-1",
          .marked = true,
          .mode = StorageMode::kFilesystem,
          .own_keys = {"wwid:a", Bytes("own")},
          .within_keys = {"wwid:b", ""},
          .files = {{Bytes("/img"), SomeObject(3)}, {}},
          .boot_id = BootId("boot-a"),
          .retained = 0};
}

StorageReservationRecord FullReservation() {
  return {{.id = "reclaim/pv",
           .volume = "pv",
           .use = StorageUse::kReclaim,
           .persistent = true,
           .text = "persistent volume \xe9",
           .was_begun = false},
          {"/srv/pv", "host"},
          BootId("boot-a")};
}

class Samples {
 public:
  template <typename T>
  void Add(const std::string& what, const T& value, Result<T> (*decode)(const Record&)) {
    const Record row = EncodeRecord(value);
    const auto problem_of = [value, decode](const Record& of) -> std::string {
      const Result<T> decoded = decode(of);
      if (!decoded.ok()) return decoded.error().message();
      return *decoded == value ? "" : "it is decoded as another value";
    };
    all_.push_back({row.kind + " " + what, row, problem_of});
  }

  std::vector<RecordSample> Take() { return std::move(all_); }

 private:
  std::vector<RecordSample> all_;
};

void AddPodVolumes(Samples& samples) {
  samples.Add("full", FullPodVolume(), DecodePodVolumeRecord);
  samples.Add("smallest", SmallestPodVolume(), DecodePodVolumeRecord);
  PodVolumeRecord fresh = SmallestPodVolume();
  fresh.published.tokens = Freshness{0, 5};
  samples.Add("fresh from the beginning", fresh, DecodePodVolumeRecord);
  PodVolumeRecord at_target = SmallestPodVolume();
  at_target.place = "/t/" + Bytes("v");  // a path need not be text
  at_target.place_root = "/t";
  samples.Add("at a target", at_target, DecodePodVolumeRecord);
  for (const VolumeState state :
       {VolumeState::kNotSetUp, VolumeState::kSettingUp, VolumeState::kSetUp,
        VolumeState::kTearingDown, VolumeState::kMapping, VolumeState::kMapped,
        VolumeState::kUnmapping}) {
    PodVolumeRecord record = SmallestPodVolume();
    record.state = state;
    samples.Add(std::string(VolumeStateName(state)), record, DecodePodVolumeRecord);
  }
}

void AddDevices(Samples& samples) {
  samples.Add("full", FullDevice(), DecodeDeviceRecord);
  samples.Add("smallest", SmallestDevice(), DecodeDeviceRecord);
  samples.Add("of a driver", FullDeviceOfDriver(), DecodeDeviceRecord);
  DeviceRecord staged = SmallestDevice();
  staged.attach_way = AttachWay::kByObjects;
  staged.staged = StagedState::kStaged;
  samples.Add("staged", staged, DecodeDeviceRecord);
  DeviceRecord at_place = SmallestDevice();
  at_place.device_mount_path = "/t/s";
  at_place.place_root = "/t";
  samples.Add("at a place that a CO gave", at_place, DecodeDeviceRecord);
  DeviceRecord rest = SmallestDevice();
  rest.rest_of_mount = true;
  samples.Add("with the rest of a mount", rest, DecodeDeviceRecord);
  rest.attach_in_doubt = true;
  samples.Add("with an attach in doubt", rest, DecodeDeviceRecord);
  DeviceRecord growing = SmallestDevice();
  growing.before_growth = {{Bytes("/kubelet/x"), Bytes("/dev/sdb"), 259, 16, "/"}, {"/kubelet/y"}};
  samples.Add("growing", growing, DecodeDeviceRecord);
  DeviceRecord empty = SmallestDevice();
  empty.format = FormatRecord{};
  empty.source = MountedSource{};
  empty.mapped = MappedDeviceRecord{};
  samples.Add("parts that are empty", empty, DecodeDeviceRecord);
  for (const VolumeState state :
       {VolumeState::kDetached, VolumeState::kAttaching, VolumeState::kAttached,
        VolumeState::kMountingDevice, VolumeState::kDeviceMounted, VolumeState::kUnmountingDevice,
        VolumeState::kDetaching, VolumeState::kExpanding}) {
    DeviceRecord record = SmallestDevice();
    record.state = state;
    samples.Add(std::string(VolumeStateName(state)), record, DecodeDeviceRecord);
  }
}

void AddPods(Samples& samples) {
  samples.Add("full", FullPod(), DecodePodRecord);
  samples.Add("smallest", PodRecord{.uid = PodUid("u")}, DecodePodRecord);
  const HoldRecord pid{
      .pod = PodUid("u"), .boot_id = BootId("b"), .pid = 4711, .pid_start_time = kMost};
  samples.Add("process", pid, DecodeHoldRecord);
  const HoldRecord cgroup{.pod = PodUid("u"), .cgroup = "/kubepods/x"};
  samples.Add("cgroup", cgroup, DecodeHoldRecord);
}

void AddClaims(Samples& samples) {
  samples.Add("full", FullBinding(), DecodeClaimBindingRecord);
  ClaimBindingRecord binding;
  binding.binding.volume_name = "pv";
  samples.Add("smallest", binding, DecodeClaimBindingRecord);
  for (const BindingState state : {BindingState::kBound, BindingState::kReleased,
                                   BindingState::kReclaimFailed, BindingState::kReclaimed}) {
    binding.binding.state = state;
    samples.Add("state " + std::to_string(static_cast<int>(state)), binding,
                DecodeClaimBindingRecord);
  }
  binding.resize = ClaimResize{};
  samples.Add("resize of nothing", binding, DecodeClaimBindingRecord);
  ClaimBindingRecord grown;
  grown.binding.volume_name = "pv";
  grown.resize = ClaimResize{};
  grown.resize->capacity = Quantity::Parse("1Gi").value();
  grown.resize->volume_capacity = Quantity::Parse("3Gi").value();
  samples.Add("storage grown here", grown, DecodeClaimBindingRecord);
  samples.Add("full", FullProvision(), DecodeProvisionRecord);
  ProvisionRecord planned{.volume_name = "pv"};
  planned.volume_json = FullProvision().volume_json;
  samples.Add("smallest", planned, DecodeProvisionRecord);
  planned.plan = "{}";
  planned.cloned_volume = "src";
  samples.Add("planned by a driver", planned, DecodeProvisionRecord);
}

void AddObjects(Samples& samples) {
  const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, "default", "data"};
  samples.Add("full", ObjectUidRecord{claim, "u"}, DecodeObjectUidRecord);
  samples.Add("full", FullKnownObject(), DecodeKnownObjectRecord);
  for (const ObjectKind kind :
       {ObjectKind::kPod, ObjectKind::kSecret, ObjectKind::kConfigMap, ObjectKind::kNode,
        ObjectKind::kPersistentVolume, ObjectKind::kPersistentVolumeClaim,
        ObjectKind::kStorageClass, ObjectKind::kCsiDriver, ObjectKind::kCsiNode,
        ObjectKind::kVolumeAttachment}) {
    KnownObjectRecord record{.object = {kind, "", "x"}, .mark = ContentMark{}};
    if (kind != ObjectKind::kSecret) record.mark.reset();
    samples.Add(std::string(ObjectKindName(kind)), record, DecodeKnownObjectRecord);
  }
  samples.Add("full", FullSource(), DecodeObjectSourceRecord);
  samples.Add("smallest", ObjectSourceRecord{.name = "s"}, DecodeObjectSourceRecord);
  samples.Add("numbers that are zero", ObjectSourceRecord{"s", {"", "", 0, 0, 0}},
              DecodeObjectSourceRecord);
  samples.Add("full", DeletedObjectRecord{claim, "u", kMost, true, 8, true},
              DecodeDeletedObjectRecord);
  samples.Add("smallest", DeletedObjectRecord{.object = claim}, DecodeDeletedObjectRecord);
  samples.Add("full", CommandNumberRecord{kMost}, DecodeCommandNumberRecord);
  samples.Add("smallest", CommandNumberRecord{}, DecodeCommandNumberRecord);
}

void AddStorage(Samples& samples) {
  samples.Add("full", FullOwner(), DecodeStorageOwnerRecord);
  samples.Add("smallest", StorageOwnerRecord{.volume = "pv"}, DecodeStorageOwnerRecord);
  StorageOwnerRecord retained = FullOwner();
  retained.retained = 4;
  retained.mode = StorageMode::kRaw;
  samples.Add("retained and raw", retained, DecodeStorageOwnerRecord);
  StorageOwnerRecord of_driver{.volume = "pv", .name = {.path = "vol-1", .driver = "disks.io"}};
  of_driver.mode = StorageMode::kRaw;
  of_driver.own_keys = {"wwid:a"};
  samples.Add("of a driver", of_driver, DecodeStorageOwnerRecord);
  samples.Add("full", FullReservation(), DecodeStorageReservationRecord);
  StorageReservationRecord smallest = FullReservation();
  smallest.holder.volume.clear();
  smallest.holder.text.clear();
  smallest.name = {};
  smallest.boot_id = BootId();
  samples.Add("smallest", smallest, DecodeStorageReservationRecord);
  smallest.name = {.path = "vol-1", .driver = "disks.io"};
  samples.Add("of a driver", smallest, DecodeStorageReservationRecord);
  StorageReservationRecord taken = FullReservation();
  taken.own_keys = {"fs:8:17:/pv"};
  taken.object = SomeObject(2);
  samples.Add("with what was taken", taken, DecodeStorageReservationRecord);
}

}  // namespace

std::vector<RecordSample> AllRecordSamples() {
  Samples samples;
  AddPodVolumes(samples);
  AddDevices(samples);
  AddPods(samples);
  AddClaims(samples);
  AddObjects(samples);
  AddStorage(samples);
  return samples.Take();
}

}  // namespace volumed
