// CsiInquiry: asks a driver, over one connection, who it is and what it can do, and holds the
// answers against what the specification allows.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi.pb.h"
#include "csi/csi_caller.h"
#include "csi/csi_driver_record.h"
#include "csi/rpc/csi_redact.h"

namespace volumed {

struct CsiInquirySettings {
  std::string driver;  // the name that it has to give
  // False: it is only asked for its controller's capabilities, and its name.
  bool node = true;
  // False: another socket has the controller.
  bool controller = true;
  Duration call = std::chrono::minutes(2);         // the deadline of NodeGetInfo
  Duration identity = std::chrono::seconds(10);    // of each of the others
  Duration ready_every = std::chrono::seconds(1);  // between two asks whether it is ready
  std::shared_ptr<CsiSecretMemory> secrets = {};   // CsiCallOptions::secrets
};

// Why this cannot be what a driver calls a node, or has as topology; OK if it can. Errors, not
// applied: InvalidArgument. Pure. Source: CSI spec v1.13.0, "Size Limits", NodeGetInfo.
Status CheckCsiNodeId(const std::string& node_id);
Status CheckCsiTopology(const std::map<std::string, std::string>& topology);

// What is kept and shown of the version that a driver says it has. Threads: any. Blocks: never.
std::string ShownCsiVersion(const std::string& said, const CsiSecrets& secrets);

// GetPluginInfo, GetPluginCapabilities, Probe (repeated while the driver says that it is not
// ready), NodeGetCapabilities, ControllerGetCapabilities, NodeGetInfo; one after the other. A
// driver that does not implement one of the first three, or the controller, is none the worse for
// it.
//
// It keeps itself and the caller until it has ended, which CsiCaller::End() brings about.
// Threads: control; the hooks are called there. Blocks: never.
class CsiInquiry : public std::enable_shared_from_this<CsiInquiry> {
 public:
  using Done = std::function<void(Result<CsiDriverFacts>)>;
  struct Hooks {
    std::function<bool()> wanted;     // false: nothing more is asked, and nobody is told
    std::function<void()> not_ready;  // it has answered Probe so; it is asked again
    // The facts have neither endpoints nor a version; the driver's own version is as it came, and
    // may have secrets in it (ShownCsiVersion). Errors, not applied: of the calls;
    // InvalidArgument for what the specification does not allow.
    Done done;
  };
  static void Begin(Scheduler& scheduler, std::shared_ptr<CsiCaller> caller,
                    CsiInquirySettings settings, Hooks hooks);

 private:
  CsiInquiry(Scheduler& scheduler, std::shared_ptr<CsiCaller> caller, CsiInquirySettings settings,
             Hooks hooks);

  // Makes the call, and goes on with its answer as long as that is wanted.
  template <typename Response>
  void Ask(const google::protobuf::Message& request, Duration timeout,
           std::function<void(const Result<Response>&)> next);
  void AskName();
  void AskPluginCapabilities();
  void AskReady();
  void AskNodeCapabilities();
  void AskControllerCapabilities();
  void AskNode();
  Status TakeName(const ::csi::v1::GetPluginInfoResponse& answer);
  void TakePluginCapabilities(const ::csi::v1::GetPluginCapabilitiesResponse& answer);
  Status TakeNode(const ::csi::v1::NodeGetInfoResponse& answer);
  // What is wrong with an answer, in words that may quote it.
  Status WithoutSecrets(const Status& sense) const;
  // A text of the driver's without secrets, for a message that cuts it after 128 bytes.
  std::string Shown(const std::string& text) const;
  void Fail(const Error& error) { hooks_.done(error); }

  Scheduler& scheduler_;
  const std::shared_ptr<CsiCaller> caller_;
  const CsiInquirySettings settings_;
  const Hooks hooks_;
  CsiDriverFacts facts_;
};

}  // namespace volumed
