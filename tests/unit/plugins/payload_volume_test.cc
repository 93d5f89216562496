// secret, configMap, downwardAPI and projected: what they have in common, and what each puts in.
#include "plugins/payload_volume.h"

#include <gtest/gtest.h>

#include <variant>

#include "unit/plugins/plugin_test_base.h"

namespace volumed {
namespace {

SecretVolumeSource Secret1() {
  SecretVolumeSource source;
  source.secret_name = "db";
  return source;
}
ConfigMapVolumeSource ConfigMap1() {
  ConfigMapVolumeSource source;
  source.name = "conf";
  return source;
}
ProjectedVolumeSource TokenAt(const std::string& path) {
  ServiceAccountTokenProjection token;
  token.audience = "vault";
  token.path = path;
  ProjectedVolumeSource source;
  source.sources.push_back(token);
  return source;
}
KeyToPath Item(const std::string& key, const std::string& path,
               std::optional<int32_t> mode = std::nullopt) {
  return {.key = key, .path = path, .mode = mode};
}

class PayloadVolumeTest : public PluginTestBase {
 protected:
  PayloadVolumeTest() {
    world_.objects.PutSecret("db", {{"user", "root"}, {"password", "hunter2"}});
    world_.objects.PutConfigMap("conf", {{"a", "1"}, {"b", "2"}},
                                {{"bin", std::string("\0\1", 2)}});
  }
  std::string ErrorOf(const VolumeSource& source) {
    const Status status = SetUp1(source);
    EXPECT_FALSE(status.ok());
    return status.ok() ? "" : status.error().message();
  }
  // What the error says that it is about, for whoever names the owner.
  std::vector<std::string> AboutsOf(const VolumeSource& source) {
    const Status status = SetUp1(source);
    EXPECT_FALSE(status.ok());
    return status.ok() ? std::vector<std::string>() : status.error().about();
  }
};

TEST_F(PayloadVolumeTest, ASecretIsFilesOnATmpfs) {
  ASSERT_TRUE(SetUp1(Secret1()).ok());
  EXPECT_EQ(Content(Secret1(), "user"), "root");
  EXPECT_EQ(Content(Secret1(), "password"), "hunter2");
  EXPECT_EQ(FileIn(Secret1(), "user").mode, 0644u);
  EXPECT_TRUE(kernel_.IsMountPoint("/r/pods/u1/volumes/kubernetes.io~secret/v"));
  EXPECT_TRUE(kernel_.Exists("/r/pods/u1/plugins/kubernetes.io~empty-dir/wrapped_v/ready"));
}

TEST_F(PayloadVolumeTest, AConfigMapIsFilesOnDisk) {
  ASSERT_TRUE(SetUp1(ConfigMap1()).ok());
  EXPECT_EQ(Content(ConfigMap1(), "a"), "1");
  EXPECT_EQ(Content(ConfigMap1(), "bin"), std::string("\0\1", 2));
  EXPECT_FALSE(kernel_.IsMountPoint("/r/pods/u1/volumes/kubernetes.io~configmap/v"));
}

TEST_F(PayloadVolumeTest, ItemsChooseKeysPathsAndModes) {
  ConfigMapVolumeSource source = ConfigMap1();
  source.default_mode = 0440;
  source.items = {Item("a", "etc/app.conf"), Item("bin", "blob", 0500)};
  ASSERT_TRUE(SetUp1(source).ok());
  EXPECT_EQ(Content(source, "etc/app.conf"), "1");
  EXPECT_EQ(FileIn(source, "etc/app.conf").mode, 0440u);
  EXPECT_EQ(FileIn(source, "blob").mode, 0500u);
  EXPECT_EQ(FileIn(source, "b").type, FileType::kMissing);
}

TEST_F(PayloadVolumeTest, MissingObjectsAndKeysAreNamedAndHaveNoEffect) {
  SecretVolumeSource no_secret = Secret1();
  no_secret.secret_name = "nope";
  EXPECT_EQ(ErrorOf(no_secret), "secret \"nope\" not found");
  ConfigMapVolumeSource no_map = ConfigMap1();
  no_map.name = "nope";
  EXPECT_EQ(ErrorOf(no_map), "configmap \"nope\" not found");
  no_map.name = "refused";
  EXPECT_EQ(ErrorOf(no_map), "configmap \"refused\" not found: it was refused");
  SecretVolumeSource no_key = Secret1();
  no_key.items = {Item("x", "x")};
  EXPECT_EQ(ErrorOf(no_key), "references non-existent secret key: x, of secret \"db\"")
      << "which secret it is was not said";
  ConfigMapVolumeSource no_config_key = ConfigMap1();
  no_config_key.items = {Item("x", "x")};
  EXPECT_EQ(ErrorOf(no_config_key),
            "configmap references non-existent config key: x, of configmap \"conf\"");
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(PayloadVolumeTest, OptionalObjectsAndKeysMayBeMissing) {
  SecretVolumeSource no_secret = Secret1();
  no_secret.secret_name = "nope";
  no_secret.optional = true;
  EXPECT_TRUE(SetUp1(no_secret).ok());
  ConfigMapVolumeSource no_key = ConfigMap1();
  no_key.items = {Item("x", "x"), Item("a", "a")};
  no_key.optional = true;
  ASSERT_TRUE(SetUp1(no_key).ok());
  EXPECT_EQ(Content(no_key, "a"), "1");
}

TEST_F(PayloadVolumeTest, AnOptionalObjectThatMayStillComeIsWaitedFor) {
  world_.objects.sources_complete = false;
  SecretVolumeSource source = Secret1();
  source.secret_name = "later";
  source.optional = true;
  const Status status = SetUp1(source);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kUnavailable);
}

TEST_F(PayloadVolumeTest, ErrorsNeverHoldContent) {
  SecretVolumeSource source = Secret1();
  source.items = {Item("password", "p"), Item("x", "x")};
  EXPECT_EQ(ErrorOf(source).find("hunter2"), std::string::npos);
}

TEST_F(PayloadVolumeTest, ARefreshShowsTheNewContent) {
  ASSERT_TRUE(SetUp1(Secret1()).ok());
  world_.objects.PutSecret("db", {{"user", "admin"}});
  ASSERT_TRUE(Refresh(Secret1()).ok());
  EXPECT_EQ(Content(Secret1(), "user"), "admin");
  EXPECT_EQ(FileIn(Secret1(), "password").type, FileType::kMissing);
}

TEST_F(PayloadVolumeTest, ARefreshWithoutAChangeWritesNothing) {
  const MounterArgs args = WithGroup(2000);
  ASSERT_TRUE(SetUp1(Secret1(), args).ok());
  const std::string before = kernel_.DumpTree("/r");
  ASSERT_TRUE(Refresh(Secret1(), args).ok());
  EXPECT_EQ(kernel_.DumpTree("/r"), before);
}

TEST_F(PayloadVolumeTest, AChangeOfModesAloneIsApplied) {
  SecretVolumeSource source = Secret1();
  ASSERT_TRUE(SetUp1(source).ok());
  source.default_mode = 0400;
  ASSERT_TRUE(Refresh(source).ok());
  EXPECT_EQ(FileIn(source, "user").mode, 0400u);
}

TEST_F(PayloadVolumeTest, AFailedRefreshKeepsTheOldContent) {
  ASSERT_TRUE(SetUp1(Secret1()).ok());
  const std::string before = kernel_.DumpTree("/r");
  world_.objects.RemoveAll();
  EXPECT_FALSE(Refresh(Secret1()).ok());
  EXPECT_EQ(kernel_.DumpTree("/r"), before);

  world_.objects.PutSecret("db", {{"user", "admin"}});
  kernel_.FailNext("WriteAtomicPayload", Error::NotApplied(Code::kResourceExhausted, "disk full"));
  EXPECT_FALSE(Refresh(Secret1()).ok());
  EXPECT_EQ(kernel_.DumpTree("/r"), before);
}

TEST_F(PayloadVolumeTest, ARepeatedSetUpThatFailsKeepsTheOldContentToo) {
  ASSERT_TRUE(SetUp1(ConfigMap1()).ok());
  world_.objects.PutConfigMap("conf", {{"a", "new"}});
  kernel_.FailNext("WriteAtomicPayload", Error::NotApplied(Code::kResourceExhausted, "disk full"));
  EXPECT_FALSE(SetUp1(ConfigMap1()).ok());
  EXPECT_EQ(Content(ConfigMap1(), "a"), "1");
}

TEST_F(PayloadVolumeTest, AFirstSetUpThatFailsLeavesNothing) {
  kernel_.FailNext("WriteAtomicPayload", Error::NotApplied(Code::kResourceExhausted, "disk full"));
  const Status status = SetUp1(Secret1());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "disk full");
  EXPECT_FALSE(status.error().maybe_applied());
  EXPECT_FALSE(kernel_.Exists("/r/pods/u1/volumes/kubernetes.io~secret/v"));
  EXPECT_FALSE(kernel_.Exists("/r/pods/u1/plugins/kubernetes.io~empty-dir/wrapped_v"));
  EXPECT_EQ(kernel_.DumpMounts(), "");
}

TEST_F(PayloadVolumeTest, AWriteThatMayHaveHappenedIsNotWorkedAgainst) {
  kernel_.FailNext("WriteAtomicPayload", Error::MaybeApplied(Code::kDeadlineExceeded, "killed"), 1,
                   true);
  const Status status = SetUp1(Secret1());
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(status.error().maybe_applied());
  EXPECT_EQ(Content(Secret1(), "user"), "root");
}

TEST_F(PayloadVolumeTest, AStaleTemporaryLinkHeals) {
  ASSERT_TRUE(SetUp1(ConfigMap1()).ok());
  kernel_.AddSymlink(PathOf(ConfigMap1()) + "/..data_tmp", "..nowhere");
  world_.objects.PutConfigMap("conf", {{"a", "new"}});
  ASSERT_TRUE(Refresh(ConfigMap1()).ok());
  EXPECT_EQ(Content(ConfigMap1(), "a"), "new");
}

TEST_F(PayloadVolumeTest, TheGroupReadsFilesAndTheDirectory) {
  SecretVolumeSource source = Secret1();
  source.default_mode = 0400;
  ASSERT_TRUE(SetUp1(source, WithGroup(2000)).ok());
  EXPECT_EQ(FileIn(source, "user").gid, 2000u);
  EXPECT_EQ(FileIn(source, "user").mode, 0440u);
  EXPECT_EQ(kernel_.Find(PathOf(source)).gid, 2000u);
  EXPECT_NE(kernel_.Find(PathOf(source)).mode & 02000u, 0u);
}

TEST_F(PayloadVolumeTest, MountPointsForNestedVolumesAreThere) {
  MounterArgs args;
  args.fs_group = 2000;
  args.nested_mount_points = {"sub", "deep/er"};
  ASSERT_TRUE(SetUp1(ConfigMap1(), args).ok());
  EXPECT_EQ(kernel_.Find(PathOf(ConfigMap1()) + "/sub").type, FileType::kDirectory);
  EXPECT_EQ(kernel_.Find(PathOf(ConfigMap1()) + "/deep/er").gid, 2000u);
  EXPECT_TRUE(Refresh(ConfigMap1(), args).ok());
}

TEST_F(PayloadVolumeTest, TearDownLeavesNothing) {
  for (const VolumeSource& source :
       {VolumeSource(Secret1()), VolumeSource(ConfigMap1()), VolumeSource(TokenAt("t")),
        VolumeSource(DownwardApiVolumeSource())}) {
    const std::string path = PathOf(source);
    ASSERT_TRUE(SetUp1(source).ok());
    const Status status = TearDown1(source);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    EXPECT_FALSE(kernel_.Exists(path));
    EXPECT_FALSE(kernel_.Exists("/r/pods/u1/plugins/kubernetes.io~empty-dir/wrapped_v"));
    EXPECT_EQ(kernel_.DumpMounts(), "");
    EXPECT_TRUE(TearDown1(source).ok());
  }
}

TEST_F(PayloadVolumeTest, TearDownNeverEntersAnotherFilesystem) {
  ASSERT_TRUE(SetUp1(ConfigMap1()).ok());
  const std::string mount = PathOf(ConfigMap1()) + "/nested";
  kernel_.AddMount("ext4", "/dev/sdz", mount);
  kernel_.AddFile(mount + "/precious", "data");
  EXPECT_FALSE(TearDown1(ConfigMap1()).ok());
  EXPECT_EQ(kernel_.Find(mount + "/precious").content, "data");
}

TEST_F(PayloadVolumeTest, DownwardApiShowsFieldsAndResources) {
  DownwardApiVolumeSource source;
  source.items.push_back({.path = "name",
                          .field_ref = ObjectFieldSelector{"v1", "metadata.name"},
                          .resource_field_ref = {},
                          .mode = 0400});
  source.items.push_back({.path = "memory",
                          .field_ref = {},
                          .resource_field_ref = ResourceFieldSelector{"c", "limits.memory", {}},
                          .mode = {}});
  Container container;
  container.name = "c";
  pod_.spec.containers.push_back(container);
  ASSERT_TRUE(SetUp1(source).ok());
  EXPECT_EQ(Content(source, "name"), "web-1");
  EXPECT_EQ(FileIn(source, "name").mode, 0400u);
  EXPECT_EQ(Content(source, "memory"), std::to_string(64 << 20));  // the node's, without a limit
}

TEST_F(PayloadVolumeTest, DownwardApiReportsEveryBadItem) {
  DownwardApiVolumeSource source;
  source.items.push_back({.path = "a",
                          .field_ref = ObjectFieldSelector{"v1", "spec.nope"},
                          .resource_field_ref = {},
                          .mode = {}});
  source.items.push_back({.path = "b", .field_ref = {}, .resource_field_ref = {}, .mode = {}});
  const std::string message = ErrorOf(source);
  EXPECT_NE(message.find("spec.nope"), std::string::npos) << message;
  EXPECT_NE(message.find("b: neither fieldRef nor resourceFieldRef is set"), std::string::npos);
  EXPECT_EQ(kernel_.call_count(), 0u);
}

TEST_F(PayloadVolumeTest, ProjectedJoinsItsSourcesAndTheLaterOneWins) {
  ProjectedVolumeSource source;
  source.sources.push_back(SecretProjection{"db", {Item("user", "who")}, false});
  source.sources.push_back(ConfigMapProjection{"conf", {Item("a", "who"), Item("b", "b")}, false});
  ASSERT_TRUE(SetUp1(source).ok());
  EXPECT_EQ(Content(source, "who"), "1");
  EXPECT_EQ(Content(source, "b"), "2");
}

TEST_F(PayloadVolumeTest, ProjectedReportsEveryFailedSource) {
  ProjectedVolumeSource source;
  source.sources.push_back(SecretProjection{"nope", {}, false});
  source.sources.push_back(ConfigMapProjection{"neither", {}, false});
  EXPECT_EQ(ErrorOf(source), "[secret \"nope\" not found, configmap \"neither\" not found]");
}

TEST_F(PayloadVolumeTest, AnErrorIsAboutEveryObjectThatIsMissing) {
  SecretVolumeSource no_secret = Secret1();
  no_secret.secret_name = "nope";
  EXPECT_EQ(AboutsOf(no_secret), std::vector<std::string>{"Secret default/nope"});
  ConfigMapVolumeSource no_map = ConfigMap1();
  no_map.name = "nope";
  EXPECT_EQ(AboutsOf(no_map), std::vector<std::string>{"ConfigMap default/nope"});
  ProjectedVolumeSource both;
  both.sources.push_back(SecretProjection{"nope", {}, false});
  both.sources.push_back(ConfigMapProjection{"neither", {}, false});
  EXPECT_EQ(AboutsOf(both),
            (std::vector<std::string>{"Secret default/nope", "ConfigMap default/neither"}));
}

// The pod asks for a key that its object does not have: its owner may be the one who is wrong.
TEST_F(PayloadVolumeTest, AnErrorIsNotAboutAnObjectThatLacksAKey) {
  SecretVolumeSource no_key = Secret1();
  no_key.items = {Item("x", "x")};
  EXPECT_EQ(AboutsOf(no_key), std::vector<std::string>());
}

TEST_F(PayloadVolumeTest, ProjectionsThatNeedAnApiServerSaySo) {
  for (const VolumeProjection& projection : {VolumeProjection(ClusterTrustBundleProjection()),
                                             VolumeProjection(PodCertificateProjection())}) {
    ProjectedVolumeSource source;
    source.sources.push_back(projection);
    const Status status = SetUp1(source);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), Code::kUnimplemented);
    EXPECT_NE(status.error().message().find("need a Kubernetes API server"), std::string::npos);
  }
}

