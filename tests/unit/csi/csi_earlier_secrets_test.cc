// What drivers were sent as secrets before the agent started is not in what they say after it.
#include "csi/csi_earlier_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csi/rpc/csi_redact.h"
#include "unit/csi/registered_driver_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

const ObjectKey kLogin{ObjectKind::kSecret, "default", "login"};
const ObjectKey kOther{ObjectKind::kSecret, "default", "other"};
constexpr const char* kWithheld =
    "[withheld, as it may have a secret in it, until Secret default/login is there, which a volume "
    "on record names]";

class KnownSecrets final : public HostObjects {
 public:
  Result<std::shared_ptr<const SecretObject>> GetSecret(const std::string& ns,
                                                        const std::string& name) const override {
    const auto found = secrets.find({ObjectKind::kSecret, ns, name});
    if (found == secrets.end()) return Error::NotApplied(Code::kUnavailable, "not known yet");
    return found->second;
  }
  Result<std::shared_ptr<const ConfigMapObject>> GetConfigMap(const std::string&,
                                                              const std::string&) const override {
    return Error::NotApplied(Code::kNotFound, "none");
  }

  std::map<ObjectKey, std::shared_ptr<const SecretObject>> secrets;
};

class CsiEarlierSecretsTest : public RegisteredDriverFixture {
 protected:
  // A driver's memory as one that has just been made has it.
  std::shared_ptr<CsiSecretMemory> Made(const std::string& driver = kName) {
    auto memory = std::make_shared<CsiSecretMemory>();
    earlier_.DriverMade(driver, memory);
    memories_.push_back(memory);
    return memory;
  }
  void Record(SentSecrets sent, const std::string& driver = kName) {
    earlier_.TakeRecorded({{driver, std::move(sent)}});
  }
  void Deliver(const ObjectKey& key, const std::string& value) {
    SecretObject secret;
    secret.metadata.name_space = key.name_space;
    secret.metadata.name = key.name;
    secret.data.emplace("password", Secret<std::string>(value));
    const auto object = std::make_shared<const Object>(secret);
    objects_.secrets[key] =
        std::shared_ptr<const SecretObject>(object, &std::get<SecretObject>(*object));
    Follow(key, object);
  }
  void Follow(const ObjectKey& key, ObjectPtr object) {
    ObjectChange change;
    change.key = key;
    change.after = std::move(object);
    earlier_.Follow({change});
  }
  // What is shown of a driver's error.
  static std::string Shown(const std::shared_ptr<CsiSecretMemory>& memory,
                           const std::string& text) {
    return CsiSecrets(memory).RemovedFrom(text, 4096);
  }

  KnownSecrets objects_;
  std::vector<std::string> shown_;
  CsiEarlierSecrets earlier_{
      CsiEarlierSecrets::Parts{objects_, log_, [this](const std::string& driver) {
                                 shown_.push_back(driver);
                                 drivers_->TextsShown(driver);
                               }}};
  std::vector<std::shared_ptr<CsiSecretMemory>> memories_;
};

TEST_F(CsiEarlierSecretsTest, AfterARestartADriversErrorShowedTheSecretOfItsVolume) {
  Deliver(kLogin, "hunter2");
  Record({.objects = {kLogin}, .mount_options = {}});
  const auto memory = Made();
  EXPECT_EQ(Shown(memory, "cannot unmount //u:hunter2@nas"),
            "cannot unmount //u:***stripped***@nas");
}

TEST_F(CsiEarlierSecretsTest, BeforeTheSourcesHaveDeliveredADriversTextShowedTheSecret) {
  const auto memory = Made();
  EXPECT_EQ(Shown(memory, "hunter2"),
            "[withheld, as it may have a secret in it, until the agent has read its records]");
  Record({.objects = {kLogin}, .mount_options = {}});
  EXPECT_EQ(Shown(memory, "login hunter2 failed"), kWithheld);
  EXPECT_EQ(Shown(memory, ""), "") << "nothing was said";
  EXPECT_TRUE(shown_.empty());
  Deliver(kOther, "no volume's");
  EXPECT_EQ(Shown(memory, "login hunter2 failed"), kWithheld);
  Deliver(kLogin, "hunter2");
  EXPECT_EQ(Shown(memory, "login hunter2 failed"), "login ***stripped*** failed");
  EXPECT_THAT(shown_, ElementsAre(kName));
}

TEST_F(CsiEarlierSecretsTest, ADriverWithoutSecretsOnRecordIsShownFromTheStart) {
  const auto memory = Made();
  const auto fresh = Made("new.example.com");
  Record({.objects = {}, .mount_options = {"ro"}});
  EXPECT_EQ(Shown(memory, "disk is full"), "disk is full");
  EXPECT_EQ(Shown(fresh, "disk is full"), "disk is full");
  EXPECT_EQ(Shown(Made("later.example.com"), "disk is full"), "disk is full");
}

TEST_F(CsiEarlierSecretsTest, ASecretThatIsNowhereKeepsTheDriversWordsBackAndIsNamed) {
  const auto memory = Made();
  Record({.objects = {kLogin, kOther}, .mount_options = {}});
  earlier_.ObjectsComplete();
  EXPECT_EQ(Shown(memory, "hunter2"),
            "[withheld, as it may have a secret in it, until Secret default/login and 1 more are "
            "there, which volumes on record name]");
  // One of the same name is enough for people to see again, whatever it has.
  Deliver(kOther, "hunter2");
  EXPECT_EQ(Shown(memory, "hunter2"), kWithheld);
  Deliver(kLogin, "new-password");
  EXPECT_EQ(Shown(memory, "not hunter2, and not new-password"),
            "not ***stripped***, and not ***stripped***");
}

