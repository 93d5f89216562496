#include "kube/object_directory.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "kube/object_catalog.h"
#include "places.h"
#include "unit/kube/object_directory_fixture.h"

namespace volumed {
namespace {

const char kSecret[] =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2}\n";

// The results of one apply were once told of the wrong objects, as they come back sorted.
TEST_F(ObjectDirectoryTest, EachResultIsOfItsOwnObject) {
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(kSecret), DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  const auto applied = Apply(*directory, {DecodeOne(ConfigMapYaml("c", "2")), DecodeOne(kSecret),
                                          DecodeOne(ConfigMapYaml("new", "1"))});
  ASSERT_TRUE(applied.ok());
  std::map<std::string, AppliedObject::What> results;
  for (const AppliedObject& one : *applied) results[MetaOf(*one.object).name] = one.what;
  EXPECT_EQ(results,
            (std::map<std::string, AppliedObject::What>{{"c", AppliedObject::What::kChanged},
                                                        {"new", AppliedObject::What::kCreated},
                                                        {"s", AppliedObject::What::kUnchanged}}));
}

TEST_F(ObjectDirectoryTest, StoresAndLoadsAgainSecretsIncluded) {
  auto directory = Open();
  EXPECT_TRUE(last_.complete);
  EXPECT_EQ(last_.source, "volumectl-apply");
  const auto applied = Apply(*directory, {DecodeOne(PodYaml("web", "")), DecodeOne(kSecret),
                                          DecodeOne(ConfigMapYaml("c", "1"))});
  ASSERT_TRUE(applied.ok());
  ASSERT_EQ(applied->size(), 3U);
  EXPECT_EQ(MetaOf(*(*applied)[0].object).name, "web-n1");
  EXPECT_EQ(Names(), "web-n1 s c ");
  EXPECT_EQ(ModeOf(path_), 0700U);
  EXPECT_EQ(ModeOf(path_ / "secret.default.s.json"), 0600U);

  directory = Open();
  EXPECT_EQ(Names(), "web-n1 s c ");
  EXPECT_EQ(std::get<SecretObject>(*last_.objects[1].object).data.at("k").Reveal(), "hunter2");
  EXPECT_TRUE(last_.problems.empty()) << ProblemsText(last_.problems);
}

// The rest of them stayed below temporary names until the next start.
TEST_F(ObjectDirectoryTest, ASecretStayedBehindWhenOneOfManyCouldNotTakeItsName) {
  auto directory = Open();
  fs::create_directory(path_ / "secret.default.a.json");
  std::string first = kSecret;
  first.replace(first.find("name: s"), 7, "name: a");
  ASSERT_FALSE(Apply(*directory, {DecodeOne(first), DecodeOne(kSecret)}).ok());
  for (const auto& entry : fs::directory_iterator(path_)) {
    EXPECT_EQ(entry.path().filename(), "secret.default.a.json");
  }
}

TEST_F(ObjectDirectoryTest, ReplacesTheObjectOfTheSameName) {
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "2"))}).ok());
  EXPECT_EQ(Names(), "c ");
  EXPECT_EQ(std::get<ConfigMapObject>(*last_.objects[0].object).data.at("k"), "2");
}

TEST_F(ObjectDirectoryTest, DeletesByKeyAndByUid) {
  auto directory = Open();
  ASSERT_TRUE(
      Apply(*directory, {DecodeOne(PodYaml("web", "u-1")), DecodeOne(ConfigMapYaml("c", "1"))})
          .ok());
  EXPECT_TRUE(directory->DeletePod(PodUid("u-1")).ok());
  EXPECT_EQ(Names(), "c ");
  Remove(*directory, {ObjectKind::kConfigMap, "default", "c"});
  EXPECT_EQ(Names(), "");
  EXPECT_EQ(directory->DeletePod(PodUid("u-1")).error().code(), Code::kNotFound);
  directory = Open();
  EXPECT_EQ(Names(), "");
}

TEST_F(ObjectDirectoryTest, AThousandPodsGoByOneSyncAndAnAnswerForEach) {
  auto directory = Open();
  std::vector<Object> pods;
  std::vector<ObjectDirectory::PodToDelete> all;
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    pods.push_back(DecodeOne(PodYaml("web" + number, "u-" + number)));
    all.push_back({PodUid("u-" + number)});
  }
  ASSERT_TRUE(Apply(*directory, std::move(pods)).ok());
  // One cannot be removed, and another one is not there.
  fs::remove(path_ / "pod.default.web7.json");
  fs::create_directory(path_ / "pod.default.web7.json");
  all.push_back({PodUid("u-none")});
  const uint64_t before = directory->removal_syncs();
  const std::vector<Result<std::string>> deleted = directory->DeletePods(all);
  EXPECT_EQ(directory->removal_syncs() - before, 1u);
  ASSERT_EQ(deleted.size(), 1001u);
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(deleted[i].ok()) << i;
    EXPECT_EQ(deleted[i]->empty(), i != 7) << i << *deleted[i];
  }
  EXPECT_EQ(deleted[1000].error().code(), Code::kNotFound);
  scheduler_.RunFor(std::chrono::milliseconds(1));
  EXPECT_TRUE(last_.objects.empty());
  EXPECT_EQ(last_.problems.size(), 1u) << ProblemsText(last_.problems);
}

