// What `volumectl describe node` shows.
#include <gtest/gtest.h>

#include "agent/describer.h"
#include "unit/agent/control_backend_fixture.h"

namespace volumed {
namespace {

class DescribeNodeTest : public ControlBackendTest {
 protected:
  std::map<std::string, std::string> LabelsOf(const std::string& name) {
    v1::DescribeRequest request;
    request.mutable_object()->set_kind("node");
    request.mutable_object()->set_name(name);
    const Describer describer(agent_->catalog, manager(), events_, NodeName("n1"), {},
                              [this] { return host_parts.labels; });
    v1::DescribeResponse described;
    EXPECT_TRUE(describer.Describe(request, &described).ok());
    return {described.labels().begin(), described.labels().end()};
  }
};

TEST_F(DescribeNodeTest, TheLabelsOfTheNodeWereNotShown) {
  host_parts.labels = {{"kubernetes.io/hostname", "n1"}, {"topology.disk.example.com/zone", "z1"}};
  EXPECT_EQ(LabelsOf("n1"), host_parts.labels);
}

TEST_F(DescribeNodeTest, LabelsOfItsObjectAreShownTooAndThoseThatCountWin) {
  Deliver(
      "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {team: shop, zone: old}}\n"
      "---\napiVersion: v1\nkind: Node\nmetadata: {name: n2, labels: {zone: z2}}\n");
  host_parts.labels = {{"zone", "z1"}};
  EXPECT_EQ(LabelsOf("n1"), (std::map<std::string, std::string>{{"team", "shop"}, {"zone", "z1"}}));
  EXPECT_EQ(LabelsOf("n2"), (std::map<std::string, std::string>{{"zone", "z2"}}))
      << "another node has those of its object alone";
}

}  // namespace
}  // namespace volumed
