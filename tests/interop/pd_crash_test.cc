// The life of a claim's volume, from its making to its deletion and with two pods and its growth in
// between, over one death in the middle of one call: of the server that is asked, or of the agent
// that asks, before the call's effect or after it and before the answer is seen.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "interop/pd_driver_fixture.h"

namespace volumed::pd_crash_test {
namespace {

namespace fs = std::filesystem;

enum class Victim { kCloud, kNodeServer, kAgent };

struct Row {
  Victim victim;
  std::string method;
  PdDriver::When when;
};

// A call that changes something; how often one life makes it that nobody dies in; and what else may
// follow when nobody knows whether it was made: its inverse, or, as growth has none, the mount
// again.
struct ChangingCall {
  const char* method;
  int times;
  const char* or_else = "";
};
constexpr ChangingCall kCalls[] = {{"CreateVolume", 1},
                                   {"ControllerPublishVolume", 2, "ControllerUnpublishVolume"},
                                   {"NodeStageVolume", 2, "NodeUnstageVolume"},
                                   {"NodePublishVolume", 2, "NodeUnpublishVolume"},
                                   {"ControllerExpandVolume", 1},
                                   {"NodeExpandVolume", 1, "NodeStageVolume"},
                                   {"NodeUnpublishVolume", 2},
                                   {"NodeUnstageVolume", 2},
                                   {"ControllerUnpublishVolume", 2},
                                   {"DeleteVolume", 1}};

std::vector<Row> AllRows() {
  std::vector<Row> rows;
  for (const ChangingCall& call : kCalls) {
    const std::string method = call.method;
    const Victim server = method.starts_with("Node") ? Victim::kNodeServer : Victim::kCloud;
    for (const Victim victim : {server, Victim::kAgent}) {
      for (const PdDriver::When when : {PdDriver::When::kBefore, PdDriver::When::kAfter}) {
        rows.push_back({victim, method, when});
      }
    }
  }
  return rows;
}

std::string NameOf(const Row& row) {
  std::string name = row.victim == Victim::kCloud        ? "TheCloud"
                     : row.victim == Victim::kNodeServer ? "TheNodeServer"
                                                         : "TheAgent";
  name += row.when == PdDriver::When::kBefore ? "Before" : "After";
  return name + row.method;
}

void PrintTo(const Row& row, std::ostream* out) { *out << NameOf(row); }

class PdCrashTest : public PdDriverTest, public ::testing::WithParamInterface<Row> {
 protected:
  // Waits for what a step leads to, and meanwhile for the death and its end.
  bool Becomes(const std::function<bool()>& condition) {
    return Eventually(2 * kPatience,
                      [&] {
                        if (!has_died_ && pd_->Sprung()) {
                          has_died_ = true;
                          DieAndComeBack();
                        }
                        return HasFatalFailure() || condition();
                      }) &&
           !HasFatalFailure();
  }

  // The agent has ended before its call goes on, as a driver's does that notices too late.
  void DieAndComeBack() {
    switch (GetParam().victim) {
      case Victim::kCloud:
        ASSERT_TRUE(Eventually(kPatience, [&] { return !pd_->CloudRuns(); }));
        ASSERT_TRUE(pd_->StartCloud()) << pd_->Logs();
        return;
      case Victim::kNodeServer:
        ASSERT_TRUE(Eventually(kPatience, [&] { return !pd_->NodeRuns(); }));
        ASSERT_TRUE(pd_->StartNode()) << pd_->Logs();
        return;
      case Victim::kAgent:
        ASSERT_NO_FATAL_FAILURE(KillAgent());
        pd_->Release();
        ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
        return;
    }
  }

  // A row of `get`, "" if there is none.
  std::string RowOf(const std::string& kind, const std::string& name) {
    const CommandResult shown = Ctl({"get", kind, name});
    return shown.exit_status == 0 ? shown.output : "";
  }
  bool HasGone(const std::string& kind, const std::string& name) {
    return Ctl({"get", kind, name}).output.find("no persistentvolume") != std::string::npos;
  }

  // What the cloud says of its disks: "HANDLE NODE...\n" for each, with the nodes that have it;
  // while it is away, why it says nothing.
  std::string Disks() const {
    csi::v1::ListVolumesResponse list;
    const grpc::Status status =
        client_->AskController(&PdClient::Controller::ListVolumes, {}, &list, false);
    if (!status.ok()) return status.error_message();
    std::string text;
    for (const auto& entry : list.entries()) {
      text += entry.volume().volume_id();
      for (const std::string& node : entry.status().published_node_ids()) {
        if (!node.empty()) text += " " + node;  // the driver puts an empty name before each
      }
      text += "\n";
    }
    return text;
  }

