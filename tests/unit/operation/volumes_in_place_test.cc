// What a restart finds in its place is left alone, and nothing else is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/operation/group_operations_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

// A thousand pods cost 2.5 s of processor time at each restart, in which nothing was to be done.
class VolumesInPlaceTest : public GroupOperationsTest {
 protected:
  VolumesInPlaceTest() {
    host_.content_key = std::make_shared<ContentKey>(volumed::Secret<std::string>(kKey));
    SetPassword("old");
  }
  void SetPassword(const std::string& password) {
    auto secret = std::make_shared<SecretObject>();
    secret->data["password"] = volumed::Secret<std::string>(password);
    stub_.secrets["s"] = secret;
  }
  MountRequest Password() const {
    SecretVolumeSource source;
    source.secret_name = "s";
    return Request("password", std::move(source));
  }
  MountRequest Token() const {
    ProjectedVolumeSource source;
    ServiceAccountTokenProjection token;
    token.path = "token";
    source.sources.push_back(token);
    return Request("token", std::move(source));
  }
  // The next agent finds each as `found`.
  std::map<std::string, std::string> Restart(std::vector<MountRequest> requests,
                                             const std::map<std::string, std::string>& found,
                                             const std::string& boot = "boot") {
    StorageGuard& storage = *next_storages_.emplace_back(
        std::make_unique<StorageGuard>(kernel_, store_, scheduler_.clock(), logger_, BootId(boot)));
    operations_ = std::make_unique<NodeVolumeOperations>(
        scheduler_, OperationParts{plugins_, host_, logger_, store_, devices_, storage}, observer_,
        BootId(boot), &domains_);
    operations_->Restore(LoadPodVolumeRecords(real_store_), {});
    kernel_.round_trips = store_.writes = stub_.tokens_issued = 0;
    for (MountRequest& request : requests) {
      request.reconstructed = true;
      request.is_remount = true;
      const auto as = found.find(request.spec.name().str());
      if (as != found.end()) request.found_as = as->second;
    }
    mounted_.clear();
    return Mount(std::move(requests));
  }

  static inline const std::string kKey = std::string(32, 'k');
};

TEST_F(VolumesInPlaceTest, WhatIsAsItIsWantedCostsARestartNothing) {
  MountRequest disk = Disk("a");
  disk.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  (void)Mount({disk, Memory("b"), Password(), Token()});
  const MountedVolume before = mounted_.at("token");
  const auto outcomes =
      Restart({disk, Memory("b"), Password(), Token()},
              {{"a", ""}, {"b", "tmpfs"}, {"password", "tmpfs"}, {"token", "tmpfs"}});
  for (const auto& [name, outcome] : outcomes) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(kernel_.round_trips, 0);
  EXPECT_EQ(store_.writes, 0);
  EXPECT_EQ(stub_.tokens_issued, 0);
  EXPECT_EQ(mounted_.at("token").freshness, before.freshness) << "it is renewed when it was to be";
  ASSERT_EQ(mounted_.at("a").sub_paths.size(), 1u);
  EXPECT_EQ(mounted_.at("password").host_path,
            before.host_path.substr(0, kPodDir.size()) + "/volumes/kubernetes.io~secret/password");
}

// Each hostPath volume of a node was set up again at each start.
TEST_F(VolumesInPlaceTest, WhatIsHandedOutAsItIsCostsARestartNothing) {
  real_kernel_.AddDirectory("/srv/data");
  const MountRequest host = Host("h", "/srv/data");
  (void)Mount({Disk("a"), host});
  EXPECT_EQ(Restart({Disk("a"), host}, {{"a", ""}, {"h", ""}}).at("h"), "done");
  EXPECT_EQ(kernel_.round_trips, 0);
  EXPECT_EQ(store_.writes, 0);
  EXPECT_EQ(mounted_.at("h").host_path, "/srv/data");
  EXPECT_THAT(WhoKeeps("/srv/data"), HasSubstr("volume h of pod uid-1"))
      << "nobody has looked at it, and it is not free";
  for (const auto& [name, outcome] : Unmount({"a", "h"})) EXPECT_EQ(outcome, "done") << name;
  EXPECT_EQ(WhoKeeps("/srv/data"), "");
}