TEST_F(PayloadVolumeTest, ATokenIsAskedForTheWholePod) {
  ASSERT_TRUE(SetUp1(TokenAt("token")).ok());
  EXPECT_EQ(Content(TokenAt("token"), "token"), "token-1");
  ASSERT_EQ(world_.tokens.requests.size(), 1u);
  const TokenRequest& request = world_.tokens.requests[0];
  EXPECT_EQ(request.ns, "default");
  EXPECT_EQ(request.service_account, "robot");
  EXPECT_EQ(request.audience, "vault");
  EXPECT_EQ(request.expiration_seconds, 3600);
  EXPECT_EQ(request.pod_name, "web-1");
  EXPECT_EQ(request.pod_uid, PodUid("u1"));
}

TEST_F(PayloadVolumeTest, ATokenBelongsToThePodsUser) {
  ASSERT_TRUE(SetUp1(TokenAt("token"), WithUser(1000)).ok());
  EXPECT_EQ(FileIn(TokenAt("token"), "token").mode, 0600u);
  EXPECT_EQ(FileIn(TokenAt("token"), "token").uid, 1000u);
}

TEST_F(PayloadVolumeTest, AGroupReadsTheTokenAndOthersDoNot) {
  ASSERT_TRUE(SetUp1(TokenAt("token"), WithGroup(2000)).ok());
  EXPECT_EQ(FileIn(TokenAt("token"), "token").mode, 0640u);
  EXPECT_EQ(FileIn(TokenAt("token"), "token").gid, 2000u);
  EXPECT_EQ(FileIn(TokenAt("token"), "token").uid, 0u);
}