TEST_F(ObjectDirectoryTest, WhatEndsTogetherGoesByOneSync) {
  auto directory = Open();
  std::vector<Object> objects;
  std::vector<std::pair<ObjectKey, uint64_t>> commands;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "c" + std::to_string(i);
    objects.push_back(DecodeOne(ConfigMapYaml(name, "1")));
    commands.emplace_back(ObjectKey{ObjectKind::kConfigMap, "default", name}, 2);
  }
  ASSERT_TRUE(Apply(*directory, std::move(objects)).ok());
  const uint64_t before = directory->removal_syncs();
  directory->RemoveAll(commands);
  EXPECT_EQ(directory->removal_syncs() - before, 1u);
  EXPECT_EQ(Names(), "");
  directory = Open();
  EXPECT_EQ(Names(), "");
}

// A directory by the name of the file: root cannot unlink it either.
TEST_F(ObjectDirectoryTest, APodGoesEvenIfItsFileStaysAndTheFileIsRetried) {
  const fs::path file = path_ / "pod.default.web.json";
  auto directory = Open();
  ASSERT_TRUE(
      Apply(*directory, {DecodeOne(PodYaml("web", "u-1")), DecodeOne(ConfigMapYaml("c", "1"))})
          .ok());
  fs::remove(file);
  fs::create_directory(file);
  const Result<std::string> deleted = directory->DeletePod(PodUid("u-1"));
  ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_NE(deleted->find(file.string() + ": Is a directory"), std::string::npos) << *deleted;
  EXPECT_NE(deleted->find("restart"), std::string::npos) << *deleted;
  scheduler_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(last_.objects.size(), 1U);
  EXPECT_TRUE(last_.complete);
  EXPECT_EQ(ProblemsText(last_.problems), file.string() + ": " + *deleted + "\n");
  // To read everything again does not bring it back.
  directory->Forget();
  scheduler_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(last_.objects.size(), 1U);

  fs::remove(file);
  std::ofstream(file) << "{}";
  ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::minutes(3)));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_TRUE(last_.problems.empty()) << ProblemsText(last_.problems);
}

TEST_F(ObjectDirectoryTest, APodAppliedAnewIsNotRemovedByAnEarlierDelete) {
  const fs::path file = path_ / "pod.default.web.json";
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(PodYaml("web", "u-1"))}).ok());
  fs::remove(file);
  fs::create_directory(file);
  ASSERT_TRUE(directory->DeletePod(PodUid("u-1")).ok());
  fs::remove(file);
  ASSERT_TRUE(Apply(*directory, {DecodeOne(PodYaml("web", "u-2"))}).ok());
  ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::minutes(3)));
  EXPECT_TRUE(fs::exists(file));
  EXPECT_EQ(Names(), "web ");
  EXPECT_TRUE(last_.problems.empty());
}

