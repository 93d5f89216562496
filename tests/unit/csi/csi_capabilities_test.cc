#include "csi/csi_capabilities.h"

#include <gtest/gtest.h>

#include "fakes/must.h"
#include "unit/csi/csi_volumes.h"

namespace volumed {
namespace {

using Mode = ::csi::v1::VolumeCapability_AccessMode;
using NodeCan = ::csi::v1::NodeServiceCapability_RPC;
using ControllerCan = ::csi::v1::ControllerServiceCapability_RPC;

TEST(CsiCapabilitiesTest, APersistentVolumeIsReadFromItsSource) {
  const CsiVolume volume = Must(CsiVolumeOf(CsiSpec(CsiPersistentVolume(), true)));
  EXPECT_EQ(volume.driver, kTestDriver);
  EXPECT_EQ(volume.handle, "vol-1");
  EXPECT_FALSE(volume.is_ephemeral());
  EXPECT_FALSE(volume.is_block);
  EXPECT_TRUE(volume.read_only);
  EXPECT_FALSE(volume.source_read_only);
  EXPECT_EQ(volume.fs_type, "xfs");
  EXPECT_EQ(volume.attributes, (StringMap{{"tier", "gold"}}));
  EXPECT_EQ(volume.mount_options, (std::vector<std::string>{"noatime", "discard"}));
  EXPECT_EQ(volume.controller_publish_secret, (SecretReference{"attach", "secrets"}));
  EXPECT_EQ(volume.node_stage_secret, (SecretReference{"stage", "secrets"}));
  EXPECT_EQ(volume.node_publish_secret, (SecretReference{"publish", "secrets"}));
  EXPECT_EQ(volume.controller_expand_secret, (SecretReference{"grow", "secrets"}));
  EXPECT_EQ(volume.node_expand_secret, (SecretReference{"grow-node", "secrets"}));
  EXPECT_TRUE(Must(CsiVolumeOf(CsiBlockSpec())).is_block);
}

TEST(CsiCapabilitiesTest, AnInlineVolumeIsItsPods) {
  const CsiVolume volume = Must(CsiVolumeOf(CsiInlineSpec(), PodUid("uid-1"), "shop"));
  EXPECT_TRUE(volume.is_ephemeral());
  EXPECT_EQ(volume.handle, "csi-a919eb5a57ed1bf8c61a802fc713b36e9bfa4fbf009dfb5f4206d253a3a3dc32");
  EXPECT_EQ(volume.node_publish_secret, (SecretReference{"publish", "shop"}));
  EXPECT_EQ(volume.access_modes, (std::vector<AccessMode>{AccessMode::kReadWriteOnce}));

  const auto without = CsiVolumeOf(CsiInlineSpec());
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().code(), Code::kInvalidArgument);
  const auto other = CsiVolumeOf(VolumeSpec::FromVolume({"logs", EmptyDirVolumeSource{}}));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::kInvalidArgument);
}

TEST(CsiCapabilitiesTest, ANodeIsAskedForTheFirstModeInItsWords) {
  const CsiDriverFacts plain = DriverThatCan({});
  const CsiDriverFacts exact = DriverThatCan({NodeCan::SINGLE_NODE_MULTI_WRITER});
  const struct {
    std::vector<AccessMode> modes;
    Mode::Mode plain;
    Mode::Mode exact;
  } cases[] = {
      {{}, Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_MULTI_WRITER},
      {{AccessMode::kReadWriteOnce}, Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_MULTI_WRITER},
      {{AccessMode::kReadOnlyMany}, Mode::MULTI_NODE_READER_ONLY, Mode::MULTI_NODE_READER_ONLY},
      {{AccessMode::kReadWriteMany}, Mode::MULTI_NODE_MULTI_WRITER, Mode::MULTI_NODE_MULTI_WRITER},
      {{AccessMode::kReadWriteOncePod}, Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_SINGLE_WRITER},
      {{AccessMode::kReadOnlyMany, AccessMode::kReadWriteOnce},
       Mode::MULTI_NODE_READER_ONLY,
       Mode::MULTI_NODE_READER_ONLY},
  };
  for (const auto& c : cases) {
    PersistentVolume pv = CsiPersistentVolume();
    pv.spec.access_modes = c.modes;
    const CsiVolume volume = Must(CsiVolumeOf(CsiSpec(std::move(pv))));
    EXPECT_EQ(CsiNodeAccessMode(plain, volume), c.plain);
    EXPECT_EQ(CsiNodeAccessMode(exact, volume), c.exact);
  }
}

