// What `apply --replace` stores, what an apply without it refuses, whose uid an object keeps, and
// since when it is there.
#include <fstream>
#include <iterator>
#include <set>

#include "unit/kube/object_directory_fixture.h"

namespace volumed {
namespace {

class ObjectDirectoryReplaceTest : public ObjectDirectoryTest {
 protected:
  // A pod whose one volume has this name.
  static Object With(const std::string& volume, const std::string& uid = "",
                     const std::string& name = "web") {
    return DecodeOne(PodYaml(name, uid, "  volumes: [{name: " + volume + ", emptyDir: {}}]\n"));
  }
  Result<std::vector<AppliedObject>> Replace(ObjectDirectory& directory, Object object,
                                             std::set<PodUid> gone = {},
                                             std::map<ObjectKey, PodUid> pods = {}) {
    ApplyCommand command;
    command.objects.push_back(std::move(object));
    command.number = ++number_;
    command.replace = true;
    command.gone = std::move(gone);
    command.pods = std::move(pods);
    return directory.Apply(std::move(command));
  }
  static std::string Refusal(const Result<std::vector<AppliedObject>>& result) {
    EXPECT_FALSE(result.ok());
    if (result.ok()) return "";
    EXPECT_FALSE(result.error().maybe_applied());
    return result.error().message();
  }
  PodUid UidOf(const Result<std::vector<AppliedObject>>& applied) {
    EXPECT_TRUE(applied.ok());
    return applied.ok() ? std::get<Pod>(*applied->at(0).object).uid() : PodUid();
  }
  std::set<PodUid> Replaced() {
    Settle();
    return last_.objects.at(0).replaces;
  }
};

TEST_F(ObjectDirectoryReplaceTest, AnApplyOfOtherVolumesNamesReplaceAndTheDataThatWouldGo) {
  const auto directory = Open();
  const std::string data =
      "  volumes:\n  - {name: cache, emptyDir: {}}\n  - {name: m, emptyDir: {medium: Memory}}\n";
  ASSERT_TRUE(Apply(*directory, {DecodeOne(PodYaml("web", "", data))}).ok());
  EXPECT_EQ(
      Refusal(Apply(*directory, {With("other")})),
      "Pod default/web-n1 is invalid: spec.volumes: Forbidden: spec.volumes is immutable under "
      "the same uid; `volumectl apply --replace` replaces the pod by another one with a new "
      "uid, once its consumers are gone; the data of these volumes goes with it: cache");
  Settle();
  EXPECT_EQ(std::get<Pod>(*last_.objects.at(0).object).spec.volumes.size(), 2U);
}

TEST_F(ObjectDirectoryReplaceTest, AReplacementHasAnotherUidAndSaysForGoodWhomItReplaces) {
  auto directory = Open();
  const PodUid first = UidOf(Apply(*directory, {With("one")}));
  const auto replaced = Replace(*directory, With("two"));
  const PodUid second = UidOf(replaced);
  EXPECT_NE(first, second);
  EXPECT_EQ(replaced->at(0).what, AppliedObject::What::kReplaced);
  ASSERT_NE(replaced->at(0).before, nullptr);
  EXPECT_EQ(std::get<Pod>(*replaced->at(0).before).uid(), first);
  EXPECT_EQ(Replaced(), std::set<PodUid>{first});
  // An edit of something else keeps it, with the flag or without.
  Object labelled = With("two");
  MetaOf(labelled).labels["a"] = "b";
  EXPECT_EQ(UidOf(Replace(*directory, labelled)), second);
  Settle();
  EXPECT_EQ(MetaOf(*last_.objects.at(0).object).labels.at("a"), "b");
  EXPECT_EQ(Replaced(), std::set<PodUid>{first});
  directory = Open();
  EXPECT_EQ(Replaced(), std::set<PodUid>{first});
  EXPECT_EQ(MetaOf(*last_.objects.at(0).object).uid, second.str());
}

TEST_F(ObjectDirectoryReplaceTest, WithTheSameVolumesItIsAnApplyLikeAnyOther) {
  const auto directory = Open();
  const PodUid first = UidOf(Replace(*directory, With("one")));
  const auto again = Replace(*directory, With("one"));
  EXPECT_EQ(UidOf(again), first);
  EXPECT_EQ(again->at(0).what, AppliedObject::What::kUnchanged);
  EXPECT_EQ(Replaced(), std::set<PodUid>());
}

TEST_F(ObjectDirectoryReplaceTest, ASecondReplacementKeepsTheFirstPredecessorUntilThatIsGone) {
  const auto directory = Open();
  const PodUid first = UidOf(Apply(*directory, {With("one")}));
  const PodUid second = UidOf(Replace(*directory, With("two")));
  const PodUid third = UidOf(Replace(*directory, With("three")));
  EXPECT_EQ(Replaced(), (std::set<PodUid>{first, second}));
  EXPECT_EQ(last_.objects.size(), 1U);
  (void)UidOf(Replace(*directory, With("four"), {first, second}));
  EXPECT_EQ(Replaced(), std::set<PodUid>{third});
}

TEST_F(ObjectDirectoryReplaceTest, TheSuccessorGoesWithItsPredecessorOnlyWhenThatIsAskedFor) {
  const auto directory = Open();
  const PodUid first = UidOf(Apply(*directory, {With("one")}));
  (void)UidOf(Replace(*directory, With("two")));
  const auto exact = directory->DeletePod(first);
  ASSERT_FALSE(exact.ok());
  EXPECT_EQ(exact.error().code(), Code::kNotFound);
  EXPECT_TRUE(directory->DeletePod(first, /*successor_too=*/true).ok());
  EXPECT_EQ(Names(), "");
}

TEST_F(ObjectDirectoryReplaceTest, AManifestThatNamesAUidNamesThatOfTheNewPod) {
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {With("one", "u-1")}).ok());
  EXPECT_NE(Refusal(Replace(*directory, With("two", "u-1")))
                .find("names the uid of the pod that it is to replace"),
            std::string::npos);
  // The volumes are the same: nothing is replaced, and the uid is that of before.
  EXPECT_NE(Refusal(Replace(*directory, With("one", "u-2"))).find("the object has the uid u-1"),
            std::string::npos);
  EXPECT_EQ(UidOf(Replace(*directory, With("two", "u-2"))), PodUid("u-2"));
  EXPECT_EQ(Replaced(), std::set<PodUid>{PodUid("u-1")});
}

