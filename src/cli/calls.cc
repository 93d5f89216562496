#include "cli/calls.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace volumed {

v1::ObjectRef MakeRef(const CliContext& context, const std::string& kind, const std::string& name) {
  v1::ObjectRef ref;
  ref.set_kind(kind);
  ref.set_namespace_(context.name_space);
  ref.set_name(name);
  return ref;
}

grpc::Status FetchAllPods(const CliContext& context, v1::GetPodsRequest request,
                          v1::GetPodsResponse* all) {
  constexpr uint32_t kPageSize = 1000;
  request.set_page_size(kPageSize);
  Client client(context.socket, context.timeout);
  do {
    v1::GetPodsResponse page;
    grpc::Status status = client.Call(&Stub::GetPods, request, &page);
    if (!status.ok()) return status;
    for (v1::Pod& pod : *page.mutable_pods()) all->add_pods()->Swap(&pod);
    request.set_page(page.next_page());
  } while (!request.page().empty());
  return grpc::Status::OK;
}

ExitCode GetAllPods(const CliContext& context, v1::GetPodsRequest request,
                    v1::GetPodsResponse* all) {
  const grpc::Status status = FetchAllPods(context, std::move(request), all);
  return status.ok() ? kExitOk : ReportFailure(status, context.socket);
}

ExitCode ReportNone(const CliContext& context, std::string_view kind, const std::string& name,
                    bool of_namespace) {
  const bool in_one = of_namespace && !context.name_space.empty();
  std::cerr << "volumectl: no " << kind << " " << name
            << (in_one ? " in namespace " + context.name_space : "") << "\n";
  return kExitNotFound;
}

std::optional<std::string> ReadManifest(const std::string& file) {
  std::stringstream content;
  if (file == "-") {
    content << std::cin.rdbuf();
    return content.str();
  }
  if (std::error_code error; std::filesystem::is_directory(file, error)) {
    std::cerr << "volumectl: " << file << " is a directory\n";
    return std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  content << in.rdbuf();
  if (in) return content.str();
  std::cerr << "volumectl: cannot read " << file << "\n";
  return std::nullopt;
}

std::chrono::milliseconds MillisecondsOf(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

}  // namespace volumed