TEST_F(ObjectDirectoryTest, AskedFirstWhetherThereIsRoomItWritesNothingWithout) {
  Status room = OkStatus();
  ObjectDirectory directory(path_.string(), NodeName("n1"), scheduler_, "1.2.3",
                            [&] { return room; });
  directory.Start([this](ObjectUpdate update) { last_ = mirror_.Take(std::move(update)); });
  Settle();
  ASSERT_TRUE(Apply(directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  room = Error::NotApplied(Code::kResourceExhausted, "the disk is full");
  const auto refused = Apply(directory, {DecodeOne(ConfigMapYaml("c", "2"))});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  EXPECT_NE(refused.error().message().find("the disk is full"), std::string::npos);
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
  // What changes nothing needs no room, and what takes away needs none.
  EXPECT_TRUE(Apply(directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  Remove(directory, {ObjectKind::kConfigMap, "default", "c"});
  EXPECT_EQ(Names(), "");
}

TEST_F(ObjectDirectoryTest, AnApplyThatFailsLeavesNothingHalfWritten) {
  auto directory = Open();
  // The temporary file of the second cannot be made.
  fs::create_directories(path_ / ".configmap.default.b.json.tmp" / "x");
  EXPECT_FALSE(
      Apply(*directory, {DecodeOne(ConfigMapYaml("a", "1")), DecodeOne(ConfigMapYaml("b", "1"))})
          .ok());
  EXPECT_FALSE(fs::exists(path_ / ".configmap.default.a.json.tmp"));
  EXPECT_EQ(Names(), "");
}

TEST_F(ObjectDirectoryTest, RefusesWhatWouldBreakARule) {
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(PodYaml("web", "u-1"))}).ok());
  const auto code = [&](std::vector<Object> objects) {
    const auto result = Apply(*directory, std::move(objects));
    EXPECT_FALSE(result.ok());
    EXPECT_FALSE(result.ok() || result.error().maybe_applied());
    return result.ok() ? Code::kInternal : result.error().code();
  };
  EXPECT_EQ(code({DecodeOne(PodYaml("web", "u-1", "  volumes: [{name: v}]\n"))}),
            Code::kFailedPrecondition);
  EXPECT_EQ(code({DecodeOne(PodYaml("other", "u-1"))}), Code::kAlreadyExists);
  EXPECT_EQ(code({DecodeOne(ConfigMapYaml("c", "1")), DecodeOne(ConfigMapYaml("c", "2"))}),
            Code::kInvalidArgument);
  EXPECT_EQ(Names(), "web ");
  EXPECT_EQ(code({DecodeOne(PodYaml("web", "u-2"))}), Code::kFailedPrecondition);
  // A pod of the same name and another uid is another pod, which comes after the first one.
  ASSERT_TRUE(directory->DeletePod(PodUid("u-1")).ok());
  EXPECT_TRUE(Apply(*directory, {DecodeOne(PodYaml("web", "u-2"))}).ok());
}

// Rules are for the door: a later program's must not take away what an earlier one has accepted.
TEST_F(ObjectDirectoryTest, WhatIsStoredIsTakenAlthoughARuleWouldRefuseIt) {
  auto directory = Open();
  const char refused[] =
      "{\"volumed\":{\"format\":1,\"number\":7,\"writtenBy\":\"0.1\"},\"apiVersion\":\"v1\","
      "\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"v\"},\"nobodyKnows\":1,\"spec\":"
      "{\"capacity\":{\"storage\":\"0\"},\"accessModes\":[\"ReadWriteOncePod\",\"ReadWriteOnce\"],"
      "\"hostPath\":{\"path\":\"/srv/../x\"}}}";
  EXPECT_FALSE(DecodeManifest("f", refused).problems.empty()) << "the door refuses it";
  std::ofstream(path_ / "persistentvolume..v.json") << refused;
  directory = Open();
  EXPECT_EQ(Names(), "v ");
  EXPECT_EQ(last_.objects.at(0).number, 7U);
  EXPECT_TRUE(last_.problems.empty()) << ProblemsText(last_.problems);
  // What a name would make of a directory is refused here too.
  std::ofstream(path_ / "persistentvolume..w.json")
      << "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"w\","
         "\"uid\":\"../x\"},\"spec\":{\"capacity\":{\"storage\":\"1\"},\"accessModes\":["
         "\"ReadWriteOnce\"],\"hostPath\":{\"path\":\"/srv\"}}}";
  std::ofstream(path_ / "configmap.default.later.json")
      << "{\"volumed\":{\"format\":2,\"number\":1},\"kind\":\"ConfigMap\"}";
  directory = Open();
  EXPECT_EQ(Names(), "v ");
  ASSERT_EQ(last_.unknown.size(), 2U);
  EXPECT_EQ(last_.unknown[0].reason,
            "was written by a later program, in format 2; this one knows up to 1");
  EXPECT_EQ(last_.unknown[1].reason,
            "PersistentVolume w: metadata.uid: \"../x\" is not a usable uid (letters, digits, '-' "
            "and '_', at most 63)")
      << "whoever tells it names the file";
}

TEST_F(ObjectDirectoryTest, EachFileSaysByWhichCommandItWasGiven) {
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("a", "1"))}).ok());
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("b", "1"))}).ok());
  directory = Open();
  ASSERT_EQ(last_.objects.size(), 2U);
  EXPECT_EQ(last_.objects[0].number, 1U);
  EXPECT_EQ(last_.objects[1].number, 2U);
  std::ifstream file(path_ / "configmap.default.a.json");
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text.find("{\"volumed\":{\"format\":1,\"number\":1,\"writtenBy\":\"1.2.3\"},"), 0U)
      << text;
}