TEST(CsiCapabilitiesTest, AControllerIsAskedForAllModesTogether) {
  using enum AccessMode;
  const CsiDriverFacts plain = DriverThatCan({});
  const CsiDriverFacts exact = DriverThatCan({}, {ControllerCan::SINGLE_NODE_MULTI_WRITER});
  const struct {
    std::vector<AccessMode> modes;
    Mode::Mode plain;  // UNKNOWN: it is refused
    Mode::Mode exact;
  } cases[] = {
      {{}, Mode::UNKNOWN, Mode::UNKNOWN},
      {{kReadWriteOnce}, Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_MULTI_WRITER},
      {{kReadOnlyMany}, Mode::MULTI_NODE_READER_ONLY, Mode::MULTI_NODE_READER_ONLY},
      {{kReadWriteOncePod}, Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_SINGLE_WRITER},
      {{kReadWriteOncePod, kReadWriteMany}, Mode::UNKNOWN, Mode::UNKNOWN},
      {{kReadOnlyMany, kReadWriteOnce}, Mode::UNKNOWN, Mode::UNKNOWN},
      {{kReadWriteOnce, kReadOnlyMany, kReadWriteMany},
       Mode::MULTI_NODE_MULTI_WRITER,
       Mode::MULTI_NODE_MULTI_WRITER},
      {{kReadWriteOnce, kReadWriteOnce}, Mode::SINGLE_NODE_WRITER, Mode::SINGLE_NODE_MULTI_WRITER},
  };
  for (const auto& c : cases) {
    for (const auto& [driver, expected] : {std::pair(plain, c.plain), std::pair(exact, c.exact)}) {
      const auto mode = CsiControllerAccessMode(driver, c.modes);
      ASSERT_EQ(mode.ok(), expected != Mode::UNKNOWN);
      if (mode.ok()) {
        EXPECT_EQ(*mode, expected);
      } else {
        EXPECT_EQ(mode.error().code(), Code::kInvalidArgument);
        EXPECT_EQ(mode.error().outcome(), Outcome::kNotApplied);
      }
    }
  }
}

TEST(CsiCapabilitiesTest, AMountIsAskedForWithGroupAndLabel) {
  const CsiVolume volume = Must(CsiVolumeOf(CsiSpec()));
  CsiMountWish wish;
  wish.fs_group = 2000;
  wish.selinux_label = "system_u:object_r:container_file_t:s0:c1,c2";
  const auto plain = CsiNodeCapability(DriverThatCan({}), volume, wish);
  EXPECT_EQ(plain.mount().fs_type(), "xfs");
  ASSERT_EQ(plain.mount().mount_flags_size(), 3);
  EXPECT_EQ(plain.mount().mount_flags(0), "noatime");
  EXPECT_EQ(plain.mount().mount_flags(2),
            "context=\"system_u:object_r:container_file_t:s0:c1,c2\"");
  EXPECT_EQ(plain.mount().volume_mount_group(), "");
  const auto grouped =
      CsiNodeCapability(DriverThatCan({NodeCan::VOLUME_MOUNT_GROUP}), volume, wish);
  EXPECT_EQ(grouped.mount().volume_mount_group(), "2000");
}

