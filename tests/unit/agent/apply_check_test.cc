#include "agent/apply_check.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/manual_clock.h"
#include "kube/object_directory.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

class ApplyCheckTest : public testing::Test {
 protected:
  void Deliver(const std::string& source, std::vector<ObjectWithOrigin> objects) {
    catalog_.Update({source, true, std::move(objects), {}});
  }
  std::string Refusal(const std::string& manifest) {
    const Status status = CheckNobodyElseHas(catalog_, NodeName("n1"), {DecodeOne(manifest)});
    if (status.ok()) return "";
    EXPECT_EQ(status.error().code(), Code::kFailedPrecondition);
    EXPECT_FALSE(status.error().maybe_applied());
    return status.error().message();
  }

  ManualClock clock_;
  ObjectCatalog catalog_{clock_};
};

TEST_F(ApplyCheckTest, AnObjectOfAnotherSourceIsRefusedAndItsFileNamed) {
  Deliver("manifests:/m", {FromFile("/m/x.yaml", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(Refusal(ConfigMapYaml("x", "2")),
            "ConfigMap default/x is in /m/x.yaml (source manifests:/m): change it there, or remove "
            "it there first");
  EXPECT_EQ(Refusal(ConfigMapYaml("other", "2")), "");
  Deliver("manifests:/m", {});
  EXPECT_EQ(Refusal(ConfigMapYaml("x", "2")), "");
}

TEST_F(ApplyCheckTest, WhatWasAppliedMayBeAppliedAgain) {
  Deliver(std::string(ObjectDirectory::kSourceName),
          {FromFile("/o/x.json", ConfigMapYaml("x", "1"))});
  EXPECT_EQ(Refusal(ConfigMapYaml("x", "2")), "");
}

TEST_F(ApplyCheckTest, APodWithoutAUidIsTheOneWithTheNodesSuffix) {
  Deliver("manifests:/m", {FromFile("/m/web.yaml", PodYaml("web-n1", "u-1"))});
  EXPECT_NE(Refusal(PodYaml("web", "")).find("Pod default/web-n1 is in /m/web.yaml"),
            std::string::npos);
  EXPECT_EQ(Refusal(PodYaml("web", "u-2")), "");
}

TEST_F(ApplyCheckTest, WhatASourceHadBeforeItHasDeliveredIsItsOwnStill) {
  catalog_.Remember("manifests:/m",
                    {{{ObjectKind::kConfigMap, "default", "x"}, "", "/m/x.yaml", nullptr}});
  EXPECT_NE(Refusal(ConfigMapYaml("x", "2")).find("/m/x.yaml"), std::string::npos);
}

// A Missing object has no source: applying it is how it gets one again.
TEST_F(ApplyCheckTest, AMissingClaimMayBeApplied) {
  const std::string claim =
      "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n"
      "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
  Deliver("manifests:/m", {FromFile("/m/data.yaml", claim)});
  EXPECT_NE(Refusal(claim), "");
  Deliver("manifests:/m", {});
  EXPECT_EQ(Refusal(claim), "");
}

}  // namespace
}  // namespace volumed
