// Which pods are known to have been here.
#include "agent/departed_pods.h"

#include <gtest/gtest.h>

#include "unit/agent/control_backend_fixture.h"

namespace volumed {
namespace {

class DepartedPodsTest : public ControlBackendTest {
 protected:
  static v1::ObjectRef Named(const std::string& name, const std::string& name_space = "") {
    v1::ObjectRef ref;
    ref.set_name(name);
    ref.set_namespace_(name_space);
    return ref;
  }
  static std::string PodNamed(const std::string& name) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec: {containers: [{name: c, image: i}]}\n";
  }
  const NodeName node_name_{"n1"};
};

// `wait --for gone` of a pod that was deleted a moment ago said that there may never have
// been one.
TEST_F(DepartedPodsTest, APodThatWasHereAndLeftIsKnownAndASlipIsNot) {
  DepartedPods departed(manager());
  Deliver(PodNamed("web"));
  Settle();
  EXPECT_FALSE(departed.Knows(Named("web"), node_name_)) << "it is here";
  Deliver("");
  Settle();
  ASSERT_FALSE(manager().pods().Has(PodUid("uid-web")));
  EXPECT_TRUE(departed.Knows(Named("web"), node_name_));
  EXPECT_TRUE(departed.Knows(Named("uid-web"), node_name_));
  EXPECT_FALSE(departed.Knows(Named("web", "shop"), node_name_));
  EXPECT_FALSE(departed.Knows(Named("wbe"), node_name_));
}

TEST_F(DepartedPodsTest, ThePodThatLeftFirstIsForgottenFirst) {
  DepartedPods departed(manager(), /*most=*/1);
  for (const std::string name : {"a", "b"}) {
    Deliver(PodNamed(name));
    Settle();
    Deliver("");
    Settle();
  }
  EXPECT_FALSE(departed.Knows(Named("a"), node_name_));
  EXPECT_TRUE(departed.Knows(Named("b"), node_name_));
}

}  // namespace
}  // namespace volumed
