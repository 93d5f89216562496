#include "kube/document_reader.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kube/decode.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

Json ReadOne(const std::string& text) {
  const std::vector<RawDocument> documents = ReadDocuments(text);
  EXPECT_EQ(documents.size(), 1U) << text;
  if (documents.size() != 1 || !documents[0].value) {
    ADD_FAILURE() << (documents.empty() ? "nothing" : documents[0].error);
    return {};
  }
  return *documents[0].value;
}

std::string ErrorOf(const std::string& text) {
  const std::vector<RawDocument> documents = ReadDocuments(text);
  EXPECT_EQ(documents.size(), 1U) << text;
  return documents.empty() ? "" : documents[0].error;
}

TEST(DocumentReader, PlainScalarsMeanWhatTheyMeanToKubernetes) {
  const std::vector<std::pair<std::string, Json>> cases = {
      {"", nullptr},
      {"~", nullptr},
      {"null", nullptr},
      {"yes", true},
      {"Off", false},
      {"n", false},
      {"true", true},
      {"TrUe", "TrUe"},
      {"0644", 420},
      {"0o644", 420},
      {"0x1F", 31},
      {"0b101", 5},
      {"1_000", 1000},
      {"-12", -12},
      {"+5", 5},
      {"-0x10", -16},
      {"9223372036854775807", 9223372036854775807LL},
      {"-9223372036854775808", std::numeric_limits<int64_t>::min()},
      {"18446744073709551615", 18446744073709551615ULL},
      {"0899", 899},  // not octal: a float that is whole
      {"1e3", 1000},
      {"1.5", 1.5},
      {".5", 0.5},
      {"-1.5", -1.5},
      {"1.2.3", "1.2.3"},
      {"1e", "1e"},
      {"-", "-"},
      {"10.0.0.1", "10.0.0.1"},
      {"1Gi", "1Gi"},
      {"2026-01-02", "2026-01-02"},
      {"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
      {"0x", "0x"},
      {"12:30:45", "12:30:45"},
      {"_", "_"},
  };
  for (const auto& [text, expected] : cases) {
    const auto value = ResolvePlainScalar(text);
    ASSERT_TRUE(value.has_value()) << text;
    EXPECT_EQ(*value, expected) << text;
    EXPECT_EQ(value->is_string(), expected.is_string()) << text;
  }
  for (const char* text : {".nan", ".inf", "-.INF"}) EXPECT_FALSE(ResolvePlainScalar(text)) << text;
}

// What sigs.k8s.io/yaml@v1.6.0 makes of these, as YAMLToJSON prints it. Unlike YAML 1.2, every one
// of YAML 1.1's words is a boolean, single letters included, in these three spellings only.
TEST(DocumentReader, BooleansAreThoseOfKubernetesParser) {
  for (const char* text :
       {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"}) {
    EXPECT_EQ(ReadOne(std::string("v: ") + text + "\n"), Json({{"v", true}})) << text;
    EXPECT_EQ(ReadOne(std::string("v: !!bool ") + text + "\n"), Json({{"v", true}})) << text;
    EXPECT_EQ(ReadOne(std::string(text) + ": v\n"), Json({{"true", "v"}})) << text;
  }
  for (const char* text :
       {"n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"}) {
    EXPECT_EQ(ReadOne(std::string("v: ") + text + "\n"), Json({{"v", false}})) << text;
    EXPECT_EQ(ReadOne(std::string(text) + ": v\n"), Json({{"false", "v"}})) << text;
  }
  for (const char* text : {"yEs", "oN", "tRue", "nO", "t", "f", "oui", "nULL"}) {
    EXPECT_EQ(ReadOne(std::string("v: ") + text + "\n"), Json({{"v", text}})) << text;
  }
  for (const char* text : {"'yes'", "\"yes\"", "!!str yes", "! yes"}) {
    EXPECT_EQ(ReadOne(std::string("v: ") + text + "\n"), Json({{"v", "yes"}})) << text;
    EXPECT_EQ(ReadOne(std::string(text) + ": v\n"), Json({{"yes", "v"}})) << text;
  }
  EXPECT_EQ(ReadOne("v: |\n yes\n"), Json({{"v", "yes\n"}}));
  EXPECT_EQ(ReadOne("v: !!bool 'on'\n"), Json({{"v", true}}));
  EXPECT_EQ(ReadOne("v: [y, 'y', no, off]\n"), Json({{"v", {true, "y", false, false}}}));
  EXPECT_EQ(ReadOne("v: {on: off}\n"), Json({{"v", {{"true", false}}}}));
  EXPECT_EQ(ErrorOf("yes: 1\ny: 2\n"), "line 2: has the key \"true\" twice in one map");
  EXPECT_EQ(ErrorOf("yes: 1\ntrue: 2\n"), "line 2: has the key \"true\" twice in one map");
}

TEST(DocumentReader, NumbersAreThoseOfKubernetesParser) {
  const std::vector<std::pair<std::string, Json>> cases = {
      {"0o17", 15},
      {"017", 15},
      {"0O7", 7},
      {"0X1F", 31},
      {"0B1", 1},
      {"-017", -15},
      {"-0o17", -15},
      {"-0b1", -1},
      {"08", 8},
      {"0o8", "0o8"},
      {"0xG", "0xG"},
      {"-0", 0},
      {"1.", 1},
      {"+.5", 0.5},
      {"1__0", 10},
      {"0.1_0", 0.1},
      {"1_0.5", 10.5},
      {"12e03", 12000},
      {"_1", "_1"},
      {"--1", "--1"},
      {"190:20:30", "190:20:30"},
      {"9223372036854775808", 9223372036854775808ULL},
      {"18446744073709551616", 18446744073709551616.0},
      {"-9223372036854775809", -9223372036854775809.0},
      {"=", "="},
  };
  for (const auto& [text, expected] : cases) {
    const Json value = ReadOne("v: " + text + "\n");
    EXPECT_EQ(value["v"], expected) << text;
    EXPECT_EQ(value["v"].is_string(), expected.is_string()) << text;
  }
  EXPECT_EQ(ReadOne("0x10: a\n1e3: b\n.5: c\n-1: d\n"),
            Json({{"16", "a"}, {"1000", "b"}, {"0.5", "c"}, {"-1", "d"}}));
  EXPECT_EQ(ReadOne("a: !!float 7\nb: !!float 0x10\nc: !!null ''\nd: !!null ~\n"),
            Json({{"a", 7}, {"b", 16}, {"c", nullptr}, {"d", nullptr}}));
}

TEST(DocumentReader, ATagThatItsValueDoesNotFitIsRefused) {
  for (const char* text :
       {"!!int yes", "!!int 1.5", "!!int x", "!!int ''", "!!int null", "!!bool 5", "!!bool maybe",
        "!!bool null", "!!null x", "!!null yes", "!!float x", "!!float yes"}) {
    const std::string error = ErrorOf(std::string("v: ") + text + "\n");
    EXPECT_EQ(error, "line 1: has a value that is not what its YAML tag " +
                         std::string(text).substr(0, std::string(text).find(' ')) + " says")
        << text;
  }
}

TEST(DocumentReader, QuotedAndTaggedScalarsStayText) {
  const Json value = ReadOne("a: \"0644\"\nb: 'yes'\nc: !!str 5\nd: |\n  true\ne: !!int \"7\"\n");
  EXPECT_EQ(value["a"], "0644");
  EXPECT_EQ(value["b"], "yes");
  EXPECT_EQ(value["c"], "5");
  EXPECT_EQ(value["d"], "true\n");
  EXPECT_EQ(value["e"], 7);
}

TEST(DocumentReader, KeysBecomeText) {
  const Json value = ReadOne("1: a\nyes: b\n\"2\": c\n1.5: d\n");
  EXPECT_EQ(value, Json({{"1", "a"}, {"true", "b"}, {"2", "c"}, {"1.5", "d"}}));
}

TEST(DocumentReader, AliasesAndMergesAreExpanded) {
  const Json value = ReadOne(
      "base: &b {x: 1, z: 2}\nlist: &l [1, 2]\ncopy: *b\nmore: {<<: *b, z: 3}\n"
      "two: {<<: [{x: 7}, *b]}\nagain: *l\ntext: &t hello\nsame: *t\n");
  EXPECT_EQ(value["copy"], value["base"]);
  EXPECT_EQ(value["more"], Json({{"x", 1}, {"z", 3}}));
  EXPECT_EQ(value["two"], Json({{"x", 7}, {"z", 2}}));
  EXPECT_EQ(value["again"], Json({1, 2}));
  EXPECT_EQ(value["same"], "hello");
}

TEST(DocumentReader, DocumentsAreCutAndEmptyOnesLeftOut) {
  const std::vector<RawDocument> documents = ReadDocuments(
      "# only a comment\n---\na: 1\n---\n\n---   \n# nothing\n--- {b: 2}\n---\nnull\n--- # "
      "c\n{\"c\": 3}\n"
      "...\n---\nd: |\n  ----\n   --- no marker\n");
  ASSERT_EQ(documents.size(), 4U);
  EXPECT_EQ(*documents[0].value, Json({{"a", 1}}));
  EXPECT_EQ(*documents[1].value, Json({{"b", 2}}));
  EXPECT_EQ(*documents[2].value, Json({{"c", 3}}));
  EXPECT_EQ((*documents[3].value)["d"], "----\n --- no marker\n");
  EXPECT_TRUE(ReadDocuments("").empty());
  EXPECT_TRUE(ReadDocuments("%YAML 1.2\n---\n# x\n").empty());
}

TEST(DocumentReader, BrokenDocumentHidesNoOther) {
  const std::vector<RawDocument> documents = ReadDocuments("a: 1\n---\nb: [1\nc: }\n---\nd: 4\n");
  ASSERT_EQ(documents.size(), 3U);
  EXPECT_TRUE(documents[0].value.has_value());
  EXPECT_FALSE(documents[1].value.has_value());
  EXPECT_EQ(documents[1].error.substr(0, 5), "line ");
  EXPECT_EQ(*documents[2].value, Json({{"d", 4}}));
}

TEST(DocumentReader, RefusesWithLineAndReason) {
  EXPECT_EQ(ErrorOf("---\na: 1\nb: 2\na: 3\n"), "line 4: has the key \"a\" twice in one map");
  EXPECT_EQ(ErrorOf("{\"a\": 1, \"a\": 2}"), "has the key \"a\" twice in one map");
  EXPECT_EQ(ErrorOf("{\"a\": {\"b\": 1,\n \"b\": 2}}"), "has the key \"b\" twice in one map");
  EXPECT_EQ(ErrorOf("? [a, b]\n: 1\n"),
            "line 1: has a map or list as a key; only plain values can be keys");
  EXPECT_EQ(ErrorOf("a: .inf\n"), "line 1: has an infinite number or .nan, which JSON cannot hold");
  EXPECT_EQ(ErrorOf("a: !local x\n"), "line 1: has a YAML tag that is not supported");
  EXPECT_EQ(ErrorOf("a: !!binary 12\n"), "line 1: has a YAML tag that is not supported");
  EXPECT_EQ(ErrorOf("a: \x04\nb: 1\n"), "line 1: has a control character");
  EXPECT_EQ(ErrorOf("a: 1\nb: \x7F\n"), "line 2: has a control character");
  EXPECT_EQ(ErrorOf("a: &x [*x]\n"), "line 1: has an alias to a node that is not complete");
  EXPECT_EQ(ErrorOf("a: {<<: 5}\n"), "line 1: merges (\"<<\") something that is not a map");
  EXPECT_EQ(ErrorOf("a: \xC3\x28\n"), "is not UTF-8");
  EXPECT_NE(ErrorOf("a: *nobody\n").find("is not valid YAML"), std::string::npos);
  EXPECT_NE(ErrorOf("a:\n\t- b\n").find("is not valid YAML"), std::string::npos);
}

// Who takes the first one alone would take the file for one that has lost the second.
TEST(DocumentReader, OfDocumentsThatAreNotCutApartNoneIsTakenIfOneIsBroken) {
  const std::vector<RawDocument> documents = ReadDocuments("a: 1\n...\nb: [1\n---\nc: 3\n");
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0].error.substr(0, 26), "line 3: is not valid YAML:");
  EXPECT_EQ(*documents[1].value, Json({{"c", 3}}));
}

