// What people are told of objects that a source loses.
#include "agent/source_losses.h"

#include <gtest/gtest.h>

#include "unit/volumemanager/claims/known_objects_fixture.h"

namespace volumed {
namespace {

std::string WithOneVolume(const std::string& volume) {
  return "spec:\n  containers: [{name: c, image: x, volumeMounts: [{name: " + volume +
         ", mountPath: /v}]}]\n  volumes: [{name: " + volume + ", emptyDir: {}}]\n";
}

class SourceLossesTest : public TwoSourcesTest {
 protected:
  SourceLosses::AbsentObjects Replaced(const std::string& source) {
    SourceLosses::AbsentObjects replaced;
    SourceLosses(catalog(), manager(), {}).EncodeReplaced(source, &replaced);
    return replaced;
  }
  void DeliverPods(const std::string& volume_of_web) {
    DeliverList("manifests", {StaticPod("n1", "/m/web.yaml", WithOneVolume(volume_of_web)),
                              StaticPod("n1", "/m/db.yaml", WithOneVolume("data"), "name: db")});
  }
};

TEST_F(SourceLossesTest, AnEditedPodIsToldOfItsOwnSourceAndNoOtherPodIs) {
  Restart();
  Deliver("", kApplied);
  DeliverPods("first");
  EXPECT_TRUE(Replaced("manifests").empty());
  DeliverPods("second");
  const SourceLosses::AbsentObjects replaced = Replaced("manifests");
  ASSERT_EQ(replaced.size(), 1);
  EXPECT_EQ(replaced[0].object().name(), "web-n1");
  EXPECT_EQ(replaced[0].file(), "/m/web.yaml");
  EXPECT_EQ(replaced[0].presence(), "present");
  EXPECT_EQ(replaced[0].goes_at_unix_ms() - clock.WallUnixMillis(), 10'000);
  EXPECT_TRUE(Replaced(kApplied).empty());
}

}  // namespace
}  // namespace volumed
