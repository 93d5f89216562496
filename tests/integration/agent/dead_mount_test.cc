// Hundreds of hostPaths on one dead filesystem: it has its few workers, what else wants it waits
// without a thread, says for what, and goes on when the filesystem heals; nobody else is slower.
// Dozens of other dead filesystems take no more than the places that there are.
//
// All of them are mounted in the mount namespace that AgentTest has made before, where nothing
// leaks from: a test beside this one that makes a namespace of its own copies none of them.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <set>
#include <thread>

#include "integration/agent/example_pod.h"
#include "integration/hangfs/hangfs_mount.h"
#include "places.h"

namespace volumed::dead_mount_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSickPods = 300;
constexpr int kSickClaims = 100;
constexpr int kHealthyPods = 9;
constexpr size_t kWorkersPerDomain = 4;
// The fast lane's, four that are kept warm, and one or two that the healthy pods have.
constexpr size_t kOtherWorkers = 8;
// Each pod's record is written by a thread, which ends when it was idle for ten seconds. Whoever
// waits for the filesystem has none.
constexpr size_t kMoreThreads = 12;
constexpr size_t kMoreThreadsAtFirst = 64;
constexpr seconds kUntilIdleThreadsEnd(15);
constexpr int kOtherMounts = 64;
constexpr size_t kMaxWorkers = 64;  // the agent's default
// Of these, a quarter is kept from filesystems that do not answer, but for half of it, which those
// get that were not tried yet.
constexpr size_t kPlacesOfTheDead = kMaxWorkers - kMaxWorkers / 8;
constexpr size_t kNotTriedBefore = kOtherMounts - (kPlacesOfTheDead - kWorkersPerDomain);
constexpr size_t kBaseThreads = 32;

