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

#include "base/simulated_scheduler.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

class ObjectDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/volumed-objects-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    root_ = name;
    path_ = root_ / "objects";
  }
  void TearDown() override {
    fs::permissions(root_, fs::perms::owner_all);
    fs::remove_all(root_);
  }

  std::unique_ptr<ObjectDirectory> Open() {
    auto directory = std::make_unique<ObjectDirectory>(path_.string(), NodeName("n1"), scheduler_);
    directory->Start([this](ObjectList list) { last_ = std::move(list); });
    Settle();
    return directory;
  }
  void Settle() { ASSERT_TRUE(scheduler_.RunUntilIdle(std::chrono::seconds(1))); }
  std::string Names() {
    Settle();
    std::string names;
    for (const auto& object : last_.objects) names += MetaOf(*object.object).name + " ";
    return names;
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  SimulatedScheduler scheduler_{1};
  fs::path root_;
  fs::path path_;
  ObjectList last_;
};

const char kSecret[] =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hunter2}\n";

// The results of one apply were once told of the wrong objects, as they come back sorted.
TEST_F(ObjectDirectoryTest, EachResultIsOfItsOwnObject) {
  auto directory = Open();
  ASSERT_TRUE(directory->Apply({DecodeOne(kSecret), DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  const auto applied = directory->Apply({DecodeOne(ConfigMapYaml("c", "2")), DecodeOne(kSecret),
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
  const auto applied = directory->Apply(
      {DecodeOne(PodYaml("web", "")), DecodeOne(kSecret), DecodeOne(ConfigMapYaml("c", "1"))});
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

TEST_F(ObjectDirectoryTest, ReplacesTheObjectOfTheSameName) {
  const auto directory = Open();
  ASSERT_TRUE(directory->Apply({DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  ASSERT_TRUE(directory->Apply({DecodeOne(ConfigMapYaml("c", "2"))}).ok());
  EXPECT_EQ(Names(), "c ");
  EXPECT_EQ(std::get<ConfigMapObject>(*last_.objects[0].object).data.at("k"), "2");
}

TEST_F(ObjectDirectoryTest, DeletesByKeyAndByUid) {
  auto directory = Open();
  ASSERT_TRUE(
      directory->Apply({DecodeOne(PodYaml("web", "u-1")), DecodeOne(ConfigMapYaml("c", "1"))})
          .ok());
  EXPECT_TRUE(directory->DeletePod(PodUid("u-1")).ok());
  EXPECT_EQ(Names(), "c ");
  EXPECT_TRUE(directory->Delete({ObjectKind::kConfigMap, "default", "c"}).ok());
  EXPECT_EQ(Names(), "");
  EXPECT_EQ(directory->DeletePod(PodUid("u-1")).error().code(), Code::kNotFound);
  EXPECT_EQ(directory->Delete({ObjectKind::kConfigMap, "default", "c"}).error().code(),
            Code::kNotFound);
  directory = Open();
  EXPECT_EQ(Names(), "");
}

TEST_F(ObjectDirectoryTest, RefusesWhatWouldBreakARule) {
  const auto directory = Open();
  ASSERT_TRUE(directory->Apply({DecodeOne(PodYaml("web", "u-1"))}).ok());
  const auto code = [&](std::vector<Object> objects) {
    const auto result = directory->Apply(std::move(objects));
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
  // A pod of the same name and another uid is another pod.
  EXPECT_TRUE(directory->Apply({DecodeOne(PodYaml("web", "u-2"))}).ok());
}

TEST_F(ObjectDirectoryTest, BrokenFilesGoToQuarantineAndLeftoversAway) {
  auto directory = Open();
  ASSERT_TRUE(directory->Apply({DecodeOne(ConfigMapYaml("good", "1"))}).ok());
  std::ofstream(path_ / "pod.default.bad.json") << "{\"kind\": ";
  std::ofstream(path_ / "configmap.default.other.json")
      << EncodeObjectJson(DecodeOne(ConfigMapYaml("liar", "1")));
  std::ofstream(path_ / ".secret.default.s.json.tmp") << "half";
  directory = Open();
  EXPECT_TRUE(last_.complete);
  EXPECT_EQ(Names(), "good ");
  EXPECT_EQ(last_.problems.size(), 2U) << ProblemsText(last_.problems);
  EXPECT_NE(ProblemsText(last_.problems).find("moved to"), std::string::npos);
  EXPECT_TRUE(fs::exists(path_ / "quarantine" / "pod.default.bad.json"));
  EXPECT_TRUE(fs::exists(path_ / "quarantine" / "configmap.default.other.json"));
  EXPECT_FALSE(fs::exists(path_ / ".secret.default.s.json.tmp"));
  directory = Open();
  EXPECT_TRUE(last_.problems.empty());
}

TEST_F(ObjectDirectoryTest, IsNotCompleteWhenItCannotBeRead) {
  std::ofstream(path_.string()) << "a file where the directory should be";
  const auto directory = Open();
  EXPECT_FALSE(last_.complete);
  EXPECT_NE(ProblemsText(last_.problems).find("Not a directory"), std::string::npos)
      << ProblemsText(last_.problems);
  EXPECT_EQ(directory->Apply({DecodeOne(ConfigMapYaml("c", "1"))}).error().code(),
            Code::kFailedPrecondition);
  // Forget() looks again.
  fs::remove(path_);
  directory->Forget();
  Settle();
  EXPECT_TRUE(last_.complete);
}

TEST_F(ObjectDirectoryTest, NarrowsADirectoryThatIsOpenToOthers) {
  fs::create_directory(path_);
  fs::permissions(path_, fs::perms::all);
  Open();
  EXPECT_EQ(ModeOf(path_), 0700U);
}

TEST_F(ObjectDirectoryTest, KeepsObjectsWithVeryLongNames) {
  auto directory = Open();
  ASSERT_TRUE(directory
                  ->Apply({DecodeOne(ConfigMapYaml(std::string(250, 'a'), "1")),
                           DecodeOne(ConfigMapYaml(std::string(249, 'a') + "b", "1"))})
                  .ok());
  directory = Open();
  EXPECT_EQ(last_.objects.size(), 2U);
}

TEST_F(ObjectDirectoryTest, KeepsEveryStorageObjectAsItWasGiven) {
  std::ifstream fixture(std::string(VOLUMED_KUBE_TESTDATA) + "/every_field.yaml");
  std::ostringstream text;
  text << fixture.rdbuf();
  std::map<ObjectKey, Object> given;
  std::vector<Object> objects;
  for (DecodedObject& decoded : DecodeManifest("f", text.str()).objects) {
    if (!IsClusterScoped(KindOf(decoded.object)) &&
        KindOf(decoded.object) != ObjectKind::kPersistentVolumeClaim) {
      continue;
    }
    given.emplace(KeyOf(decoded.object), decoded.object);
    objects.push_back(std::move(decoded.object));
  }
  auto directory = Open();
  ASSERT_TRUE(directory->Apply(objects).ok());
  // An object without a namespace has a file without one.
  EXPECT_TRUE(fs::exists(path_ / "persistentvolume..pv-host.json"));
  EXPECT_TRUE(fs::exists(path_ / "persistentvolumeclaim.storage.data-0.json"));
  directory = Open();
  ASSERT_EQ(last_.objects.size(), given.size());
  for (const ObjectWithOrigin& object : last_.objects) {
    EXPECT_TRUE(*object.object == given.at(KeyOf(*object.object)))
        << ToString(KeyOf(*object.object));
  }
  EXPECT_TRUE(directory->Delete({ObjectKind::kPersistentVolume, "", "pv-host"}).ok());
  EXPECT_TRUE(directory->Delete({ObjectKind::kStorageClass, "", "manual"}).ok());
  Settle();
  EXPECT_EQ(last_.objects.size(), given.size() - 2);
}

}  // namespace
}  // namespace volumed