  void SetUpPod(const std::string& pod) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn(pod, "data")));
    ASSERT_TRUE(Becomes([&] { return WaitPhase(pod, "Ready", Milliseconds(0)); }))
        << Explain(pod) << pd_->Logs();
    if (volume_.empty()) volume_ = VolumeOf("data");
    EXPECT_EQ(Disks(), PdDriver::HandleOf(volume_) + " " + pd_->NodeId() + "\n");
    EXPECT_EQ(pd_->Attached().size(), 1u);
    EXPECT_EQ(MountsBelow(PlaceOf(pod, volume_)).size(), 1u);
  }

  void Grow(const std::string& pod) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data", "2Gi")));
    ASSERT_TRUE(Becomes([&] {
      return RowOf("pvc", "data").find(" 2Gi ") != std::string::npos &&
             FilesystemBytes(PlaceOf(pod, volume_)) > kGib + kGib / 2;
    })) << RowOf("pvc", "data")
        << pd_->Logs();
  }

  void TakeAwayPod(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(Becomes([&] { return WaitGone(pod, Milliseconds(0)); }))
        << Explain(pod) << pd_->Logs();
    ASSERT_TRUE(Becomes([&] {
      return pd_->Attached().empty() && Disks() == PdDriver::HandleOf(volume_) + "\n";
    })) << Disks()
        << pd_->Logs();
  }

  void TakeAwayClaim() {
    ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
    ASSERT_TRUE(Becomes([&] { return HasGone("pvc", "data") && HasGone("pv", volume_); }))
        << RowOf("pv", volume_) << pd_->Logs();
  }

  void ExpectNothingLeft() {
    EXPECT_EQ(LeftOvers(), "");
    EXPECT_EQ(CsiLeftOvers(), "");
    EXPECT_EQ(Disks(), "");
    EXPECT_NE(ReadText(pd_->state_file()).find("\"disks\": {}"), std::string::npos);
    const fs::path images = fs::path(pd_->state_file()).parent_path() / "disks" / PdDriver::kZone;
    EXPECT_TRUE(fs::is_empty(images));
    EXPECT_EQ(pd_->DetachedInUse(), 0);
  }

  std::string CallsInOrder() const {
    std::string text;
    const auto add = [&text](const char* server, const std::vector<PdCall>& calls) {
      text += std::string("\n") + server + ":";
      for (const PdCall& call : calls) text += " " + call.method + "=" + call.code;
    };
    add("cloud", pd_->CloudCalls());
    add("node", pd_->NodeCalls());
    return text;
  }

  // What was answered, and seen, is not asked again. The call in which somebody died may be.
  void ExpectNoOtherCallTwice() {
    const auto* died = std::find_if(std::begin(kCalls), std::end(kCalls), [](const auto& call) {
      return GetParam().method == call.method;
    });
    ASSERT_NE(died, std::end(kCalls));
    for (const ChangingCall& call : kCalls) {
      const std::string_view method = call.method;
      const int more = method == died->method || method == died->or_else ? 1 : 0;
      const int times = pd_->Answered(method);
      EXPECT_GE(times, call.times) << method << CallsInOrder();
      EXPECT_LE(times, call.times + more) << method << CallsInOrder();
    }
  }

  bool has_died_ = false;
  std::string volume_;
};

TEST_P(PdCrashTest, AVolumeIsMadeUsedAndDeletedOnceAndKeepsItsDataWhoeverDiesInACall) {
  ASSERT_NO_FATAL_FAILURE(StartAll());
  pd_->SetTrap(
      GetParam().method, GetParam().when,
      GetParam().victim == Victim::kAgent ? PdDriver::Fate::kHeld : PdDriver::Fate::kServerDies);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data")));
  ASSERT_NO_FATAL_FAILURE(SetUpPod("a"));
  WriteText(PlaceOf("a", volume_) + "/kept.txt", "kept");
  ASSERT_NO_FATAL_FAILURE(Grow("a"));
  EXPECT_EQ(ReadText(PlaceOf("a", volume_) + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(TakeAwayPod("a"));
  ASSERT_NO_FATAL_FAILURE(SetUpPod("b"));
  EXPECT_EQ(ReadText(PlaceOf("b", volume_) + "/kept.txt"), "kept");
  EXPECT_GT(FilesystemBytes(PlaceOf("b", volume_)), kGib + kGib / 2);
  ASSERT_NO_FATAL_FAILURE(TakeAwayPod("b"));
  ASSERT_NO_FATAL_FAILURE(TakeAwayClaim());
  EXPECT_TRUE(has_died_) << "nobody made the call";
  ExpectNothingLeft();
  ExpectNoOtherCallTwice();
}

INSTANTIATE_TEST_SUITE_P(EveryCall, PdCrashTest, ::testing::ValuesIn(AllRows()),
                         [](const ::testing::TestParamInfo<Row>& of) { return NameOf(of.param); });

}  // namespace
}  // namespace volumed::pd_crash_test
