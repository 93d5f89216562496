// flexVolume on the real daemon: drivers that come, change and go while it runs, the example's loop
// devices, a driver that hangs, one that must not be run, and one that tells a secret.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"
#include "places.h"

namespace volumed::flex_volume_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kLoop = "volumed.io~loop";
constexpr int64_t kMi = int64_t{1} << 20;

class FlexVolumeTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    settings["volume-plugin-dir"] = drivers();
  }
  void TearDown() override {
    AgentTest::TearDown();  // the mounts are gone
    for (const char* image : {"one", "two"}) {
      const std::string device = DeviceOf(image);
      if (!device.empty()) RunCommand({"losetup", "--detach", device});
    }
  }

  std::string drivers() const { return scratch() + "/exec"; }
  std::string ImageOf(const std::string& volume) const { return scratch() + "/" + volume + ".img"; }
  std::string PathOf(const std::string& driver) const {
    return drivers() + "/" + driver + "/" + driver.substr(driver.find('~') + 1);
  }
  // Beside its place, then by rename, as installers do.
  void Install(const std::string& driver, const std::string& script) {
    fs::create_directories(drivers() + "/" + driver);
    const std::string fresh = drivers() + "/" + driver + "/.new";
    WriteText(fresh, script);
    ASSERT_EQ(::chmod(fresh.c_str(), 0755), 0);
    ASSERT_EQ(::rename(fresh.c_str(), PathOf(driver).c_str()), 0);
  }
  void InstallLoop() {
    fs::create_directories(drivers() + "/" + kLoop);
    WriteText(drivers() + "/" + kLoop + "/loop.conf", "state=" + scratch() + "/state\n");
    Install(kLoop, ReadText(SourcePath("examples/flexvolume/") + kLoop + "/loop"));
  }
  std::string Source(const std::string& volume) const {
    return "{driver: volumed.io/loop, options: {image: " + ImageOf(volume) + ", size: \"" +
           std::to_string(32 * kMi) + "\"}}";
  }
  static std::string PodWith(const std::string& name, const std::string& volume_source,
                             const std::string& volume = "data") {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n  securityContext: {fsGroup: 3000}\n"
           "  containers:\n  - {name: c, image: x, volumeMounts: [{name: " +
           volume + ", mountPath: /d}]}\n  volumes:\n  - {name: " + volume + ", " + volume_source +
           "}\n";
  }
  std::string Inline(const std::string& pod, const std::string& image) const {
    return PodWith(pod, "flexVolume: " + Source(image));
  }
  std::string Storage(const std::string& volume, int64_t size) const {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + volume +
           "}\nspec:\n  capacity: {storage: " + std::to_string(size) +
           "}\n  accessModes: [ReadWriteOnce]\n  persistentVolumeReclaimPolicy: Retain\n"
           "  flexVolume: " +
           Source(volume) +
           "\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + volume +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: " + volume +
           "\n  resources: {requests: {storage: 1Mi}}\n";
  }
  static std::string OnClaim(const std::string& pod, const std::string& claim) {
    return PodWith(pod, "persistentVolumeClaim: {claimName: " + claim + "}");
  }
  std::string PlaceOf(const std::string& pod, const std::string& spec = "data") const {
    return root() + "/pods/uid-" + pod + "/volumes/" + kLoop + "/" + spec;
  }
  std::string DevicePlaces() const {
    return root() + "/plugins/kubernetes.io/flexvolume/volumed.io/loop/mounts";
  }
  // "" while it is not attached.
  std::string DeviceOf(const std::string& volume) const {
    if (scratch().empty() || !Exists(ImageOf(volume))) return "";
    std::string name =
        RunCommand({"losetup", "--noheadings", "--output", "NAME", "--associated", ImageOf(volume)})
            .output;
    while (!name.empty() && name.back() <= ' ') name.pop_back();
    return name;
  }
  std::string Explain(const std::string& pod) { return Ctl({"explain", pod}).output; }
  bool WaitSays(const std::string& pod, const std::string& text) {
    return Eventually(kPatience, [&] { return Explain(pod).find(text) != std::string::npos; });
  }
  void DeletePodAndWait(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Explain(pod);
  }
  bool WaitDetached(const std::string& volume) {
    return Eventually(kPatience, [&] { return DeviceOf(volume).empty(); });
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(LeftOvers(), "");
    EXPECT_TRUE(Eventually(kPatience, [&] {
      return !Exists(DevicePlaces()) || fs::is_empty(DevicePlaces());
    })) << "a directory for a device";
    EXPECT_TRUE(MountsBelow(root() + "/plugins").empty());
  }
};