class DeadMountTest : public ExamplePodTest {
 protected:
  void SetUp() override {
    ExamplePodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(fs::create_directory(source()));
    hangfs_ = std::make_unique<HangfsMount>(HangfsPath(), source(), scratch() + "/control");
    if (!hangfs_->mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
    settings["node-name"] = "n1";
    settings["deadline-mount"] = "2s";
    settings["deadline-unmount"] = "2s";
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello")));
  }
  void TearDown() override {
    others_.clear();
    hangfs_.reset();
    for (const std::string& bind : binds_) ::umount2(bind.c_str(), MNT_DETACH);
    ExamplePodTest::TearDown();
  }

  std::string source() const { return scratch() + "/hangfs"; }
  // The same filesystem by its mount, by a bind mount of it, or by a link that leads to it.
  std::string PathOf(int pod) {
    const std::string path = scratch() + "/path-" + std::to_string(pod);
    if (pod % 3 == 0) return source();
    if (pod % 3 == 1) {
      fs::create_symlink(source(), path);
      return path;
    }
    fs::create_directory(path);
    EXPECT_EQ(::mount(source().c_str(), path.c_str(), nullptr, MS_BIND, nullptr), 0);
    binds_.push_back(path);
    return path;
  }
  static std::string PodOn(const std::string& path, const std::string& name) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-" + name +
           "}\nspec:\n  containers: [{name: main, image: i, volumeMounts: [{name: remote, "
           "mountPath: /r}]}]\n  volumes: [{name: remote, "
           "hostPath: {path: " +
           path + ", type: Directory}}]\n";
  }
  std::string SickPods() const {
    std::string manifest;
    for (int pod = 0; pod < kSickPods; ++pod) {
      manifest += PodOn(paths_[static_cast<size_t>(pod)], "sick-" + std::to_string(pod));
    }
    return manifest;
  }
  void ApplySickPods() { ASSERT_NO_FATAL_FAILURE(ApplyOk(SickPods())); }
  // One pod on each of the other filesystems.
  std::string OtherPods() const {
    std::string manifest;
    for (int other = 0; other < kOtherMounts; ++other) {
      manifest += PodOn(OtherMount(other), "other-" + std::to_string(other));
    }
    return manifest;
  }
  std::string OtherMount(int other) const { return scratch() + "/other-" + std::to_string(other); }
  // They have one control file: they die and heal together.
  void MountOthers() {
    for (int other = 0; other < kOtherMounts; ++other) {
      ASSERT_TRUE(fs::create_directory(OtherMount(other)));
      others_.push_back(std::make_unique<HangfsMount>(HangfsPath(), OtherMount(other),
                                                      scratch() + "/control-of-others"));
      ASSERT_TRUE(others_.back()->mounted()) << OtherMount(other);
    }
  }
  // Pods with a local volume each, on directories of the filesystem.
  void ApplySickClaims() {
    std::string manifest;
    for (int pod = 0; pod < kSickClaims; ++pod) {
      const std::string name = "claim-" + std::to_string(pod);
      manifest +=
          "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
          "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  local: {path: " +
          source() + "/" + name +
          "}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
          "operator: In, values: [n1]}]}]}}\n"
          "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " +
          name +
          ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeName: " + name +
          "\n  resources: {requests: {storage: 1Gi}}\n"
          "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " +
          name + ", namespace: default, uid: uid-" + name +
          "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers: [{name: main, image: i, "
          "volumeMounts: [{name: data, mountPath: /d}]}]\n  volumes:\n  - name: data\n    "
          "persistentVolumeClaim: {claimName: " +
          name + "}\n";
    }
    ASSERT_NO_FATAL_FAILURE(ApplyOk(manifest));
  }
  size_t Threads() const {
    const fs::directory_iterator tasks("/proc/" + std::to_string(agent_pid()) + "/task");
    return static_cast<size_t>(std::distance(fs::begin(tasks), fs::end(tasks)));
  }
  // The most threads in a time that begins once the idle ones have ended.
  size_t ThreadsOfThoseWhoWait(size_t bound) {
    EXPECT_TRUE(Eventually(kUntilIdleThreadsEnd, [&] { return Threads() <= bound; }))
        << Threads() << " threads";
    size_t most = 0;
    for (int i = 0; i < 50; ++i) {
      most = std::max(most, Threads());
      std::this_thread::sleep_for(milliseconds(100));
    }
    return most;
  }
  // How many of the pods NAME-0, NAME-1 ... wait for a worker.
  int Waiting(const std::string& name, int pods) {
    int waiting = 0;
    for (int pod = 0; pod < pods; ++pod) {
      const std::optional<v1::Pod> found = FindPod(name + "-" + std::to_string(pod));
      if (found && found->phase() == "Pending" &&
          found->volumes(0).problem().step() == "WaitForWorker") {
        ++waiting;
      }
    }
    return waiting;
  }
  // The median of a healthy pod's whole set-up.
  milliseconds HealthySetUp() {
    std::vector<Milliseconds> up;
    for (int i = 0; i < kHealthyPods; ++i) {
      const auto start = std::chrono::steady_clock::now();
      ApplyOk(ExamplePod(host_path()));
      EXPECT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
      up.push_back(Since(start));
      EXPECT_TRUE(Delete("Pod", "web").ok());
      EXPECT_TRUE(WaitGone("web")) << Ctl({"explain", "web"}).output;
    }
    std::sort(up.begin(), up.end());
    return up[kHealthyPods / 2];
  }

  // Of the pods that have one of these names, how many are in this phase.
  int CountPods(const std::string& prefix, const std::string& phase) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::GetPodsResponse pods;
    if (!NewStub()->GetPods(&context, v1::GetPodsRequest(), &pods).ok()) return -1;
    return static_cast<int>(
        std::count_if(pods.pods().begin(), pods.pods().end(), [&](const v1::Pod& pod) {
          return pod.name().starts_with(prefix) && pod.phase() == phase;
        }));
  }
  // No filesystem has more than one of the workers that are lost, but for the first one's few.
  void ExpectAPlaceEach() {
    std::set<std::string> keys;
    size_t of_first = 0;
    const v1::GetStatusResponse status = AgentStatus();
    for (const v1::StuckOperation& stuck : status.stuck()) {
      EXPECT_TRUE(keys.insert(stuck.key()).second) << stuck.key();
      of_first += stuck.key().starts_with("uid-sick-") ? 1 : 0;
    }
    EXPECT_LE(of_first, kWorkersPerDomain);
  }
  // Until so many workers are lost.
  void ExpectNoMoreThanThereArePlaces(const std::string& when, size_t lost) {
    size_t threads = 0, workers = 0;
    const auto look = [&] {
      threads = std::max(threads, Threads());
      workers = std::max(workers, Workers().size());
      std::this_thread::sleep_for(milliseconds(50));  // a look costs more than what is looked at
    };
    EXPECT_TRUE(Eventually(kPatience,
                           [&] {
                             look();
                             return AgentStatus().stuck_size() >= static_cast<int>(lost);
                           }))
        << AgentStatus().stuck_size() << " workers are lost";
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
    look();
    std::cout << when << ": " << AgentStatus().stuck_size() << " workers lost of " << workers
              << ", " << threads << " threads; the healthy pod took " << Since(start).count()
              << " ms" << std::endl;
    ExpectAPlaceEach();
    EXPECT_LE(workers, kMaxWorkers + kOtherWorkers);
    EXPECT_LE(threads, kBaseThreads + kMoreThreadsAtFirst + kOtherMounts + 1);
  }

  std::unique_ptr<HangfsMount> hangfs_;
  std::vector<std::unique_ptr<HangfsMount>> others_;
  std::vector<std::string> binds_;
  std::vector<std::string> paths_;
};

