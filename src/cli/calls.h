// What the verbs have in common when they call the agent.
#pragma once

#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "agent.pb.h"
#include "cli/client.h"
#include "cli/verbs.h"

namespace volumed {

using Stub = v1::VolumeAgent::Stub;

v1::ObjectRef MakeRef(const CliContext& context, const std::string& kind, const std::string& name);

// Makes the call; prints `done` on success unless it is empty.
template <typename Method, typename Request, typename Response>
ExitCode CallAndSay(const CliContext& context, Method method, const Request& request,
                    Response* response, const std::string& done) {
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Call(method, request, response);
  if (!status.ok()) return ReportFailure(status, context.socket);
  if (!done.empty()) std::cout << done << "\n";
  return kExitOk;
}

// All pods that the request asks for, page by page, so that the agent never has all of them in one
// answer. Prints why not otherwise.
ExitCode GetAllPods(const CliContext& context, v1::GetPodsRequest request,
                    v1::GetPodsResponse* all);

// Says that there is no such object; an object of that name may be in another namespace.
ExitCode ReportNone(const CliContext& context, std::string_view kind, const std::string& name,
                    bool of_namespace);

// Reads the file; "-" is standard input. Returns nullopt, after a line on stderr, if it cannot be
// read.
std::optional<std::string> ReadManifest(const std::string& file);

std::chrono::milliseconds MillisecondsOf(double seconds);

}  // namespace volumed
