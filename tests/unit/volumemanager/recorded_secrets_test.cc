// Which Secrets the volumes on record name.
#include "volumemanager/recorded_secrets.h"

#include <string>

#include "operation/recorded_volume.h"
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

constexpr char kDriver[] = "disk.example.com";

ObjectKey SecretKey(const std::string& name_space, const std::string& name) {
  return {ObjectKind::kSecret, name_space, name};
}

std::string VolumeJson(const std::string& name, const std::string& secret) {
  PersistentVolume volume;
  volume.metadata.name = name;
  volume.spec.capacity = Quantity::FromBytes(1);
  volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  volume.spec.mount_options = {"password=hunter2"};
  CsiPersistentVolumeSource source;
  source.driver = kDriver;
  source.volume_handle = "h-" + name;
  source.node_stage_secret_ref = SecretReference{secret, "storage"};
  volume.spec.source = source;
  return EncodeRecordedVolume(VolumeSpec::FromPersistentVolume(std::move(volume), false));
}

std::string InlineJson(const std::string& secret) {
  PodVolume volume;
  volume.name = "scratch";
  CsiVolumeSource source;
  source.driver = "inline.example.com";
  source.node_publish_secret_ref = LocalObjectReference{secret};
  volume.source = source;
  return EncodeRecordedVolume(VolumeSpec::FromVolume(std::move(volume)));
}

// A restart sends nothing, so a driver's words were shown with what it had been sent before.
TEST(RecordedSecretsTest, NoRowTookPartInWhatIsHiddenOfADriver) {
  FoundAtStart found;
  found.devices.emplace_back().volume_json = VolumeJson("pv-1", "of-device");
  found.bindings.emplace_back().volume_json = VolumeJson("pv-2", "of-claim");
  found.provisioned.emplace_back().volume_json = VolumeJson("pv-3", "of-made");
  PodVolumeRecord& volume = found.volumes.emplace_back();
  volume.volume_json = VolumeJson("pv-1", "of-pod");
  volume.pod_namespace = "shop";
  PodVolumeRecord& scratch = found.volumes.emplace_back();
  scratch.volume_json = InlineJson("of-inline");
  scratch.pod_namespace = "shop";
  const SentSecretsByDriver sent = SecretsOnRecord(found);
  ASSERT_EQ(sent.size(), 2u);
  const SentSecrets of_driver = {
      .objects = {SecretKey("storage", "of-claim"), SecretKey("storage", "of-device"),
                  SecretKey("storage", "of-made"), SecretKey("storage", "of-pod")},
      .mount_options = {"password=hunter2"}};
  EXPECT_EQ(sent.at(kDriver), of_driver);
  const SentSecrets of_inline = {.objects = {SecretKey("shop", "of-inline")}, .mount_options = {}};
  EXPECT_EQ(sent.at("inline.example.com"), of_inline);
}

TEST(RecordedSecretsTest, AnInlineVolumeOfEachNamespaceHasItsOwnSecret) {
  FoundAtStart found;
  for (const char* name_space : {"a", "b"}) {
    PodVolumeRecord& scratch = found.volumes.emplace_back();
    scratch.volume_json = InlineJson("login");
    scratch.pod_namespace = name_space;
  }
  const SentSecretsByDriver sent = SecretsOnRecord(found);
  ASSERT_TRUE(sent.contains("inline.example.com"));
  EXPECT_EQ(sent.at("inline.example.com").objects,
            (std::set<ObjectKey>{SecretKey("a", "login"), SecretKey("b", "login")}));
}

TEST(RecordedSecretsTest, ARowWithoutAVolumeThatCanBeReadTellsNothing) {
  FoundAtStart found;
  found.devices.emplace_back();
  found.devices.emplace_back().volume_json = "{\"csi\": 1}";
  EXPECT_TRUE(SecretsOnRecord(found).empty());
}

using RecordedSecretsAtStartTest = ManagerTest;

TEST_F(RecordedSecretsAtStartTest, WhoShowsDriversWordsIsToldBeforeTheyCanBeAsked) {
  PutPodRecord("a");
  PodVolumeRecord record;
  record.key = Key("a", "pv-1");
  record.pod_namespace = "default";
  record.pod_name = "a";
  record.plugin_name = "kubernetes.io/csi";
  record.state = VolumeState::kSetUp;
  record.boot_id = BootId("boot-1");
  record.volume_json = VolumeJson("pv-1", "login");
  ASSERT_TRUE(store.Put(EncodeRecord(record), kPodVolumeRecordDurability).ok());
  StartAgent("boot-1");
  EXPECT_FALSE(agent_->secrets_on_record.has_value());
  Settle();
  ASSERT_TRUE(agent_->secrets_on_record.has_value());
  ASSERT_TRUE(agent_->secrets_on_record->contains(kDriver));
  EXPECT_TRUE(
      agent_->secrets_on_record->at(kDriver).objects.contains(SecretKey("storage", "login")));
}

}  // namespace
}  // namespace volumed
