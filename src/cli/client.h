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

// Threads: any. Blocks: each call until its deadline.
class Client {
 public:
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
  // each to `seen`. Without a timeout it reads until the agent or a signal ends the call.
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

// Prints the error of a failed call to stderr and returns the exit code for it.
ExitCode ReportFailure(const grpc::Status& status, const std::string& socket);

}  // namespace volumed
