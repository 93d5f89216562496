// Client: makes each call of the control API a plain function call.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent.grpc.pb.h"
#include "cli/exit_code.h"

namespace volumed {

// Threads: any. Blocks: each call until its deadline. The connection is made by the first call; if
// no agent listens, a call ends soon with UNAVAILABLE.
class Client {
 public:
  // `socket` is the path of the agent's unix socket; `timeout` is the limit for each unary call.
  Client(const std::string& socket, std::chrono::milliseconds timeout);

  // Makes one unary call: Call(&v1::VolumeAgent::Stub::GetPods, request, &response).
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::VolumeAgent::Stub::*method)(grpc::ClientContext*,
                                                                  const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout_);
    return (stub_.get()->*method)(&context, request, response);
  }

  // Reads the answers of a streaming call until the call ends or `timeout` has passed, and gives
  // each to `seen`, on this thread. Without a timeout it reads until the agent or a signal ends the
  // call. The status is DEADLINE_EXCEEDED if the time was over first.
  template <typename Request, typename Response>
  grpc::Status Stream(std::unique_ptr<grpc::ClientReader<Response>> (
                          v1::VolumeAgent::Stub::*method)(grpc::ClientContext*, const Request&),
                      const Request& request, std::optional<std::chrono::milliseconds> timeout,
                      const std::function<void(const Response&)>& seen) {
    grpc::ClientContext context;
    if (timeout) context.set_deadline(std::chrono::system_clock::now() + *timeout);
    const std::unique_ptr<grpc::ClientReader<Response>> reader =
        (stub_.get()->*method)(&context, request);
    Response response;
    while (reader->Read(&response)) seen(response);
    return reader->Finish();
  }

 private:
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<v1::VolumeAgent::Stub> stub_;
};

// Whether the agent has answered that it cannot do this yet, as one does that is starting.
bool SaysNotYet(const grpc::Status& status);

// Prints the error of a failed call to stderr and returns the exit code for it. UNAVAILABLE means
// that no agent answers, and PERMISSION_DENIED that the role is too low, only if the status has no
// details: with details (ErrorDetail) the agent itself has answered. REQUIRES: the status is not
// OK.
ExitCode ReportFailure(const grpc::Status& status, const std::string& socket);

}  // namespace volumed