TEST_F(ObjectDirectoryTest, AFileOfAnEarlierCommandThanTheDeletionGoesAndALaterOneStays) {
  const ObjectKey key{ObjectKind::kConfigMap, "default", "c"};
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  directory->Remove(key, 1);
  EXPECT_EQ(Names(), "c ") << "it was given by that command or a later one";
  directory->Remove(key, 2);
  EXPECT_EQ(Names(), "");
  EXPECT_FALSE(fs::exists(path_ / "configmap.default.c.json"));
  number_ = 2;
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  directory->Remove(key, 2);  // the last agent's, told again
  EXPECT_EQ(Names(), "c ");
  // Told before the directory is read: a crash had come between the record and the file.
  ObjectDirectory later(path_.string(), NodeName("n1"), scheduler_, "1.2.3");
  later.Remove(key, 4);
  later.Start([this](ObjectUpdate update) { last_ = mirror_.Take(std::move(update)); });
  EXPECT_EQ(Names(), "");
  EXPECT_FALSE(fs::exists(path_ / "configmap.default.c.json"));
}

// The claim that was given then got the uid of the deleted one, and with it that one's end.
TEST_F(ObjectDirectoryTest, AClaimThatWasAppliedBeforeTheDeletedOnesFileWentWasThatOneStill) {
  const auto claim = [] {
    return DecodeOne(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: "
        "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n");
  };
  const ObjectKey key{ObjectKind::kPersistentVolumeClaim, "default", "data"};
  auto directory = Open();
  const auto first = Apply(*directory, {claim()});
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  // Command 2 has ended it, and its removal is still on the way.
  ApplyCommand anew{.objects = {claim()}, .number = 3, .ended = {{key, 2}}};
  const auto second = directory->Apply(std::move(anew));
  ASSERT_TRUE(second.ok()) << second.error().ToString();
  EXPECT_NE(MetaOf(*second->front().object).uid, MetaOf(*first->front().object).uid);
  directory->Remove(key, 2);
  EXPECT_EQ(Names(), "data ");
}

// The record of the deletion went as soon as the object was listed no more, although its file was
// still there: the next start took the object for an existing one.
TEST_F(ObjectDirectoryTest, TheRecordOfADeletionLastsAsLongAsAFileThatCannotBeRemoved) {
  const fs::path file = path_ / "configmap.default.c.json";
  const ObjectKey key{ObjectKind::kConfigMap, "default", "c"};
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  Names();
  ObjectCatalog catalog(scheduler_.clock());
  std::vector<ObjectKey> over;
  catalog.SetEndedListener([&](const ObjectKey& ended) { over.push_back(ended); });
  catalog.Update(last_);
  fs::remove(file);
  fs::create_directory(file);  // root cannot unlink it either

  catalog.End(key, "", ++number_);
  directory->Remove(key, number_);
  scheduler_.RunFor(std::chrono::seconds(1));
  catalog.Update(last_);
  EXPECT_EQ(catalog.LookUp(key).answer, ObjectLookup::Answer::kAbsent);
  EXPECT_NE(ProblemsText(last_.problems).find("could not be removed"), std::string::npos)
      << ProblemsText(last_.problems);
  EXPECT_TRUE(over.empty()) << "a start would find the file";
  // To read everything again changes nothing of that.
  directory->Forget();
  scheduler_.RunFor(std::chrono::seconds(1));
  catalog.Update(last_);
  EXPECT_TRUE(over.empty()) << "a start would find the file";

  fs::remove(file);
  ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::minutes(3)));
  EXPECT_TRUE(last_.objects.empty());
  EXPECT_TRUE(last_.problems.empty()) << ProblemsText(last_.problems);
  catalog.Update(last_);
  EXPECT_EQ(over, std::vector<ObjectKey>{key});
}

TEST_F(ObjectDirectoryTest, WhatIsGivenAnewTakesThePlaceOfAFileThatCouldNotBeRemoved) {
  const ObjectKey key{ObjectKind::kConfigMap, "default", "c"};
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  const fs::path file = path_ / "configmap.default.c.json";
  fs::remove(file);
  fs::create_directory(file);
  Remove(*directory, key);
  scheduler_.RunFor(std::chrono::seconds(1));
  ASSERT_EQ(last_.objects.size(), 1U);
  EXPECT_EQ(last_.objects[0].number, 1U) << "by which the catalog refuses it";
  // What is given anew takes its place.
  fs::remove(file);
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "2"))}).ok());
  ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::minutes(3)));
  EXPECT_EQ(Names(), "c ");
  EXPECT_EQ(last_.objects[0].number, 3U);
  EXPECT_TRUE(fs::exists(file));
  EXPECT_TRUE(last_.problems.empty()) << ProblemsText(last_.problems);
}