TEST_F(VolumesInPlaceTest, WhatCannotBeSaidToBeHandedOutIsSetUpAgain) {
  real_kernel_.AddDirectory("/srv/data");
  real_kernel_.AddDirectory("/srv/other");
  const MountRequest host = Host("h", "/srv/data");
  MountRequest with_sub_path = host;
  with_sub_path.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  const std::map<std::string, std::string> there = {{"h", ""}};
  // Of a start after one that finds the volume as it was, which costs nothing.
  const auto round_trips = [&](const MountRequest& wanted,
                               const std::map<std::string, std::string>& found,
                               const std::string& boot = "boot") {
    (void)Restart({host}, {});  // whatever the case before has left
    (void)Restart({host}, there);
    EXPECT_EQ(kernel_.round_trips, 0) << "nothing is the matter yet";
    (void)Restart({wanted}, found, boot);
    return kernel_.round_trips;
  };
  (void)Mount({host});
  EXPECT_GT(round_trips(host, {}), 0) << "the records are in doubt";
  EXPECT_GT(round_trips(Host("h", "/srv/other"), there), 0) << "its row is of another path";
  EXPECT_GT(round_trips(host, there, "another boot"), 0) << "a reboot is in between";
  EXPECT_GT(round_trips(host, {{"h", "ext4"}}), 0) << "something is mounted at its place";
  EXPECT_GT(round_trips(with_sub_path, there), 0) << "a sub-path is bound from what is there now";
}

TEST_F(VolumesInPlaceTest, WhatAnOlderProgramHandedOutIsLookedAtOnce) {
  real_kernel_.AddDirectory("/srv/data");
  const MountRequest host = Host("h", "/srv/data");
  (void)Mount({host});
  PodVolumeRecord older = LoadPodVolumeRecords(real_store_).at(0);
  EXPECT_FALSE(older.storage.empty());
  older.storage = {};
  ASSERT_TRUE(real_store_.Put(EncodeRecord(older), kPodVolumeRecordDurability).ok());
  (void)Restart({host}, {{"h", ""}});
  EXPECT_GT(kernel_.round_trips, 0);
  EXPECT_FALSE(LoadPodVolumeRecords(real_store_).at(0).storage.empty());
  (void)Restart({host}, {{"h", ""}});
  EXPECT_EQ(kernel_.round_trips, 0);
}

// What the pod was given before was forgotten by the set-up that a restart made.
TEST_F(VolumesInPlaceTest, ASetUpAfterARestartKeepsWhatThePodWasGivenBefore) {
  real_kernel_.AddDirectory("/srv/data/x");
  real_kernel_.AddDirectory("/srv/other/x");
  real_kernel_.AddSymlink("/link", "/srv/data");
  MountRequest host = Host("h", "/link");
  host.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  EXPECT_EQ(Mount({host}).at("h"), "done");
  real_kernel_.Remove("/link");
  real_kernel_.AddSymlink("/link", "/srv/other");
  for (int restart = 0; restart < 2; ++restart) {
    EXPECT_EQ(Restart({host}, {{"h", ""}}).at("h"), "done");
    EXPECT_THAT(WhoKeeps("/srv/data"), HasSubstr("volume h of pod uid-1")) << restart;
    EXPECT_THAT(WhoKeeps("/srv/other"), HasSubstr("volume h of pod uid-1")) << restart;
  }
  EXPECT_EQ(Unmount({"h"}).at("h"), "done");
  EXPECT_EQ(WhoKeeps("/srv/data"), "");
}

TEST_F(VolumesInPlaceTest, ASecretThatHasChangedIsPublished) {
  (void)Mount({Password(), Memory("b")});
  SetPassword("new");
  (void)Restart({Password(), Memory("b")}, {{"password", "tmpfs"}, {"b", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1);
  const auto published = real_kernel_.Call(
      ReadFile{.path = {kPodDir, "volumes/kubernetes.io~secret/password/..data/password",
                        Resolve::kBeneath},
               .max_bytes = 100},
      CallOptions());
  ASSERT_TRUE(published.ok()) << published.error().ToString();
  EXPECT_EQ(published->bytes, "new");
}

// A Ready pod was Pending after a restart, until a Secret that had been deleted was back.
TEST_F(VolumesInPlaceTest, WhatIsInPlaceWithoutItsSecretIsInPlaceStill) {
  MountRequest password = Password();
  password.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "password"});
  (void)Mount({password});
  const std::string before = mounted_.at("password").sub_paths.at(0).host_path;
  stub_.secrets.clear();
  EXPECT_EQ(Restart({password}, {{"password", "tmpfs"}}).at("password"), "done");
  EXPECT_TRUE(mounted_.at("password").content_unknown) << "it is to be tried again";
  EXPECT_EQ(mounted_.at("password").sub_paths.at(0).host_path, before);
  EXPECT_EQ(kernel_.round_trips, 0);
  EXPECT_EQ(store_.writes, 0);
  EXPECT_THAT(Restart({Password()}, {{"password", ""}}).at("password"), HasSubstr("not found"))
      << "its tmpfs is gone";
}

