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
