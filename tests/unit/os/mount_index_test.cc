#include "os/mount_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MountIndex, APathIsAtOrBelowAnotherNameByName) {
  EXPECT_TRUE(IsAtOrBelow("/a", "/a"));
  EXPECT_TRUE(IsAtOrBelow("/a/b", "/a"));
  EXPECT_TRUE(IsAtOrBelow("/a", "/"));
  EXPECT_FALSE(IsAtOrBelow("/ab", "/a"));
  EXPECT_FALSE(IsAtOrBelow("/", "/a"));
}

TEST(MountIndex, WhatSortsBetweenAPathAndItsChildrenIsNotBelowIt) {
  MountIndex index;
  index.Put(5, "/a");
  index.Put(4, "/a b");
  index.Put(3, "/a-b");
  index.Put(2, "/a/b");
  index.Put(1, "/a0");
  index.Put(6, "/a/b/c");
  EXPECT_THAT(index.Below("/a"), ElementsAre(2, 5, 6));
  EXPECT_THAT(index.Below("/a/b"), ElementsAre(2, 6));
  EXPECT_THAT(index.Below("/"), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(index.Below("/b"), IsEmpty());
}

TEST(MountIndex, SeveralMountsMayBeAtOnePath) {
  MountIndex index;
  index.Put(9, "/run");
  index.Put(3, "/run");
  EXPECT_THAT(index.At("/run"), ElementsAre(3, 9));
  EXPECT_TRUE(index.Erase(3));
  EXPECT_FALSE(index.Erase(3));
  EXPECT_THAT(index.At("/run"), ElementsAre(9));
  EXPECT_EQ(index.Find(3), nullptr);
  EXPECT_EQ(*index.Find(9), "/run");
}

TEST(MountIndex, ANumberThatIsPutAgainIsAtItsNewPlaceOnly) {
  MountIndex index;
  index.Put(1, "/from");
  index.Put(1, "/to");
  EXPECT_THAT(index.Below("/from"), IsEmpty());
  EXPECT_THAT(index.Below("/to"), ElementsAre(1));
  EXPECT_EQ(index.size(), 1u);
}

TEST(MountIndex, AMovedIndexKeepsItsAnswers) {
  MountIndex index;
  for (uint64_t id = 0; id < 100; ++id) index.Put(id, "/" + std::to_string(id));
  MountIndex other;
  other = std::move(index);
  EXPECT_THAT(other.Below("/42"), ElementsAre(42));
  other = MountIndex();
  EXPECT_EQ(other.size(), 0u);
  EXPECT_THAT(other.Below("/"), IsEmpty());
}

TEST(MountIndex, AnswersAsAScanWould) {
  std::mt19937 random(1);
  const auto path = [&random] {
    const std::vector<std::string> names = {"/a", "/b", "/a.", "/a0"};
    std::string text;
    for (size_t depth = 1 + random() % 3; depth > 0; --depth) text += names[random() % 4];
    return text;
  };
  MountIndex index;
  std::map<uint64_t, std::string> all;
  for (int step = 0; step < 3000; ++step) {
    const uint64_t id = random() % 200;
    if (random() % 3 == 0) {
      EXPECT_EQ(index.Erase(id), all.erase(id) == 1);
    } else {
      all[id] = path();
      index.Put(id, all[id]);
    }
    const std::string asked = path();
    std::vector<uint64_t> at, below;
    for (const auto& [known, point] : all) {
      if (point == asked) at.push_back(known);
      if (IsAtOrBelow(point, asked)) below.push_back(known);
    }
    ASSERT_EQ(index.At(asked), at) << asked;
    ASSERT_EQ(index.Below(asked), below) << asked;
  }
}

}  // namespace
}  // namespace volumed