// An error's text is shown, logged and kept: it must not hold what may be a secret.
TEST(DocumentReader, ErrorsQuoteNothingOfTheDocument) {
  for (const char* text :
       {"a: 'hunter2\n", "a: \"hunter2\\q\"\n", "a: !hunter2!x y\n", "hunter2: a: b\n",
        "a: *hunter2\n", "&hunter2 &hunter2 a: b\n", "%hunter2\na: b\n", "a: @hunter2\n",
        "a: {hunter2\n", "a: |9x hunter2\n", "a: [hunter2}\n"}) {
    const std::string error = ErrorOf(text);
    EXPECT_NE(error, "") << text;
    EXPECT_EQ(error.find("hunter2"), std::string::npos) << error;
  }
}

TEST(DocumentReader, SomethingBehindTheEndIsRefusedAndEnds) {
  for (const char* text :
       {"a: 1\n]\n", "{a: 1}}\n", "]", "a: {b: 1}}\n", "- a\n}\n", ",", "a: 1\n...\n]\n"}) {
    const std::vector<RawDocument> documents = ReadDocuments(text);
    ASSERT_EQ(documents.size(), 1U) << text;
    EXPECT_NE(documents[0].error, "") << text;
  }
}

TEST(DocumentReader, DepthIsBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_EQ(ReadDocuments("a: " + nested(kMaxManifestDepth - 1))[0].error, "");
  const std::string reason = "is nested deeper than 64 levels";
  EXPECT_EQ(ErrorOf("a: " + nested(kMaxManifestDepth)), "line 1: " + reason);
  EXPECT_EQ(ErrorOf("{\"a\": " + nested(kMaxManifestDepth) + "}"), reason);
  // Far beyond what any parser's own stack would bear.
  EXPECT_NE(ErrorOf("a: " + nested(100'000)), "");
  EXPECT_EQ(ErrorOf("{\"a\": " + nested(1'000'000) + "}"), reason);
}

TEST(DocumentReader, AliasBombsAreRefusedBeforeTheyGrow) {
  std::string many = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string from = "*a" + std::to_string(i - 1);
    many += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) many += (k == 0 ? "" : ", ") + from;
    many += "]\n";
  }
  EXPECT_NE(ErrorOf(many).find("values after its aliases are expanded"), std::string::npos);

  std::string large = "a: &a \"" + std::string(1'000'000, 'x') + "\"\nb: [";
  for (int i = 0; i < 1000; ++i) large += "*a, ";
  large += "]\n";
  EXPECT_NE(ErrorOf(large).find("bytes after its aliases are expanded"), std::string::npos);
}

TEST(DocumentReader, JsonThatYamlReadersRefuseIsTaken) {
  EXPECT_EQ(ReadOne("{\"a\": \"\\ud83d\\ude00 \\/\",\n\t\"b\": 1}")["a"], "\xF0\x9F\x98\x80 /");
}

}  // namespace
}  // namespace volumed