TEST_F(ObjectDirectoryReplaceTest, ObjectsThatHoldDataAreNotReplaced) {
  const auto directory = Open();
  const auto volume = [](const std::string& path) {
    return DecodeOne(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n"
        "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
        "  hostPath: {path: " +
        path + "}\n");
  };
  ASSERT_TRUE(Apply(*directory, {volume("/srv/a")}).ok());
  const std::string refusal = Refusal(Replace(*directory, volume("/srv/b")));
  EXPECT_NE(refusal.find("spec.persistentvolumesource is immutable after creation"),
            std::string::npos);
  EXPECT_NE(refusal.find("--replace is for pods alone, since this object may hold data: delete it"),
            std::string::npos)
      << refusal;
  EXPECT_TRUE(Replace(*directory, volume("/srv/a")).ok());
}

TEST_F(ObjectDirectoryReplaceTest, AnotherUidThanTheStoredOneIsRefusedInTheCatalogsWords) {
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {With("one", "u-1")}).ok());
  EXPECT_EQ(Refusal(Apply(*directory, {With("one", "u-2")})),
            "Pod default/web is invalid: metadata.uid: is immutable: the object has the uid u-1, "
            "and keeps it as long as it is there");
  // A uid that appears is another one too: a static pod has got one.
  const PodUid given = UidOf(Apply(*directory, {With("one")}));
  EXPECT_NE(Refusal(Apply(*directory, {With("one", "u-3", "web-n1")}))
                .find("the object has the uid " + given.str()),
            std::string::npos);
}

