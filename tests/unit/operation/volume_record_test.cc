#include "operation/volume_record.h"

#include <gtest/gtest.h>

#include "operation/object_record.h"
#include "operation/record_codec.h"
#include "operation/recorded_volume.h"
#include "unit/operation/recording_parts.h"

namespace volumed {
namespace {

PodVolumeRecord SomeVolume() {
  PodVolumeRecord record;
  record.key = Key("uid-1", "data");
  record.pod_namespace = "default";
  record.pod_name = "web";
  record.pod_base_name = "w";
  record.plugin_name = "kubernetes.io/empty-dir";
  record.fault_domain = "/srv/nfs";
  record.state = VolumeState::kTearingDown;
  record.uncertain = true;
  record.boot_id = BootId("boot-a");
  record.volume_json = R"({"name":"data","emptyDir":{}})";
  record.started_at_unix_ms = 1'700'000'000'123;
  record.attempt = 7;
  record.sub_paths = {{"app", 0}, {"sidecar", 3}};
  return record;
}

PodRecord SomePod() {
  return {.uid = PodUid("uid-1"),
          .ns = "default",
          .name = "web",
          .source = "manifests",
          .terminating = true,
          .terminating_since_unix_ms = 42,
          .deletion_grace_seconds = 30,
          .pod_json = "{}"};
}

TEST(VolumeRecord, RoundTripsEveryField) {
  const Record row = EncodeRecord(SomeVolume());
  EXPECT_EQ(row.kind, "pod-volume");
  EXPECT_EQ(row.key, "uid-1/data");
  const auto volume = DecodePodVolumeRecord(row);
  ASSERT_TRUE(volume.ok()) << volume.error().ToString();
  EXPECT_EQ(*volume, SomeVolume());

  const auto pod = DecodePodRecord(EncodeRecord(SomePod()));
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ(*pod, SomePod());

  const HoldRecord pid{
      .pod = PodUid("u"), .boot_id = BootId("b"), .pid = 4711, .pid_start_time = 99, .cgroup = ""};
  const HoldRecord cgroup{.pod = PodUid("u"), .boot_id = BootId("b"), .cgroup = "/kubepods/x"};
  EXPECT_EQ(*DecodeHoldRecord(EncodeRecord(pid)), pid);
  EXPECT_EQ(*DecodeHoldRecord(EncodeRecord(cgroup)), cgroup);
  EXPECT_NE(RecordKey(pid), RecordKey(cgroup));
}

TEST(VolumeRecord, EveryStateOfAPodVolumeRoundTripsAndNoOther) {
  for (int number = 0; number < kVolumeStateCount; ++number) {
    PodVolumeRecord record = SomeVolume();
    record.state = VolumeState{number};
    const auto decoded = DecodePodVolumeRecord(EncodeRecord(record));
    const bool of_node =
        record.state >= VolumeState::kDetached && record.state <= VolumeState::kExpanding;
    ASSERT_EQ(decoded.ok(), !of_node) << VolumeStateName(record.state);
    if (decoded.ok()) {
      EXPECT_EQ(decoded->state, record.state);
    }
  }
}

// A program that does not know places of a CO would unmount what nobody of its pods wants. It knows
// rows of a pod's volume up to version 1, and those of a device up to 2.
TEST(VolumeRecord, OnlyARowWithAPlaceOfACoIsALaterOneToAnOlderProgram) {
  PodVolumeRecord volume = SomeVolume();
  EXPECT_EQ(EncodeRecord(volume).version, 1u);
  volume.place = "/t/p/v";
  volume.place_root = "/t";
  const Record target = EncodeRecord(volume);
  const auto volume_of_older = ParseRow<PodVolumeRecord>(target, kPodVolumeRecordKind, 1);
  ASSERT_FALSE(volume_of_older.ok());
  EXPECT_EQ(volume_of_older.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(DecodePodVolumeRecord(target).value(), volume);

  DeviceRecord device;
  device.key = UniqueVolumeName("p/v");
  device.spec = SpecName("v");
  device.device_mount_path = "/t/s";
  EXPECT_EQ(EncodeRecord(device).version, 2u);
  device.place_root = "/t";
  const Record staged = EncodeRecord(device);
  const auto device_of_older = ParseRow<DeviceRecord>(staged, kDeviceRecordKind, 2);
  ASSERT_FALSE(device_of_older.ok());
  EXPECT_EQ(device_of_older.error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(DecodeDeviceRecord(staged).value(), device);
}

TEST(VolumeRecord, APlaceThatDoesNotLieBelowItsRootMakesTheRowUnreadable) {
  PodVolumeRecord volume = SomeVolume();
  volume.place_root = "/t";
  for (const char* place : {"", "/t", "/t/", "/tt/v", "t/v", "/u/v"}) {
    volume.place = place;
    const auto read = DecodePodVolumeRecord(EncodeRecord(volume));
    ASSERT_FALSE(read.ok()) << place;
    EXPECT_EQ(read.error().code(), Code::kDataLoss) << place;
  }
}

TEST(VolumeRecord, RefusesWhatItCannotTrust) {
  Record garbage = EncodeRecord(SomeVolume());
  garbage.bytes = "\xff\xff not a message";
  EXPECT_EQ(DecodePodVolumeRecord(garbage).error().code(), Code::kDataLoss);

  Record empty = EncodeRecord(SomeVolume());
  empty.bytes.clear();
  EXPECT_EQ(DecodePodVolumeRecord(empty).error().code(), Code::kDataLoss);

  Record later = EncodeRecord(SomeVolume());
  later.version = kGivenPlaceRecordVersion + 1;
  const Error error = DecodePodVolumeRecord(later).error();
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_NE(error.message().find("version 4"), std::string::npos) << error.message();

  Record moved = EncodeRecord(SomePod());
  moved.key = "uid-2";
  EXPECT_EQ(DecodePodRecord(moved).error().code(), Code::kDataLoss);
  EXPECT_EQ(DecodeHoldRecord(EncodeRecord(SomePod())).error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(DecodeHoldRecord(EncodeRecord(HoldRecord{.pod = PodUid("u")})).ok());

  const QuarantinedRecord aside = QuarantineOf(garbage, DecodePodVolumeRecord(garbage).error());
  EXPECT_EQ(aside.key, "uid-1/data");
  EXPECT_NE(aside.reason.find("no valid message"), std::string::npos);
}

TEST(VolumeRecord, AVolumeThatIsMadeIsRecordedWithAReadablePersistentVolume) {
  PersistentVolume volume;
  volume.metadata.name = "pvc-1";
  volume.metadata.finalizers = {"kubernetes.io/pv-protection"};
  volume.metadata.annotations["pv.kubernetes.io/provisioned-by"] = "kubernetes.io/host-path";
  volume.metadata.deletion_unix_millis = 1'767'225'600'000;
  volume.spec.capacity = Quantity::FromBytes(1 << 30);
  volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  volume.spec.source = HostPathVolumeSource{"/srv/pv/pvc-1", HostPathType::kUnset};
  volume.spec.claim_ref = ClaimReference{"default", "data", "1"};
  ProvisionRecord record{.volume_name = "pvc-1",
                         .claim = {"default", "data"},
                         .claim_uid = "1",
                         .plugin_name = "kubernetes.io/host-path",
                         .state = ProvisionState::kProvisioned};
  record.volume_json = EncodeRecordedVolume(VolumeSpec::FromPersistentVolume(volume, false));
  const auto decoded = DecodeProvisionRecord(EncodeRecord(record));
  ASSERT_TRUE(decoded.ok()) << decoded.error().ToString();
  EXPECT_EQ(*decoded, record);
  EXPECT_EQ(*DecodePersistentVolume(decoded->volume_json), volume);
  record.volume_json = "{";
  EXPECT_EQ(DecodeProvisionRecord(EncodeRecord(record)).error().code(), Code::kDataLoss);
}

TEST(VolumeRecord, AUidBelongsToItsObject) {
  const ObjectUidRecord record{{ObjectKind::kPersistentVolumeClaim, "default", "data"}, "u"};
  Record row = EncodeRecord(record);
  EXPECT_EQ(row.key, "PersistentVolumeClaim default/data");
  EXPECT_EQ(DecodeObjectUidRecord(row).value(), record);
  row.key = "PersistentVolumeClaim default/other";
  EXPECT_EQ(DecodeObjectUidRecord(row).error().code(), Code::kDataLoss);
}

TEST(VolumeRecord, AKnownObjectIsWhoItIsAndWhoHasIt) {
  KnownObjectRecord record{.object = {ObjectKind::kPersistentVolumeClaim, "default", "data"},
                           .uid = "u",
                           .source = "manifests:/m",
                           .file = "/m/data.yaml",
                           .object_json = "{}",
                           .missing = true,
                           .missing_since_unix_ms = 77};
  Record row = EncodeRecord(record);
  EXPECT_EQ(row.key, "PersistentVolumeClaim default/data");
  EXPECT_EQ(DecodeKnownObjectRecord(row).value(), record);
  record.mark = ContentMark{"Opaque", true, std::string("\0\xff", 2), "digest", "binary"};
  EXPECT_EQ(DecodeKnownObjectRecord(EncodeRecord(record)).value(), record);
  row.key = "PersistentVolumeClaim default/other";
  EXPECT_EQ(DecodeKnownObjectRecord(row).error().code(), Code::kDataLoss);
}

TEST(VolumeRecord, TheNumberOfCommandsIsTakenFromItsOwnRowAlone) {
  Record row = EncodeRecord(CommandNumberRecord{77});
  EXPECT_EQ(DecodeCommandNumberRecord(row).value().reserved, 77U);
  row.key = "first";
  EXPECT_EQ(DecodeCommandNumberRecord(row).error().code(), Code::kDataLoss);
}

TEST(VolumeRecord, ASourceIsRecognisedByItsDirectory) {
  ObjectSourceRecord record{"manifests:/m", {"ext4", "aaaa", 12, 99}};
  record.unproven[{ObjectKind::kPod, "default", "web"}] = "the directory was empty";
  EXPECT_EQ(DecodeObjectSourceRecord(EncodeRecord(record)).value(), record);
  record.directory.inode.reset();
  EXPECT_EQ(DecodeObjectSourceRecord(EncodeRecord(record)).value(), record);
  Record row = EncodeRecord(record);
  row.key = "manifests:/other";
  EXPECT_EQ(DecodeObjectSourceRecord(row).error().code(), Code::kDataLoss);
}

TEST(VolumeRecord, ADeviceWhoseOwnNameIsNoTextMadeItsRecordUnreadable) {
  DeviceRecord record;
  record.key = UniqueVolumeName("v");
  record.spec = SpecName("disk");
  record.format = FormatRecord{};
  record.format->device.stable_id = "serial:\xff\xfe disk";
  record.mapped = MappedDeviceRecord{};
  record.mapped->device.stable_id = "loop:/srv/\xe4.img:7";
  const auto decoded = DecodeDeviceRecord(EncodeRecord(record));
  ASSERT_TRUE(decoded.ok()) << decoded.error().ToString();
  EXPECT_EQ(*decoded, record);
}

TEST(VolumeRecord, AnotherBootVoidsKernelStateAndNothingElse) {
  PodVolumeRecord record = SomeVolume();
  record.state = VolumeState::kSetUp;
  record.uncertain = false;
  bool rebooted = false;
  const PodVolumeRecord same = AfterRestart(record, BootId("boot-a"), &rebooted);
  EXPECT_FALSE(rebooted);
  EXPECT_EQ(same, record);

  const PodVolumeRecord other = AfterRestart(record, BootId("boot-b"), &rebooted);
  EXPECT_TRUE(rebooted);
  EXPECT_EQ(other.state, VolumeState::kSettingUp);
  EXPECT_TRUE(other.uncertain);
  EXPECT_EQ(other.boot_id, BootId("boot-b"));
  EXPECT_EQ(other.volume_json, record.volume_json);
}

TEST(VolumeRecord, ACallThatWasBeingMadeIsUncertainAfterARestart) {
  PodVolumeRecord record = SomeVolume();
  record.uncertain = false;
  for (VolumeState state : {VolumeState::kSettingUp, VolumeState::kTearingDown}) {
    record.state = state;
    const PodVolumeRecord after = AfterRestart(record, BootId("boot-a"));
    EXPECT_EQ(after.state, state);
    EXPECT_TRUE(after.uncertain);
  }
}

TEST(VolumeRecord, ABindingKeepsWhatItsClaimSaysOfItsSize) {
  ClaimBindingRecord record;
  record.binding = {{"default", "data"}, "uid", "disk", BindingState::kBound};
  // A row of a program that knew nothing of it.
  EXPECT_FALSE(DecodeClaimBindingRecord(EncodeRecord(record)).value().resize);
  record.resize = ClaimResize{};
  record.resize->capacity = Quantity::Parse("1Gi").value();
  record.resize->allocated = Quantity::Parse("1500M").value();
  record.resize->status = kNodeResizeInProgress;
  record.resize->seen = "//";
  record.resize->conditions = {{"Resizing", "True", "r", "m", 17},
                               {"NodeResizeError", "False", "", "", std::nullopt}};
  EXPECT_EQ(DecodeClaimBindingRecord(EncodeRecord(record)).value(), record);
  record.resize->allocated.reset();
  EXPECT_EQ(DecodeClaimBindingRecord(EncodeRecord(record)).value(), record);
}

}  // namespace
}  // namespace volumed