TEST_F(PayloadVolumeTest, WithoutUserAndGroupATokenHasTheDefaultMode) {
  ASSERT_TRUE(SetUp1(TokenAt("token")).ok());
  EXPECT_EQ(FileIn(TokenAt("token"), "token").mode, 0644u);
}

TEST_F(PayloadVolumeTest, TheEarliestTokenTellsWhenToRefresh) {
  ProjectedVolumeSource source = TokenAt("one");
  source.sources.push_back(TokenAt("two").sources[0]);
  world_.tokens.refresh_unix_ms = 5000;
  const auto mounter = NewMounter(source);
  EXPECT_EQ(mounter->freshness(), std::nullopt);
  ASSERT_TRUE(mounter->SetUp({}).ok());
  EXPECT_EQ(mounter->freshness(), (Freshness{400, 5000}));
  const auto plain = NewMounter(Secret1());
  ASSERT_TRUE(plain->SetUp({}).ok());
  EXPECT_EQ(plain->freshness(), std::nullopt);
}

TEST_F(PayloadVolumeTest, ANewTokenReplacesTheOldOne) {
  ASSERT_TRUE(SetUp1(TokenAt("token")).ok());
  world_.tokens.issued = 2;
  ASSERT_TRUE(Refresh(TokenAt("token")).ok());
  EXPECT_EQ(Content(TokenAt("token"), "token"), "token-2");
}

