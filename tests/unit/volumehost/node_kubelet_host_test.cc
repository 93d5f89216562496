#include "volumehost/node_kubelet_host.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/manual_clock.h"

namespace volumed {
namespace {

class NodeKubeletHostTest : public ::testing::Test {
 protected:
  static ObjectChange Driver(const std::string& name, bool there, bool attach = true) {
    ObjectChange change;
    change.key = {ObjectKind::kCsiDriver, "", name};
    change.what = there ? ObjectChange::What::kAdded : ObjectChange::What::kRemoved;
    if (there) {
      CsiDriverObject driver;
      driver.metadata.name = name;
      driver.attach_required = attach;
      change.after = std::make_shared<const Object>(driver);
    }
    return change;
  }
  static ObjectChange Unknown(const std::string& name) {
    ObjectChange change = Driver(name, false);
    change.what = ObjectChange::What::kUnknown;
    change.file = "/m/drivers.yaml";
    change.reason = "cannot be decoded";
    return change;
  }
  ManualClock clock_;
  NodeKubeletHost host_{clock_};
};

TEST_F(NodeKubeletHostTest, KnowsDriversOnceEverySourceHasDelivered) {
  EXPECT_FALSE(host_.CsiDriversSynced());
  EXPECT_EQ(host_.GetCsiDriver("d").error().code(), Code::kUnavailable) << "it may still come";
  host_.Follow({Driver("d", true, false)});
  EXPECT_FALSE((*host_.GetCsiDriver("d"))->attach_required);
  host_.SetSynced(true);
  EXPECT_TRUE(host_.CsiDriversSynced());
  EXPECT_EQ(host_.GetCsiDriver("e").error().code(), Code::kNotFound);
  EXPECT_EQ(host_.ListCsiDrivers().size(), 1u);
  host_.Follow({Driver("d", false)});
  EXPECT_TRUE(host_.ListCsiDrivers().empty());
}

TEST_F(NodeKubeletHostTest, ListenersHearOfEveryChange) {
  std::vector<std::string> heard;
  host_.AddCsiDriverListener([&](const std::string& name, KubeletHost::CsiDriverPtr driver) {
    heard.push_back((driver == nullptr ? "-" : "+") + name);
  });
  ObjectChange pod;
  pod.key = {ObjectKind::kPod, "default", "p"};
  host_.Follow({Driver("d", true), pod, Driver("d", false)});
  EXPECT_EQ(heard, (std::vector<std::string>{"+d", "-d"}));
}

// attachRequired fell back to its default, by which volumes wait for an attach that nobody makes.
TEST_F(NodeKubeletHostTest, ADriverThatIsUnknownNowStaysAsItWas) {
  std::vector<std::string> heard;
  host_.AddCsiDriverListener([&](const std::string& name, KubeletHost::CsiDriverPtr driver) {
    heard.push_back((driver == nullptr ? "-" : "+") + name);
  });
  host_.SetSynced(true);
  host_.Follow({Driver("d", true, false)});
  host_.Follow({Unknown("d")});
  ASSERT_TRUE(host_.GetCsiDriver("d").ok());
  EXPECT_FALSE((*host_.GetCsiDriver("d"))->attach_required);
  EXPECT_EQ(host_.ListCsiDrivers().size(), 1u);
  EXPECT_EQ(heard, (std::vector<std::string>{"+d"})) << "nothing is new";
  host_.Follow({Driver("d", false)});
  EXPECT_EQ(host_.GetCsiDriver("d").error().code(), Code::kNotFound) << "it is certainly absent";
  EXPECT_EQ(heard, (std::vector<std::string>{"+d", "-d"}));
}

TEST_F(NodeKubeletHostTest, ADriverThatWasNeverKnownIsUnavailableAndNamesItsFile) {
  host_.SetSynced(true);
  host_.Follow({Unknown("d")});
  const Error error = host_.GetCsiDriver("d").error();
  EXPECT_EQ(error.code(), Code::kUnavailable);
  EXPECT_EQ(error.message(), "CSIDriver d is not known now: /m/drivers.yaml: cannot be decoded");
  EXPECT_TRUE(host_.ListCsiDrivers().empty());
  host_.Follow({Driver("d", true)});
  EXPECT_TRUE(host_.GetCsiDriver("d").ok());
  host_.Follow({Unknown("e"), Driver("e", false)});
  EXPECT_EQ(host_.GetCsiDriver("e").error().code(), Code::kNotFound);
}

TEST_F(NodeKubeletHostTest, WaitingEndsWithTheSync) {
  std::thread source([this] { host_.SetSynced(true); });
  EXPECT_TRUE(host_.WaitForCacheSync({}).ok());
  source.join();
  EXPECT_TRUE(host_.WaitForCacheSync({}).ok()) << "at once";
}

TEST_F(NodeKubeletHostTest, WaitingEndsWithTheDeadline) {
  CallOptions call;
  call.deadline = Deadline::At(clock_.Now());
  EXPECT_EQ(host_.WaitForCacheSync(call).error().code(), Code::kDeadlineExceeded);
}

TEST_F(NodeKubeletHostTest, AnErrorOfAPluginStaysUntilItIsTakenBack) {
  EXPECT_FALSE(host_.kubelet_error().has_value());
  host_.SetKubeletError(Error::NotApplied(Code::kUnavailable, "CSINode cannot be written"));
  EXPECT_EQ(host_.kubelet_error()->message(), "CSINode cannot be written");
  host_.SetKubeletError(std::nullopt);
  EXPECT_FALSE(host_.kubelet_error().has_value());
}

}  // namespace
}  // namespace volumed
