#include "kube/manifest_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kube/manifest_reader.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

TEST(ManifestFiles, UnreadableFilesKeepAndGoneFilesDrop) {
  ManifestFiles files("/d");
  const auto names = [&files] {
    ObjectList list;
    files.AppendTo(list);
    std::string text;
    for (const auto& object : list.objects) text += MetaOf(*object.object).name + " ";
    return text + ProblemsText(list.problems);
  };
  using What = ManifestReading::What;
  files.Apply({"a.yaml", What::kRead, "", DecodeManifest("/d/a.yaml", ConfigMapYaml("a", "1"))});
  files.Apply({"a.yaml", What::kUnreadable, "cannot be read: EIO", {}});
  EXPECT_EQ(names(), "a /d/a.yaml: cannot be read: EIO; 1 object of its last good state stay\n");
  files.Apply({"a.yaml", What::kChanging, "", {}});
  EXPECT_EQ(names().substr(0, 2), "a ");
  EXPECT_TRUE(files.AbsentFrom({"a.yaml"}).empty());
  EXPECT_EQ(files.AbsentFrom({"b.yaml"}), std::vector<std::string>{"a.yaml"});
  files.KeepUnseen("a.yaml");
  EXPECT_EQ(names().substr(0, 2), "a ");
  EXPECT_TRUE(files.HasObjects("a.yaml"));
  files.Apply({"a.yaml", What::kGone, "", {}});
  EXPECT_EQ(names(), "");
  EXPECT_FALSE(files.HasObjects("a.yaml"));
  files.Apply({"b.yaml", What::kUnreadable, "EIO", {}});
  files.KeepUnseen("b.yaml");  // it has nothing worth keeping
  EXPECT_EQ(names(), "");
}

TEST(ManifestFiles, AVanishedFileYieldsItsObjectsToAnotherFileUntilItIsReadAgain) {
  ManifestFiles files("/d");
  const auto origins = [&files] {
    ObjectList list;
    files.AppendTo(list);
    std::string text;
    for (const auto& object : list.objects) {
      text += MetaOf(*object.object).name + "@" + object.file.substr(3) + " ";
    }
    return text;
  };
  using What = ManifestReading::What;
  const std::string both = ConfigMapYaml("x", "1") + "---\n" + ConfigMapYaml("v", "1");
  files.Apply({"a.yaml", What::kRead, "", DecodeManifest("/d/a.yaml", both)});
  files.Vanish("a.yaml");
  files.Vanish("unknown.yaml");
  EXPECT_EQ(origins(), "x@a.yaml v@a.yaml ");
  files.Apply({"b.yaml", What::kRead, "", DecodeManifest("/d/b.yaml", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(origins(), "v@a.yaml x@b.yaml ");
  files.Apply({"a.yaml", What::kChanging, "", {}});
  EXPECT_EQ(origins(), "x@a.yaml v@a.yaml x@b.yaml ");
}

TEST(ManifestNames, AreYamlAndJsonWithoutDot) {
  for (const char* good : {"a.yaml", "a.yml", "a.json", "x.y.yaml"})
    EXPECT_TRUE(IsManifestName(good));
  for (const char* bad : {"", ".a.yaml", "a.yaml~", "a.txt", "yaml", "..data", "a.yaml.swp"}) {
    EXPECT_FALSE(IsManifestName(bad)) << bad;
  }
}

}  // namespace
}  // namespace volumed
