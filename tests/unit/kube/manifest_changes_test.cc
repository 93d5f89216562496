// ManifestReading::What ManifestFiles tells as changes adds up to what a judgement of everything
// says.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "fakes/list_mirror.h"
#include "kube/manifest_files.h"
#include "run_numbers.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

// A reason that names a file which is only read or written may name an earlier one.
std::string Plain(const std::string& reason) {
  return reason.find(" is being ") == std::string::npos ? reason : "busy";
}

std::string TextOf(const ObjectList& list) {
  // ManifestReading::What is absent may have had the place of what is there: their order does not
  // count.
  std::multiset<std::string> lines;
  for (const ObjectWithOrigin& one : list.objects) {
    lines.insert(one.file + " " + std::to_string(one.document) + " " +
                 std::to_string(static_cast<int>(one.presence)) + " " + Plain(one.reason) + " " +
                 std::to_string(one.goes_at_unix_millis) + " " + one.may_be_in_source + " " +
                 EncodeObjectJson(*one.object) + "\n");
  }
  for (const UnknownObject& one : list.unknown) {
    lines.insert("unknown " + ToString(one.key) + " " + one.file + " " + Plain(one.reason) + " " +
                 one.may_be_in_source + "\n");
  }
  return std::accumulate(lines.begin(), lines.end(), std::string()) + ProblemsText(list.problems) +
         "warnings\n" + ProblemsText(list.warnings) +
         "incomplete: " + Plain(list.incomplete_because);
}

ObjectList ListOf(ManifestJudgement judgement) {
  ObjectList list{"d", true, std::move(judgement.objects), std::move(judgement.problems)};
  list.unknown = std::move(judgement.unknown);
  list.warnings = std::move(judgement.warnings);
  list.incomplete_because = std::move(judgement.incomplete_because);
  return list;
}

ObjectDelta DeltaOf(ManifestChanges changes) {
  ObjectDelta delta{"d", std::move(changes.objects), std::move(changes.removed)};
  delta.unknown = std::move(changes.unknown);
  delta.not_unknown = std::move(changes.not_unknown);
  delta.problems = std::move(changes.problems);
  delta.warnings = std::move(changes.warnings);
  delta.incomplete_because = std::move(changes.incomplete_because);
  return delta;
}

class RandomFiles {
 public:
  explicit RandomFiles(uint64_t seed) : random_(seed) {
    moment_.settle = std::chrono::seconds(10);
    std::vector<KnownObject> known;
    for (size_t i = Pick(4); i > 0; --i) {
      const ObjectWithOrigin one =
          FromFile("/d/" + File(), ConfigMapYaml("x" + std::to_string(i), "1"));
      known.push_back({KeyOf(*one.object), "", one.file, Pick(2) == 0 ? nullptr : one.object});
    }
    files_.Remember(std::move(known));
  }

  void Step() {
    const size_t what = Pick(20);
    if (what < 12) {
      LookAt(File());
    } else if (what == 12 && Pick(4) == 0) {
      files_.LoseFiles();
    } else if (what == 13 && Pick(4) == 0) {
      files_.DoubtAbsences("events were lost");
    } else if (what == 14 && Pick(4) == 0) {
      files_.Accept(files_.AbsentObjects());
    } else if (what < 17) {
      moment_.now += std::chrono::seconds(1 + Pick(6));
    } else if (what == 17) {
      moment_.busy.clear();
      if (Pick(2) == 0) moment_.busy[File()] = "is being read";
    } else if (what == 18 && Pick(3) == 0) {
      moment_.directory_error = Pick(3) == 0 ? "EIO" : "";
      moment_.elsewhere.suspect.reset();
      if (Pick(3) == 0) moment_.elsewhere.suspect = {"other", "/o/x", "is empty", scan_};
    } else {
      for (const std::string& file : std::exchange(due_files_, {})) LookAt(file);
    }
  }

  // Whether what changed could be told.
  bool Compare() {
    moment_.now_unix_millis = (moment_.now - TimePoint()) / std::chrono::milliseconds(1);
    ManifestFiles whole = files_;
    ManifestJudgement expected = whole.Judge(moment_);
    const auto next_due = expected.next_due;
    due_files_ = expected.due_files;
    std::optional<ManifestChanges> changes = files_.JudgeChanged(moment_);
    const bool told = changes.has_value();
    if (told) {
      EXPECT_EQ(changes->due_files, expected.due_files);
      EXPECT_EQ(changes->next_due, next_due);
      mirror_.Take(DeltaOf(*std::move(changes)));
    } else {
      mirror_.Take(ListOf(files_.Judge(moment_)));
    }
    EXPECT_EQ(TextOf(mirror_.list()), TextOf(ListOf(std::move(expected))));
    return told;
  }

 private:
  size_t Pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  std::string File() { return std::string(1, static_cast<char>('a' + Pick(4))) + ".yaml"; }
  std::string Name() { return "x" + std::to_string(Pick(6)); }

  std::string Content() {
    std::string text;
    for (size_t i = Pick(4); i > 0; --i) {
      text += "---\n" + ConfigMapYaml(Name(), std::to_string(Pick(3)));
      if (Pick(8) == 0) text += "dta: {}\n";
    }
    return text;
  }

  void LookAt(const std::string& file) {
    ManifestReading reading{.file = file};
    const size_t what = Pick(12);
    if (what < 7) {
      const std::string text = Content();
      reading.Take(DecodeManifest("/d/" + file, text));
      reading.stamp.size = static_cast<int64_t>(text.size());
    } else if (what < 10) {
      reading.what = ManifestReading::What::kGone;
    } else {
      reading.what =
          what == 10 ? ManifestReading::What::kUnreadable : ManifestReading::What::kChanging;
      reading.error = "cannot be read";
    }
    files_.Apply(std::move(reading),
                 {moment_.now, Pick(3) > 0, ++scan_, Pick(10) == 0 ? "nobody saw it" : ""});
  }

  std::mt19937_64 random_;
  ManifestFiles files_{"/d"};
  ManifestMoment moment_;
  ListMirror mirror_;
  std::set<std::string> due_files_;
  uint64_t scan_ = 0;
};

TEST(ManifestChangesTest, WhatIsToldAsChangesIsWhatAJudgementOfEverythingSays) {
  const uint64_t steps = NumberOfRun("VOLUMED_RANDOM_STEPS", 20'000);
  uint64_t told = 0;
  for (uint64_t seed = 1; seed <= steps / 100; ++seed) {
    RandomFiles files(seed);
    for (int step = 0; step < 100; ++step) {
      files.Step();
      if (files.Compare()) ++told;
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", step " << step;
    }
  }
  EXPECT_GT(told, steps / 2);
}

}  // namespace
}  // namespace volumed
