// The services of the CSI driver: the table of handlers, and from it a gRPC service for each
// service of csi.proto.
//
// The table is the one place that says what the driver serves. A handler is a row, which is found
// by the type of its request; the capabilities that the driver announces follow from the rows
// (csi_profile.h), and an RPC without a row is answered Unimplemented, by its name.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "csi/rpc/csi_methods.h"
#include "csidriver/csi_call.h"
#include "csidriver/csi_profile.h"

namespace volumed {

// Threads: rows are added on one thread before the server is made; from then on any.
class CsiHandlers {
 public:
  CsiHandlers(CsiProfile profile, CsiServeLevel level) : profile_(profile), level_(level) {}
  CsiHandlers(const CsiHandlers&) = delete;
  CsiHandlers& operator=(const CsiHandlers&) = delete;

  // The RPC whose request this is has this handler, which runs on the control thread, must not
  // block, and finishes the call now or later. One that `needs_records` is answered Unavailable
  // until they are loaded.
  template <typename Request, typename Response>
  void Add(std::function<void(const CsiRpc<Request, Response>&)> handler,
           bool needs_records = true) {
    AddRow(*Request::descriptor(), *Response::descriptor(),
           {needs_records, [handler = std::move(handler)](const std::shared_ptr<CsiCall>& call) {
              handler(CsiRpc<Request, Response>(call));
            }});
  }
  // The same of an RPC that answers by a stream. It waits for the records.
  template <typename Request, typename Response>
  void AddStream(std::function<void(const CsiStreamRpc<Request, Response>&)> handler) {
    CsiRow row;
    row.streams = true;
    row.handle = [handler = std::move(handler)](const std::shared_ptr<CsiCall>& call) {
      handler(CsiStreamRpc<Request, Response>(call));
    };
    AddRow(*Request::descriptor(), *Response::descriptor(), std::move(row));
  }
  // The handlers do this, too.
  void AddFeature(CsiFeature feature) { features_.insert(feature); }

  // Whether each row is for an RPC. Errors: Internal, not applied, naming every row that is not: an
  // RPC has two of them, the response is another one's, or of row and RPC one answers by a stream
  // and the other does not.
  Status Check() const;

  // What is done for the RPC; null if nothing is. It lives as long as this object.
  const CsiRow* Find(const CsiMethod& method) const;
  // Why Find() is null, for people: there is no handler, or the profile and level have no such RPC.
  std::string WhyNot(const CsiMethod& method) const;
  CsiCapabilities Capabilities() const;

 private:
  void AddRow(const google::protobuf::Descriptor& request,
              const google::protobuf::Descriptor& response, CsiRow row);
  bool MayServe(const CsiMethod& method) const;

  const CsiProfile profile_;
  const CsiServeLevel level_;
  std::map<const CsiMethod*, CsiRow> rows_;
  std::set<CsiFeature> features_;
  std::vector<std::string> problems_;
};

// One service of csi.proto as gRPC's server takes it. Threads: its handlers run on gRPC's.
class CsiService final : public grpc::Service {
 public:
  // Who calls, by what gRPC calls the connection (grpc::ServerContext::peer()). Threads: any.
  using PeerOf = std::function<CsiPeer(const std::string& grpc_peer)>;

  // `name`: "csi.v1.Node". The handlers outlive the service.
  CsiService(const std::string& name, const CsiHandlers& handlers, std::shared_ptr<CsiCalls> calls,
             PeerOf peer_of);

  // The names of all services of csi.proto, in its order.
  static std::vector<std::string> Names();

 private:
  void AddRpc(const CsiMethod& method);
  void AddStreamingRpc(const CsiMethod& method);
  // Gives the call to its row, or refuses it.
  void TakeOn(const CsiMethod& method, const grpc::ByteBuffer& request, CsiArrival arrival);

  const CsiHandlers& handlers_;
  const std::shared_ptr<CsiCalls> calls_;
  const PeerOf peer_of_;
  int count_ = 0;
};

}  // namespace volumed