TEST_F(VolumesInPlaceTest, WhatWasNotFoundAsItWasIsSetUpAgain) {
  (void)Mount({Memory("a"), Memory("b"), Disk("c")});
  (void)Restart({Memory("a")}, {});
  EXPECT_EQ(kernel_.round_trips, 1) << "something of it is missing";
  (void)Restart({Memory("b")}, {{"b", ""}});
  EXPECT_EQ(kernel_.round_trips, 1) << "its tmpfs was unmounted";
  (void)Restart({Disk("c")}, {{"c", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1) << "something is mounted over it";
}

TEST_F(VolumesInPlaceTest, AnotherKeyAndAnotherBootKnowNothing) {
  (void)Mount({Memory("a")});
  (void)Restart({Memory("a")}, {{"a", "tmpfs"}}, "another boot");
  EXPECT_EQ(kernel_.round_trips, 1);
  host_.content_key =
      std::make_shared<ContentKey>(volumed::Secret<std::string>(std::string(32, 'x')));
  (void)Restart({Memory("a")}, {{"a", "tmpfs"}}, "another boot");
  EXPECT_EQ(kernel_.round_trips, 1);
  host_.content_key = nullptr;
  (void)Restart({Memory("a")}, {{"a", "tmpfs"}}, "another boot");
  EXPECT_EQ(kernel_.round_trips, 1);
}

TEST_F(VolumesInPlaceTest, ATokenThatIsDueIsRenewed) {
  (void)Mount({Token()});
  scheduler_.RunFor(std::chrono::milliseconds(1));
  PodVolumeRecord row = LoadPodVolumeRecords(real_store_).front();
  row.published.tokens = Freshness{0, scheduler_.clock().WallUnixMillis()};
  ASSERT_TRUE(real_store_.Put(EncodeRecord(row), kPodVolumeRecordDurability).ok());
  (void)Restart({Token()}, {{"token", "tmpfs"}});
  EXPECT_EQ(stub_.tokens_issued, 1);
  EXPECT_EQ(kernel_.round_trips, 1);
}

TEST_F(VolumesInPlaceTest, AnotherSubPathIsNotTakenForTheOneThatIsThere) {
  MountRequest request = Memory("a");
  request.sub_paths.push_back({.container = "main", .index = 0, .sub_path = "x"});
  (void)Mount({request});
  request.sub_paths.front().sub_path = "y";
  (void)Restart({request}, {{"a", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1);
}

// On a disk that fails, what lies on a tmpfs was not kept up to date any more.
TEST_F(VolumesInPlaceTest, ARefreshDoesWithoutItsRecord) {
  (void)Mount({Password()});
  SetPassword("new");
  MountRequest refresh = Password();
  refresh.is_remount = true;
  real_store_.FailNext(kDiskFull, 2);
  EXPECT_EQ(Mount({refresh}).at("password"), "done");
  EXPECT_EQ(State("password"), "SetUp");
  (void)Restart({Password()}, {{"password", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1) << "the row tells of the old one";
}

// The row of a refresh that was under way tells of content that may not be there.
TEST_F(VolumesInPlaceTest, ARefreshThatWasBegunIsMadeAgain) {
  (void)Mount({Password()});
  SetPassword("new");
  kernel_.died = true;
  MountRequest refresh = Password();
  refresh.is_remount = true;
  (void)Mount({refresh});
  kernel_.died = false;
  SetPassword("old");
  (void)Restart({Password()}, {{"password", "tmpfs"}});
  EXPECT_EQ(kernel_.round_trips, 1);
}

TEST(IsCoveredTest, TellsWhatConcernsAVolume) {
  const KubeletPaths paths{kRoot};
  const SafePath place =
      paths.GetPodVolumeDir(PodUid("uid-1"), "kubernetes.io/empty-dir", SpecName("a"));
  const auto covered = [&](const std::string& mount, bool may_hang = true) {
    return IsCovered(paths, {Key("uid-1", "a"), place, paths.GetPodDir(PodUid("uid-1"))},
                     {{mount, may_hang}});
  };
  EXPECT_TRUE(covered(kPodDir + "/volumes", /*may_hang=*/false)) << "a tmpfs covers it as well";
  EXPECT_FALSE(covered(place.Display(), /*may_hang=*/false)) << "its own tmpfs";
  EXPECT_FALSE(covered(kRoot, true)) << "the agent's root is a filesystem of its own";
  for (const char* mount :
       {"", "/volumes", "/volumes/kubernetes.io~empty-dir", "/volumes/kubernetes.io~empty-dir/a",
        "/plugins", "/volume-subpaths", "/volumes/kubernetes.io~empty-dir/a/deep",
        "/volume-subpaths/a/main/0", "/plugins/kubernetes.io~empty-dir/a"}) {
    EXPECT_TRUE(covered(kPodDir + mount)) << mount;
  }
  for (const char* mount : {"/volumes/kubernetes.io~empty-dir/ab", "/volume-subpaths/ab/main/0",
                            "/volumes/kubernetes.io~nfs/far"}) {
    EXPECT_FALSE(covered(kPodDir + mount)) << mount;
  }
}

}  // namespace
}  // namespace volumed
