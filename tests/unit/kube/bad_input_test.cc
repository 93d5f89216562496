// Bad input made from the field table: each typed field that the decoder knows is made missing,
// given another type and put out of its range, and must be refused with its path and its reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kube/decode.h"
#include "kube/document_reader.h"
#include "kube/field_list.h"
#include "places.h"

namespace volumed {
namespace {

using Json = nlohmann::json;

std::string ReadFixture(const std::string& name) {
  std::ifstream file(SourcePath("tests/unit/kube/testdata/" + name));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A value to put in a field's place, and what must be said about it.
struct BadValue {
  std::string what;
  Json value;
  std::string below;  // behind the field's path in the problem's: "[k]"
  std::string reason;
};

std::string RangeText(const IntRule& rule) {
  return "must be from " + std::to_string(rule.min) + " to " + std::to_string(rule.max);
}

std::string NotOneOf(const FieldInfo& field) {
  std::string known;
  for (const auto name : field.enum_names) known += (known.empty() ? "" : ", ") + std::string(name);
  return "\"NoSuch\" is not one of " + known;
}

std::vector<BadValue> BadTexts(const FieldInfo& field) {
  std::vector<BadValue> bad = {{"a number", 42, "", "must be a string, not a number"},
                               {"a list", Json::array(), "", "must be a string, not a list"},
                               {"an object", Json::object(), "", "must be a string, not an object"},
                               {"a boolean", true, "", "must be a string, not a boolean"}};
  if (field.text_rule != nullptr && !field.text_rule->bad_example.empty()) {
    const std::string example(field.text_rule->bad_example);
    bad.push_back({"bad " + std::string(field.text_rule->name), example, "",
                   field.text_rule->broken(example).value()});
  }
  if (field.type == FieldType::kTime) {
    bad.push_back({"no time", "yesterday", "", "\"yesterday\" is not an RFC 3339 time"});
  }
  if (field.type == FieldType::kEnum) {
    bad.push_back({"unknown value", "NoSuch", "", NotOneOf(field)});
  }
  return bad;
}

std::vector<BadValue> BadNumbers(const FieldInfo& field) {
  const IntRule& rule = field.int_rule;
  return {{"text", "7", "", "must be an integer, not a string"},
          {"a boolean", true, "", "must be an integer, not a boolean"},
          {"a fraction", 1.5, "", "must be an integer, not a fraction"},
          {"below", rule.min - 1, "", RangeText(rule)},
          {"above", static_cast<uint64_t>(rule.max) + 1, "", RangeText(rule)}};
}

std::vector<BadValue> BadMaps(const FieldInfo& field) {
  std::vector<BadValue> bad = {{"a list", Json::array({1}), "", "must be an object, not a list"},
                               {"text", "x", "", "must be an object, not a string"}};
  if (field.type == FieldType::kAmountMap) {
    bad.push_back({"a boolean inside", {{"k", true}}, ".k", "must be a quantity, not a boolean"});
    return bad;
  }
  bad.push_back({"a number inside", {{"k", 1}}, "[k]", "must be a string, not a number"});
  if (field.type == FieldType::kBytesMap) {
    bad.push_back({"no base64", {{"k", "%%%"}}, "[k]", "is not base64"});
  }
  if (field.text_rule != nullptr && !field.text_rule->bad_example.empty()) {
    const std::string key(field.text_rule->bad_example);
    bad.push_back({"bad key", {{key, "x"}}, "[" + key + "]", *field.text_rule->broken(key)});
  }
  return bad;
}

std::vector<BadValue> BadLists(const FieldInfo& field) {
  std::vector<BadValue> bad = {{"an object", {{"a", 1}}, "", "must be a list, not an object"},
                               {"text", "x", "", "must be a list, not a string"}};
  if (field.type == FieldType::kTextList) {
    bad.push_back({"a number inside", {1}, "[0]", "must be a string, not a number"});
  } else if (field.type == FieldType::kNumberList) {
    bad.push_back({"text inside", {"1"}, "[0]", "must be an integer, not a string"});
    bad.push_back({"below inside", {field.int_rule.min - 1}, "[0]", RangeText(field.int_rule)});
  } else if (field.type == FieldType::kEnumList) {
    bad.push_back({"a number inside", {1}, "[0]", "must be a string, not a number"});
    bad.push_back({"unknown inside", {"NoSuch"}, "[0]", NotOneOf(field)});
  } else {
    bad.push_back({"text inside", {"x"}, "[0]", "must be an object, not a string"});
    bad.push_back({"null inside", {nullptr}, "[0]", "must be an object, not null"});
  }
  return bad;
}

std::vector<BadValue> BadValues(const FieldInfo& field) {
  switch (field.type) {
    case FieldType::kText:
    case FieldType::kTime:
    case FieldType::kEnum:
      return BadTexts(field);
    case FieldType::kBool:
      return {{"text", "yes", "", "must be a boolean, not a string"},
              {"a number", 1, "", "must be a boolean, not a number"}};
    case FieldType::kNumber:
      return BadNumbers(field);
    case FieldType::kAmount:
      return {{"a boolean", true, "", "must be a quantity, not a boolean"},
              {"a list", Json::array(), "", "must be a quantity, not a list"}};
    case FieldType::kTextList:
    case FieldType::kNumberList:
    case FieldType::kEnumList:
    case FieldType::kList:
      return BadLists(field);
    case FieldType::kTextMap:
    case FieldType::kBytesMap:
    case FieldType::kAmountMap:
      return BadMaps(field);
    case FieldType::kObject:
      return {{"a list", Json::array({1}), "", "must be an object, not a list"},
              {"text", "x", "", "must be an object, not a string"},
              {"a number", 3, "", "must be an object, not a number"}};
  }
  return {};
}

// The first place in `document` that the table's path ("a[*].b") stands for: as the decoder names
// it ("a[3].b") and as a JSON pointer ("/a/3/b"). False when the document has none.
bool FindPlace(const Json& document, const std::string& pattern, std::string& path,
               std::string& pointer) {
  if (pattern.empty()) return true;
  const size_t end = pattern.find('.');
  std::string name = pattern.substr(0, end);
  const std::string rest = end == std::string::npos ? "" : pattern.substr(end + 1);
  const bool is_list = name.size() > 3 && name.substr(name.size() - 3) == "[*]";
  if (is_list) name.resize(name.size() - 3);
  if (!document.is_object() || !document.contains(name)) return false;
  const Json& value = document[name];
  const std::string own_path = path + (path.empty() ? "" : ".") + name;
  const std::string own_pointer = pointer + "/" + name;
  if (!is_list) {
    path = own_path;
    pointer = own_pointer;
    return FindPlace(value, rest, path, pointer);
  }
  for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
    path = own_path + "[" + std::to_string(i) + "]";
    pointer = own_pointer + "/" + std::to_string(i);
    if (FindPlace(value[i], rest, path, pointer)) return true;
  }
  return false;
}

std::string ProblemsText(const ManifestDecode& decode) {
  std::string text;
  for (const DecodeProblem& problem : decode.problems) text += problem.ToString() + "\n";
  return text;
}

void ExpectRefused(const Json& document, const std::string& path, const std::string& reason) {
  const ManifestDecode decode = DecodeManifest("bad.json", document.dump());
  EXPECT_TRUE(decode.objects.empty());
  ASSERT_EQ(decode.problems.size(), 1U) << ProblemsText(decode);
  EXPECT_EQ(decode.problems[0].file, "bad.json");
  EXPECT_EQ(decode.problems[0].document, 0);
  EXPECT_EQ(decode.problems[0].field_path, path);
  EXPECT_EQ(decode.problems[0].reason, reason);
}

// Breaks this field of the document in every way, and counts the cases.
size_t BreakField(const Json& good, const FieldInfo& field, const std::string& path,
                  const std::string& pointer) {
  size_t cases = 0;
  const Json::json_pointer place(pointer);
  for (const BadValue& bad : BadValues(field)) {
    SCOPED_TRACE(path + ": " + bad.what);
    Json document = good;
    document[place] = bad.value;
    // What stands where a Secret has its keys may be a secret itself.
    const bool withheld =
        bad.what == "bad key" && good["kind"] == "Secret" && path.find("metadata") != 0;
    ExpectRefused(document, path + (withheld ? "[?]" : bad.below),
                  withheld
                      ? "has a key that is no valid key; it is not shown, as it may be a secret"
                      : bad.reason);
    ++cases;
  }
  if (!field.required) return cases;
  SCOPED_TRACE(path + ": missing");
  Json document = good;
  document[place.parent_pointer()].erase(place.back());
  ExpectRefused(document, path, "is required");
  return cases + 1;
}

TEST(BadInput, EveryTypedFieldIsRefusedWhenMissingOfAnotherTypeOrOutOfRange) {
  const std::vector<RawDocument> documents = ReadDocuments(ReadFixture("every_field.yaml"));
  for (const RawDocument& raw : documents) ASSERT_TRUE(raw.value.has_value()) << raw.error;
  size_t fields = 0;
  size_t covered = 0;
  size_t cases = 0;
  std::string uncovered;
  for (const ObjectKind kind : kAllObjectKinds) {
    const std::string kind_name(ObjectKindName(kind));
    for (const FieldInfo& field : ListFields(kind)) {
      ++fields;
      SCOPED_TRACE(kind_name);
      // A union's alternatives stand in one document each: the first that has the field serves.
      const auto has_field = [&](const RawDocument& raw) {
        std::string path;
        std::string pointer;
        if ((*raw.value)["kind"] != kind_name ||
            !FindPlace(*raw.value, field.path, path, pointer)) {
          return false;
        }
        cases += BreakField(*raw.value, field, path, pointer);
        return true;
      };
      if (std::any_of(documents.begin(), documents.end(), has_field)) {
        ++covered;
      } else {
        uncovered += kind_name + " " + field.path + "\n";
      }
    }
  }
  std::cout << "bad input: " << covered << " of " << fields << " fields covered ("
            << 100 * covered / fields << " %), " << cases << " cases\n";
  EXPECT_EQ(covered, fields) << uncovered;
  EXPECT_GT(cases, 2000U);
}

TEST(BadInput, TheFixtureItselfIsRight) {
  const ManifestDecode decode = DecodeManifest("every_field.yaml", ReadFixture("every_field.yaml"));
  EXPECT_EQ(ProblemsText(decode), "");
  std::set<ObjectKind> kinds;
  for (const DecodedObject& decoded : decode.objects) kinds.insert(KindOf(decoded.object));
  EXPECT_EQ(kinds.size(), kAllObjectKinds.size());
}

TEST(BadInput, ProblemsNeverTellSecretValues) {
  // Every leaf of a secret is broken in turn; its values must not be in what is said.
  const char* const kBroken[] = {
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"k":"hunter2-%%"}})",
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a/b":"hunter2"}})",
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":"hunter2"})",
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":["hunter2"]})",
      R"({"apiVersion":"v1","kind":"Secret","stringData":{"k":"hunter2"},"metadata":{"name":"s"})",
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  k: hunter2\n bad: [\n",
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: \"hunter2\\q\"}\n",
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: !x hunter2}\n",
  };
  for (const char* text : kBroken) {
    SCOPED_TRACE(text);
    const ManifestDecode decode = DecodeManifest("s.yaml", text);
    EXPECT_FALSE(decode.problems.empty());
    EXPECT_EQ(ProblemsText(decode).find("hunter2"), std::string::npos) << ProblemsText(decode);
  }
}

