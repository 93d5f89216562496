// What is seen of a catalog while it takes an update over in parts, and of what it remembers.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "kube/object_catalog.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

using What = ObjectChange::What;

const ObjectKey kWeb{ObjectKind::kPod, "default", "web"};
const ObjectKey kOld{ObjectKind::kPod, "default", "old"};
const ObjectKey kLogs{ObjectKind::kPersistentVolumeClaim, "default", "logs"};

std::string ClaimYaml(const std::string& name) {
  return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
         "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
}

class ObjectCatalogPartsTest : public testing::Test {
 protected:
  ObjectCatalogPartsTest() {
    catalog_.AddListener([this](const std::vector<ObjectChange>& changes) {
      for (const ObjectChange& change : changes) {
        // What was unknown before may be so for another reason now.
        const bool is_loss = change.what == What::kRemoved || change.what == What::kMissing ||
                             (change.what == What::kUnknown && change.before != nullptr);
        if (is_loss) lost_.insert(change.key);
      }
    });
  }

  // One piece at a time; says after each whether the update is over.
  void TakeByPieces(ObjectUpdate update, const std::function<void(bool is_over)>& look) {
    catalog_.Begin(std::move(update));
    for (bool is_over = false; !is_over;) {
      TaskLimit limit(clock_, 1);
      is_over = catalog_.TakeSome(limit);
      ++parts_;
      look(is_over);
    }
  }
  static ObjectList ListOf(const std::string& source, std::vector<ObjectWithOrigin> objects) {
    return {source, true, std::move(objects), {}};
  }
  bool IsAbsent(const ObjectKey& key) const {
    return catalog_.LookUp(key).answer == ObjectLookup::Answer::kAbsent;
  }

  ManualClock clock_;
  ObjectCatalog catalog_{clock_};
  std::set<ObjectKey> lost_;
  int parts_ = 0;
};

TEST_F(ObjectCatalogPartsTest, WhatMovesToAnotherFileInAListIsNeverGone) {
  catalog_.Update(
      ListOf("a", {FromFile("z", PodYaml("web", "u-1")), FromFile("z", ClaimYaml("logs"))}));
  TakeByPieces(
      ListOf("a", {FromFile("b", ClaimYaml("logs")), FromFile("b", PodYaml("web", "u-1"))}),
      [this](bool) {
        EXPECT_NE(catalog_.FindPod(PodUid("u-1")), nullptr);
        EXPECT_NE(catalog_.FindObject(kLogs), nullptr);
      });
  EXPECT_GT(parts_, 4);
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(catalog_.OriginOf(kWeb)->file, "b");
}

// Who hears of pods tells many from few by that.
TEST_F(ObjectCatalogPartsTest, OfManyPodsMoreThanThreeAreToldOfAtATime) {
  std::vector<size_t> told;
  catalog_.AddListener([&told](const auto& changes) { told.push_back(changes.size()); });
  std::vector<ObjectWithOrigin> many;
  for (int pod = 0; pod < 100; ++pod) {
    const std::string name = "pod-" + std::to_string(pod);
    many.push_back(FromFile("f", PodYaml(name, "u-" + std::to_string(pod))));
  }
  catalog_.Begin(ListOf("a", std::move(many)));
  for (bool is_over = false; !is_over;) {
    TaskLimit limit(clock_);
    is_over = catalog_.TakeSome(limit);
  }
  ASSERT_GT(told.size(), 1U);
  told.pop_back();
  EXPECT_GT(*std::min_element(told.begin(), told.end()), 3U);
}

TEST_F(ObjectCatalogPartsTest, WhatMovesToAnotherFileInADeltaIsNeverGone) {
  catalog_.Update(ListOf("a", {FromFile("b", PodYaml("web", "u-1"))}));
  ObjectDelta delta;
  delta.source = "a";
  delta.removed.push_back({kWeb, "b"});
  delta.objects.push_back(FromFile("z", PodYaml("web", "u-1")));
  TakeByPieces(std::move(delta),
               [this](bool) { EXPECT_NE(catalog_.FindPod(PodUid("u-1")), nullptr); });
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(catalog_.OriginOf(kWeb)->file, "z");
}

TEST_F(ObjectCatalogPartsTest, WhatMovesToAnotherSourceIsNeverGone) {
  catalog_.Update(ListOf("a", {FromFile("f", PodYaml("web", "u-1"))}));
  catalog_.Update(ListOf("b", {}));
  const auto is_there = [this](bool) { EXPECT_NE(catalog_.FindPod(PodUid("u-1")), nullptr); };
  TakeByPieces(ListOf("b", {FromFile("g", PodYaml("web", "u-1"))}), is_there);
  TakeByPieces(ListOf("a", {}), is_there);
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(catalog_.OriginOf(kWeb)->source, "b");
}

