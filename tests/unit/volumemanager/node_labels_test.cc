// Labels of the node that come while the agent runs: they decide where a volume can be used.
#include "unit/volumemanager/devices/attached_fixture.h"

namespace volumed {
namespace {

using std::chrono::hours;

class NodeLabelsTest : public AttachedTest {
 protected:
  static std::string InZone(const std::string& zone) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec:\n  "
           "capacity: "
           "{storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  flexVolume: {driver: "
           "test.io/array}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: "
           "[{key: zone, operator: In, values: [" +
           zone +
           "]}]}]}}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk, "
           "namespace: default, uid: claim-disk}\nspec:\n  accessModes: [ReadWriteOnce]\n  "
           "volumeName: disk\n  resources: {requests: {storage: 1Gi}}\n";
  }
  void Label(const std::string& zone) {
    host_parts.labels = {{"zone", zone}};
    manager().events().NodeLabelsChanged();
    Settle();
  }
};

TEST_F(NodeLabelsTest, AVolumeForAnotherZoneIsMountedOnceTheNodeIsKnownToBeThere) {
  StartAgent();
  Deliver(InZone("z1") + User("a", "disk"));
  ASSERT_NE(Phase("a"), "Ready");
  Label("z2");
  EXPECT_NE(Phase("a"), "Ready");
  Label("z1");
  EXPECT_EQ(Phase("a"), "Ready") << StepOf("a");
}

TEST_F(NodeLabelsTest, AClaimThatIsBoundWaitsForTheLabelAtAStart) {
  host_parts.labels = {{"zone", "z1"}};
  BindBefore(InZone("z1"));
  host_parts.labels.clear();
  Restart();
  Deliver(InZone("z1") + User("a", "disk"));
  ASSERT_EQ(StepOf("a"), "CheckNodeAffinity");
  Label("z1");
  EXPECT_EQ(Phase("a"), "Ready") << StepOf("a");
}

TEST_F(NodeLabelsTest, ALabelTakesNothingFromAPod) {
  host_parts.labels = {{"zone", "z1"}};
  StartAgent();
  Deliver(InZone("z1") + User("a", "disk"));
  ASSERT_EQ(Phase("a"), "Ready");
  Label("z2");
  Pass(hours(1));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("unmount"), 0u);
}

}  // namespace
}  // namespace volumed