TEST(BadInput, RandomlyDamagedManifestsAreRefusedOrWhole) {
  const std::string good =
      "apiVersion: v1\nkind: Pod\nmetadata: &m {name: p, labels: {a: b}}\nspec:\n"
      "  volumes:\n    - {name: v, secret: {secretName: s, defaultMode: 0400}}\n"
      "    - name: w\n      emptyDir: {sizeLimit: 1Gi}\n"
      "  containers: [{name: c, volumeMounts: [{name: v, mountPath: /a}]}]\n---\n"
      "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"s\"}, "
      "\"data\": {\"k\": \"QUJD\"}}\n";
  const std::string interesting = "{}[]:,-#&*!|>'\"%@`\n\t \\~?.0e<";
  std::mt19937_64 random(20260102);  // fixed: a failure must come again
  size_t decoded = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (int k = 1 + static_cast<int>(random() % 3); k > 0; --k) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = interesting[random() % interesting.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 16));
          break;
        case 3:
          text[at] = static_cast<char>(random());
          break;
      }
      if (text.empty()) text = "x";
    }
    const ManifestDecode decode = DecodeManifest("damaged.yaml", text);
    // What is accepted is a right object: it survives being written and read again.
    for (const DecodedObject& object : decode.objects) {
      const std::string json = EncodeObjectJson(object.object, SecretEncoding::kWithSecrets);
      const ManifestDecode again = DecodeManifest("again.json", json);
      ASSERT_EQ(again.objects.size(), 1U) << text << "\n" << ProblemsText(again);
      ASSERT_TRUE(again.objects[0].object == object.object) << text << "\n" << json;
      ++decoded;
    }
  }
  EXPECT_GT(decoded, 1000U);  // the damage is small enough to reach past the parsers
}

TEST(BadInput, ManyProblemsAreCut) {
  Json document = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", "p"}}}};
  for (int i = 0; i < 500; ++i) document["spec"]["volumes"].push_back({{"name", "Bad_Name"}});
  document["spec"]["containers"] = {{{"name", "c"}}};
  const ManifestDecode decode = DecodeManifest("p.json", document.dump());
  ASSERT_EQ(decode.problems.size(), kMaxProblemsPerDocument + 1);
  EXPECT_EQ(decode.problems.back().reason, "400 more problems");
}

}  // namespace
}  // namespace volumed
