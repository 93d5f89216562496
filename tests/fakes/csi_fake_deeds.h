// CsiFakeDeeds: the RPCs of a fake CSI driver that does what it is asked for: what it says of
// itself by its options, the rest by its world.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "csi/rpc/csi_methods.h"
#include "fakes/csi_fake_driver.h"
#include "fakes/csi_fake_log.h"
#include "fakes/csi_fake_world.h"

namespace volumed {

// Threads: any. Blocks: as the world.
class CsiFakeDeeds {
 public:
  // A call that the specification forbids is told.
  CsiFakeDeeds(const CsiFakeOptions& options, CsiFakeWorld::Violated violated);

  void Configure(const CsiFakeOptions& options);
  CsiFakeOptions options() const;
  CsiFakeWorld& world() { return world_; }

  // `effect` is "made" or a lie of a rule; "none" of an RPC that changes nothing is "made".
  grpc::Status Do(const CsiMethod& method, const google::protobuf::Message& request,
                  const std::string& effect, google::protobuf::Message* response);

 private:
  using Deed = std::function<grpc::Status(const google::protobuf::Message&, const std::string&,
                                          google::protobuf::Message*)>;
  template <typename Request, typename Response>
  void On(const std::string& rpc,
          std::function<grpc::Status(const Request&, const std::string&, Response*)> deed);
  void AddIdentity();
  void AddNode();
  void AddController();
  void AddStorage();
  bool HasCapability(const std::string& rpc, std::string* needed) const;

  mutable std::mutex mu_;
  CsiFakeOptions options_;
  const CsiFakeWorld::Violated violated_;
  CsiFakeWorld world_;
  std::map<std::string, Deed> deeds_;
};

// What the log shows of a request.
CsiFakeEntry CsiFakeEntryOf(const CsiMethod& method, const google::protobuf::Message& request);

}  // namespace volumed
