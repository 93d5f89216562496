// What the verbs have in common when they call the agent. Each function that gives an exit code has
// already said on stderr what went wrong. Threads: one. Blocks: as long as its calls do.
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

// A reference by what the command line says: `kind` is any word that the agent knows, `name` may be
// a uid, and the namespace is that of -n, or "".
v1::ObjectRef MakeRef(const CliContext& context, const std::string& kind, const std::string& name);

// Makes one unary call, for context.timeout at most; prints `done` and a newline on success, unless
// it is empty.
template <typename Method, typename Request, typename Response>
ExitCode CallAndSay(const CliContext& context, Method method, const Request& request,
                    Response* response, const std::string& done) {
  Client client(context.socket, context.timeout);
  const grpc::Status status = client.Call(method, request, response);
  if (!status.ok()) return ReportFailure(status, context.socket);
  if (!done.empty()) std::cout << done << "\n";
  return kExitOk;
}

// Adds to `all` every pod that the request asks for, page by page, so that the agent never has all
// of them in one answer. Each page may take context.timeout. If one fails, the pods of the pages
// before are in `all`, and nothing is printed.
grpc::Status FetchAllPods(const CliContext& context, v1::GetPodsRequest request,
                          v1::GetPodsResponse* all);

// The same; prints why it failed.
ExitCode GetAllPods(const CliContext& context, v1::GetPodsRequest request,
                    v1::GetPodsResponse* all);

// Says that there is no such object, and returns kExitNotFound. `of_namespace` says that the kind
// has namespaces: the text then names the one that was looked in, if -n gave one.
ExitCode ReportNone(const CliContext& context, std::string_view kind, const std::string& name,
                    bool of_namespace);

// The snapshots with this id (empty: those that have a point in time) of this volume (empty: any).
// Of an id that there is not it says so, and returns kExitNotFound.
ExitCode FetchSnapshots(const CliContext& context, const std::string& id, const std::string& volume,
                        v1::GetSnapshotsResponse* response);
// The same, and prints them.
ExitCode GetSnapshots(const CliContext& context, const std::string& id, const std::string& volume);
// Prints the pool of this name, or all.
ExitCode GetPools(const CliContext& context, const std::string& name);
// Prints the pools' volume of this id, or all.
ExitCode GetPoolVolumes(const CliContext& context, const std::string& id);

// Reads the whole file; "-" is standard input. Returns nullopt, after a line on stderr, if it
// cannot be read or is a directory.
std::optional<std::string> ReadManifest(const std::string& file);

// Fractions of a millisecond are dropped. REQUIRES: a number that AddSeconds() lets pass.
std::chrono::milliseconds MillisecondsOf(double seconds);

}  // namespace volumed
