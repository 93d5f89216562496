#include "csidriver/csi_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "csi/rpc/csi_methods.h"

namespace volumed {
namespace {

using Plugin = ::csi::v1::PluginCapability::Service;
using Controller = ::csi::v1::ControllerServiceCapability::RPC;
using Node = ::csi::v1::NodeServiceCapability::RPC;

constexpr CsiProfile kNode = CsiProfile::kNode;
constexpr CsiProfile kCentral = CsiProfile::kCentral;
constexpr CsiServeLevel k12 = CsiServeLevel::k1_12;
constexpr CsiServeLevel k13 = CsiServeLevel::k1_13;

constexpr CsiFeature kAllFeatures[] = {
    CsiFeature::kTopology,        CsiFeature::kClone,          CsiFeature::kRestore,
    CsiFeature::kReadOnlyPublish, CsiFeature::kPublishedNodes, CsiFeature::kMultiWriter,
    CsiFeature::kMountGroup,      CsiFeature::kCondition,      CsiFeature::kSnapshotTopology};

CsiServed Everything() {
  CsiServed served;
  for (const CsiMethod& method : CsiMethods()) served.rpcs.insert(method.name);
  served.features.insert(std::begin(kAllFeatures), std::end(kAllFeatures));
  return served;
}

template <typename Types>
std::vector<int> Numbers(const Types& types) {
  return {types.begin(), types.end()};
}

std::vector<int> NumbersOf(const google::protobuf::EnumDescriptor& type) {
  std::vector<int> numbers;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) numbers.push_back(type.value(i)->number());
  }
  return numbers;
}

