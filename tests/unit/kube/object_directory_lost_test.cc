// Applied objects whose files are gone without a command.
#include <gtest/gtest.h>

#include <utility>

#include "unit/kube/object_directory_fixture.h"

namespace volumed {
namespace {

class ObjectDirectoryLostTest : public ObjectDirectoryTest {
 protected:
  const ObjectKey kSecretKey{ObjectKind::kSecret, "default", "s"};

  KnownObject Known(const std::string& uid) const {
    Object pod = DecodeOne(PodYaml("web", uid));
    const ObjectKey key = KeyOf(pod);
    return {key, uid, (path_ / "pod.default.web.json").string(),
            std::make_shared<const Object>(std::move(pod))};
  }
  // A start, with what the last agent knew.
  std::unique_ptr<ObjectDirectory> OpenWith(std::vector<KnownObject> objects) {
    auto directory =
        std::make_unique<ObjectDirectory>(path_.string(), NodeName("n1"), scheduler_, "1.2.3");
    directory->Remember({std::move(objects), std::nullopt});
    directory->Start([this](ObjectUpdate update) { last_ = mirror_.Take(std::move(update)); });
    Settle();
    return directory;
  }
  std::vector<KnownObject> PodAndSecret() const {
    return {Known("u-1"), {kSecretKey, "", (path_ / "secret.default.s.json").string(), nullptr}};
  }
};

// The directory of objects was moved away once, and every pod with its data was taken for deleted.
TEST_F(ObjectDirectoryLostTest, WhatIsOnRecordStaysIfItsFileIsGoneWithoutACommand) {
  const auto directory = OpenWith(PodAndSecret());
  EXPECT_TRUE(last_.complete);
  ASSERT_EQ(last_.objects.size(), 1U);
  EXPECT_EQ(last_.objects[0].presence, ObjectPresence::kUnproven);
  EXPECT_EQ(last_.objects[0].reason, "its file is gone, and no command has ended it");
  ASSERT_EQ(last_.unknown.size(), 1U);
  EXPECT_EQ(last_.unknown[0].key, kSecretKey);
  EXPECT_NE(last_.incomplete_because, "");

  directory->Accept();
  EXPECT_EQ(Names(), "");
  EXPECT_TRUE(last_.unknown.empty());
  EXPECT_EQ(last_.incomplete_because, "");
}

TEST_F(ObjectDirectoryLostTest, ACommandEndsWhatIsLost) {
  const auto directory = OpenWith(PodAndSecret());
  EXPECT_TRUE(directory->DeletePod(PodUid("u-1")).ok());
  Remove(*directory, kSecretKey);
  EXPECT_EQ(Names(), "");
  EXPECT_TRUE(last_.unknown.empty());
  EXPECT_EQ(last_.incomplete_because, "");
}

TEST_F(ObjectDirectoryLostTest, AnObjectThatIsAppliedAnewIsLostNoMore) {
  const auto directory = OpenWith(PodAndSecret());
  ASSERT_TRUE(Apply(*directory, {DecodeOne(PodYaml("web", "u-1"))}).ok());
  EXPECT_EQ(Names(), "web ");
  EXPECT_EQ(last_.objects[0].presence, ObjectPresence::kPresent);
}

// It was answered "created", and the pod kept its former volumes for ever.
TEST_F(ObjectDirectoryLostTest, ALostPodWithOtherVolumesIsRefusedOrReplaced) {
  const auto directory = OpenWith(PodAndSecret());
  Object other = DecodeOne(PodYaml("web", "u-1"));
  std::get<Pod>(other).spec.volumes.push_back({"more", EmptyDirVolumeSource{}});
  const auto refused = Apply(*directory, {other});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("--replace"), std::string::npos)
      << refused.error().message();
  MetaOf(other).uid = "u-2";
  ApplyCommand replace{{other}, ++number_, {}, true, {{KeyOf(other), PodUid("u-1")}}};
  const auto replaced = directory->Apply(replace);
  ASSERT_TRUE(replaced.ok()) << replaced.error().message();
  Settle();
  ASSERT_EQ(last_.objects.size(), 1U);
  EXPECT_EQ(last_.objects[0].replaces, std::set<PodUid>{PodUid("u-1")});
}

TEST_F(ObjectDirectoryLostTest, APodWhoseDeletionIsOnRecordIsNotLost) {
  KnownObject pod = Known("u-1");
  pod.is_ending = true;
  const auto directory = OpenWith({pod});
  EXPECT_EQ(Names(), "");
  EXPECT_EQ(last_.incomplete_because, "");
}

TEST_F(ObjectDirectoryLostTest, AFileThatGoesWhileTheAgentRunsIsNoCommand) {
  const auto directory = Open();
  ASSERT_TRUE(Apply(*directory, {DecodeOne(PodYaml("web", "u-1"))}).ok());
  fs::remove(path_ / "pod.default.web.json");
  directory->Forget();
  EXPECT_EQ(Names(), "web ");
  EXPECT_EQ(last_.objects[0].presence, ObjectPresence::kUnproven);
}

}  // namespace
}  // namespace volumed