TEST(CsiCapabilitiesTest, ABlockVolumeIsAskedForAsThatAlone) {
  const CsiVolume volume = Must(CsiVolumeOf(CsiBlockSpec()));
  CsiMountWish wish;
  wish.fs_group = 2000;
  wish.selinux_label = "a:b:c:d";
  const CsiDriverFacts driver = DriverThatCan({NodeCan::VOLUME_MOUNT_GROUP});
  EXPECT_TRUE(CsiNodeCapability(driver, volume, wish).has_block());
  EXPECT_TRUE(Must(CsiControllerCapability(driver, volume)).has_block());
}

TEST(CsiCapabilitiesTest, ALifecycleModeHasToBeAllowed) {
  const CsiVolume persistent = Must(CsiVolumeOf(CsiSpec()));
  const CsiVolume ephemeral = Must(CsiVolumeOf(CsiInlineSpec(), PodUid("uid-1"), "shop"));
  EXPECT_TRUE(CheckLifecycleMode(persistent, nullptr).ok());
  const Status unknown = CheckLifecycleMode(ephemeral, nullptr);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::kUnavailable);
  EXPECT_EQ(unknown.error().message(),
            "volume mode \"Ephemeral\" not supported by driver disk.example.com (no CSIDriver "
            "object)");
  CsiDriverObject object;
  EXPECT_TRUE(CheckLifecycleMode(persistent, &object).ok());
  EXPECT_EQ(CheckLifecycleMode(ephemeral, &object).error().message(),
            "volume mode \"Ephemeral\" not supported by driver disk.example.com (only supports "
            "[\"Persistent\"])");
  object.volume_lifecycle_modes = {VolumeLifecycleMode::kEphemeral};
  EXPECT_TRUE(CheckLifecycleMode(ephemeral, &object).ok());
  EXPECT_FALSE(CheckLifecycleMode(persistent, &object).ok());
}

TEST(CsiCapabilitiesTest, TheAgentGivesAVolumeItsGroupWhereAKubeletDoes) {
  const CsiDriverFacts plain = DriverThatCan({});
  CsiDriverObject object;
  const auto applies = [&](const CsiVolume& volume, const CsiDriverObject* of) {
    return AgentAppliesFsGroup(plain, volume, of, 2000);
  };
  const CsiVolume volume = Must(CsiVolumeOf(CsiSpec()));
  CsiVolume without_type = volume;
  without_type.fs_type.clear();
  CsiVolume shared = volume;
  shared.access_modes = {AccessMode::kReadWriteMany};
  CsiVolume one_pod = volume;
  one_pod.access_modes = {AccessMode::kReadWriteOncePod};
  CsiVolume second = volume;
  second.access_modes = {AccessMode::kReadOnlyMany, AccessMode::kReadWriteOnce};
  CsiVolume read_only = volume;
  read_only.read_only = true;
  const CsiVolume ephemeral = Must(CsiVolumeOf(CsiInlineSpec(), PodUid("uid-1"), "shop"));

  for (const bool has_object : {false, true}) {
    const CsiDriverObject* const of = has_object ? &object : nullptr;
    EXPECT_TRUE(applies(volume, of));
    EXPECT_TRUE(applies(one_pod, of));
    EXPECT_TRUE(applies(second, of));
    EXPECT_TRUE(applies(ephemeral, of));
    EXPECT_FALSE(applies(without_type, of));
    EXPECT_FALSE(applies(shared, of));
    EXPECT_FALSE(applies(read_only, of));
  }
  object.fs_group_policy = FsGroupPolicy::kFile;
  EXPECT_TRUE(applies(shared, &object));
  EXPECT_TRUE(applies(without_type, &object));
  EXPECT_FALSE(applies(read_only, &object));
  EXPECT_FALSE(applies(Must(CsiVolumeOf(CsiBlockSpec())), &object));
  EXPECT_FALSE(
      AgentAppliesFsGroup(DriverThatCan({NodeCan::VOLUME_MOUNT_GROUP}), volume, &object, 2000));
  EXPECT_FALSE(AgentAppliesFsGroup(plain, volume, &object, std::nullopt));
  object.fs_group_policy = FsGroupPolicy::kNone;
  EXPECT_FALSE(applies(volume, &object));
}

}  // namespace
}  // namespace volumed