TEST_F(PayloadVolumeTest, OnlyTearingDownAProjectedVolumeForgetsTokens) {
  ASSERT_TRUE(TearDown1(Secret1()).ok());
  EXPECT_TRUE(world_.tokens.deleted.empty());
  ASSERT_TRUE(TearDown1(TokenAt("t")).ok());
  EXPECT_EQ(world_.tokens.deleted.count(PodUid("u1")), 1u);
}

TEST_F(PayloadVolumeTest, UsersAndGroupsThatChownCannotTakeAreRefused) {
  EXPECT_FALSE(SetUp1(TokenAt("t"), WithUser(int64_t{1} << 40)).ok());
  EXPECT_FALSE(SetUp1(Secret1(), WithGroup(-5)).ok());
}

TEST_F(PayloadVolumeTest, NamesAndAdoptedVolumes) {
  struct Case {
    VolumeSource source;
    std::string plugin;
    std::string volume_name;
  };
  for (const Case& c : {Case{Secret1(), "kubernetes.io/secret", "db"},
                        Case{ConfigMap1(), "kubernetes.io/configmap", "v/conf"},
                        Case{DownwardApiVolumeSource(), "kubernetes.io/downward-api", "v"},
                        Case{ProjectedVolumeSource(), "kubernetes.io/projected", "v"}}) {
    VolumePlugin& plugin = PluginFor(c.source);
    EXPECT_EQ(plugin.GetPluginName(), c.plugin);
    const VolumeSpec spec = VolumeSpec::FromVolume(PodVolume{"v", c.source});
    EXPECT_EQ(plugin.GetVolumeName(spec).value(), c.volume_name);
    EXPECT_TRUE(plugin.RequiresRemount(spec));
    EXPECT_EQ(plugin.FaultDomain(spec), "");
    const auto adopted = plugin.ConstructVolumeSpec(SpecName("v"), {"/r", "x"}, {});
    ASSERT_TRUE(adopted.ok());
    EXPECT_TRUE(plugin.CanSupport(adopted->spec));
    const Attributes attributes = NewMounter(c.source)->GetAttributes();
    EXPECT_TRUE(attributes.read_only && attributes.managed && attributes.selinux_relabel);
  }
}

