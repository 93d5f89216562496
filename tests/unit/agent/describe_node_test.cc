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

TEST_F(DescribeNodeTest, NobodyWasNamedWhoHasGivenALabel) {
  v1::DescribeRequest request;
  request.mutable_object()->set_kind("node");
  request.mutable_object()->set_name("n1");
  const Describer describer(
      agent_->catalog, manager(), events_, NodeName("n1"), {}, [this] { return host_parts.labels; },
      [] {
        return std::map<std::string, std::string>{
            {"rack", "CSI driver d.io"}, {"team", "node-labels"}, {"zone", "CSI driver d.io"}};
      });
  v1::DescribeResponse described;
  ASSERT_TRUE(describer.Describe(request, &described).ok());
  std::vector<std::string> givers;
  for (const v1::SummaryField& field : described.summary()) {
    if (field.name() == "Labels by") givers.push_back(field.value());
  }
  EXPECT_EQ(givers, (std::vector<std::string>{"CSI driver d.io: rack, zone", "node-labels: team"}));
}

TEST_F(DescribeNodeTest, ThisNodeWasInNoList) {
  const Describer describer(agent_->catalog, manager(), events_, NodeName("n1"));
  const auto listed = [&describer](const std::string& name) {
    v1::ListObjectsRequest request;
    request.set_kind("node");
    request.set_name(name);
    v1::ListObjectsResponse response;
    EXPECT_TRUE(describer.List(request, &response).ok());
    std::vector<std::string> names;
    for (const v1::ListedObject& object : response.listed()) {
      names.push_back(object.object().name());
    }
    EXPECT_EQ(response.objects_size(), response.listed_size());
    return names;
  };
  EXPECT_EQ(listed(""), std::vector<std::string>{"n1"});
  EXPECT_EQ(listed("n2"), std::vector<std::string>{});
  Deliver(
      "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
      "---\napiVersion: v1\nkind: Node\nmetadata: {name: n2}\n");
  EXPECT_EQ(listed(""), (std::vector<std::string>{"n1", "n2"})) << "each once";
}

}  // namespace
}  // namespace volumed
