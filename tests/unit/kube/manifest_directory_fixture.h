// Fixture: a manifest directory on real files and real inotify, driven by the program's own
// scheduler.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/real_scheduler.h"
#include "fakes/list_mirror.h"
#include "kube/manifest_directory.h"
#include "unit/base/run_scheduler.h"
#include "unit/kube/kube_testing.h"

namespace volumed {

namespace fs = std::filesystem;

class ManifestDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/volumed-manifests-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
    directory_ = root_ / "manifests";
    auto scheduler = RealScheduler::Create();
    ASSERT_TRUE(scheduler.ok());
    scheduler_ = *std::move(scheduler);
  }
  void TearDown() override {
    source_.reset();
    EXPECT_TRUE(RunUntilIdle(*scheduler_)) << "a reading is under way still";
    scheduler_.reset();
    fs::remove_all(root_);
  }

  void Start() {
    seams_.peers = peers_;
    seams_.answers = answers_;
    auto source = ManifestDirectory::Create(directory_.string(), NodeName("n1"), *scheduler_,
                                            scheduler_->loop(), settle_, seams_);
    ASSERT_TRUE(source.ok());
    source_ = *std::move(source);
    if (memory_) source_->Remember(*memory_);
    source_->Start([this](ObjectUpdate update) {
      last_ = mirror_.Take(std::move(update));
      ++lists_;
      history_.insert(Names());
      if (done_ && done_()) scheduler_->Stop();
    });
  }
  void MakeAndStart() {
    fs::create_directory(directory_);
    Start();
  }

  // As if the agent ended now and another began: it knows what the last list had.
  void Restart() {
    source_.reset();
    memory_ = MemoryOf(*last_);
    StartAnew();
  }
  void StartAnew() {
    last_.reset();
    Start();
    RunUntil([this] { return last_->complete && IsRead(); });
  }
  // What the agent puts on record of a list: no content of Secrets and ConfigMaps.
  static SourceMemory MemoryOf(const ObjectList& list) {
    SourceMemory memory;
    for (const ObjectWithOrigin& object : list.objects) {
      const ObjectKind kind = KindOf(*object.object);
      const bool is_on_record = kind != ObjectKind::kSecret && kind != ObjectKind::kConfigMap;
      memory.objects.push_back({KeyOf(*object.object), MetaOf(*object.object).uid, object.file,
                                is_on_record ? object.object : nullptr});
    }
    for (const UnknownObject& unknown : list.unknown) {
      memory.objects.push_back({unknown.key, "", unknown.file, nullptr});
    }
    memory.directory = list.directory;
    memory.unproven = list.unproven;
    return memory;
  }
  // True if the last list was made after everything had been read.
  bool IsRead() const {
    return last_->incomplete_because.find("is being read") == std::string::npos;
  }

  // Runs the program until a list for which `done` holds was delivered; the time only ends a test
  // that fails.
  void RunUntil(std::function<bool()> done) {
    if (last_ && done()) return;
    done_ = std::move(done);
    bool timed_out = false;
    const TimerId timer = scheduler_->PostAfter(std::chrono::seconds(10), [&] {
      timed_out = true;
      scheduler_->Stop();
    });
    scheduler_->Run();
    scheduler_->Cancel(timer);
    done_ = nullptr;
    ASSERT_FALSE(timed_out) << "objects: " << Names()
                            << "\nincomplete: " << (last_ ? last_->incomplete_because : "") << "\n"
                            << Problems();
  }
  // What is on its way has arrived when a file that is written after it has.
  void Settle() {
    const std::string marker = "marker-" + std::to_string(++markers_);
    Replace("zz-marker.yaml", ConfigMapYaml(marker, ""));
    RunUntil([&] { return Names().find(marker) != std::string::npos; });
  }

  static void WriteFile(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
  }
  void Write(const std::string& file, const std::string& text) {
    WriteFile(directory_ / file, text);
  }
  void Replace(const std::string& file, const std::string& text) {
    WriteFile(directory_ / ".new", text);
    fs::rename(directory_ / ".new", directory_ / file);
  }
  // "a b": names of the delivered objects, without the marker.
  std::string Names() const {
    std::string names;
    if (!last_) return "none";
    for (const ObjectWithOrigin& object : last_->objects) {
      names += (names.empty() ? "" : " ") + MetaOf(*object.object).name;
    }
    return names;
  }
  std::string Problems() const { return last_ ? ProblemsText(last_->problems) : ""; }
  bool HasProblem(const std::string& text) const {
    return Problems().find(text) != std::string::npos;
  }
  bool Has(const std::string& name) const {
    return (" " + Names() + " ").find(" " + name + " ") != std::string::npos;
  }
  // "present", "held", "going", "unknown", or "absent".
  std::string StateOf(const std::string& name) const {
    if (!last_) return "no list";
    for (const ObjectWithOrigin& object : last_->objects) {
      if (MetaOf(*object.object).name != name) continue;
      if (object.presence == ObjectPresence::kPresent) return "present";
      return object.presence == ObjectPresence::kUnproven ? "held" : "going";
    }
    for (const UnknownObject& unknown : last_->unknown) {
      if (unknown.key.name == name) return "unknown";
    }
    return "absent";
  }
  // Of an object that is held, going or unknown.
  std::string ReasonOf(const std::string& name) const {
    for (const ObjectWithOrigin& object : last_->objects) {
      if (MetaOf(*object.object).name == name) return object.reason;
    }
    for (const UnknownObject& unknown : last_->unknown) {
      if (unknown.key.name == name) return unknown.reason;
    }
    return "";
  }
  // Of an object that is going; 0 of others.
  int64_t GoesAt(const std::string& name) const {
    for (const ObjectWithOrigin& object : last_->objects) {
      if (MetaOf(*object.object).name == name) return object.goes_at_unix_millis;
    }
    return 0;
  }
  void RunUntilState(const std::string& name, const std::string& state) {
    RunUntil([=, this] { return StateOf(name) == state; });
    EXPECT_EQ(StateOf(name), state) << name;
  }
  // Lets some time pass, so that what must not happen can.
  void RunFor(Duration duration) {
    scheduler_->PostAfter(duration, [this] { scheduler_->Stop(); });
    scheduler_->Run();
  }

  fs::path root_;
  fs::path directory_;
  std::unique_ptr<RealScheduler> scheduler_;
  std::unique_ptr<ManifestDirectory> source_;
  ListMirror mirror_;
  std::optional<ObjectList> last_;
  std::optional<SourceMemory> memory_;
  static FarContent ReadFar(const std::string& path) {
    FarContent content;
    content.may_watch = true;
    std::ifstream file(path);
    if (file) {
      content.bytes.assign(std::istreambuf_iterator<char>(file), {});
    } else {
      content.status = Error::FromErrno(ENOENT, "read " + path, Outcome::kNotApplied);
    }
    return content;
  }
  ManifestSeams seams_{.read_far = ReadFar};
  std::function<Status(const std::string&)> answers_;
  std::shared_ptr<ManifestPeers> peers_;  // null: the directory is the only one
  std::function<bool()> done_;
  // Short, as most tests wait for it; an hour for those in which nothing may depend on it.
  Duration settle_ = std::chrono::milliseconds(20);
  std::set<std::string> history_;  // Names() of every list so far
  int lists_ = 0;
  int markers_ = 0;
};

}  // namespace volumed
