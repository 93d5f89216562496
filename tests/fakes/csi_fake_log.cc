#include "fakes/csi_fake_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace volumed {
namespace {

using Json = nlohmann::json;

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// Found by the type's own namespace alone.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CsiFakeEntry, what, number, rpc, volume, staging,
                                                target, node, readonly, block, size_bytes,
                                                secret_keys, volume_context, publish_context,
                                                mount_flags, mount_group, code, effect, text, at_us,
                                                pid)

CsiFakeLog::CsiFakeLog(const std::string& path) {
  if (path.empty()) return;
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file_.valid()) std::abort();
}

void CsiFakeLog::Write(CsiFakeEntry entry) {
  if (!file_.valid()) return;
  entry.pid = ::getpid();
  const std::lock_guard lock(mu_);
  entry.at_us = NowUs();
  // What others chose may be no UTF-8.
  const std::string line = Json(entry).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::abort();
  }
}

std::vector<CsiFakeEntry> ReadCsiFakeLog(const std::string& path) {
  std::vector<CsiFakeEntry> entries;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    entries.push_back(Json::parse(line).get<CsiFakeEntry>());
  }
  return entries;
}

std::vector<std::string> CallsOf(const std::vector<CsiFakeEntry>& entries,
                                 const std::function<bool(const CsiFakeEntry&)>& counts) {
  std::vector<std::string> calls;
  for (const CsiFakeEntry& entry : entries) {
    if (entry.what != "begin" || !counts(entry)) continue;
    calls.push_back(entry.volume.empty() ? entry.rpc : entry.rpc + " " + entry.volume);
  }
  return calls;
}

std::vector<std::string> ViolationsOf(const std::vector<CsiFakeEntry>& entries) {
  std::vector<std::string> texts;
  for (const CsiFakeEntry& entry : entries) {
    if (entry.what == "violation") texts.push_back(entry.text);
  }
  return texts;
}

}  // namespace volumed
