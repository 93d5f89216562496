// A source that lists each kind by itself, and may read only the Secrets and ConfigMaps that pods
// of the node name: what a source of an API server will be.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "kube/object_catalog.h"
#include "kube/object_source.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

using Answer = ObjectLookup::Answer;

// Has all objects, and shows those that it is asked for.
class FakeApiSource final : public ObjectSource {
 public:
  const std::string& name() const override { return name_; }
  void Remember(SourceMemory) override {}
  void Start(ObjectListener listener) override { listener_ = std::move(listener); }
  void Accept() override {}
  void Want(const std::vector<ObjectKey>& more, const std::vector<ObjectKey>& less) override {
    ObjectDelta delta;
    delta.source = name_;
    for (const ObjectKey& key : less) {
      if (wanted_.erase(key) > 0 && has_.contains(key)) delta.removed.push_back({key, ""});
    }
    for (const ObjectKey& key : more) {
      if (wanted_.insert(key).second && has_.contains(key)) delta.objects.push_back(has_.at(key));
    }
    listener_(std::move(delta));
  }

  void Has(const std::string& manifest) {
    const ObjectWithOrigin one = FromFile("", manifest);
    has_.insert_or_assign(KeyOf(*one.object), one);
  }
  // The first list of these kinds has come.
  void List(std::set<ObjectKind> kinds) {
    ObjectList list;
    list.source = name_;
    for (const auto& [key, object] : has_) {
      const bool by_name = key.kind == ObjectKind::kSecret || key.kind == ObjectKind::kConfigMap;
      if (!by_name || wanted_.contains(key)) list.objects.push_back(object);
    }
    list.complete_kinds = std::move(kinds);
    listener_(std::move(list));
  }

 private:
  const std::string name_ = "api";
  ObjectListener listener_;
  std::map<ObjectKey, ObjectWithOrigin> has_;
  std::set<ObjectKey> wanted_;
};

class KindsOfASourceTest : public testing::Test {
 protected:
  KindsOfASourceTest() {
    catalog_.ExpectSource(source_.name());
    source_.Start([this](ObjectUpdate update) { catalog_.Update(std::move(update)); });
    source_.Has(PodYaml("web", "u"));
    source_.Has(ConfigMapYaml("conf", "1"));
    source_.Has(ConfigMapYaml("other", "1"));
  }

  ManualClock clock_;
  ObjectCatalog catalog_{clock_};
  FakeApiSource source_;
  const ObjectKey conf_{ObjectKind::kConfigMap, "default", "conf"};
  const ObjectKey other_{ObjectKind::kConfigMap, "default", "other"};
  const ObjectKey db_{ObjectKind::kPod, "default", "db"};
};

TEST_F(KindsOfASourceTest, AKindThatIsListedIsCompleteBeforeTheOthersAre) {
  EXPECT_EQ(catalog_.LookUp(db_).answer, Answer::kUnknown);
  source_.List({ObjectKind::kPod});
  EXPECT_TRUE(catalog_.IsComplete(ObjectKind::kPod));
  EXPECT_EQ(catalog_.LookUp(db_).answer, Answer::kAbsent);
  EXPECT_NE(catalog_.FindPod(PodUid("u")), nullptr);
  EXPECT_FALSE(catalog_.IsComplete(ObjectKind::kConfigMap));
  EXPECT_EQ(catalog_.LookUp(conf_).answer, Answer::kUnknown);
  EXPECT_EQ(catalog_.LookUp(conf_).reason, "no complete list yet from: api");
  EXPECT_FALSE(catalog_.AllSourcesComplete()) << "nothing is unmounted before";
  source_.List({ObjectKind::kConfigMap});
  EXPECT_TRUE(catalog_.IsComplete(ObjectKind::kConfigMap));
  EXPECT_NE(catalog_.FindPod(PodUid("u")), nullptr) << "a list of one kind is none of another";
}

TEST_F(KindsOfASourceTest, WhatTheLastAgentKnewIsUnknownUntilItsKindIsListed) {
  const ObjectWithOrigin known = FromFile("", PodYaml("db", "u-2"));
  catalog_.Remember("api", {{db_, "u-2", "", known.object}});
  source_.List({ObjectKind::kConfigMap});
  EXPECT_EQ(catalog_.LookUp(db_).answer, Answer::kUnknown);
  source_.List({ObjectKind::kPod});
  EXPECT_EQ(catalog_.LookUp(db_).answer, Answer::kAbsent);
}

TEST_F(KindsOfASourceTest, OnlyWhatPodsNameIsRead) {
  source_.List({ObjectKind::kPod, ObjectKind::kSecret, ObjectKind::kConfigMap});
  EXPECT_EQ(catalog_.FindObject(conf_), nullptr);
  source_.Want({conf_}, {});
  EXPECT_NE(catalog_.FindObject(conf_), nullptr);
  EXPECT_EQ(catalog_.FindObject(other_), nullptr);
  source_.Want({other_}, {conf_});
  EXPECT_EQ(catalog_.FindObject(conf_), nullptr);
  EXPECT_NE(catalog_.FindObject(other_), nullptr);
}

}  // namespace
}  // namespace volumed
