// Properties of what ManifestFiles judges of absence, over random looks at some files.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/manifest_files.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

constexpr Duration kSettle = std::chrono::seconds(10);
constexpr int kWorlds = 200;
constexpr int kStepsOfAWorld = 100;

class AbsenceWorld {
 public:
  explicit AbsenceWorld(uint64_t seed) : random_(seed) { moment_.settle = kSettle; }

  void Step() {
    const size_t what = Pick(16);
    if (what < 8) {
      LookAt(File());
    } else if (what < 12) {
      moment_.now += std::chrono::seconds(1 + Pick(6));
    } else if (what == 12) {
      moment_.busy.clear();
      if (Pick(3) == 0) moment_.busy[File()] = "is being read";
    } else if (what == 13) {
      moment_.directory_error = Pick(4) == 0 ? "EIO" : "";
      moment_.directory_doubt = Pick(4) == 0 ? "it is another directory" : "";
    } else {
      LookAtDue();
    }
    Judge();
  }

  // Every file is seen to be gone, and the directory is in order.
  void RemoveAll() {
    moment_.busy.clear();
    moment_.directory_error = moment_.directory_doubt = "";
    for (char file = 'a'; file < 'e'; ++file) Gone(FileOf(file));
    Judge();
    for (int round = 0; round < 3 && !listed_.empty(); ++round) {
      moment_.now += kSettle;
      Judge();
      for (const std::string& file : std::exchange(due_files_, {})) Gone(file);
      Judge();
    }
  }

  bool IsEmpty() const { return listed_.empty(); }

 private:
  size_t Pick(size_t count) { return random_() % count; }
  static std::string FileOf(char letter) { return std::string(1, letter) + ".yaml"; }
  std::string File() { return FileOf(static_cast<char>('a' + Pick(4))); }

  void Apply(ManifestReading reading) {
    files_.Apply(std::move(reading), {.at = moment_.now, .by_event = true, .scan = ++scan_});
  }

  void Gone(const std::string& file) {
    has_[file].clear();
    is_good_[file] = true;
    ManifestReading reading{.file = file};
    reading.what = ManifestReading::What::kGone;
    Apply(std::move(reading));
  }

  void LookAt(const std::string& file) {
    if (Pick(4) == 0) return Gone(file);
    ManifestReading reading{.file = file};
    is_good_[file] = Pick(4) != 0;
    if (!is_good_[file]) {
      reading.what = ManifestReading::What::kUnreadable;
      reading.error = "cannot be read";
      return Apply(std::move(reading));
    }
    std::string text;
    has_[file].clear();
    for (size_t i = Pick(3); i > 0; --i) {
      const std::string name = "x" + std::to_string(Pick(5));
      if (has_[file].insert(name).second) text += "---\n" + ConfigMapYaml(name, "1");
    }
    if (text.empty()) return Gone(file);
    reading.Take(DecodeManifest("/d/" + file, text));
    reading.stamp.size = static_cast<int64_t>(text.size());
    Apply(std::move(reading));
  }

  void LookAtDue() {
    for (const std::string& file : std::exchange(due_files_, {})) LookAt(file);
  }

  void Judge() {
    ManifestJudgement judgement = files_.Judge(moment_);
    due_files_ = std::move(judgement.due_files);
    std::set<std::string> listed;
    std::set<std::string> present;
    for (const ObjectWithOrigin& one : judgement.objects) {
      const std::string name = KeyOf(*one.object).name;
      listed.insert(name);
      if (one.presence == ObjectPresence::kPresent) present.insert(name);
    }
    for (const auto& [file, names] : has_) {
      if (!is_good_[file]) continue;
      for (const std::string& name : names) {
        last_had_[name] = moment_.now;
        ASSERT_TRUE(present.contains(name)) << name << " is in " << file;
      }
    }
    for (const std::string& name : listed_) {
      if (!listed.contains(name)) CheckDeparture(name);
    }
    listed_ = std::move(listed);
  }

  void CheckDeparture(const std::string& name) const {
    ASSERT_GE(moment_.now - last_had_.at(name), kSettle) << name;
    ASSERT_TRUE(moment_.busy.empty()) << name;
    ASSERT_EQ(moment_.directory_error, "") << name;
    ASSERT_EQ(moment_.directory_doubt, "") << name;
  }

  std::mt19937_64 random_;
  ManifestFiles files_{"/d"};
  ManifestMoment moment_;
  uint64_t scan_ = 0;
  std::set<std::string> due_files_;
  std::set<std::string> listed_;
  std::map<std::string, std::set<std::string>> has_;  // what was last read of each file
  std::map<std::string, bool> is_good_;               // whether it could be read by now
  std::map<std::string, TimePoint> last_had_;
};

TEST(ManifestAbsenceRandom, NothingGoesWithoutItsTimeNorWhileItsAbsenceProvesNothing) {
  for (int seed = 1; seed <= kWorlds; ++seed) {
    AbsenceWorld world(static_cast<uint64_t>(seed));
    for (int step = 0; step < kStepsOfAWorld; ++step) {
      world.Step();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", step " << step;
    }
  }
}

TEST(ManifestAbsenceRandom, WhatIsSeenToBeRemovedGoesWhateverCameBefore) {
  for (int seed = 1; seed <= kWorlds; ++seed) {
    AbsenceWorld world(static_cast<uint64_t>(seed));
    for (int step = 0; step < kStepsOfAWorld; ++step) world.Step();
    world.RemoveAll();
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    ASSERT_TRUE(world.IsEmpty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace volumed
