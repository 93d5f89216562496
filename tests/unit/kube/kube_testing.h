// Helpers of the tests of src/kube: objects from short texts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "kube/decode.h"
#include "kube/object_source.h"
#include "kube/objects.h"

namespace volumed {

inline std::string ProblemsText(const std::vector<DecodeProblem>& problems) {
  std::string text;
  for (const DecodeProblem& problem : problems) text += problem.ToString() + "\n";
  return text;
}

// The one object of the manifest; fails the test when it is not right.
inline Object DecodeOne(const std::string& manifest) {
  ManifestDecode decode = DecodeManifest("test.yaml", manifest);
  EXPECT_EQ(ProblemsText(decode.problems), "");
  EXPECT_EQ(decode.objects.size(), 1U);
  return decode.objects.empty() ? Object() : std::move(decode.objects.front().object);
}

inline Pod DecodePod(const std::string& manifest) { return std::get<Pod>(DecodeOne(manifest)); }

// A pod with one container; `spec` goes behind it, indented by two blanks.
inline std::string PodYaml(const std::string& name, const std::string& uid,
                           const std::string& spec = "") {
  std::string text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n";
  if (!uid.empty()) text += "  uid: " + uid + "\n";
  return text + "spec:\n  containers: [{name: c}]\n" + spec;
}

inline std::string ConfigMapYaml(const std::string& name, const std::string& value) {
  return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {k: \"" + value +
         "\"}\n";
}

inline ObjectWithOrigin FromFile(const std::string& file, const std::string& manifest) {
  return {std::make_shared<const Object>(DecodeOne(manifest)), file, 0};
}

}  // namespace volumed