TEST_F(ObjectDirectoryTest, WhatIsImmutableIsRefusedInKubernetesWords) {
  const char volume[] =
      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {accessModes: "
      "[ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /srv/";
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(volume + std::string("a}}\n"))}).ok());
  const auto refused = Apply(*directory, {DecodeOne(volume + std::string("b}}\n"))});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_EQ(refused.error().message(),
            "PersistentVolume v is invalid: spec.persistentvolumesource: Forbidden: "
            "spec.persistentvolumesource is immutable after creation");
}

// All or nothing: a refused manifest leaves neither an object nor a file.
TEST_F(ObjectDirectoryTest, ARefusedApplyLeavesNothingOfItsGoodObjects) {
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(PodYaml("web", "u-1"))}).ok());
  EXPECT_FALSE(Apply(*directory, {DecodeOne(kSecret), DecodeOne(PodYaml("other", "u-1"))}).ok());
  EXPECT_EQ(Names(), "web ");
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(path_)) files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 1U);
}

TEST_F(ObjectDirectoryTest, AnUnchangedObjectIsNotWrittenAgain) {
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  struct stat before {};
  ASSERT_EQ(::stat((path_ / "configmap.default.c.json").c_str(), &before), 0);
  Settle();
  last_ = {};
  const auto again = Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->front().what, AppliedObject::What::kUnchanged);
  struct stat after {};
  ASSERT_EQ(::stat((path_ / "configmap.default.c.json").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  Settle();
  EXPECT_EQ(last_.source, "");  // nobody is told
}

TEST_F(ObjectDirectoryTest, KeepsObjectsWithVeryLongNames) {
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml(std::string(250, 'a'), "1")),
                                 DecodeOne(ConfigMapYaml(std::string(249, 'a') + "b", "1"))})
                  .ok());
  directory = Open();
  EXPECT_EQ(last_.objects.size(), 2U);
}

TEST_F(ObjectDirectoryTest, KeepsEveryStorageObjectAsItWasGiven) {
  std::ifstream fixture(SourcePath("tests/unit/kube/testdata/every_field.yaml"));
  std::ostringstream text;
  text << fixture.rdbuf();
  std::map<ObjectKey, Object> given;
  std::vector<Object> objects;
  for (DecodedObject& decoded : DecodeManifest("f", text.str()).objects) {
    if (!IsClusterScoped(KindOf(decoded.object)) &&
        KindOf(decoded.object) != ObjectKind::kPersistentVolumeClaim) {
      continue;
    }
    if (MetaOf(decoded.object).uid.empty()) MetaOf(decoded.object).uid = "given";
    MetaOf(decoded.object).creation_unix_millis = 1'767'323'045'000;
    given.emplace(KeyOf(decoded.object), decoded.object);
    objects.push_back(std::move(decoded.object));
  }
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, objects).ok());
  // An object without a namespace has a file without one.
  EXPECT_TRUE(fs::exists(path_ / "persistentvolume..pv-host.json"));
  EXPECT_TRUE(fs::exists(path_ / "persistentvolumeclaim.storage.data-0.json"));
  directory = Open();
  ASSERT_EQ(last_.objects.size(), given.size());
  for (const ObjectWithOrigin& object : last_.objects) {
    EXPECT_TRUE(*object.object == given.at(KeyOf(*object.object)))
        << ToString(KeyOf(*object.object));
  }
  Remove(*directory, {ObjectKind::kPersistentVolume, "", "pv-host"});
  Remove(*directory, {ObjectKind::kStorageClass, "", "manual"});
  Settle();
  EXPECT_EQ(last_.objects.size(), given.size() - 2);
}

const char kClaim[] =
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
const ObjectKey kClaimKey{ObjectKind::kPersistentVolumeClaim, "default", "data"};

TEST_F(ObjectDirectoryTest, AClaimKeepsItsUidUntilItIsMadeAnew) {
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(kClaim)}).ok());
  const auto again = Apply(*directory, {DecodeOne(kClaim)});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->at(0).what, AppliedObject::What::kUnchanged);
  const std::string uid = MetaOf(*again->at(0).object).uid;
  EXPECT_EQ(uid.size(), 36u);
  directory = Open();
  EXPECT_EQ(MetaOf(*last_.objects.at(0).object).uid, uid);
  Remove(*directory, kClaimKey);
  const auto anew = Apply(*directory, {DecodeOne(kClaim)});
  ASSERT_TRUE(anew.ok());
  EXPECT_NE(MetaOf(*anew->at(0).object).uid, uid);
}

}  // namespace
}  // namespace volumed
