// The same random sequences of requests to LocalKernel, in a mount namespace of its own, and to
// FakeKernel: every answer, error, outcome, and the tree and mount table left behind are equal.
// VOLUMED_SEED repeats a run; VOLUMED_SEQUENCES sets its length.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/strings.h"
#include "fakes/fake_kernel.h"
#include "integration/differential/request_generator.h"
#include "integration/differential/world_text.h"
#include "integration/mount_namespace_fixture.h"
#include "os/kernel_features.h"
#include "os/local_kernel.h"
#include "places.h"
#include "run_numbers.h"

namespace volumed {
namespace {

// Outside of the requests, the same things are put into both worlds.
class WorldBuilder {
 public:
  virtual ~WorldBuilder() = default;
  virtual void Directory(const std::string& path, uint32_t mode) = 0;
  virtual void File(const std::string& path, const std::string& content) = 0;
  virtual void Link(const std::string& path, const std::string& target) = 0;
  virtual void HardLink(const std::string& path, const std::string& existing) = 0;
  virtual void Special(const std::string& path, FileType type) = 0;
};

class RealBuilder final : public WorldBuilder {
 public:
  void Directory(const std::string& path, uint32_t mode) override {
    Check(::mkdir(path.c_str(), 0755), path);
    Check(::chmod(path.c_str(), mode), path);
  }
  void File(const std::string& path, const std::string& content) override {
    std::ofstream(path, std::ios::binary) << content;
    Check(::chmod(path.c_str(), 0644), path);
  }
  void Link(const std::string& path, const std::string& target) override {
    Check(::symlink(target.c_str(), path.c_str()), path);
  }
  void HardLink(const std::string& path, const std::string& existing) override {
    Check(::link(existing.c_str(), path.c_str()), path);
  }
  void Special(const std::string& path, FileType type) override {
    Check(::mknod(path.c_str(), type == FileType::kFifo ? S_IFIFO : S_IFSOCK, 0), path);
    Check(::chmod(path.c_str(), 0644), path);
  }

 private:
  static void Check(int rc, const std::string& path) { ASSERT_EQ(rc, 0) << path; }
};

class FakeBuilder final : public WorldBuilder {
 public:
  explicit FakeBuilder(FakeKernel& kernel) : kernel_(kernel) {}
  void Directory(const std::string& path, uint32_t mode) override {
    kernel_.AddDirectory(path, mode);
  }
  void File(const std::string& path, const std::string& content) override {
    kernel_.AddFile(path, content);
  }
  void Link(const std::string& path, const std::string& target) override {
    kernel_.AddSymlink(path, target);
  }
  void HardLink(const std::string& path, const std::string& existing) override {
    kernel_.AddHardLink(path, existing);
  }
  void Special(const std::string& path, FileType type) override { kernel_.AddSpecial(path, type); }

 private:
  FakeKernel& kernel_;
};

void BuildWorld(WorldBuilder& builder, const std::string& world) {
  builder.Directory(world + "/a", 0755);
  builder.Directory(world + "/a/b", 02775);
  builder.Directory(world + "/d", 0700);
  builder.Directory(world + "/d/e", 0755);
  builder.Directory(world + "/e", 0755);
  builder.Directory(world + "/p", 0755);
  builder.Directory(world + "/m", 0755);
  builder.File(world + "/f", "top");
  builder.File(world + "/a/f", std::string(5000, 'f'));
  builder.File(world + "/a/b/g", std::string(70000, 'g'));
  builder.HardLink(world + "/hard", world + "/f");
  builder.Special(world + "/fifo", FileType::kFifo);
  builder.Special(world + "/sock", FileType::kSocket);
  builder.Link(world + "/la", "a");
  builder.Link(world + "/lb", "a/../a/b/");
  builder.Link(world + "/a/lb", "b");
  builder.Link(world + "/lf", "a/f");
  // Roots are trusted and may lead anywhere: so no link here leaves the stage.
  builder.Link(world + "/lx", world + "/d");
  builder.Link(world + "/lup", "..");
  builder.Link(world + "/lself", "lself");
}

struct Step {
  AnyRequest request;
  bool cancelled = false;
};

struct Variant {
  const char* name;
  std::vector<std::string> masked;
  bool anchored;
};

const std::vector<Variant>& Variants() {
  static const std::vector<Variant> variants = {
      {"all features", {}, false},
      {"all features, anchored", {}, true},
      {"nothing but the oldest kernel",
       {"open-tree-detached-clone", "mount-setattr", "statmount", "mount-events", "fchmodat2",
        "tmpfs-noswap"},
       true},
      {"Debian 12's features, anchored",
       {"open-tree-detached-clone", "statmount", "mount-events", "fchmodat2", "tmpfs-noswap"},
       true},
  };
  return variants;
}

// One variant, on a thread with a mount namespace of its own: most of the time goes into waiting
// for the kernel to let go of mounts, so several runs side by side cost little more than one.
class DifferentialRun {
 public:
  // Sequence `i` of run `seed` comes from the number seed + i alone.
  DifferentialRun(const Variant& variant, std::string stage, uint64_t seed, int sequences)
      : variant_(variant),
        stage_(std::move(stage)),
        world_(stage_ + "/w"),
        seed_(seed),
        sequences_(sequences) {}