TEST_F(CsiEarlierSecretsTest, TheFormerContentOfASecretThatChangedWasShown) {
  const auto memory = Made();
  Record({.objects = {kLogin}, .mount_options = {}});
  Deliver(kLogin, "hunter2");
  earlier_.ObjectsComplete();
  Deliver(kLogin, "hunter3");
  EXPECT_EQ(Shown(memory, "hunter2 is old, hunter3 is new"),
            "***stripped*** is old, ***stripped*** is new");
  EXPECT_EQ(shown_.size(), 1u);
}

TEST_F(CsiEarlierSecretsTest, APasswordInTheMountOptionsOfARecordedVolumeWasShown) {
  const auto memory = Made();
  Record({.objects = {}, .mount_options = {"vers=4.1", "username=u,password=hunter2"}});
  EXPECT_EQ(Shown(memory, "mount -o vers=4.1,password=hunter2 failed"),
            "mount -o vers=4.1,password=***stripped*** failed");
}

// Nobody knows whether the driver was given them, so nobody waits for them.
TEST_F(CsiEarlierSecretsTest, SecretsThatVolumesAndClassesNameAreHiddenAsFarAsTheyAreThere) {
  const auto memory = Made();
  Record({});
  PersistentVolume volume;
  CsiPersistentVolumeSource source;
  source.driver = kName;
  source.node_stage_secret_ref = SecretReference{"login", "default"};
  volume.spec.source = source;
  Follow({ObjectKind::kPersistentVolume, "", "pv-1"}, std::make_shared<const Object>(volume));
  StorageClass of_driver;
  of_driver.provisioner = kName;
  of_driver.parameters = {{"csi.storage.k8s.io/provisioner-secret-name", "other"},
                          {"csi.storage.k8s.io/provisioner-secret-namespace", "default"},
                          {"csi.storage.k8s.io/node-stage-secret-name", "${pvc.name}"},
                          {"csi.storage.k8s.io/node-stage-secret-namespace", "default"}};
  Follow({ObjectKind::kStorageClass, "", "fast"}, std::make_shared<const Object>(of_driver));
  EXPECT_EQ(Shown(memory, "disk is full"), "disk is full");
  Deliver(kLogin, "hunter2");
  Deliver(kOther, "geheim");
  EXPECT_EQ(Shown(memory, "hunter2 geheim"), "***stripped*** ***stripped***");
}

TEST_F(CsiEarlierSecretsTest, ASecretOfADriverThatWasForgottenIsAwaitedNoMore) {
  (void)Made();
  Record({.objects = {kLogin}, .mount_options = {}});
  earlier_.DriverForgotten(kName);
  EXPECT_EQ(Shown(Made(), "disk is full"), "disk is full");
}

// A driver registers before the sources have delivered, and its version has a secret in it.
TEST_F(CsiEarlierSecretsTest, TheVersionOfADriverThatCameBeforeItsSecretsIsShownOnceTheyAreThere) {
  made_ = [this](const std::string& driver, const std::shared_ptr<CsiSecretMemory>& memory) {
    earlier_.DriverMade(driver, memory);
  };
  Restart();
  Record({.objects = {kLogin}, .mount_options = {}});
  process_ = Serve();
  ::csi::v1::GetPluginInfoResponse info;
  info.set_name(kName);
  info.set_vendor_version("2.1 of hunter2");
  process_->Answer("GetPluginInfo", info);
  const std::optional<Status> registered = Register();
  ASSERT_TRUE(registered.has_value());
  ASSERT_TRUE(registered->ok()) << registered->error().ToString();
  const auto version = [this] { return drivers_->Find(kName)->facts().vendor_version; };
  EXPECT_THAT(version(), StartsWith("[withheld, as it may have a secret in it, until Secret def"));
  Deliver(kLogin, "hunter2");
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(version(), "2.1 of ***stripped***");
  EXPECT_EQ(process_->calls("GetPluginInfo"), 1) << "it was not asked anew";
  const auto row = store_.Find(kCsiDriverRecordKind, kName);
  ASSERT_TRUE(row.has_value());
  const Result<CsiDriverRecord> record = DecodeCsiDriverRecord(*row);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->facts.vendor_version, "2.1 of ***stripped***");
}

TEST_F(CsiEarlierSecretsTest, ASecretInADriversTopologyWasShown) {
  process_ = Serve();
  ::csi::v1::NodeGetInfoResponse info;
  info.set_node_id("node-a");
  (*info.mutable_accessible_topology()->mutable_segments())["example.com/zone"] = "z-hunter2";
  process_->Answer("NodeGetInfo", info);
  const std::optional<Status> registered = Register();
  ASSERT_TRUE(registered.has_value());
  ASSERT_TRUE(registered->ok()) << registered->error().ToString();
  drivers_->Find(kName)->secrets()->Remember({"hunter2"});
  const std::vector<DriverView> views = drivers_->List();
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].shown_topology.at("example.com/zone"), "z-***stripped***");
  EXPECT_EQ(views[0].facts.topology.at("example.com/zone"), "z-hunter2") << "it is used as it is";
}

}  // namespace
}  // namespace volumed
