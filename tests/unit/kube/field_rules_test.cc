// The edges of the rules for single values: the last value that is right and the first that is not.
#include "kube/field_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kube/target_uid.h"

namespace volumed {
namespace {

struct RuleCase {
  const TextRule* rule;
  std::vector<std::string> right;
  std::vector<std::string> wrong;
};

std::string Times(size_t count, char c = 'a') { return std::string(count, c); }

const std::string& Nul() {
  static const std::string kText("/a\0b", 4);
  return kText;
}

TEST(FieldRules, TakeTheLastRightValueAndRefuseTheFirstWrongOne) {
  const std::vector<RuleCase> cases = {
      {&rules::kAnyText, {"", "x\n"}, {}},
      {&rules::kNotEmpty, {"x", " "}, {""}},
      {&rules::kDnsLabel,
       {"a", "9", "a-b", "0a", Times(63)},
       {"", "-a", "a-", "a.b", "A", "a_b", "\xC3\xA4", Times(64)}},
      {&rules::kDnsSubdomain,
       {"a", "a.b", "a-1.b", Times(253), Times(64) + ".b"},
       {"", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "A.b", "a_b", Times(254)}},
      {&rules::kUid,
       {"u", "A-b_c", "9", Times(63)},
       {"", "-a", "_a", ".", "..", "a/b", "a.b", "a b", kTargetUidPrefix, "csi:a", Times(64)}},
      {&rules::kQualifiedName,
       {"a", "A.b_c-d", "x.y/A", Times(63), "a/" + Times(63)},
       {"", "/a", "a/", "A/b", "a/b/c", "-a", "a-", Times(64), "a/" + Times(64)}},
      {&rules::kLabelValue,
       {"", "A", "a.b_c-d", Times(63)},
       {"-", "a-", ".a", "a b", "a/b", Times(64)}},
      {&rules::kConfigKey,
       {"a", ".hidden", "a..b", "-", "A_b.c", Times(253)},
       {"", ".", "..", "..a", "a/b", "a b", Times(254)}},
      {&rules::kEnvName, {"A", "a b", "1", "~", "a.b-c"}, {"", "a=b", "a\tb", "\xC3\xA4", "a\x7f"}},
      {&rules::kHostPath,
       {"/", "/a", "/a/..b", "/a:b"},
       {"", "a", "/..", "/a/..", "/a/../b", Nul()}},
      {&rules::kMountPath, {"/", "/a/..b"}, {"", "a", "/a/..", "/a:b", Nul()}},
      {&rules::kSubPath, {"", "a", "a/..b", "./a"}, {"/a", "..", "a/..", "../a", Nul().substr(1)}},
      {&rules::kPayloadPath,
       {"a", "a/b", "a..b", "./a", "a/..b", Times(255)},
       {"", ".", "./", "/a", "..", "..a", "a/../b", Times(256), "a/" + Times(256)}},
      {&rules::kNfsPath, {"/", "/a/../b"}, {"", "a"}},
      {&rules::kMedium,
       {"", "Memory", "HugePages", "HugePages-2Mi", "HugePages-1Gi"},
       {"memory", "HugePages-", "HugePages-0", "HugePages--1", "HugePages-x", "HugePages2Mi"}},
      {&rules::kDriverName, {"a", "Csi.a-b", Times(63)}, {"", "a_b", "a/b", ".a", "a.", Times(64)}},
      {&rules::kFieldPath,
       {"metadata.name", "metadata.labels", "metadata.labels['a']", "metadata.annotations['x/y']",
        "status.hostIPs"},
       {"", "metadata", "metadata.names", "metadata.labels[a]", "metadata.labels['']",
        "metadata.labels['a'", "metadata.labels['-']", "metadata.uid['a']", "spec.hostname"}},
      {&rules::kResourceName,
       {"limits.cpu", "requests.memory", "limits.ephemeral-storage", "requests.hugepages-2Mi"},
       {"", "cpu", "limits.", "limits.hugepages-", "limits.gpu", "request.cpu", "limits.cpu "}},
      {&rules::kIqn, {"iqn.x", "eui.0", "naa.1"}, {"", "iqn.", "iqn", "IQN.x", "x"}},
      {&rules::kPullPolicy, {"", "Always", "Never", "IfNotPresent"}, {"always", "Sometimes"}},
      {&rules::kApiVersionV1, {"", "v1"}, {"v2", "V1", "apps/v1"}},
  };
  for (const RuleCase& test : cases) {
    for (const std::string& value : test.right) {
      const auto reason = test.rule->broken(value);
      EXPECT_FALSE(reason.has_value()) << test.rule->name << ": " << *reason;
    }
    for (const std::string& value : test.wrong) {
      EXPECT_TRUE(test.rule->broken(value).has_value())
          << test.rule->name << " takes \"" << value << "\"";
    }
    if (!test.rule->bad_example.empty()) {
      EXPECT_TRUE(test.rule->broken(test.rule->bad_example)) << test.rule->name;
    }
  }
}

TEST(FieldRules, APayloadPathIsNoReservedOneOnceItIsClean) {
  for (const char* path : {"..data", "./..data", ".//./..2026/x"}) {
    EXPECT_TRUE(rules::kPayloadPath.broken(path).has_value()) << path;
  }
  EXPECT_FALSE(rules::kPayloadPath.broken("./dir/..data").has_value());
}

TEST(FieldRules, APayloadPathIsBoundedAsTheKernelBoundsIt) {
  std::string path;
  for (int element = 0; element < 15; ++element) path += Times(255) + "/";
  EXPECT_FALSE(rules::kPayloadPath.broken(path + Times(254) + "/a").has_value());  // 4096 bytes
  EXPECT_EQ(rules::kPayloadPath.broken(path + Times(255) + "/a"), "is longer than 4096 bytes");
  EXPECT_EQ(rules::kPayloadPath.broken(Times(256)), "has an element longer than 255 bytes");
}

TEST(FieldRules, QuotedIsCutAndHidesWhatATerminalWouldAct) {
  EXPECT_EQ(Quoted("a\x1b[2J\x7f\n"), "\"a?[2J??\"");
  EXPECT_EQ(Quoted(Times(80)), "\"" + Times(80) + "\"");
  EXPECT_EQ(Quoted(Times(81)), "\"" + Times(80) + "...\"");
  EXPECT_EQ(Quoted("\xC3\xA4"), "\"\xC3\xA4\"");
}

TEST(FieldRules, CleanPathKeepsMeaning) {
  const std::pair<const char*, const char*> cases[] = {
      {"", ""},    {"/", "/"}, {"//a//b/", "/a/b"}, {"./a/./b", "a/b"},  {"a/../b", "a/../b"},
      {"/.", "/"}, {".", ""},  {"..", ".."},        {"/a/...", "/a/..."}};
  for (const auto& [path, clean] : cases) EXPECT_EQ(CleanPath(path), clean) << path;
}

TEST(FieldRules, TimestampsAreThoseOfRfc3339) {
  const std::pair<const char*, int64_t> right[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1969-12-31T23:59:59.999Z", -1},
      {"2024-02-29T00:00:00z", 1709164800000},
      {"2024-02-29t01:30:00+01:30", 1709164800000},
      {"2024-02-28T22:00:00-02:00", 1709164800000},
      {"1970-01-01T00:00:00.5Z", 500},
      {"1970-01-01T00:00:00.123999999Z", 123},
  };
  for (const auto& [text, millis] : right) EXPECT_EQ(ParseTimestamp(text), millis) << text;
  for (const char* text : {"", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01 00:00:00Z",
                           "1970-1-01T00:00:00Z", "2023-02-29T00:00:00Z", "1970-00-01T00:00:00Z",
                           "1970-13-01T00:00:00Z", "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z",
                           "1970-01-01T00:00:60Z", "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00Zx",
                           "-970-01-01T00:00:00Z", "1970-01-01T00:00:00+0100"}) {
    EXPECT_FALSE(ParseTimestamp(text).has_value()) << text;
  }
  for (const int64_t millis : {int64_t{0}, int64_t{1767323045678}, int64_t{-1000}, int64_t{-1}}) {
    EXPECT_EQ(ParseTimestamp(FormatTimestamp(millis)), millis) << FormatTimestamp(millis);
  }
  EXPECT_EQ(FormatTimestamp(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatTimestamp(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(FormatTimestamp(1709164800007), "2024-02-29T00:00:00.007Z");
}

}  // namespace
}  // namespace volumed