TEST_F(FlexVolumeTest, ADriverThatAppearsServesThePodsThatWaitForIt) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Inline("a", "one")));
  ASSERT_TRUE(WaitSays("a", "there is no executable " + PathOf(kLoop))) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(InstallLoop());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(MountsBelow(PlaceOf("a")).size(), 1u);
  struct stat info {};
  ASSERT_EQ(::stat(PlaceOf("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 3000u);
  WriteText(PlaceOf("a") + "/kept.txt", "kept");
  // Another pod's volume of the same name is another volume.
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Inline("b", "two")));
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  EXPECT_FALSE(Exists(PlaceOf("b") + "/kept.txt"));
  EXPECT_NE(DeviceOf("one"), DeviceOf("two"));

  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(WaitDetached("one"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  EXPECT_TRUE(WaitDetached("two"));
  ExpectNothingLeft();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Inline("c", "one")));
  ASSERT_TRUE(WaitPhase("c", "Ready")) << Explain("c");
  EXPECT_EQ(ReadText(PlaceOf("c") + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("c"));
  EXPECT_TRUE(WaitDetached("one"));
}

TEST_F(FlexVolumeTest, APersistentVolumeOutlivesKillsAndGrows) {
  ASSERT_NO_FATAL_FAILURE(InstallLoop());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("one", 32 * kMi) + OnClaim("a", "one")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  const std::string place = PlaceOf("a", "one");
  const std::string device = DeviceOf("one");
  WriteText(place + "/kept.txt", "kept");

  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(DeviceOf("one"), device) << "it was attached, and is still";
  EXPECT_EQ(MountsBelow(place).size(), 1u);

  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("one", 64 * kMi)));
  const auto size = [&] {
    struct statfs info {};
    return ::statfs(place.c_str(), &info) == 0
               ? static_cast<int64_t>(info.f_blocks) * static_cast<int64_t>(info.f_bsize)
               : 0;
  };
  ASSERT_TRUE(Eventually(kPatience,
                         [&] {
                           return size() > 40 * kMi ||
                                  Explain("a").find("CAP_SYS_RESOURCE") != std::string::npos;
                         }))
      << size() << Explain("a");
  if (size() <= 40 * kMi) {  // in use it takes a capability; before the next mount it does not
    ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
    ASSERT_TRUE(WaitDetached("one"));
    ASSERT_NO_FATAL_FAILURE(ApplyOk(OnClaim("a", "one")));
    ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  }
  EXPECT_GT(size(), 40 * kMi) << Explain("a");
  EXPECT_EQ(static_cast<int64_t>(fs::file_size(ImageOf("one"))), 64 * kMi);
  EXPECT_EQ(ReadText(place + "/kept.txt"), "kept");

  ASSERT_TRUE(Delete("Pod", "a").ok());
  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitGone("a")) << Explain("a");
  EXPECT_TRUE(WaitDetached("one"));
  ExpectNothingLeft();
}

TEST_F(FlexVolumeTest, APodKeepsItsVolumeWhileItsDriverChangesAndGoes) {
  ASSERT_NO_FATAL_FAILURE(InstallLoop());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("one", 32 * kMi) + OnClaim("a", "one")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  const std::string place = PlaceOf("a", "one");
  WriteText(place + "/kept.txt", "kept");

  ASSERT_NO_FATAL_FAILURE(InstallLoop());  // an update
  fs::remove(PathOf(kLoop));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Inline("late", "two")));
  ASSERT_TRUE(WaitSays("late", "there is no executable")) << Explain("late");
  EXPECT_EQ(ReadText(place + "/kept.txt"), "kept");
  // A change of its claim's volume has the pod looked at anew: it was Pending from then on.
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Storage("one", 33 * kMi)));
  EXPECT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(Explain("a").find("not installed"), std::string::npos) << Explain("a");

  // What it has mounted goes without it; only it can detach.
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(MountsBelow(place).empty());
  EXPECT_TRUE(Eventually(kPatience, [&] { return MountsBelow(DevicePlaces()).empty(); }));
  EXPECT_NE(DeviceOf("one"), "");
  ASSERT_NO_FATAL_FAILURE(InstallLoop());
  EXPECT_TRUE(WaitDetached("one"));
  ASSERT_TRUE(WaitPhase("late", "Ready")) << Explain("late");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("late"));
  EXPECT_TRUE(WaitDetached("two"));
  ExpectNothingLeft();
}

TEST_F(FlexVolumeTest, TheNodeTakesNoMoreVolumesOfADriverThanItsLimitUntilThatIsRaised) {
  settings["attach-limits"] = "{volumed.io/loop: 1}";
  ASSERT_NO_FATAL_FAILURE(InstallLoop());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Inline("a", "one")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Inline("b", "two")));
  ASSERT_TRUE(WaitSays("b",
                       "the node takes at most 1 volumes of limit "
                       "\"storage-limits-volumed.io-loop\" at once: slot 1 has volume"))
      << Explain("b");
  EXPECT_EQ(DeviceOf("two"), "");
  const std::string file = scratch() + "/config.yaml";
  WriteText(file, Replaced(ReadText(file), "volumed.io/loop: 1", "volumed.io/loop: 2"));
  ASSERT_EQ(::kill(agent_pid(), SIGHUP), 0);
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Explain("b");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  EXPECT_TRUE(WaitDetached("one"));
  EXPECT_TRUE(WaitDetached("two"));
  ExpectNothingLeft();
}