  void operator()();
  // One sequence in the namespace of the caller: what is different, or nothing.
  std::string RunAlone(const std::vector<AnyRequest>& requests);

  const std::map<std::string, int>& calls() const { return calls_; }
  const std::map<std::string, int>& successes() const { return successes_; }

 private:
  // Two mounts, so that the world itself may be unmounted and mounted over.
  void MakeWorld(Kernel& kernel, WorldBuilder& builder);
  std::unique_ptr<FakeKernel> MakeFake();
  // What is different, or nothing.
  std::string Run(const std::vector<Step>& steps);
  std::string RunStep(const Step& step, Kernel& real, Kernel& fake);
  std::string CompareWorlds(Kernel& real, FakeKernel& fake);
  std::string PartsText(Kernel& kernel) const;
  std::vector<Step> Minimised(std::vector<Step> steps);

  const Variant& variant_;
  const std::string stage_;
  const std::string world_;
  const uint64_t seed_;
  const int sequences_;
  std::unique_ptr<FakeKernel> pristine_;
  std::map<std::string, int> calls_;
  std::map<std::string, int> successes_;
};

void DifferentialRun::MakeWorld(Kernel& kernel, WorldBuilder& builder) {
  const std::vector<std::string> options = {"size=4m", "nr_inodes=500", "mode=0755"};
  ASSERT_TRUE(kernel.Call(Mount{"tmpfs", "tmpfs", {stage_, ""}, options}, {}).ok());
  builder.Directory(world_, 0755);
  ASSERT_TRUE(kernel.Call(Mount{"tmpfs", "tmpfs", {world_, ""}, options}, {}).ok());
  BuildWorld(builder, world_);
}

std::unique_ptr<FakeKernel> DifferentialRun::MakeFake() {
  const Result<KernelFeatures> features = ProbeKernelFeatures(variant_.masked);
  EXPECT_TRUE(features.ok());
  FakeKernelOptions options;
  options.features = features.ok() ? *features : KernelFeatures();
  if (variant_.anchored) options.agent_root = world_;
  auto fake = std::make_unique<FakeKernel>(options);
  fake->AddDirectory(stage_);
  FakeBuilder builder(*fake);
  MakeWorld(*fake, builder);
  for (const int status : {0, 1}) {
    fake->AddProgram(status == 0 ? "/bin/true" : "/bin/false", [status](FakeKernel&, const auto&) {
      return ProgramEnd{status, ""};
    });
  }
  return fake;
}

std::string DifferentialRun::RunStep(const Step& step, Kernel& real, Kernel& fake) {
  CancelToken cancel;
  CallOptions call;
  if (step.cancelled) {
    cancel.Cancel();
    call.cancel = &cancel;
  }
  const Result<AnyAnswer> real_result = real.Perform(step.request, call);
  const Result<AnyAnswer> fake_result = fake.Perform(step.request, call);
  ++calls_[std::string(RequestName(step.request))];
  if (real_result.ok()) ++successes_[std::string(RequestName(step.request))];
  const std::string real_text = ResultText(real_result, stage_);
  const std::string fake_text = ResultText(fake_result, stage_);
  if (real_text == fake_text) return "";
  const auto message = [](const Result<AnyAnswer>& result) {
    return result.ok() ? std::string() : "  " + result.error().message();
  };
  return RequestText(step.request) + "\n  real: " + real_text + message(real_result) +
         "\n  fake: " + fake_text + message(fake_result) + "\n";
}

// Where else each mount's part of its filesystem shows, and where the whole of it does.
std::string DifferentialRun::PartsText(Kernel& kernel) const {
  const Result<MountListing> all = kernel.Call(ListMounts{stage_}, {});
  if (!all.ok()) return all.error().ToString();
  std::string text;
  for (const MountEntry& mount : all->mounts) {
    FilesystemPart part{mount.device_major, mount.device_minor, mount.root};
    text += Normalised(mount.mount_point);
    for (const char* which : {" part: ", " whole: "}) {
      ListMounts question;
      question.showing = part;
      const std::string shown = ResultText(kernel.Do(question, {}), stage_);
      for (const std::string& line : SplitNonEmpty(shown, '\n')) {
        text += which + line.substr(0, line.find(' '));
      }
      part.root.clear();
    }
    text += "\n";
  }
  return SortedLines(text);
}

std::string DifferentialRun::CompareWorlds(Kernel& real, FakeKernel& fake) {
  const std::string real_mounts = ResultText(real.Do(ListMounts{}, {}), stage_);
  const std::string fake_mounts = ResultText(fake.Do(ListMounts{}, {}), stage_);
  if (real_mounts != fake_mounts) {
    return "mounts differ\n--- real\n" + real_mounts + "--- fake\n" + fake_mounts;
  }
  const std::string real_parts = PartsText(real);
  const std::string fake_parts = PartsText(fake);
  if (real_parts != fake_parts) {
    return "what shows where differs\n--- real\n" + real_parts + "--- fake\n" + fake_parts;
  }
  // Two payload directories of one target lie in the order of random numbers.
  const std::string real_tree = SortedLines(Normalised(RealTreeText(stage_)));
  const std::string fake_tree = SortedLines(Normalised(fake.DumpTree(stage_)));
  if (real_tree == fake_tree) return "";
  return "trees differ\n--- real\n" + real_tree + "--- fake\n" + fake_tree;
}

std::string DifferentialRun::Run(const std::vector<Step>& steps) {
  LocalKernelOptions options;
  options.masked_features = variant_.masked;
  options.thawer = VolumedWorkerPath();
  if (variant_.anchored) options.agent_root = world_;
  Result<std::unique_ptr<LocalKernel>> real = LocalKernel::Create(options);
  if (!real.ok()) return real.error().ToString();
  RealBuilder builder;
  MakeWorld(**real, builder);
  const std::unique_ptr<FakeKernel> fake = pristine_->Clone();
  std::string difference;
  for (const Step& step : steps) {
    difference = RunStep(step, **real, *fake);
    if (!difference.empty()) break;
  }
  if (difference.empty()) difference = CompareWorlds(**real, *fake);
  real->reset();
  while (::umount2(stage_.c_str(), MNT_DETACH) == 0) {
  }
  return difference;
}

std::vector<Step> DifferentialRun::Minimised(std::vector<Step> steps) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (size_t i = 0; i < steps.size() && !shrunk; ++i) {
      std::vector<Step> fewer = steps;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (Run(fewer).empty()) continue;
      steps = std::move(fewer);
      shrunk = true;
    }
  }
  return steps;
}