// The last agent knew it in one source; since then it has moved to the one that delivers last.
TEST_F(ObjectCatalogPartsTest, WhatMovedBetweenTwoAgentsIsNeverGoneWhileTheListsAreTaken) {
  const ObjectWithOrigin web = FromFile("g", PodYaml("web", "u-1"));
  const ObjectPtr old = FromFile("f", PodYaml("old", "u-2")).object;
  catalog_.Remember("a", {{kWeb, "u-1", "f", web.object}, {kOld, "u-2", "f", old}});
  catalog_.Remember("b", {});
  lost_.clear();
  TakeByPieces(ListOf("a", {}), [this](bool) {
    EXPECT_FALSE(IsAbsent(kWeb));
    EXPECT_FALSE(IsAbsent(kOld));
    EXPECT_FALSE(catalog_.AllSourcesComplete());
  });
  TakeByPieces(ListOf("b", {web, FromFile("g", PodYaml("other", "u-3"))}), [this](bool is_over) {
    EXPECT_FALSE(IsAbsent(kWeb));
    EXPECT_TRUE(!IsAbsent(kOld) || lost_.contains(kOld));
    EXPECT_EQ(catalog_.AllSourcesComplete(), is_over);
  });
  EXPECT_FALSE(lost_.contains(kWeb));
  EXPECT_TRUE(IsAbsent(kOld));
}

TEST_F(ObjectCatalogPartsTest, NothingIsAbsentWhileTheFirstListIsTaken) {
  catalog_.ExpectSource("a");
  std::vector<ObjectWithOrigin> objects;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "p-" + std::to_string(i);
    objects.push_back(FromFile(name, PodYaml(name, "u-" + name)));
  }
  TakeByPieces(ListOf("a", std::move(objects)), [this](bool is_over) {
    EXPECT_EQ(IsAbsent(kWeb), is_over);
    EXPECT_EQ(catalog_.IsComplete(ObjectKind::kPod), is_over);
    EXPECT_EQ(catalog_.IncompleteSources().empty(), is_over);
  });
  EXPECT_EQ(catalog_.size(), 40U);
  EXPECT_TRUE(lost_.empty());
}

// Nobody was told until its next list, and what depends on it was held.
TEST_F(ObjectCatalogPartsTest, ASourceThatIsAcceptedWhileAListIsTakenIsInOrderAfterIt) {
  catalog_.Update(ListOf("a", {}));
  ObjectList doubtful = ListOf("b", {});
  doubtful.incomplete_because = "a file is held back";
  catalog_.Update(doubtful);
  ASSERT_NE(catalog_.WhereItMayHaveMoved(""), "");
  bool is_accepted = false;
  TakeByPieces(ListOf("a", {FromFile("f", PodYaml("web", "u-1"))}), [&](bool) {
    if (!std::exchange(is_accepted, true)) catalog_.AcceptSource("b");
  });
  EXPECT_GT(parts_, 1);
  EXPECT_EQ(catalog_.WhereItMayHaveMoved(""), "");
}

// It has left the list and not the view when the memory of its former source ends.
TEST_F(ObjectCatalogPartsTest, APodThatMovedStaysUntilTheListWithoutItIsTaken) {
  catalog_.ExpectSource("a");
  catalog_.Remember("b", {{kWeb, "u-1", "g.yaml", nullptr}});
  catalog_.Update(ListOf("b", {}));
  ASSERT_EQ(catalog_.LookUp(kWeb).answer, ObjectLookup::Answer::kUnknown);
  catalog_.Update(ListOf("a", {FromFile("f.yaml", PodYaml("web", "u-1"))}));
  ASSERT_NE(catalog_.FindPod(PodUid("u-1")), nullptr);
  int unlisted = 0;
  TakeByPieces(ListOf("a", {}), [&](bool) {
    const bool is_listed = catalog_.IsPresentIn("a", kWeb);
    if (is_listed || catalog_.FindPod(PodUid("u-1")) == nullptr || ++unlisted > 1) return;
    catalog_.Update(ListOf("b", {}));
    EXPECT_NE(catalog_.FindPod(PodUid("u-1")), nullptr);
    EXPECT_TRUE(lost_.empty());
  });
  EXPECT_GT(unlisted, 0);
  EXPECT_TRUE(IsAbsent(kWeb));
  EXPECT_EQ(lost_, std::set<ObjectKey>{kWeb});
}

// Its source had it in another file, of which nothing but the name was on record: as long as that
// is remembered, the file that has it now is refused.
TEST_F(ObjectCatalogPartsTest, AMissingClaimIsTakenFromAnotherFileOnceTheMemoryOfItsFileHasEnded) {
  for (const bool is_whole : {false, true}) {
    ObjectCatalog catalog(clock_);
    if (is_whole) catalog.MergeWholeForTest();
    catalog.Update(ListOf("c", {FromFile("3.yaml", ClaimYaml("logs"))}));
    catalog.ForgetSource("c");
    ASSERT_TRUE(catalog.IsMissing(kLogs));
    catalog.Remember("c", {{kLogs, "", "3.yaml", nullptr}});
    catalog.Update(ListOf("c", {FromFile("2.yaml", ClaimYaml("logs"))}));
    catalog.Update(ListOf("b", {}));
    EXPECT_FALSE(catalog.IsMissing(kLogs)) << is_whole;
    EXPECT_EQ(catalog.OriginOf(kLogs)->file, "2.yaml") << is_whole;
    EXPECT_TRUE(catalog.ProblemsOf(kLogs).empty()) << is_whole;
  }
}

}  // namespace
}  // namespace volumed
