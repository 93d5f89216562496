// ObjectDirectory: files that are damaged, foreign, or gone, and a directory that cannot be read.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kube/object_directory.h"
#include "unit/kube/object_directory_fixture.h"

namespace volumed {
namespace {

// It was moved away once, and its object read as deleted.
TEST_F(ObjectDirectoryTest, ADamagedFileStaysAndItsObjectIsUnknown) {
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("good", "1"))}).ok());
  std::ofstream(path_ / "persistentvolumeclaim.default.bad.json") << "{\"kind\": ";
  std::ofstream(path_ / "configmap.default.other.json")
      << EncodeObjectJson(DecodeOne(ConfigMapYaml("liar", "1")));
  std::ofstream(path_ / ".secret.default.s.json.tmp") << "half";
  directory = Open();
  EXPECT_TRUE(last_.complete);
  EXPECT_EQ(Names(), "good ");
  ASSERT_EQ(last_.unknown.size(), 2U);
  EXPECT_EQ(last_.unknown[0].key, (ObjectKey{ObjectKind::kConfigMap, "default", "other"}));
  EXPECT_EQ(last_.unknown[1].key,
            (ObjectKey{ObjectKind::kPersistentVolumeClaim, "default", "bad"}));
  EXPECT_EQ(last_.unknown[1].file, (path_ / "persistentvolumeclaim.default.bad.json").string());
  EXPECT_EQ(last_.unknown[1].reason, "is not a JSON object");
  EXPECT_EQ(last_.problems.size(), 2U) << ProblemsText(last_.problems);
  EXPECT_NE(ProblemsText(last_.problems).find("the file stays as it is"), std::string::npos);
  EXPECT_NE(last_.incomplete_because, "");
  EXPECT_TRUE(fs::exists(path_ / "persistentvolumeclaim.default.bad.json"));
  EXPECT_FALSE(fs::exists(path_ / ".secret.default.s.json.tmp"));
}

TEST_F(ObjectDirectoryTest, ADamagedFileIsResolvedByADeleteOrByAnApply) {
  auto directory = Open();
  const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, "default", "data"};
  std::ofstream(path_ / "persistentvolumeclaim.default.data.json") << "x";
  std::ofstream(path_ / "configmap.default.c.json") << "x";
  directory = Open();
  ASSERT_EQ(last_.unknown.size(), 2U);
  Remove(*directory, claim);
  Settle();
  EXPECT_EQ(last_.unknown.size(), 1U);
  EXPECT_FALSE(fs::exists(path_ / "persistentvolumeclaim.default.data.json"));
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  EXPECT_EQ(Names(), "c ");
  EXPECT_TRUE(last_.unknown.empty());
  EXPECT_TRUE(last_.problems.empty()) << ProblemsText(last_.problems);
  EXPECT_EQ(last_.incomplete_because, "");
}

TEST_F(ObjectDirectoryTest, AnObjectWhoseFileIsDamagedWhileItIsKnownIsHeld) {
  auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  std::ofstream(path_ / "configmap.default.c.json") << "x";
  directory->Forget();
  EXPECT_EQ(Names(), "c ");
  EXPECT_EQ(last_.objects.at(0).presence, ObjectPresence::kUnproven);
  EXPECT_TRUE(last_.unknown.empty());
  EXPECT_EQ(last_.problems.size(), 1U);
  // To apply what it had writes it anew.
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  EXPECT_EQ(Names(), "c ");
  EXPECT_EQ(last_.objects.at(0).presence, ObjectPresence::kPresent);
  directory = Open();
  EXPECT_EQ(Names(), "c ");
}

TEST_F(ObjectDirectoryTest, WhatAnEarlierProgramSetAsideIsShown) {
  fs::create_directories(path_ / "quarantine");
  std::ofstream(path_ / "quarantine" / "secret.default.s.json") << "x";
  const auto directory = Open();
  EXPECT_TRUE(last_.complete);
  ASSERT_EQ(last_.problems.size(), 1U);
  EXPECT_EQ(last_.problems[0].object, "Secret default/s");
  EXPECT_NE(last_.problems[0].reason.find("was set aside by an earlier program"),
            std::string::npos);
}

TEST_F(ObjectDirectoryTest, IsNotCompleteWhenItCannotBeRead) {
  std::ofstream(path_.string()) << "a file where the directory should be";
  const auto directory = Open();
  EXPECT_FALSE(last_.complete);
  EXPECT_NE(ProblemsText(last_.problems).find("Not a directory"), std::string::npos)
      << ProblemsText(last_.problems);
  EXPECT_EQ(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).error().code(),
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

TEST_F(ObjectDirectoryTest, AFileThatHoldsTwoObjectsOrNoneIsDamaged) {
  auto directory = Open();
  std::ofstream(path_ / "configmap.default.a.json") << ConfigMapYaml("a", "1") << "---\n"
                                                    << ConfigMapYaml("b", "1");
  std::ofstream(path_ / "configmap.default.n.json") << "# nothing\n";
  fs::create_symlink("/etc/hostname", path_ / "configmap.default.readme.txt");
  directory = Open();
  EXPECT_EQ(Names(), "");
  EXPECT_EQ(last_.problems.size(), 2U) << ProblemsText(last_.problems);
  EXPECT_EQ(last_.unknown.size(), 2U);
  EXPECT_TRUE(fs::exists(path_ / "configmap.default.a.json"));
}

// Through a link it would read, and later replace, somebody else's file.
TEST_F(ObjectDirectoryTest, ALinkIsNotFollowed) {
  auto directory = Open();
  std::ofstream(root_ / "outside.json") << EncodeObjectJson(DecodeOne(ConfigMapYaml("a", "1")));
  fs::create_symlink(root_ / "outside.json", path_ / "configmap.default.a.json");
  directory = Open();
  EXPECT_TRUE(last_.complete) << "one file says nothing about the others";
  EXPECT_EQ(Names(), "");
  EXPECT_EQ(last_.unknown.size(), 1U);
  EXPECT_NE(ProblemsText(last_.problems).find("configmap.default.a.json"), std::string::npos);
}

TEST_F(ObjectDirectoryTest, ADeletedFileOfAKnownObjectDoesNotStopItsDelete) {
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(ConfigMapYaml("c", "1"))}).ok());
  fs::remove(path_ / "configmap.default.c.json");
  Remove(*directory, {ObjectKind::kConfigMap, "default", "c"});
  EXPECT_EQ(Names(), "");
  EXPECT_TRUE(last_.problems.empty());
}

}  // namespace
}  // namespace volumed