TEST_F(ObjectDirectoryReplaceTest, APodWhoseFileIsDamagedIsAppliedAnewWithTheUidOnRecord) {
  const std::map<ObjectKey, PodUid> known = {
      {{ObjectKind::kPod, "default", "web-n1"}, PodUid("u-1")}};
  fs::create_directories(path_);
  std::ofstream(path_ / "pod.default.web-n1.json") << "torn";
  const auto directory = Open();
  const auto applied = directory->Apply({{With("one")}, ++number_, {}, false, known, {}});
  EXPECT_EQ(UidOf(applied), PodUid("u-1"));
  EXPECT_TRUE(directory->DeletePod(PodUid("u-1")).ok());
  const auto replaced = Replace(*directory, With("two"), {}, known);
  EXPECT_NE(UidOf(replaced), PodUid("u-1"));
  EXPECT_EQ(Replaced(), std::set<PodUid>{PodUid("u-1")});
}

TEST_F(ObjectDirectoryReplaceTest, AFileThatDoesNotSayWhomItsPodReplacesIsDamaged) {
  auto directory = Open();
  (void)UidOf(Apply(*directory, {With("one")}));
  (void)UidOf(Replace(*directory, With("two")));
  const fs::path file = path_ / "pod.default.web-n1.json";
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t list = text.find("\"replaces\":[");
  ASSERT_NE(list, std::string::npos);
  text.replace(list, text.find(']', list) + 1 - list, "\"replaces\":[7]");
  std::ofstream(file) << text;
  directory = Open();
  EXPECT_EQ(Names(), "");
  ASSERT_EQ(last_.unknown.size(), 1U);
  EXPECT_NE(ProblemsText(last_.problems).find("does not say which pods its pod replaces"),
            std::string::npos);
}

TEST_F(ObjectDirectoryReplaceTest, AnObjectIsAsOldAsItsFirstApply) {
  const auto created = [this] {
    Settle();
    return MetaOf(*last_.objects.at(0).object).creation_unix_millis;
  };
  auto directory = Open();
  const int64_t begun = scheduler_.clock().WallUnixMillis() / 1000 * 1000;
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  EXPECT_EQ(created(), begun);
  scheduler_.RunFor(std::chrono::seconds(90));
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "2"))}).ok());
  EXPECT_EQ(created(), begun);
  directory = Open();
  EXPECT_EQ(created(), begun);
  EXPECT_EQ(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "2"))})->at(0).what,
            AppliedObject::What::kUnchanged);
  Remove(*directory, {ObjectKind::kConfigMap, "default", "c"});
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "2"))}).ok());
  EXPECT_EQ(created(), begun + 90'000);
}

TEST_F(ObjectDirectoryReplaceTest, AReplacementIsNoOlderThanItsCommand) {
  const auto directory = Open();
  (void)UidOf(Apply(*directory, {With("one")}));
  scheduler_.RunFor(std::chrono::seconds(90));
  const auto replaced = Replace(*directory, With("two"));
  ASSERT_TRUE(replaced.ok());
  EXPECT_EQ(*MetaOf(*replaced->at(0).object).creation_unix_millis -
                *MetaOf(*replaced->at(0).before).creation_unix_millis,
            90'000);
}

TEST_F(ObjectDirectoryReplaceTest, NobodyKnowsSinceWhenAnObjectOfAFormerFileIsThere) {
  fs::create_directories(path_);
  std::ofstream(path_ / "configmap.default.c.json")
      << R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"data":{"k":"1"}})";
  const auto directory = Open();
  ASSERT_EQ(Names(), "c ");
  EXPECT_EQ(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))})->at(0).what,
            AppliedObject::What::kUnchanged);
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "2"))}).ok());
  Settle();
  EXPECT_FALSE(MetaOf(*last_.objects.at(0).object).creation_unix_millis.has_value());
}

}  // namespace
}  // namespace volumed
