// What an event costs, by objects visited: it follows from what changes, not from what there is.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "kube/manifest_files.h"
#include "kube/object_catalog.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

constexpr int kFew = 200;
constexpr int kMany = 4 * kFew;
// Of a bulk: four times as many, and what the trees' depth may add.
constexpr double kLinear = 4.2;

std::string PodName(int i) { return "pod-" + std::to_string(i); }
std::string FileOf(int i) { return "pod-" + std::to_string(i) + ".yaml"; }

// Two sources that have as many pods each, the second one by command.
class CatalogOf {
 public:
  explicit CatalogOf(int count) {
    ObjectList manifests{"manifests", true, {}};
    ObjectList applied{"applied", true, {}};
    for (int i = 0; i < count; ++i) {
      manifests.objects.push_back(
          FromFile(FileOf(i), PodYaml(PodName(i), "u" + std::to_string(i))));
      applied.objects.push_back(FromFile("applied", ConfigMapYaml(PodName(i), "1")));
    }
    catalog_.Update(std::move(manifests));
    catalog_.Update(std::move(applied));
  }

  void Change(int i) {
    ObjectWithOrigin one = FromFile(FileOf(i), PodYaml(PodName(i), "u" + std::to_string(i)));
    Object changed = *one.object;
    MetaOf(changed).labels["changed"] = "yes";
    one.object = std::make_shared<const Object>(std::move(changed));
    catalog_.Update(ObjectDelta{.source = "manifests", .objects = {std::move(one)}});
  }
  void Add(int i) {
    catalog_.Update(
        ObjectDelta{.source = "applied",
                    .objects = {FromFile("applied", ConfigMapYaml("new-" + PodName(i), "1"))}});
  }
  void Remove(int i) {
    const ObjectKey key{ObjectKind::kPod, "default", PodName(i)};
    catalog_.Update(ObjectDelta{.source = "manifests", .removed = {{key, FileOf(i)}}});
  }
  void End(int i) { catalog_.End({ObjectKind::kConfigMap, "default", PodName(i)}, "", 1); }
  uint64_t visited() const { return catalog_.work().visited(); }

 private:
  ManualClock clock_;
  ObjectCatalog catalog_{clock_};
};

// A directory of as many files.
class FilesOf {
 public:
  explicit FilesOf(int count) {
    for (int i = 0; i < count; ++i) Read(i, "1");
    static_cast<void>(files_.Judge(Moment()));
  }
  void Change(int i) {
    Read(i, "2");
    Tell();
  }
  void Remove(int i) {
    files_.Apply({FileOf(i), ManifestReading::What::kGone, "", {}}, {now_, true, ++scan_});
    Tell();
  }
  uint64_t visited() const { return files_.work().visited(); }

 private:
  void Read(int i, const std::string& value) {
    ManifestReading reading{FileOf(i), ManifestReading::What::kRead, "",
                            DecodeManifest("/d/" + FileOf(i), ConfigMapYaml(PodName(i), value))};
    files_.Apply(std::move(reading), {now_, true, ++scan_});
  }
  void Tell() { EXPECT_TRUE(files_.JudgeChanged(Moment())) << "the whole list is told"; }
  ManifestMoment Moment() {
    ManifestMoment moment;
    moment.now = now_;
    moment.settle = std::chrono::seconds(10);
    // Another file is about to be read, as ever in a bulk.
    if (++moments_ % 3 > 0) moment.busy["other.yaml"] = "is being read";
    return moment;
  }

  ManifestFiles files_{"/d"};
  TimePoint now_{};
  uint64_t scan_ = 0;
  int moments_ = 0;
};

template <typename World>
using Event = void (World::*)(int);

template <typename World>
void ExpectOneCostsAlike(const std::map<std::string, Event<World>>& events) {
  for (const auto& [name, event] : events) {
    World few(kFew);
    World many(kMany);
    uint64_t cost[2] = {few.visited(), many.visited()};
    (few.*event)(7);
    (many.*event)(7);
    cost[0] = few.visited() - cost[0];
    cost[1] = many.visited() - cost[1];
    EXPECT_GT(cost[0], 0U) << name;
    EXPECT_LE(cost[1], cost[0] + 4) << name;
    EXPECT_LE(cost[1], 20U) << name;
  }
}

template <typename World>
void ExpectBulkIsLinear(const std::map<std::string, Event<World>>& events) {
  for (const auto& [name, event] : events) {
    double cost[2] = {};
    for (const int count : {kFew, kMany}) {
      World world(count);
      const uint64_t before = world.visited();
      for (int i = 0; i < count; ++i) (world.*event)(i);
      cost[count == kMany ? 1 : 0] = static_cast<double>(world.visited() - before);
    }
    EXPECT_LE(cost[1], kLinear * cost[0]) << name;
  }
}

const std::map<std::string, Event<CatalogOf>> kCatalogEvents = {{"change", &CatalogOf::Change},
                                                                {"apply", &CatalogOf::Add},
                                                                {"file gone", &CatalogOf::Remove},
                                                                {"delete", &CatalogOf::End}};
const std::map<std::string, Event<FilesOf>> kFileEvents = {{"change", &FilesOf::Change},
                                                           {"file gone", &FilesOf::Remove}};

TEST(ChangeCostTest, OneChangeOfTheCatalogCostsAsMuchWithFourTimesTheObjects) {
  ExpectOneCostsAlike(kCatalogEvents);
}

TEST(ChangeCostTest, AsManyChangesOfTheCatalogAsObjectsCostFourTimesAsMuch) {
  ExpectBulkIsLinear(kCatalogEvents);
}

TEST(ChangeCostTest, OneFileThatChangesCostsAsMuchWithFourTimesTheFiles) {
  ExpectOneCostsAlike(kFileEvents);
}

TEST(ChangeCostTest, AsManyChangesAsFilesCostFourTimesAsMuch) { ExpectBulkIsLinear(kFileEvents); }

}  // namespace
}  // namespace volumed