TEST_F(PayloadVolumeTest, UsageIsMeasuredOncePerSetUp) {
  ASSERT_TRUE(SetUp1(ConfigMap1()).ok());
  const auto mounter = NewMounter(ConfigMap1());
  const auto first = mounter->GetMetrics({});
  ASSERT_TRUE(first.ok());
  EXPECT_GT(*first->used_bytes, 0);
  kernel_.AddFile(PathOf(ConfigMap1()) + "/big", std::string(1 << 16, 'x'));
  EXPECT_EQ(mounter->GetMetrics({})->used_bytes, first->used_bytes);
  EXPECT_EQ(CollectionCount(world_.families), "1");
}

TEST_F(PayloadVolumeTest, ATargetWithoutAPodIsRefusedInWords) {
  for (const VolumeSource& source : std::vector<VolumeSource>{Secret1(), ConfigMap1()}) {
    const auto mounter = PluginFor(source).NewMounter(SpecOf(source), TargetWithoutPod());
    ASSERT_FALSE(mounter.ok());
    EXPECT_EQ(mounter.error().code(), Code::kInvalidArgument);
    EXPECT_NE(mounter.error().message().find("is made from a pod, and /other/vol"),
              std::string::npos)
        << mounter.error().message();
  }
}

}  // namespace
}  // namespace volumed
