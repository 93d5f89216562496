#include "csi/csi_controller_requests.h"

#include <gtest/gtest.h>

#include "csi/csi_create_request.h"
#include "fakes/must.h"
#include "unit/csi/csi_volumes.h"
#include "volume/secrets_of_volume.h"

namespace volumed {
namespace {

using Can = ::csi::v1::ControllerServiceCapability_RPC;
using Mode = ::csi::v1::VolumeCapability_AccessMode;
using Plugin = ::csi::v1::PluginCapability_Service;

CsiVolume Volume(bool source_read_only = false) {
  PersistentVolume pv = CsiPersistentVolume();
  std::get<CsiPersistentVolumeSource>(pv.spec.source).read_only = source_read_only;
  return Must(CsiVolumeOf(CsiSpec(std::move(pv))));
}

TEST(CsiControllerRequestsTest, APublishNamesVolumeNodeAndCapability) {
  const auto request =
      Must(ControllerPublishRequest(DriverThatCan({}), Volume(), "node-id-1", TestSecrets()));
  EXPECT_EQ(request.volume_id(), "vol-1");
  EXPECT_EQ(request.node_id(), "node-id-1");
  EXPECT_FALSE(request.readonly());
  EXPECT_EQ(TextsOf(request.volume_context()), (StringMap{{"tier", "gold"}}));
  EXPECT_EQ(TextsOf(request.secrets()), (StringMap{{"key", "hunter2"}}));
  EXPECT_EQ(request.volume_capability().access_mode().mode(), Mode::SINGLE_NODE_WRITER);
  EXPECT_EQ(request.volume_capability().mount().fs_type(), "xfs");
  EXPECT_EQ(request.volume_capability().mount().mount_flags_size(), 2);
}

TEST(CsiControllerRequestsTest, ReadOnlyIsAskedForOfDriversThatKnowItAlone) {
  const CsiDriverFacts knows = DriverThatCan({}, {Can::PUBLISH_READONLY});
  const auto readonly = [](const CsiDriverFacts& driver, bool source) {
    return Must(ControllerPublishRequest(driver, Volume(source), "n", {})).readonly();
  };
  EXPECT_TRUE(readonly(knows, true));
  EXPECT_FALSE(readonly(knows, false));
  EXPECT_FALSE(readonly(DriverThatCan({}), true));
}

TEST(CsiControllerRequestsTest, ModesWithoutAWordAreRefused) {
  CsiVolume volume = Volume();
  volume.access_modes = {AccessMode::kReadOnlyMany, AccessMode::kReadWriteOnce};
  const CsiDriverFacts driver = DriverThatCan({});
  EXPECT_FALSE(ControllerPublishRequest(driver, volume, "n", {}).ok());
  EXPECT_FALSE(ControllerExpandRequest(driver, volume, 1, {}).ok());
  EXPECT_FALSE(ValidateCapabilitiesRequest(driver, volume, {}).ok());
}

TEST(CsiControllerRequestsTest, TheOthersNameTheirVolume) {
  const CsiDriverFacts driver = DriverThatCan({});
  const auto unpublish = ControllerUnpublishRequest("vol-1", "node-id-1", TestSecrets());
  EXPECT_EQ(unpublish.volume_id(), "vol-1");
  EXPECT_EQ(unpublish.node_id(), "node-id-1");
  EXPECT_EQ(TextsOf(unpublish.secrets()), (StringMap{{"key", "hunter2"}}));

  const auto expand = Must(ControllerExpandRequest(driver, Volume(), 7, TestSecrets()));
  EXPECT_EQ(expand.volume_id(), "vol-1");
  EXPECT_EQ(expand.capacity_range().required_bytes(), 7);
  EXPECT_TRUE(expand.volume_capability().has_mount());
  EXPECT_EQ(TextsOf(expand.secrets()), (StringMap{{"key", "hunter2"}}));

  const auto validate = Must(ValidateCapabilitiesRequest(driver, Volume(), TestSecrets()));
  EXPECT_EQ(validate.volume_id(), "vol-1");
  EXPECT_EQ(validate.volume_capabilities_size(), 1);
  EXPECT_EQ(TextsOf(validate.volume_context()), (StringMap{{"tier", "gold"}}));

  const auto deletion = ControllerDeleteRequest("vol-1", TestSecrets());
  EXPECT_EQ(deletion.volume_id(), "vol-1");
  EXPECT_EQ(TextsOf(deletion.secrets()), (StringMap{{"key", "hunter2"}}));
}

class CsiCreateRequestTest : public testing::Test {
 protected:
  CsiCreateRequestTest() {
    claim_.metadata.name = "data";
    claim_.metadata.name_space = "shop";
    claim_.metadata.uid = "uid-9";
    claim_.metadata.annotations = {{"example.com/secret", "mine"}};
    claim_.spec.access_modes = {AccessMode::kReadWriteOnce};
    claim_.spec.storage.request = Quantity::FromBytes(int64_t{1} << 30);
  }

