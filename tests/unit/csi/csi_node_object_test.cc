// The CSINode of this node, and what keeps the node from being ready before there is one.
#include "csi/csi_node_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "unit/csi/drivers_fixture.h"
#include "volumehost/node_kubelet_host.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DriverView ViewOf(const std::string& name) {
  DriverView view;
  view.facts.name = name;
  view.facts.node_id = "id-" + name;
  return view;
}

TEST(CsiNodeObjectTest, ADriverIsInItWithItsNodeIdTopologyKeysAndLimit) {
  DriverView limited = ViewOf("a.io");
  limited.facts.topology = {{"a.io/zone", "z1"}, {"a.io/rack", "r1"}};
  limited.facts.max_volumes = 16;
  const CsiNodeObject object = MakeCsiNodeObject(NodeName("n1"), {limited, ViewOf("b.io")});
  EXPECT_EQ(object.metadata.name, "n1");
  ASSERT_EQ(object.drivers.size(), 2u);
  EXPECT_EQ(object.drivers[0].node_id, "id-a.io");
  EXPECT_THAT(object.drivers[0].topology_keys, ElementsAre("a.io/rack", "a.io/zone"));
  EXPECT_EQ(object.drivers[0].allocatable_count, 16);
  EXPECT_FALSE(object.drivers[1].allocatable_count.has_value());
}

TEST(CsiNodeObjectTest, ALimitBeyondTheObjectsNumberIsItsLargest) {
  DriverView many = ViewOf("a.io");
  many.facts.max_volumes = int64_t{1} << 40;
  EXPECT_EQ(MakeCsiNodeObject(NodeName("n1"), {many}).drivers[0].allocatable_count, 2147483647);
}

TEST(CsiNodeObjectTest, AnUnregisteredDriverIsNotInItAndOneThatIsGoneIs) {
  DriverView unregistered = ViewOf("a.io");
  unregistered.was_unregistered = true;
  DriverView gone = ViewOf("b.io");
  gone.health.state = CsiDriverState::kGone;
  const CsiNodeObject object = MakeCsiNodeObject(NodeName("n1"), {unregistered, gone});
  ASSERT_EQ(object.drivers.size(), 1u);
  EXPECT_EQ(object.drivers[0].name, "b.io");
}

TEST(CsiNodeObjectTest, ItNamesTheInTreePluginsThatDriversHaveReplaced) {
  const CsiNodeObject object = MakeCsiNodeObject(NodeName("n1"), {});
  EXPECT_THAT(object.metadata.annotations.at("storage.alpha.kubernetes.io/migrated-plugins"),
              HasSubstr("kubernetes.io/aws-ebs,kubernetes.io/azure-disk,"));
}

class CsiNodeSourceTest : public CsiDriversFixture {
 protected:
  std::string NotReady() const {
    const std::optional<Error> error = kubelet_.kubelet_error();
    return error ? error->message() : "";
  }
  size_t DriversIn(size_t list) const {
    return std::get<CsiNodeObject>(*lists_.at(list).objects.at(0).object).drivers.size();
  }

  NodeKubeletHost kubelet_{clock_};
  std::vector<ObjectList> lists_;
  CsiNodeSource source_{{*drivers_, kubelet_, NodeName("n1")},
                        [this](ObjectList list) { lists_.push_back(std::move(list)); }};
};

TEST_F(CsiNodeSourceTest, TheObjectIsDeliveredWhenItIsAnotherOneAndNotBeforeTheStart) {
  const auto process = Serve();
  ASSERT_TRUE(Register()->ok());
  source_.DriversChanged();
  EXPECT_TRUE(lists_.empty());
  source_.Start();
  ASSERT_EQ(lists_.size(), 1u);
  EXPECT_TRUE(lists_[0].complete);
  EXPECT_EQ(lists_[0].source, kCsiNodeSource);
  EXPECT_EQ(DriversIn(0), 1u);
  source_.DriversChanged();
  EXPECT_EQ(lists_.size(), 1u) << "nothing has changed";
  drivers_->Unregister(kName);
  source_.DriversChanged();
  ASSERT_EQ(lists_.size(), 2u);
  EXPECT_EQ(DriversIn(1), 0u);
}

TEST_F(CsiNodeSourceTest, ANodeWithoutDriversHasNoSuchSource) {
  source_.Start();
  source_.DriversChanged();
  EXPECT_TRUE(lists_.empty());
}

TEST_F(CsiNodeSourceTest, TheNodeIsReadyAfterTheFirstLookAndAllSourcesWhateverItsDriversDo) {
  EXPECT_EQ(NotReady(), "CSINode is not yet initialized");
  source_.Looked(Error::NotApplied(Code::kPermissionDenied, "no way in"));
  EXPECT_THAT(NotReady(), HasSubstr("CSINode is not yet initialized"));
  EXPECT_THAT(NotReady(), HasSubstr("no way in"));
  source_.Looked(std::nullopt);
  EXPECT_NE(NotReady(), "") << "sources are missing";
  kubelet_.SetSynced(true);
  source_.SyncChanged();
  EXPECT_EQ(NotReady(), "");
  source_.Looked(Error::NotApplied(Code::kUnavailable, "gone"));
  kubelet_.SetSynced(false);
  source_.SyncChanged();
  EXPECT_EQ(NotReady(), "") << "what comes later is a part that does not work";
}

}  // namespace
}  // namespace volumed
