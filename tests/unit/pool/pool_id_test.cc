#include "pool/pool_id.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "pool/pool_layout.h"
#include "unit/crash/walk_sample.h"

namespace volumed {
namespace {

const std::string kId = "v-3fa91c02-0123456789abcdef01234567";

TEST(PoolId, IsReadAsItIsWritten) {
  for (const PoolObject object : {PoolObject::kVolume, PoolObject::kCut, PoolObject::kGroup}) {
    const PoolId id = NewPoolId(object, PoolTag("a-uuid"));
    EXPECT_EQ(ParsePoolId(id.ToString()), id) << id.ToString();
  }
  const std::optional<PoolId> parsed = ParsePoolId(kId);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->object, PoolObject::kVolume);
  EXPECT_EQ(parsed->pool_tag, "3fa91c02");
  EXPECT_EQ(parsed->serial, "0123456789abcdef01234567");
  EXPECT_EQ(parsed->ToString(), kId);
}

TEST(PoolId, IsNoOtherText) {
  const std::vector<std::string> texts = {"",
                                          "v",
                                          "v-",
                                          kId.substr(0, kId.size() - 1),
                                          kId + "0",
                                          kId + std::string(1, '\0'),
                                          kId + "/",
                                          " " + kId,
                                          "../" + kId,
                                          "w" + kId.substr(1),
                                          "V" + kId.substr(1),
                                          "v_3fa91c02-0123456789abcdef01234567",
                                          "v-3fa91c02_0123456789abcdef01234567",
                                          "v-3FA91C02-0123456789abcdef01234567",
                                          "v-3fa91c02-0123456789ABCDEF01234567",
                                          "v-3fa91c0g-0123456789abcdef01234567",
                                          "v-3fa91c02-..../...../......./.....",
                                          "v-3fa91c02-0123456789abcdef0123456/",
                                          "v-3fa91c02-0123456789abcdef012345\xc3\xa9",
                                          std::string("v-3fa91c02-0123456789abcdef012345\0\0", 35),
                                          std::string(1 << 20, 'v')};
  for (const std::string& text : texts) {
    EXPECT_FALSE(ParsePoolId(text).has_value()) << text.substr(0, 64);
  }
}

TEST(PoolId, SaysOfWhichPoolItIs) {
  const std::string tag = PoolTag("8a3a1fd4-54a7-4b0a-9d0a-2c63a3b0a001");
  EXPECT_EQ(tag.size(), 8u);
  EXPECT_NE(tag, PoolTag("8a3a1fd4-54a7-4b0a-9d0a-2c63a3b0a002"));
  EXPECT_EQ(NewPoolId(PoolObject::kVolume, tag).pool_tag, tag);
  // It is on the disks of nodes: it must stay what it is.
  EXPECT_EQ(PoolTag("abc"), "ba7816bf");
}

TEST(PoolId, IsAnotherOneEachTime) {
  EXPECT_NE(NewPoolId(PoolObject::kVolume, "3fa91c02"), NewPoolId(PoolObject::kVolume, "3fa91c02"));
}

// Changes, inserts, removes or doubles some of the text.
std::string Mangled(std::mt19937_64& random, std::string text) {
  static const std::string kBytes = std::string("/.-\0\n %\\vsg0af\xff\xc3", 16);
  for (uint64_t left = 1 + random() % 4; left > 0; --left) {
    const size_t at = text.empty() ? 0 : random() % text.size();
    const char byte =
        random() % 2 == 0 ? kBytes[random() % kBytes.size()] : static_cast<char>(random() % 256);
    switch (random() % 5) {
      case 0:
        if (!text.empty()) text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      case 2:
        text.erase(at, 1 + random() % 8);
        break;
      case 3:
        text.insert(at, random() % 2 == 0 ? "../" : "/");
        break;
      default:
        text += text.substr(at);
    }
  }
  return text;
}

// Whatever somebody sends for an id, the paths that are made of it are a name of its own below the
// pool.
TEST(PoolId, NeverLeadsOutOfThePool) {
  const PoolLayout layout("/srv/pool");
  std::mt19937_64 random(13);
  const int count = WalksEverything() ? 1'000'000 : 50'000;
  int read = 0;
  for (int round = 0; round < count; ++round) {
    const PoolObject object = static_cast<PoolObject>(random() % 3);
    const std::string text = Mangled(random, NewPoolId(object, "3fa91c02").ToString());
    const std::optional<PoolId> id = ParsePoolId(text);
    if (!id) continue;
    ++read;
    ASSERT_EQ(id->ToString(), text);
    ASSERT_EQ(text.find_first_not_of("vsg-0123456789abcdef"), std::string::npos) << text;
    ASSERT_EQ(layout.ArtefactDir(*id).root, "/srv/pool");
    const std::string directory = id->object == PoolObject::kCut ? "cuts/" : "volumes/";
    ASSERT_EQ(layout.Image(*id).relative, directory + text + "/image");
  }
  // Some changes leave an id one: otherwise nothing was looked at.
  EXPECT_GT(read, count / 1000);
}

TEST(PoolLayout, HasAPlaceForEverything) {
  const PoolLayout layout("/srv/pool");
  const PoolId id = ParsePoolId(kId).value();
  EXPECT_EQ(layout.Directory().Display(), "/srv/pool");
  EXPECT_EQ(layout.Marker().Display(), "/srv/pool/pool.volumed");
  EXPECT_EQ(layout.Lock().Display(), "/srv/pool/pool.lock");
  EXPECT_EQ(layout.Volumes().Display(), "/srv/pool/volumes");
  EXPECT_EQ(layout.ArtefactDir(id).Display(), "/srv/pool/volumes/" + kId);
  EXPECT_EQ(layout.Image(id).Display(), "/srv/pool/volumes/" + kId + "/image");
  EXPECT_EQ(layout.Description(id).Display(), "/srv/pool/volumes/" + kId + "/volume.json");
  EXPECT_EQ(layout.Image(id).resolve, Resolve::kNoSymlinks);
}

}  // namespace
}  // namespace volumed