void DifferentialRun::operator()() {
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  (void)KeepFewMounts();  // else it is slower
  ::umask(027);           // no effect may depend on it
  ASSERT_EQ(::mkdir(stage_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(stage_.c_str(), 0755), 0);
  pristine_ = MakeFake();
  int failures = 0;
  for (int i = 0; i < sequences_ && failures < 3; ++i) {
    const uint64_t seed = seed_ + static_cast<uint64_t>(i);
    RequestGenerator generator(seed, world_);
    std::vector<Step> steps(3 + generator.Below(10));
    for (Step& step : steps) step = {generator.Next(), generator.OneIn(100)};
    if (Run(steps).empty()) continue;
    ++failures;
    const std::vector<Step> least = Minimised(steps);
    std::string text;
    for (const Step& step : least) {
      text += "  " + RequestText(step.request) + (step.cancelled ? " (cancelled)" : "") + "\n";
    }
    ADD_FAILURE() << variant_.name << ", again with VOLUMED_SEED=" << seed
                  << " VOLUMED_SEQUENCES=1\n"
                  << text << Run(least);
  }
}

std::string DifferentialRun::RunAlone(const std::vector<AnyRequest>& requests) {
  if (::mkdir(stage_.c_str(), 0755) != 0) return "no stage";
  pristine_ = MakeFake();
  std::vector<Step> steps;
  for (const AnyRequest& request : requests) steps.push_back({request});
  return Run(steps);
}

class KernelDifferentialTest : public MountNamespaceTest {};

TEST_F(KernelDifferentialTest, FakeAndRealKernelAgreeOnRandomSequencesOfEveryEffect) {
  constexpr int kThreadsPerVariant = 2;
  const uint64_t seed = NumberOfRun("VOLUMED_SEED", std::random_device()());
  const auto sequences = static_cast<int>(NumberOfRun("VOLUMED_SEQUENCES", 10000));
  std::printf("VOLUMED_SEED=%llu VOLUMED_SEQUENCES=%d\n", static_cast<unsigned long long>(seed),
              sequences);
  const auto start = std::chrono::steady_clock::now();
  const int runs = static_cast<int>(Variants().size()) * kThreadsPerVariant;
  const int share = (sequences + runs - 1) / runs;
  std::vector<std::unique_ptr<DifferentialRun>> all;
  for (int i = 0; i < runs; ++i) {
    // Every variant gets the same sequences.
    const int part = i / static_cast<int>(Variants().size());
    all.push_back(
        std::make_unique<DifferentialRun>(Variants()[static_cast<size_t>(i) % Variants().size()],
                                          scratch() + "/stage" + std::to_string(i),
                                          seed + static_cast<uint64_t>(part * share), share));
  }
  std::vector<std::thread> threads;
  for (const auto& run : all) threads.emplace_back(std::ref(*run));
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  std::printf("%d sequences in %.1f s\n", runs * share, elapsed.count());

  std::map<std::string, int> calls;
  std::map<std::string, int> successes;
  for (const auto& run : all) {
    for (const auto& [name, count] : run->calls()) calls[name] += count;
    for (const auto& [name, count] : run->successes()) successes[name] += count;
  }
  for (const auto& [name, count] : calls) {
    std::printf("%-20s %7d calls, %7d succeeded\n", name.c_str(), count, successes[name]);
  }
  if (sequences < 10000) return;
  EXPECT_EQ(calls.size(), std::variant_size_v<AnyRequest>);
  // There are no devices here to succeed on; device_differential_test has them. Nor programs.
  const std::set<std::string> on_devices = {
      ProbeDevice::kName,    FormatDevice::kName,   CheckFilesystem::kName,
      CheckDeviceUse::kName, RunProgram::kName,     GrowFilesystem::kName,
      IdentifyDevice::kName, FlushDevice::kName,    AttachLoop::kName,
      ConfigureLoop::kName,  CloneFile::kName,      ListExtents::kName,
      CutFrozen::kName,      ThawFilesystem::kName, ChangeFilesystemUuid::kName,
      MakeSubvolume::kName,  SetTreeQuota::kName,   ReadTreeQuota::kName,
      SetIoLimits::kName,    MoveDirectory::kName,  CopyTree::kName,
      CopyDevice::kName,     SetReadAhead::kName};
  // Every variant has the same sequences, so four successes are one that was drawn. Of the effects
  // that seldom have what they need about 300 succeed, with other seeds 35 more or fewer. So what
  // is below this is no chance: the world or the draw has not what the effect needs.
  constexpr int kFewest = 100;
  for (const auto& [name, count] : calls) {
    if (!on_devices.contains(name)) {
      EXPECT_GT(successes[name], kFewest) << name;
    }
  }
}

TEST_F(KernelDifferentialTest, FakeAndRealProgramsEndAlike) {
  DifferentialRun run(Variants()[0], scratch() + "/stage", 0, 0);
  const std::string world = scratch() + "/stage/w";
  PayloadFile file;
  file.path = "x";
  file.content = Secret<std::string>("no program");
  file.mode = 0755;
  std::vector<AnyRequest> requests = {WriteAtomicPayload{{world, "p"}, {file}},
                                      RunProgram{{"/bin/true"}}, RunProgram{{"/bin/false", "x"}}};
  for (const char* name :
       {"/p/x", "/f", "/a", "/la", "/lf", "/lself", "/fifo", "/sock", "/no", "/f/x", "/p/../p/x"}) {
    requests.emplace_back(RunProgram{{world + name}});
  }
  requests.emplace_back(Remount{{world, ""}, {"noexec"}});
  requests.emplace_back(RunProgram{{world + "/p/x"}});
  EXPECT_EQ(run.RunAlone(requests), "");
  EXPECT_EQ(run.successes().at(RunProgram::kName), 2);
}

// The link is no mount point, so what it leads to would be bound onto itself.
TEST_F(KernelDifferentialTest, AMountOfAFileThatWasRemovedIsMadeSharedByNeitherThroughALink) {
  DifferentialRun run(Variants()[0], scratch() + "/stage", 0, 0);
  const std::string world = scratch() + "/stage/w";
  EXPECT_EQ(run.RunAlone({BindMount{{world, "f"}, {world, "a/f"}}, RemoveFile{{world, "f"}},
                          MakeShared{{world, "lf", Resolve::kBeneath}}}),
            "");
  EXPECT_EQ(run.successes().at(RemoveFile::kName), 1);
  EXPECT_FALSE(run.successes().contains(MakeShared::kName));
}

TEST_F(KernelDifferentialTest, AFileThatCannotGetItsBlocksHasItsSizeAndItsModeBack) {
  DifferentialRun run(Variants()[0], scratch() + "/stage", 0, 0);
  const SafePath file = {scratch() + "/stage/w", "n"};
  SetFileSize set{file};
  set.make = true;
  set.bytes = 8 << 20;
  set.allocate = true;
  set.mode = 0600;
  EXPECT_EQ(run.RunAlone({MakeFile{file, 0700}, set, Stat{file}}), "");
  EXPECT_EQ(run.successes().at(MakeFile::kName), 1);
  EXPECT_FALSE(run.successes().contains(SetFileSize::kName));
}

}  // namespace
}  // namespace volumed
