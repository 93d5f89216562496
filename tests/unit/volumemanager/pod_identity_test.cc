// Which pod a manifest is: by its name before the node's suffix, and whose a uid is.
#include <gtest/gtest.h>

#include "unit/volumemanager/known_objects_fixture.h"

namespace volumed {
namespace {

constexpr const char* kWithData =
    "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: v, mountPath: /v}]}]\n"
    "  volumes: [{name: v, emptyDir: {}}]\n";

class PodIdentityTest : public TwoSourcesTest {
 protected:
  static ObjectWithOrigin Named(const std::string& metadata, const std::string& file) {
    return StaticPod("n1", file, kWithData, metadata);
  }
  void ExpectRunning(const std::string& name, const std::string& uid) {
    EXPECT_EQ(UidOfPod(name), uid);
    EXPECT_EQ(Phase(uid), "Ready");
  }
};

// It was taken for another pod, and the first one went with its data.
TEST_F(PodIdentityTest, AUidThatAppearsInAManifestIsRefused) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web", "/m/web.yaml")});
  const std::string uid = UidOfPod("web-n1");
  ASSERT_EQ(Phase(uid), "Ready");
  const ObjectWithOrigin edited = Named("name: web, uid: u-2", "/m/web.yaml");
  DeliverList("manifests", {edited});
  for (int start = 0; start < 3; ++start) {
    Pass(std::chrono::minutes(1));
    ExpectRunning("web-n1", uid);
    EXPECT_EQ(UidOfPod("web"), "no pod");
    EXPECT_NE(ProblemsOf("manifests").find("metadata.uid: is immutable"), std::string::npos)
        << ProblemsOf("manifests");
    Restart();
    Deliver("", kApplied);
    DeliverList("manifests", {edited});
  }
  DeliverList("manifests", {});
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(Phase(uid), "gone");
}

TEST_F(PodIdentityTest, AUidThatDisappearsFromAManifestStays) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web, uid: u-1", "/m/web.yaml")});
  ASSERT_EQ(Phase("u-1"), "Ready");
  for (int start = 0; start < 3; ++start) {
    DeliverList("manifests", {Named("name: web", "/m/web.yaml")});
    Pass(std::chrono::minutes(1));
    ExpectRunning("web", "u-1");
    EXPECT_EQ(UidOfPod("web-n1"), "no pod");
    Restart();
    Deliver("", kApplied);
  }
}

// The source that delivered first had it, with the directory and the data of the other one.
TEST_F(PodIdentityTest, AUidIsNotAnotherPodsOverAStart) {
  Restart();
  Deliver("", kApplied);
  DeliverList("manifests", {Named("name: web, uid: u-1", "/m/web.yaml")});
  ASSERT_EQ(Phase("u-1"), "Ready");
  const ObjectWithOrigin other = Named("name: other, uid: u-1", "/objects/other.json");
  DeliverList(kApplied, {other});
  Restart();
  DeliverList(kApplied, {other});
  EXPECT_EQ(UidOfPod("other"), "no pod");
  EXPECT_NE(ProblemsOf(kApplied).find("is that of Pod default/web"), std::string::npos)
      << ProblemsOf(kApplied);
  DeliverList("manifests", {Named("name: web, uid: u-1", "/m/web.yaml")});
  ExpectRunning("web", "u-1");
  EXPECT_EQ(UidOfPod("other"), "no pod");

  DeliverList("manifests", {});
  Pass(std::chrono::minutes(1));
  ExpectRunning("other", "u-1");
}

}  // namespace
}  // namespace volumed