TEST(CsiProfileTest, ACentralDriverHasAllThatItsLevelKnows) {
  const CsiCapabilities at_12 = CsiCapabilitiesOf(kCentral, k12, Everything());
  EXPECT_EQ(Numbers(at_12.plugin), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(at_12.expansion, ::csi::v1::PluginCapability::VolumeExpansion::ONLINE);
  EXPECT_EQ(Numbers(at_12.controller),
            (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(Numbers(at_12.group), (std::vector<int>{1}));
  EXPECT_EQ(Numbers(at_12.node), (std::vector<int>{1, 2, 3, 4, 5, 6}));

  const CsiCapabilities at_13 = CsiCapabilitiesOf(kCentral, k13, Everything());
  EXPECT_EQ(Numbers(at_13.plugin), (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(Numbers(at_13.controller),
            (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(Numbers(at_13.node), (std::vector<int>{1, 2, 3, 5, 6, 7, 8}));
}

// csi-sanity 5.4.0, which is for level 1.12, failed the driver for it.
TEST(CsiProfileTest, TheOlderLevelServesGetSnapshotAndDoesNotNameIt) {
  for (const CsiProfile profile : {kNode, kCentral}) {
    const CsiCapabilities has = CsiCapabilitiesOf(profile, k12, Everything());
    EXPECT_EQ(std::count(has.controller.begin(), has.controller.end(), Controller::GET_SNAPSHOT),
              0);
    EXPECT_TRUE(CsiMayServe(profile, k12, "GetSnapshot"));
  }
}

TEST(CsiProfileTest, ADriverOfItsNodeHasNothingThatIsForAllNodes) {
  const CsiCapabilities has = CsiCapabilitiesOf(kNode, k13, Everything());
  for (const auto type : {Controller::PUBLISH_UNPUBLISH_VOLUME, Controller::PUBLISH_READONLY,
                          Controller::EXPAND_VOLUME, Controller::MODIFY_VOLUME,
                          Controller::LIST_VOLUMES_PUBLISHED_NODES}) {
    EXPECT_EQ(std::count(has.controller.begin(), has.controller.end(), type), 0)
        << Controller::Type_Name(type);
  }
  EXPECT_EQ(Numbers(has.controller), (std::vector<int>{1, 3, 4, 5, 6, 7, 12, 13, 15, 16, 17}));
  EXPECT_EQ(Numbers(has.node), (std::vector<int>{1, 2, 3, 5, 6, 7, 8}))
      << "a node grows its volumes in each profile";
}

TEST(CsiProfileTest, EveryCapabilityOfTheProtoHasARow) {
  const CsiCapabilities at_12 = CsiCapabilitiesOf(kCentral, k12, Everything());
  const CsiCapabilities at_13 = CsiCapabilitiesOf(kCentral, k13, Everything());
  const auto of_both = [](const auto& a, const auto& b) {
    std::set<int> numbers(a.begin(), a.end());
    numbers.insert(b.begin(), b.end());
    return std::vector<int>(numbers.begin(), numbers.end());
  };
  EXPECT_EQ(of_both(at_12.plugin, at_13.plugin), NumbersOf(*Plugin::Type_descriptor()));
  EXPECT_EQ(of_both(at_12.controller, at_13.controller), NumbersOf(*Controller::Type_descriptor()));
  EXPECT_EQ(of_both(at_12.node, at_13.node), NumbersOf(*Node::Type_descriptor()));
  EXPECT_EQ(Numbers(at_12.group),
            NumbersOf(*::csi::v1::GroupControllerServiceCapability::RPC::Type_descriptor()));
}

TEST(CsiProfileTest, NothingIsPromisedThatNoHandlerServes) {
  const CsiCapabilities none = CsiCapabilitiesOf(kCentral, k13, CsiServed());
  EXPECT_TRUE(none.plugin.empty());
  EXPECT_FALSE(none.expansion.has_value());
  EXPECT_TRUE(none.controller.empty());
  EXPECT_TRUE(none.group.empty());
  EXPECT_TRUE(none.node.empty());
}

// How many capabilities there are of all services together.
size_t CountOf(const CsiCapabilities& has) {
  return has.plugin.size() + (has.expansion ? 1 : 0) + has.controller.size() + has.group.size() +
         has.node.size();
}

TEST(CsiProfileTest, EachRpcAndFeatureThatIsMissingTakesACapabilityAway) {
  const size_t all = CountOf(CsiCapabilitiesOf(kCentral, k13, Everything()));
  const std::set<std::string> of_no_capability = {
      "GetPluginInfo", "GetPluginCapabilities", "Probe",   "NodeUnpublishVolume",
      "NodeGetInfo",   "NodeGetCapabilities",   "GetInfo", "NotifyRegistrationStatus"};
  for (const CsiMethod& method : CsiMethods()) {
    CsiServed served = Everything();
    served.rpcs.erase(method.name);
    const size_t left = CountOf(CsiCapabilitiesOf(kCentral, k13, served));
    if (of_no_capability.contains(method.name)) {
      EXPECT_EQ(left, all) << method.name;
    } else {
      EXPECT_LT(left, all) << method.name;
    }
  }
  for (const CsiFeature feature : kAllFeatures) {
    if (feature == CsiFeature::kCondition) continue;  // of the other level
    CsiServed served = Everything();
    served.features.erase(feature);
    EXPECT_LT(CountOf(CsiCapabilitiesOf(kCentral, k13, served)), all) << static_cast<int>(feature);
  }
}

TEST(CsiProfileTest, WithoutAControllerNothingOfOneIsNamed) {
  CsiServed served = Everything();
  served.rpcs.erase("ValidateVolumeCapabilities");
  const CsiCapabilities has = CsiCapabilitiesOf(kCentral, k12, served);
  EXPECT_TRUE(has.controller.empty()) << "a caller may not ask a service that is not announced";
  EXPECT_FALSE(has.node.empty());
}

struct MayRow {
  const char* rpc;
  bool node_12;
  bool node_13;
  bool central_12;
  bool central_13;
};

TEST(CsiProfileTest, AnRpcIsServedWhereOneOfItsCapabilitiesMayBe) {
  const std::vector<MayRow> rows = {
      {"ControllerPublishVolume", false, false, true, true},
      {"ControllerUnpublishVolume", false, false, true, true},
      {"ControllerExpandVolume", false, false, true, true},
      {"ControllerModifyVolume", false, false, true, true},
      {"NodeGetVolumeHealth", false, true, false, true},
      {"NodeGetStorageHealth", false, true, false, true},
      {"ControllerGetVolumeHealth", false, true, false, true},
      {"ControllerListVolumeHealth", false, true, false, true},
  };
  for (const CsiMethod& method : CsiMethods()) {
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const MayRow& r) { return method.name == r.rpc; });
    const MayRow may = row == rows.end() ? MayRow{"", true, true, true, true} : *row;
    EXPECT_EQ(CsiMayServe(kNode, k12, method.name), may.node_12) << method.name;
    EXPECT_EQ(CsiMayServe(kNode, k13, method.name), may.node_13) << method.name;
    EXPECT_EQ(CsiMayServe(kCentral, k12, method.name), may.central_12) << method.name;
    EXPECT_EQ(CsiMayServe(kCentral, k13, method.name), may.central_13) << method.name;
  }
}

TEST(CsiProfileTest, NamesAreReadBack) {
  for (const CsiProfile profile : {kNode, kCentral}) {
    const Result<CsiProfile> read = ParseCsiProfile(CsiProfileName(profile));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, profile);
  }
  for (const CsiServeLevel level : {k12, k13}) {
    const Result<CsiServeLevel> read = ParseCsiServeLevel(CsiServeLevelName(level));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, level);
  }
  EXPECT_FALSE(ParseCsiProfile("").ok());
  EXPECT_FALSE(ParseCsiServeLevel("1.11").ok());
}

}  // namespace
}  // namespace volumed