  CsiCreateWish Wish(StringMap parameters = {}) {
    return {.pv_name = "pvc-uid-9", .claim = claim_, .parameters = std::move(parameters)};
  }
  Result<CsiCreatePlan> Plan(StringMap parameters) {
    return PlanCreateVolume(driver_, Wish(std::move(parameters)));
  }
  // The error's text; empty: there was none.
  std::string Refused(StringMap parameters) {
    const auto plan = Plan(std::move(parameters));
    if (plan.ok()) return "";
    EXPECT_EQ(plan.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(plan.error().outcome(), Outcome::kNotApplied);
    return plan.error().message();
  }

  CsiDriverFacts driver_ = DriverThatCan({});
  PersistentVolumeClaim claim_;
};

TEST_F(CsiCreateRequestTest, AClaimBecomesARequest) {
  claim_.spec.access_modes = {AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany};
  claim_.spec.storage.limit = Quantity::FromBytes(int64_t{2} << 30);
  CsiCreateWish wish = Wish({{"tier", "gold"}, {"csi.storage.k8s.io/fstype", "xfs"}});
  wish.mount_options = {"noatime"};
  wish.topology = {{"zone", "z1"}};
  const CsiCreatePlan plan = Must(PlanCreateVolume(driver_, wish));
  const auto& request = plan.request;
  EXPECT_EQ(request.name(), "pvc-uid-9");
  EXPECT_EQ(request.capacity_range().required_bytes(), int64_t{1} << 30);
  EXPECT_EQ(request.capacity_range().limit_bytes(), int64_t{2} << 30);
  EXPECT_EQ(TextsOf(request.parameters()), (StringMap{{"tier", "gold"}}));
  ASSERT_EQ(request.volume_capabilities_size(), 2);
  EXPECT_EQ(request.volume_capabilities(0).access_mode().mode(), Mode::SINGLE_NODE_WRITER);
  EXPECT_EQ(request.volume_capabilities(1).access_mode().mode(), Mode::MULTI_NODE_READER_ONLY);
  EXPECT_EQ(request.volume_capabilities(1).mount().fs_type(), "xfs");
  EXPECT_EQ(request.volume_capabilities(1).mount().mount_flags(0), "noatime");
  EXPECT_EQ(request.secrets_size(), 0);
  EXPECT_FALSE(request.has_accessibility_requirements());
  EXPECT_FALSE(request.has_volume_content_source());
  EXPECT_EQ(plan.fs_type, "xfs");
  EXPECT_EQ(plan.provisioner_secret, std::nullopt);
}

TEST_F(CsiCreateRequestTest, ABlockVolumeHasNoFilesystem) {
  claim_.spec.volume_mode = VolumeMode::kBlock;
  const CsiCreatePlan plan = Must(Plan({{"csi.storage.k8s.io/fstype", "xfs"}}));
  EXPECT_TRUE(plan.request.volume_capabilities(0).has_block());
  EXPECT_EQ(plan.fs_type, "");
}

TEST_F(CsiCreateRequestTest, TopologyIsToldToDriversThatKnowItAlone) {
  CsiCreateWish wish = Wish();
  wish.topology = {{"zone", "z1"}, {"rack", "r2"}};
  driver_ = DriverThatCan({}, {}, {Plugin::VOLUME_ACCESSIBILITY_CONSTRAINTS});
  const auto request = Must(PlanCreateVolume(driver_, wish)).request;
  ASSERT_EQ(request.accessibility_requirements().requisite_size(), 1);
  ASSERT_EQ(request.accessibility_requirements().preferred_size(), 1);
  EXPECT_EQ(TextsOf(request.accessibility_requirements().requisite(0).segments()), wish.topology);
  EXPECT_EQ(TextsOf(request.accessibility_requirements().preferred(0).segments()), wish.topology);
}

TEST_F(CsiCreateRequestTest, WhatIsInTheVolumeFromTheBeginningIsNamed) {
  CsiCreateWish wish = Wish();
  wish.content = CsiContentSource{.snapshot_id = "snap-1", .volume_id = ""};
  EXPECT_EQ(Must(PlanCreateVolume(driver_, wish))
                .request.volume_content_source()
                .snapshot()
                .snapshot_id(),
            "snap-1");
  wish.content = CsiContentSource{.snapshot_id = "", .volume_id = "vol-0"};
  EXPECT_EQ(
      Must(PlanCreateVolume(driver_, wish)).request.volume_content_source().volume().volume_id(),
      "vol-0");
}

TEST_F(CsiCreateRequestTest, TheFilesystemIsTheClassesOrTheDefault) {
  CsiCreateWish wish = Wish();
  wish.default_fs_type = "ext4";
  EXPECT_EQ(Must(PlanCreateVolume(driver_, wish)).fs_type, "ext4");
  // The key of before is read, and stays for the driver.
  const CsiCreatePlan old = Must(Plan({{"fsType", "btrfs"}}));
  EXPECT_EQ(old.fs_type, "btrfs");
  EXPECT_EQ(TextsOf(old.request.parameters()), (StringMap{{"fsType", "btrfs"}}));
  EXPECT_NE(Refused({{"fstype", "ext4"}, {"csi.storage.k8s.io/fstype", "xfs"}}), "");
  EXPECT_EQ(Must(Plan({})).fs_type, "");
}

TEST_F(CsiCreateRequestTest, MetadataIsToldIfItIsAskedFor) {
  CsiCreateWish wish = Wish({{"tier", "gold"}});
  wish.extra_create_metadata = true;
  EXPECT_EQ(TextsOf(Must(PlanCreateVolume(driver_, wish)).request.parameters()),
            (StringMap{{"tier", "gold"},
                       {"csi.storage.k8s.io/pvc/name", "data"},
                       {"csi.storage.k8s.io/pvc/namespace", "shop"},
                       {"csi.storage.k8s.io/pv/name", "pvc-uid-9"}}));
}

TEST_F(CsiCreateRequestTest, AnUnknownReservedParameterIsRefused) {
  EXPECT_NE(Refused({{"csi.storage.k8s.io/pvc/name", "x"}}).find("csi.storage.k8s.io/pvc/name"),
            std::string::npos);
}

constexpr char kReserved[] = "csi.storage.k8s.io/";

StringMap Secret2(const std::string& key, const std::string& name, const std::string& name_space) {
  return {{kReserved + key + "-name", name}, {kReserved + key + "-namespace", name_space}};
}

TEST_F(CsiCreateRequestTest, EachCallHasASecretOfItsOwnOrTheDefault) {
  StringMap parameters;
  for (const char* key :
       {"provisioner-secret", "controller-publish-secret", "node-stage-secret",
        "node-publish-secret", "controller-expand-secret", "node-expand-secret"}) {
    parameters.merge(Secret2(key, key, "vault"));
  }
  const CsiCreatePlan plan = Must(Plan(parameters));
  EXPECT_EQ(plan.provisioner_secret, (SecretReference{"provisioner-secret", "vault"}));
  EXPECT_EQ(plan.controller_publish_secret,
            (SecretReference{"controller-publish-secret", "vault"}));
  EXPECT_EQ(plan.node_stage_secret, (SecretReference{"node-stage-secret", "vault"}));
  EXPECT_EQ(plan.node_publish_secret, (SecretReference{"node-publish-secret", "vault"}));
  EXPECT_EQ(plan.controller_expand_secret, (SecretReference{"controller-expand-secret", "vault"}));
  EXPECT_EQ(plan.node_expand_secret, (SecretReference{"node-expand-secret", "vault"}));
  EXPECT_EQ(plan.request.parameters_size(), 0);

  StringMap mixed = Secret2("secret", "all", "vault");
  mixed.merge(Secret2("node-stage-secret", "stage", "vault"));
  const CsiCreatePlan defaulted = Must(Plan(mixed));
  EXPECT_EQ(defaulted.node_stage_secret, (SecretReference{"stage", "vault"}));
  EXPECT_EQ(defaulted.provisioner_secret, (SecretReference{"all", "vault"}));
  EXPECT_EQ(defaulted.node_expand_secret, (SecretReference{"all", "vault"}));
}

TEST_F(CsiCreateRequestTest, TheKeysOfBeforeAreReadAndStayForTheDriver) {
  const StringMap old = {{"csiNodeStageSecretName", "s"}, {"csiNodeStageSecretNamespace", "vault"}};
  const CsiCreatePlan plan = Must(Plan(old));
  EXPECT_EQ(plan.node_stage_secret, (SecretReference{"s", "vault"}));
  EXPECT_EQ(TextsOf(plan.request.parameters()), old);
  StringMap both = old;
  both.merge(Secret2("node-stage-secret", "s", "vault"));
  EXPECT_NE(Refused(both), "");
}

TEST_F(CsiCreateRequestTest, TemplatesAreResolved) {
  const struct {
    const char* name;
    const char* name_space;
    SecretReference expected;
  } cases[] = {
      {"${pv.name}", "${pvc.namespace}", {"pvc-uid-9", "shop"}},
      {"${pvc.namespace}-${pvc.name}", "vault", {"shop-data", "vault"}},
      {"a${}b", "vault", {"ab", "vault"}},
      {"${pvc.annotations['example.com/secret']}", "${pv.name}", {"mine", "pvc-uid-9"}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Must(Plan(Secret2("node-stage-secret", c.name, c.name_space))).node_stage_secret,
              c.expected)
        << c.name;
  }
}

TEST_F(CsiCreateRequestTest, TemplatesThatSayNothingAreRefused) {
  const struct {
    const char* name;
    const char* name_space;
    const char* expected;
  } cases[] = {
      {"${pvc.uid}", "vault", "invalid tokens: [\"pvc.uid\"]"},
      {"$nobody", "vault", "invalid tokens: [\"nobody\"]"},
      {"s", "${pvc.name}", "invalid tokens: [\"pvc.name\"]"},
      {"s", "${pvc.annotations['example.com/secret']}", "invalid tokens"},
      {"$", "vault", "\"$\" is not a valid secret name"},
      {"a$ b", "vault", "is not a valid secret name"},
      {"x${pvc.name}_", "vault", "resolved to \"xdata_\" which is not a valid secret name"},
      {"s", "Vault", "\"Vault\" is not a valid namespace name"},
      {"", "vault", "is empty"},
  };
  for (const auto& c : cases) {
    const std::string why = Refused(Secret2("node-stage-secret", c.name, c.name_space));
    EXPECT_NE(why.find(c.expected), std::string::npos) << c.name << ": " << why;
  }
  EXPECT_NE(Refused({{std::string(kReserved) + "node-stage-secret-name", "s"}}), "");
}

// Who writes a claim must not choose by which secret volumes are made.
TEST_F(CsiCreateRequestTest, AnAnnotationChoosesNoProvisionersSecret) {
  const std::string annotation = "${pvc.annotations['example.com/secret']}";
  EXPECT_NE(Refused(Secret2("provisioner-secret", annotation, "vault")), "");
  EXPECT_EQ(
      Must(Plan(Secret2("provisioner-secret", "${pvc.name}", "vault"))).provisioner_secret->name,
      "data");
}

TEST_F(CsiCreateRequestTest, SecretsAreInTheSentRequestAlone) {
  const CsiCreatePlan plan = Must(Plan({}));
  EXPECT_EQ(TextsOf(WithSecrets(plan.request, TestSecrets()).secrets()),
            (StringMap{{"key", "hunter2"}}));
  EXPECT_EQ(plan.request.secrets_size(), 0);
}

TEST_F(CsiCreateRequestTest, AVolumeSaysByWhichSecretItIsDeleted) {
  PersistentVolume volume;
  EXPECT_EQ(DeletionSecretOf(volume), std::nullopt);
  volume.metadata.annotations = {{kDeletionSecretName, ""}, {kDeletionSecretNamespace, ""}};
  EXPECT_EQ(DeletionSecretOf(volume), std::nullopt);
  volume.metadata.annotations = {{kDeletionSecretName, "s"}, {kDeletionSecretNamespace, "vault"}};
  EXPECT_EQ(DeletionSecretOf(volume), (SecretReference{"s", "vault"}));
}

}  // namespace
}  // namespace volumed