// The longest time that the control thread did not answer, asked all the time by another one.
class SilenceMeter {
 public:
  explicit SilenceMeter(std::unique_ptr<v1::VolumeAgent::Stub> stub)
      : stub_(std::move(stub)), thread_([this] { Run(); }) {}
  ~SilenceMeter() { Stop(); }
  Milliseconds Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return longest_;
  }

 private:
  void Run() {
    while (!stop_) {
      const auto start = std::chrono::steady_clock::now();
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kPatience);
      v1::GetStatusResponse response;
      (void)stub_->GetStatus(&context, v1::GetStatusRequest(), &response).ok();
      longest_ = std::max(longest_, Since(start));
      std::this_thread::sleep_for(milliseconds(10));
    }
  }
  const std::unique_ptr<v1::VolumeAgent::Stub> stub_;
  std::atomic<bool> stop_{false};
  Milliseconds longest_{0};
  std::thread thread_;
};

// 300 such pods took 1,300 workers, 1,043 threads and 34 s of silence.
TEST_F(DeadMountTest, HundredsOfPathsOnADeadFilesystemHaveItsFewWorkersAndHealWithIt) {
  for (int pod = 0; pod < kSickPods; ++pod) paths_.push_back(PathOf(pod));
  const milliseconds healthy_before = HealthySetUp();
  const size_t threads_before = Threads();
  hangfs_->Die();
  SilenceMeter silence(NewStub());
  ASSERT_NO_FATAL_FAILURE(ApplySickPods());

  size_t workers = 0;
  size_t threads_at_first = 0;
  const auto look = [&] {
    workers = std::max(workers, Workers().size());
    threads_at_first = std::max(threads_at_first, Threads());
  };
  ASSERT_TRUE(Eventually(kPatience, [&] {
    look();
    return AgentStatus().stuck_size() == static_cast<int>(kWorkersPerDomain);
  })) << Ctl({"explain", "sick-1"}).output;
  const milliseconds healthy_now = HealthySetUp();
  look();
  EXPECT_LE(threads_at_first, threads_before + kMoreThreadsAtFirst);
  const size_t threads = ThreadsOfThoseWhoWait(threads_before + kMoreThreads);
  EXPECT_EQ(AgentStatus().stuck_size(), static_cast<int>(kWorkersPerDomain));
  EXPECT_LE(workers, kWorkersPerDomain + kOtherWorkers);
  EXPECT_LE(threads, threads_before + kMoreThreads);
  // Those who wait say for what: the filesystem, whichever path leads to it.
  const int waiting = Waiting("sick", kSickPods);
  EXPECT_GT(waiting, kSickPods / 2);
  const std::string explained = Ctl({"explain", "sick-200"}).output;
  EXPECT_NE(explained.find("WaitForWorker"), std::string::npos) << explained;
  EXPECT_NE(explained.find("4 workers that do not answer since"), std::string::npos) << explained;
  EXPECT_NE(explained.find("(fuse"), std::string::npos) << explained;
  EXPECT_NE(explained.find("an administrator"), std::string::npos) << explained;
  // One that waits can go: nobody has to mend the filesystem for that.
  ASSERT_TRUE(Delete("Pod", "sick-299").ok());
  EXPECT_TRUE(WaitGone("sick-299")) << Ctl({"explain", "sick-299"}).output;

  const milliseconds longest = silence.Stop();
  hangfs_->Heal();
  const auto start = std::chrono::steady_clock::now();
  for (int pod = 0; pod < kSickPods - 1; ++pod) {
    ASSERT_TRUE(WaitPhase("sick-" + std::to_string(pod), "Ready"))
        << Ctl({"explain", "sick-" + std::to_string(pod)}).output;
  }
  std::cout << kSickPods << " hostPaths on a dead filesystem: " << workers << " workers, "
            << threads << " threads (" << threads_before << " before, at first " << threads_at_first
            << "), " << waiting << " wait without a thread; healthy pod p50 "
            << healthy_before.count() << " ms, then " << healthy_now.count()
            << " ms; longest silence " << longest.count() << " ms; all ready "
            << Since(start).count() << " ms after it healed" << std::endl;
  EXPECT_LT(longest, seconds(2));
  EXPECT_LT(healthy_now, std::max(milliseconds(500), 4 * healthy_before));
}