TEST_F(FlexVolumeTest, ADriverThatHangsStopsNobodyElse) {
  settings["deadline-attach"] = "3s";
  ASSERT_NO_FATAL_FAILURE(InstallLoop());
  ASSERT_NO_FATAL_FAILURE(Install("volumed.io~sleepy",
                                  "#!/bin/sh\n[ \"$1\" = init ] || sleep 1000\n"
                                  "echo '{\"status\": \"Success\"}'\n"));
  ASSERT_NO_FATAL_FAILURE(Install("volumed.io~dead", "#!/bin/sh\nsleep 1000\n"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (int i = 0; i < 6; ++i) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodWith("sleepy-" + std::to_string(i),
                                            "flexVolume: {driver: volumed.io/sleepy, options: {n: "
                                            "\"" +
                                                std::to_string(i) + "\"}}")));
  }
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodWith("of-the-dead", "flexVolume: {driver: volumed.io/dead}")));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Inline("a", "one")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_TRUE(WaitSays("of-the-dead", "volumed.io/dead")) << Explain("of-the-dead");
  EXPECT_TRUE(WaitSays("sleepy-0", "getvolumename failed")) << Explain("sleepy-0");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(WaitDetached("one"));
  // What hung goes as soon as its driver is well.
  ASSERT_NO_FATAL_FAILURE(
      Install("volumed.io~sleepy", "#!/bin/sh\necho '{\"status\": \"Success\"}'\n"));
  for (int i = 0; i < 6; ++i) {
    ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("sleepy-" + std::to_string(i)));
  }
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("of-the-dead"));
  ExpectNothingLeft();
}

TEST_F(FlexVolumeTest, ADriverThatOthersMayWriteIsNotRun) {
  ASSERT_NO_FATAL_FAILURE(
      Install("volumed.io~open", "#!/bin/sh\ntouch " + scratch() +
                                     "/ran\necho '{\"status\": \"Success\", "
                                     "\"capabilities\": {\"attach\": false}}'\n"));
  ASSERT_EQ(::chmod(PathOf("volumed.io~open").c_str(), 0777), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodWith("a", "flexVolume: {driver: volumed.io/open}")));
  ASSERT_TRUE(WaitSays("a", PathOf("volumed.io~open") + " may be written by others than root"))
      << Explain("a");
  EXPECT_FALSE(Exists(scratch() + "/ran"));
  ASSERT_EQ(::chmod(PathOf("volumed.io~open").c_str(), 0755), 0);
  EXPECT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_TRUE(Exists(scratch() + "/ran"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
}

TEST_F(FlexVolumeTest, ADriverThatMountsGetsASecretThatNobodyElseSees) {
  constexpr const char* kCanary = "canary-5d1e77";
  constexpr const char* kCanaryBase64 = "Y2FuYXJ5LTVkMWU3Nw==";
  const std::string script = R"sh(#!/bin/sh
case $1 in
  init) echo '{"status": "Success", "capabilities": {"attach": false}}' ;;
  mount)
    if [ -e "${0%/*}/fails" ]; then
      secret=$(printf '%s' "$3" | sed -n 's/.*"kubernetes.io\/secret\/key":"\([^"]*\)".*/\1/p')
      echo "{\"status\": \"Failure\", \"message\": \"with $secret, $(echo "$secret" | base64 -d)\"}"
      exit 1
    fi
    mount -t tmpfs -o size=1m tmpfs "$2" && echo '{"status": "Success"}' ;;
  unmount) umount "$2" && echo '{"status": "Success"}' ;;
  *) echo '{"status": "Not supported"}' ;;
esac
)sh";
  settings["log-level"] = "debug";
  ASSERT_NO_FATAL_FAILURE(Install("volumed.io~mem", script));
  WriteText(drivers() + "/volumed.io~mem/fails", "");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(
      std::string("---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\n"
                  "type: volumed.io/mem\nstringData: {key: ") +
      kCanary + "}\n" +
      PodWith("a", "flexVolume: {driver: volumed.io/mem, secretRef: {name: s}}")));
  ASSERT_TRUE(WaitSays("a", "reason: with [redacted], [redacted]")) << Explain("a");
  const std::string seen = Explain("a") + Ctl({"describe", "pod", "a"}).output +
                           Ctl({"get", "pods", "-o", "yaml"}).output + ReadText(log_path());
  EXPECT_THAT(seen, Not(HasSubstr(kCanary)));
  EXPECT_THAT(seen, Not(HasSubstr(kCanaryBase64)));
  for (const auto& file : fs::recursive_directory_iterator(root() + "/volumed/records")) {
    const std::string content = ReadText(file.path());
    EXPECT_EQ(content.find(kCanary), std::string::npos) << file.path();
    EXPECT_EQ(content.find(kCanaryBase64), std::string::npos) << file.path();
  }
  fs::remove(drivers() + "/volumed.io~mem/fails");
  ASSERT_TRUE(Ctl({"retry", "a"}).exit_status == 0);
  EXPECT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(MountsBelow(root() + "/pods/uid-a/volumes/volumed.io~mem/data").size(), 1u);
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace volumed::flex_volume_test
