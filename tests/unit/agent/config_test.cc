#include "agent/config.h"
#include "places.h"

#include <gtest/gtest.h>

#include <set>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace volumed {
namespace {

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string name = (std::filesystem::temp_directory_path() / "config-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~ConfigTest() override { std::filesystem::remove_all(directory_); }

  Result<Config> LoadText(const std::string& text, const FlagValues& flags = {}) {
    std::ofstream(directory_ / "config.yaml") << text;
    return LoadConfig((directory_ / "config.yaml").string(), true, flags);
  }

  std::filesystem::path directory_;
};

TEST_F(ConfigTest, ADefaultFileThatIsMissingIsNoError) {
  const Result<Config> config = LoadConfig((directory_ / "none.yaml").string(), false, {});
  ASSERT_TRUE(config.ok()) << config.error().ToString();
  EXPECT_EQ(config->root, "/var/lib/volumed");
}

TEST_F(ConfigTest, ANamedFileThatIsMissingIsAnError) {
  const Result<Config> config = LoadConfig((directory_ / "none.yaml").string(), true, {});
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code(), Code::kInvalidArgument);
}

TEST_F(ConfigTest, ReadsEveryKindOfValue) {
  const Result<Config> config = LoadText(
      "root: /srv/volumes\nadopt-root: true\nmanifest-dir: [/a, /b]\nmax-workers: 8\n"
      "deadline-mount: 1m30s\nnode-labels: {zone: a, rack: 7}\nlog-level: debug\n");
  ASSERT_TRUE(config.ok()) << config.error().ToString();
  EXPECT_EQ(config->root, "/srv/volumes");
  EXPECT_TRUE(config->adopt_root);
  EXPECT_EQ(config->manifest_dirs, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(config->max_workers, 8);
  EXPECT_EQ(config->deadline_mount, std::chrono::seconds(90));
  EXPECT_EQ(config->node_labels,
            (std::map<std::string, std::string>{{"rack", "7"}, {"zone", "a"}}));
  EXPECT_EQ(config->log_level, LogLevel::kDebug);
}

TEST_F(ConfigTest, AFlagWinsOverTheFile) {
  const Result<Config> config = LoadText("root: /from/file\n", {{"root", {"/from/flag"}}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->root, "/from/flag");
}

TEST_F(ConfigTest, EveryProblemOfAFileIsInOneMessage) {
  const Result<Config> config =
      LoadText("root: relative\nmax-workers: lots\nno-such-key: 1\ndeadline-mount: soon\n");
  ASSERT_FALSE(config.ok());
  for (const char* part : {"root: must be an absolute path", "max-workers: must be an integer from",
                           "no-such-key: no such setting", "deadline-mount: 'soon'"}) {
    EXPECT_NE(config.error().message().find(part), std::string::npos) << part;
  }
}

// They said what was wrong, and not what is right.
TEST_F(ConfigTest, MistakesOfTheFirstDayWereToldWithoutAHint) {
  const Result<Config> config = LoadText("csi-server: /run/csi.sock\npool: /srv/pool\n");
  ASSERT_FALSE(config.ok());
  for (const char* part : {"csi-server: no such setting; did you mean csi-serve?",
                           "must be name=path, or in a file {name: path}, not '/srv/pool'"}) {
    EXPECT_NE(config.error().message().find(part), std::string::npos) << config.error().ToString();
  }
}

TEST_F(ConfigTest, AttachLimitsAreOfPluginsThatAttach) {
  const auto loaded = LoadText("attach-limits: {kubernetes.io/iscsi: 64, acme/array: 0}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
  EXPECT_EQ(loaded->attach_limits,
            (std::map<std::string, int64_t>{{"acme/array", 0}, {"kubernetes.io/iscsi", 64}}));
  const auto of_nfs = LoadText("attach-limits: {kubernetes.io/nfs: 3}\n");
  ASSERT_FALSE(of_nfs.ok());
  EXPECT_NE(of_nfs.error().message().find("\"kubernetes.io/nfs\" attaches no volumes"),
            std::string::npos);
  const auto of_word = LoadText("attach-limits: {kubernetes.io/fc: many}\n");
  ASSERT_FALSE(of_word.ok());
  EXPECT_NE(of_word.error().message().find("kubernetes.io/fc: must be an integer from 0"),
            std::string::npos);
  EXPECT_FALSE(LoadText("attach-limits: {kubernetes.io/fc: -1}\n").ok());
  EXPECT_FALSE(LoadText("attach-limits: {array: 1}\n").ok());
}

TEST_F(ConfigTest, AFileThatIsNoMapIsRefused) {
  EXPECT_FALSE(LoadText("- a\n- b\n").ok());
  EXPECT_FALSE(LoadText("root: [unclosed\n").ok());
}

TEST_F(ConfigTest, WhatIsPrintedForEachKeyIsReadBackTheSame) {
  Config config;
  config.root = "/r";
  config.deadline_stats = std::chrono::milliseconds(1500);
  std::string text;
  for (const auto& [name, value] : PrintConfig(config)) {
    if (value.empty() || name == "node-labels") continue;
    text += name + ": " + value + "\n";
  }
  const Result<Config> read = LoadText(text);
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(PrintConfig(*read), PrintConfig(config));
}

TEST_F(ConfigTest, AWaitThatDoublesBeginsNoLongerThanItEnds) {
  for (const std::string key : {"back-off", "device-look"}) {
    const auto refused = LoadText(key + "-first: 20s\n" + key + "-longest: 19s\n");
    ASSERT_FALSE(refused.ok()) << key;
    EXPECT_NE(refused.error().message().find(key + "-first: must not be longer than " + key),
              std::string::npos)
        << refused.error().message();
    EXPECT_TRUE(LoadText(key + "-first: 20s\n" + key + "-longest: 20s\n").ok()) << key;
  }
}

TEST_F(ConfigTest, EveryKeyHasHelpAndAUniqueName) {
  std::vector<std::string_view> names;
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_FALSE(key.type.empty()) << key.name;
    names.push_back(key.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

// A row of the table in docs/CONFIGURATION.md: "| `key`* | `default` | what it is for |", with the
// star if the key is reloadable.
struct DocumentedKey {
  std::string value;
  bool reloadable = false;
};

std::map<std::string, DocumentedKey> DocumentedKeys() {
  std::ifstream page(SourcePath("docs/CONFIGURATION.md"));
  std::map<std::string, DocumentedKey> keys;
  bool in_table = false;
  for (std::string line; std::getline(page, line);) {
    in_table = line.starts_with("| key |") || (in_table && line.starts_with("|"));
    if (!in_table || !line.starts_with("| `")) continue;
    const size_t end = line.find('`', 3);
    const size_t bar = line.find('|', end);
    const std::string value = line.substr(bar + 1, line.find('|', bar + 1) - bar - 1);
    const size_t open = value.find('`');
    keys[line.substr(3, end - 3)] = {
        open == std::string::npos ? "" : value.substr(open + 1, value.rfind('`') - open - 1),
        line[end + 1] == '*'};
  }
  return keys;
}

TEST_F(ConfigTest, ItsPageHasEveryKeyWithItsDefaultAndSaysWhetherItReloads) {
  std::map<std::string, DocumentedKey> documented = DocumentedKeys();
  const auto defaults = PrintConfig(Config());
  const std::vector<ConfigKey> keys = ConfigKeys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = documented.find(std::string(keys[i].name));
    ASSERT_NE(found, documented.end()) << keys[i].name << " is not in docs/CONFIGURATION.md";
    EXPECT_EQ(found->second.value, defaults[i].second) << keys[i].name;
    EXPECT_EQ(found->second.reloadable, keys[i].reloadable) << keys[i].name;
    documented.erase(found);
  }
  for (const auto& [key, row] : documented) ADD_FAILURE() << key << " is no key any more";
}

TEST_F(ConfigTest, AReloadTakesReloadableKeysAndNamesTheOthers) {
  Config running;
  Config loaded;
  loaded.root = "/elsewhere";
  loaded.manifest_dirs = {"/a", "/b"};
  loaded.log_level = LogLevel::kError;
  loaded.deadline_mount = std::chrono::seconds(7);
  const ReloadedConfig merged = MergeReloadable(running, loaded);
  EXPECT_EQ(merged.config.root, running.root);
  EXPECT_EQ(merged.config.manifest_dirs, running.manifest_dirs);
  EXPECT_EQ(merged.config.log_level, LogLevel::kError);
  EXPECT_EQ(merged.config.deadline_mount, std::chrono::seconds(7));
  EXPECT_EQ(merged.changes, (std::vector<ChangedKey>{
                                {"root", "/var/lib/volumed", "/elsewhere", false},
                                {"manifest-dir", "/etc/volumed/manifests", "/a,/b", false},
                                {"log-level", "info", "error", true},
                                {"deadline-mount", "30s", "7s", true},
                            }));
}

TEST_F(ConfigTest, WhatIsSaidOfCsiDriversIsChecked) {
  const auto loaded = LoadText(
      "csi-socket-owners: [0, 1000]\n"
      "csi-controller-endpoints: {disk.example.com: /run/disk/controller.sock}\n"
      "csi-max-message: 32Mi\ncsi-level: \"1.13\"\ncsi-plain-directories: [dir.example.com]\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->csi_socket_owners, (SocketOwners{0, 1000}));
  EXPECT_EQ(loaded->csi_controller_endpoints.at("disk.example.com"), "/run/disk/controller.sock");
  EXPECT_EQ(loaded->csi_max_message, int64_t{32} * 1024 * 1024);
  EXPECT_EQ(loaded->csi_level, CsiLevel::k1_13);
  EXPECT_EQ(loaded->csi_plain_directories, std::set<std::string>{"dir.example.com"});
  for (const char* wrong :
       {"csi-socket-owners: []", "csi-socket-owners: [root]", "csi-socket-owners: [-1]",
        "csi-controller-endpoints: {disk: relative}", "csi-controller-endpoints: {-bad-: /s}",
        "csi-max-message: 1Ki", "csi-max-message: 1Ti", "csi-max-message: much",
        "csi-attach: never", "csi-level: 1.11", "csi-plain-directories: [a/b]",
        "csi-calls-per-driver: 0", "csi-calls-per-driver: 257", "plugins-registry: here"}) {
    EXPECT_FALSE(LoadText(std::string(wrong) + "\n").ok()) << wrong;
  }
}

TEST_F(ConfigTest, PoolsKeepTheOrderInWhichTheyAreGiven) {
  const auto loaded = LoadText(
      "pool: {zulu: /srv/z, alpha: /srv/a}\npool-capacity: {alpha: 2Gi}\npool-reserve: 0\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  using Pools = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(loaded->pools, (Pools{{"zulu", "/srv/z"}, {"alpha", "/srv/a"}}));
  EXPECT_EQ(loaded->pool_capacity, (std::map<std::string, int64_t>{{"alpha", int64_t{2} << 30}}));
  EXPECT_EQ(loaded->pool_reserve_percent, 0);
  EXPECT_EQ(LoadText("pool: [one=/srv/z]\n")->pools, (Pools{{"one", "/srv/z"}}));
}

TEST_F(ConfigTest, ANameThatIsNoneWasSaidTwiceInOneLine) {
  const std::string pool = LoadText("pool: {Main: /srv/a}\n").error().message();
  EXPECT_NE(pool.find("pool: \"Main\" is not a DNS-1123 label"), std::string::npos) << pool;
  const std::string node = LoadText("node-name: a_b\n").error().message();
  EXPECT_NE(node.find("node-name: \"a_b\" is not a DNS-1123"), std::string::npos) << node;
}

TEST_F(ConfigTest, APoolMayHaveAThinPool) {
  const auto loaded = LoadText("pool: {fast: /srv/a, big: /srv/b}\npool-lvm: {fast: vg0/thin}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  using ThinPools = std::map<std::string, LvmNames>;
  EXPECT_EQ(loaded->pool_lvm, (ThinPools{{"fast", {"vg0", "thin"}}}));
}

TEST_F(ConfigTest, WhatCannotBeAPoolIsRefused) {
  for (const char* wrong : {"pool: [/srv/a]",
                            "pool: {One: /srv/a}",
                            "pool: {a.b: /srv/a}",
                            "pool: {one: srv}",
                            "pool: {one: /srv/../a}",
                            "pool: {one: ''}",
                            "pool-reserve: 51",
                            "pool-reserve: -1",
                            "pool-capacity: {one: much}",
                            "pool-capacity: {one: 1Ki}",
                            "csi-driver-name: -pool-",
                            "pool-lvm: {one: vg0}",
                            "pool-lvm: {one: vg0/}",
                            "pool-lvm: {one: /thin}",
                            "pool-lvm: {one: vg0/a/b}",
                            "pool-lvm: {one: -vg/thin}",
                            "pool-lvm: {one: 'vg0/a;b'}",
                            "pool-lvm: {one: vg0/thin, two: vg0/thin}",
                            "freeze-limit: 1ms",
                            "freeze-limit: 61s",
                            "copy-bandwidth: -1",
                            "copy-bandwidth: fast",
                            "csi-driver-name: ''"}) {
    EXPECT_FALSE(LoadText(std::string(wrong) + "\n").ok()) << wrong;
  }
}

TEST_F(ConfigTest, WhatIsSaidOfTheOwnCsiDriverIsChecked) {
  const auto loaded = LoadText(
      "csi-serve: /run/volumed/csi.sock\ncsi-driver-name: disk.example.com\n"
      "csi-profile: central\ncsi-serve-level: 1.13\ncsi-serve-message: 64Ki\n"
      "csi-registry: /var/lib/kubelet/plugins_registry\n"
      "csi-max-volumes: 3\ncsi-nodes: [n2, n3.example.com]\n");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->csi_max_volumes, 3);
  EXPECT_EQ(loaded->csi_nodes, (std::set<std::string>{"n2", "n3.example.com"}));
  EXPECT_EQ(loaded->csi_driver_name, "disk.example.com");
  EXPECT_EQ(loaded->csi_profile, CsiProfile::kCentral);
  EXPECT_EQ(loaded->csi_serve_level, CsiServeLevel::k1_13);
  EXPECT_EQ(loaded->csi_serve_message, int64_t{64} * 1024);
  for (const char* wrong :
       {"csi-driver-name: a_b", "csi-driver-name: \"\"", "csi-profile: both",
        "csi-serve-level: 1.11", "csi-serve-calls: 0", "csi-serve-calls: 16385",
        "csi-serve-rate: 0", "csi-serve-message: 63Ki", "csi-serve-message: 65Mi",
        "csi-serve: csi.sock", "csi-registry: here", "csi-only: yes please", "csi-max-volumes: -1",
        "csi-profile: central\ncsi-nodes: [n_2]", "csi-nodes: [n2]"}) {
    EXPECT_FALSE(LoadText(std::string(wrong) + "\n").ok()) << wrong;
  }
}

class CsiEndpointTest : public ConfigTest {
 protected:
  ~CsiEndpointTest() override { ::unsetenv("CSI_ENDPOINT"); }
  static void Export(const char* endpoint) { ::setenv("CSI_ENDPOINT", endpoint, 1); }
};

TEST_F(CsiEndpointTest, AnAgentThatIsADriverAloneNeedsNothingButTheEnvironmentsSocket) {
  for (const char* endpoint :
       {"unix:///csi/csi.sock", "unix:/csi/csi.sock", "unix:////csi/csi.sock", "/csi/csi.sock"}) {
    Export(endpoint);
    const auto loaded = LoadText("csi-only: true\n");
    if (std::string_view(endpoint) == "unix:////csi/csi.sock") {
      EXPECT_FALSE(loaded.ok());
      continue;
    }
    ASSERT_TRUE(loaded.ok()) << endpoint << ": " << loaded.error().message();
    EXPECT_EQ(loaded->csi_serve, "/csi/csi.sock") << endpoint;
  }
  const auto named = LoadText("csi-only: true\ncsi-serve: /other.sock\n");
  ASSERT_TRUE(named.ok()) << named.error().message();
  EXPECT_EQ(named->csi_serve, "/other.sock") << "the configuration wins";
}

TEST_F(CsiEndpointTest, TheEnvironmentMakesNoDriverOfAnAgentThatIsNotToldToBeOne) {
  Export("unix:///csi/csi.sock");
  const auto loaded = LoadText("");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  EXPECT_EQ(loaded->csi_serve, "");
}

TEST_F(CsiEndpointTest, ASocketThatIsNoneOrIsMissingIsSaid) {
  for (const char* endpoint : {"tcp://127.0.0.1:1", "unix://csi.sock", "csi.sock", ""}) {
    Export(endpoint);
    const auto refused = LoadText("csi-only: true\n");
    ASSERT_FALSE(refused.ok()) << endpoint;
    EXPECT_NE(refused.error().message().find("CSI_ENDPOINT: must be"), std::string::npos)
        << refused.error().message();
  }
  ::unsetenv("CSI_ENDPOINT");
  const auto missing = LoadText("csi-only: true\n");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find("csi-only: needs csi-serve, or CSI_ENDPOINT"),
            std::string::npos)
      << missing.error().message();
}

TEST_F(ConfigTest, EveryReloadableKeyIsTakenAndNoOther) {
  // One value per key that is not its default; a new key must be added here.
  const FlagValues other = {{"root", {"/r"}},
                            {"adopt-root", {"true"}},
                            {"pod-logs-dir", {"/logs"}},
                            {"node-name", {"n2"}},
                            {"node-labels", {"a=b"}},
                            {"manifest-dir", {"/m"}},
                            {"socket", {"/s"}},
                            {"socket-group", {"g"}},
                            {"read-group", {"g"}},
                            {"metrics-address", {"127.0.0.1:1"}},
                            {"worker", {"/w"}},
                            {"log-level", {"debug"}},
                            {"mask-kernel-feature", {"statmount"}},
                            {"max-workers", {"7"}},
                            {"max-workers-per-domain", {"7"}},
                            {"deadline-mount", {"7s"}},
                            {"deadline-unmount", {"7s"}},
                            {"deadline-stats", {"7s"}},
                            {"deadline-expand", {"7s"}},
                            {"deadline-verify-attached", {"7s"}},
                            {"deadline-provision", {"7s"}},
                            {"deadline-expand-storage", {"7s"}},
                            {"deadline-reclaim", {"7s"}},
                            {"deadline-pod-directories", {"7s"}},
                            {"deadline-look", {"7s"}},
                            {"deadline-answer", {"7s"}},
                            {"deadline-far-manifest", {"7s"}},
                            {"deadline-find-volumes", {"7s"}},
                            {"deadline-identify-device", {"7s"}},
                            {"deadline-identify-storage", {"7s"}},
                            {"deadline-identify-other-storage", {"7s"}},
                            {"device-look-first", {"7s"}},
                            {"device-look-longest", {"7s"}},
                            {"nfs-force-timeout", {"7s"}},
                            {"nfs-remove-timeout", {"7s"}},
                            {"deadline-iscsiadm", {"7s"}},
                            {"iscsi-device-timeout", {"7s"}},
                            {"iscsi-multipath-timeout", {"7s"}},
                            {"iscsi-more-portals-timeout", {"7s"}},
                            {"deadline-flex-volume-init", {"7s"}},
                            {"flex-volume-first-wait", {"7s"}},
                            {"back-off-first", {"7s"}},
                            {"back-off-longest", {"7s"}},
                            {"server-look-deadline", {"7s"}},
                            {"volume-stats-period", {"7s"}},
                            {"deadline-attach", {"7s"}},
                            {"deadline-wait-for-attach", {"7s"}},
                            {"verify-attached-period", {"7s"}},
                            {"attach-limits", {"kubernetes.io/iscsi=7", "acme/array=0"}},
                            {"empty-dir-limit-action", {"report"}},
                            {"host-path-root", {"/h"}},
                            {"enable-hostpath-provisioner", {"true"}},
                            {"pv-recycler-pod-template-filepath-hostpath", {"/t"}},
                            {"pv-recycler-minimum-timeout-hostpath", {"7"}},
                            {"pv-recycler-timeout-increment-hostpath", {"7"}},
                            {"pv-recycler-pod-template-filepath-nfs", {"/t"}},
                            {"pv-recycler-minimum-timeout-nfs", {"7"}},
                            {"pv-recycler-increment-timeout-nfs", {"7"}},
                            {"nfs-unmount-timeout", {"7s"}},
                            {"removal-settle", {"7s"}},
                            {"removal-deletes-claims", {"/m"}},
                            {"machine-id-file", {"/etc/other-id"}},
                            {"server-look-period", {"7s"}},
                            {"runc", {"/bin/runc"}},
                            {"busybox", {"/bin/bb"}},
                            {"volume-plugin-dir", {"/p"}},
                            {"plugins-registry", {"/q"}},
                            {"csi-socket-owners", {"0", "7"}},
                            {"csi-endpoint-dirs", {"/e"}},
                            {"csi-controller-endpoints", {"a.io=/c.sock", "b.io=/d.sock"}},
                            {"csi-calls-per-driver", {"7"}},
                            {"deadline-csi-call", {"7s"}},
                            {"csi-probe-period", {"7s"}},
                            {"csi-max-message", {"8Mi"}},
                            {"csi-attach", {"objects"}},
                            {"csi-level", {"1.13"}},
                            {"csi-plain-directories", {"a.io", "b.io"}},
                            {"csi-republish-period", {"7s"}},
                            {"pool", {"fast=/srv/fast", "big=/srv/big"}},
                            {"pool-capacity", {"fast=7Gi", "big=1Ti"}},
                            {"pool-lvm", {"big=vg1/t", "fast=vg0/thin"}},
                            {"pool-reserve", {"7"}},
                            {"static-volumes", {"db=/dev/sdb"}},
                            {"static-block-volumes", {"raw=/dev/sdc"}},
                            {"static-exports", {"media=nas-1:/srv/media nfsvers=4.2,ro"}},
                            {"freeze-limit", {"7s"}},
                            {"copy-bandwidth", {"7Mi"}},
                            {"csi-driver-name", {"pool.example.com"}},
                            {"driver-absent-limit", {"7s"}},
                            {"csi-serve", {"/c.sock"}},
                            {"csi-serve-group", {"g"}},
                            {"csi-registry", {"/q"}},
                            {"csi-registered-endpoint", {"/c.sock"}},
                            {"csi-only", {"true"}},
                            {"csi-profile", {"central"}},
                            {"csi-serve-level", {"1.13"}},
                            {"csi-serve-calls", {"7"}},
                            {"csi-serve-rate", {"7"}},
                            {"csi-serve-message", {"8Mi"}},
                            {"csi-target-roots", {"/a", "/b"}},
                            {"csi-max-volumes", {"7"}},
                            {"csi-nodes", {"n7"}},
                            {"token-issuer", {"https://t"}}};
  const Result<Config> loaded = LoadConfig("", false, other);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  const ReloadedConfig merged = MergeReloadable(Config(), *loaded);
  ASSERT_EQ(merged.changes.size(), ConfigKeys().size());
  const auto before = PrintConfig(Config());
  const auto wanted = PrintConfig(*loaded);
  const auto after = PrintConfig(merged.config);
  const std::set<std::string_view> reloads = {"log-level",
                                              "max-workers",
                                              "max-workers-per-domain",
                                              "deadline-mount",
                                              "deadline-unmount",
                                              "deadline-stats",
                                              "deadline-expand",
                                              "deadline-verify-attached",
                                              "deadline-provision",
                                              "deadline-expand-storage",
                                              "deadline-reclaim",
                                              "deadline-pod-directories",
                                              "deadline-look",
                                              "volume-stats-period",
                                              "deadline-attach",
                                              "deadline-wait-for-attach",
                                              "verify-attached-period",
                                              "attach-limits",
                                              "server-look-period",
                                              "removal-settle",
                                              "nfs-unmount-timeout",
                                              "csi-socket-owners",
                                              "csi-calls-per-driver",
                                              "deadline-csi-call",
                                              "csi-probe-period",
                                              "csi-plain-directories",
                                              "csi-republish-period",
                                              "driver-absent-limit",
                                              "freeze-limit",
                                              "copy-bandwidth"};
  for (size_t i = 0; i < after.size(); ++i) {
    const bool reload = reloads.contains(after[i].first);
    EXPECT_EQ(after[i], reload ? wanted[i] : before[i]);
    EXPECT_EQ(merged.changes[i].reloadable, reload) << after[i].first;
    EXPECT_EQ(ReloadWord(ConfigKeys()[i]), reload ? "reloads on SIGHUP" : "needs a restart");
  }
}

// A nanosecond between two looks ran a driver a hundred times in four seconds.
TEST(Config, APeriodThatMayBeNeverHasAShortestOneToo) {
  for (const char* key : {"verify-attached-period", "server-look-period"}) {
    for (const char* period : {"0s", "100ms", "1h"}) {
      EXPECT_TRUE(LoadConfig("", false, {{key, {period}}}).ok()) << key << " " << period;
    }
    for (const char* period : {"1ns", "99ms", "25h"}) {
      const Result<Config> loaded = LoadConfig("", false, {{key, {period}}});
      ASSERT_FALSE(loaded.ok()) << key << " " << period;
      EXPECT_NE(loaded.error().message().find("must lie between 100ms and "), std::string::npos)
          << loaded.error().message();
      EXPECT_NE(loaded.error().message().find(std::string(period) + "; or 0s: never"),
                std::string::npos)
          << loaded.error().message();
    }
  }
}

TEST(DurationTest, ParsesGoDurations) {
  EXPECT_EQ(*ParseDuration("2m3s"), std::chrono::seconds(123));
  EXPECT_EQ(*ParseDuration("500ms"), std::chrono::milliseconds(500));
  EXPECT_EQ(*ParseDuration("1h"), std::chrono::hours(1));
  for (const char* bad : {"", "5", "s", "5x", "-1s", "1s ", "99999999999999h", "1.5s"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

TEST(DurationTest, PrintsWhatItParses) {
  for (const char* text : {"0s", "1ns", "1m30s", "500ms", "1h1m1s"}) {
    EXPECT_EQ(FormatDuration(*ParseDuration(text)), text);
  }
}

TEST(Config, ANodeNameIsWrittenInLowerCaseAndCheckedAsKubernetesDoes) {
  const auto named = [](const std::string& name) {
    return LoadConfig("", false, {{"node-name", {name}}});
  };
  ASSERT_TRUE(named("Node-A.Example").ok());
  EXPECT_EQ(named("Node-A.Example")->node_name, "node-a.example");
  EXPECT_EQ(named("")->node_name, "");
  for (const char* bad : {"my_host", "-n", "a/b", "n 1"}) {
    ASSERT_FALSE(named(bad).ok()) << bad;
    EXPECT_NE(named(bad).error().message().find("node-name: \""), std::string::npos)
        << named(bad).error().message();
  }
}

}  // namespace
}  // namespace volumed