TEST_F(DeadMountTest, SixtyFourOtherDeadFilesystemsTakeAPlaceEachAndHoldNobodyElseUp) {
  for (int pod = 0; pod < kSickPods; ++pod) paths_.push_back(source());
  ASSERT_NO_FATAL_FAILURE(MountOthers());
  hangfs_->Die();
  others_.front()->Die();
  ASSERT_NO_FATAL_FAILURE(ApplySickPods());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(OtherPods()));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ExamplePod(host_path())));
  ASSERT_NO_FATAL_FAILURE(ExpectNoMoreThanThereArePlaces("all dead", kPlacesOfTheDead));

  KillAgent();
  const auto restarted = std::chrono::steady_clock::now();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
  std::cout << "started with all of them dead: healthy pod Ready after " << Since(restarted).count()
            << " ms" << std::endl;
  // The workers of before have the keys of what they hang with: it gets no others.
  ASSERT_NO_FATAL_FAILURE(ExpectNoMoreThanThereArePlaces("after a start", kNotTriedBefore));

  hangfs_->Heal();
  others_.front()->Heal();
  const auto healed = std::chrono::steady_clock::now();
  EXPECT_TRUE(Eventually(kPatience,
                         [&] {
                           return CountPods("sick-", "Ready") == kSickPods &&
                                  CountPods("other-", "Ready") == kOtherMounts;
                         }))
      << CountPods("sick-", "Ready") << " and " << CountPods("other-", "Ready") << " are ready";
  std::cout << "all ready " << Since(healed).count() << " ms after they healed" << std::endl;

  WriteText(scratch() + "/all.yaml", SickPods() + OtherPods() + "---\n" + ExamplePod(host_path()));
  const CommandResult deleted = Ctl({"delete", "-f", scratch() + "/all.yaml"});
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_TRUE(Eventually(kPatience, [&] { return LeftOvers().empty(); })) << LeftOvers();
}

// They are first mounted as devices of the node, which was done by a thread each.
TEST_F(DeadMountTest, LocalVolumesOnADeadFilesystemWaitWithoutAThreadToo) {
  const size_t threads_before = Threads();
  hangfs_->Die();
  ASSERT_NO_FATAL_FAILURE(ApplySickClaims());
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return AgentStatus().stuck_size() == static_cast<int>(kWorkersPerDomain);
  })) << Ctl({"explain", "claim-1"}).output;
  const size_t threads = ThreadsOfThoseWhoWait(threads_before + kMoreThreads);
  EXPECT_LE(threads, threads_before + kMoreThreads);
  const int waiting = Waiting("claim", kSickClaims);
  EXPECT_GT(waiting, kSickClaims / 2) << Ctl({"explain", "claim-1"}).output;
  const std::string last = "claim-" + std::to_string(kSickClaims - 1);
  ASSERT_TRUE(Delete("Pod", last).ok());
  EXPECT_TRUE(WaitGone(last)) << Ctl({"explain", last}).output;
  std::cout << kSickClaims << " local volumes on a dead filesystem: " << threads << " threads ("
            << threads_before << " before), " << waiting << " wait without a thread" << std::endl;
}

}  // namespace
}  // namespace volumed::dead_mount_test
