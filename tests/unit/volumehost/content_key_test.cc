#include "volumehost/content_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/random.h"

namespace volumed {
namespace {

std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return hex;
}

std::string MacOf(const ContentKey& key, const std::string& first, const std::string& second) {
  ContentKey::Mac mac = key.Begin();
  mac.Add(first);
  mac.Add(second);
  return mac.End();
}

class ContentKeyTest : public ::testing::Test {
 protected:
  ContentKeyTest() { std::filesystem::create_directory(directory_); }
  ~ContentKeyTest() override { std::filesystem::remove_all(directory_); }

  std::string OpenedMac() {
    const auto key = ContentKey::Open(directory_ + "/keys");
    EXPECT_TRUE(key.ok());
    return key.ok() ? MacOf(**key, "a", "b") : "";
  }

  const std::string directory_ =
      (std::filesystem::temp_directory_path() / ("volumed-content-key-" + RandomHex(16))).string();
  const std::string file_ = directory_ + "/keys/content-key";
};

// Source: RFC 4231 section 4.2 has the key; its text follows its length, of eight bytes
// with the lowest first; the number is Python's.
TEST_F(ContentKeyTest, IsTheMacThatOthersCompute) {
  const ContentKey key{Secret<std::string>(std::string(20, '\x0b'))};
  ContentKey::Mac mac = key.Begin();
  mac.Add("Hi There");
  EXPECT_EQ(Hex(mac.End()), "7f576cd063ed3e3615e6bf957fc801d0f4d8cf70bc1a604ab2ba1d06c8732e2e");
}

TEST_F(ContentKeyTest, NoTextRunsIntoTheNext) {
  const ContentKey key{Secret<std::string>(std::string(32, 'k'))};
  EXPECT_EQ(MacOf(key, "ab", "c"), MacOf(key, "ab", "c"));
  EXPECT_NE(MacOf(key, "ab", "c"), MacOf(key, "a", "bc"));
  EXPECT_NE(MacOf(key, "", "abc"), MacOf(key, "abc", ""));
}

TEST_F(ContentKeyTest, TheKeyOutlivesTheAgentAndIsItsAlone) {
  const std::string before = OpenedMac();
  EXPECT_EQ(OpenedMac(), before);
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat((directory_ + "/keys").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(ContentKeyTest, AKeyThatOthersMayHaveReadIsMadeAnew) {
  const std::string before = OpenedMac();
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  EXPECT_NE(OpenedMac(), before);
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(ContentKeyTest, HalfAKeyIsMadeAnew) {
  const std::string before = OpenedMac();
  ASSERT_EQ(::truncate(file_.c_str(), 16), 0);
  const std::string after = OpenedMac();
  EXPECT_NE(after, before);
  EXPECT_EQ(OpenedMac(), after);
}

TEST_F(ContentKeyTest, WithoutAPlaceForItThereIsNone) {
  const auto key = ContentKey::Open(directory_ + "/no/where");
  ASSERT_FALSE(key.ok());
  EXPECT_EQ(key.error().outcome(), Outcome::kNotApplied);
}

}  // namespace
}  // namespace volumed
