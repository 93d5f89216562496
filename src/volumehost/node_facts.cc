#include "volumehost/node_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>

#include "base/strings.h"
#include "kube/value_rules.h"

namespace volumed {
namespace {

constexpr char kMemInfo[] = "/proc/meminfo";
// There as long as the kernel enforces or permits by labels. Source: selinux(8).
constexpr char kSelinux[] = "/sys/fs/selinux/enforce";

struct FreeAddresses {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

// In the kernel's order; empty when it does not tell.
std::vector<std::string> AddressesOfThisMachine() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, FreeAddresses> list(raw);
  std::vector<std::string> addresses;
  for (const ifaddrs* at = list.get(); at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    const int family = at->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) address = &reinterpret_cast<sockaddr_in*>(at->ifa_addr)->sin_addr;
    if (family == AF_INET6) address = &reinterpret_cast<sockaddr_in6*>(at->ifa_addr)->sin6_addr;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address == nullptr || ::inet_ntop(family, address, text.data(), text.size()) == nullptr) {
      continue;
    }
    addresses.emplace_back(text.data());
  }
  return addresses;
}

utsname ThisMachine() {
  utsname names{};
  return ::uname(&names) == 0 ? names : utsname{};
}

// Go's names, which Kubernetes uses, of what uname(2) calls otherwise.
// Source: go.dev/src/internal/syslist (GOARCH) and uname(1) of Debian's architectures.
constexpr std::pair<std::string_view, std::string_view> kArchitectures[] = {
    {"x86_64", "amd64"},    {"aarch64", "arm64"},      {"i686", "386"},
    {"armv7l", "arm"},      {"ppc64le", "ppc64le"},    {"s390x", "s390x"},
    {"riscv64", "riscv64"}, {"loongarch64", "loong64"}};

// Loopback, link-local, unspecified. Source: RFC 6890.
bool IsForThisLinkOnly(const std::string& address) {
  for (const char* prefix : {"127.", "169.254.", "fe8", "fe9", "fea", "feb"}) {
    if (address.starts_with(prefix)) return true;
  }
  return address == "::1" || address == "::" || address == "0.0.0.0";
}

}  // namespace

Result<int64_t> ParseMemTotalBytes(std::string_view meminfo) {
  for (const std::string& line : Split(meminfo, '\n')) {
    const auto rest = StripPrefix(line, "MemTotal:");
    if (!rest) continue;
    const auto number = StripSuffix(TrimSpace(*rest), " kB");
    const auto kilobytes = number ? ParseInt64(TrimSpace(*number)) : std::nullopt;
    // procfs writes kB and means 1024 bytes. Source: proc(5).
    if (kilobytes && *kilobytes > 0 && *kilobytes <= std::numeric_limits<int64_t>::max() / 1024) {
      return *kilobytes * 1024;
    }
    break;
  }
  return Error::NotApplied(Code::kDataLoss, "no usable MemTotal in /proc/meminfo");
}

Result<std::unique_ptr<NodeFacts>> NodeFacts::Read(NodeFactsOptions options) {
  std::ifstream file(kMemInfo);
  if (!file) {
    return Error::FromErrno(errno, std::string("open ") + kMemInfo, Outcome::kNotApplied);
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSIGN_OR_RETURN(const int64_t memory_bytes, ParseMemTotalBytes(text));
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (processors < 1) {
    return Error::FromErrno(errno, "count the processors", Outcome::kNotApplied);
  }
  // emplace: what the options name already stays.
  options.allocatable.emplace("memory", Quantity::FromBytes(memory_bytes));
  options.allocatable.emplace("cpu", Quantity::FromInteger(processors));
  const utsname machine = ThisMachine();
  if (options.host_name.empty()) options.host_name = machine.nodename;
  for (auto& [label, value] : DefaultNodeLabels(options.name, machine.machine)) {
    options.labels.emplace(label, value);
  }
  if (options.host_ip.empty()) options.host_ip = ChooseHostIp(AddressesOfThisMachine());
  options.has_selinux = options.has_selinux || access(kSelinux, F_OK) == 0;
  return std::make_unique<NodeFacts>(std::move(options));
}

std::map<std::string, std::string> DefaultNodeLabels(const NodeName& name,
                                                     const std::string& machine) {
  std::string architecture = machine;
  for (const auto& [of_kernel, of_go] : kArchitectures) {
    if (machine == of_kernel) architecture = of_go;
  }
  return {{"kubernetes.io/hostname", name.str()},
          {"kubernetes.io/os", "linux"},
          {"kubernetes.io/arch", architecture},
          {"beta.kubernetes.io/os", "linux"},
          {"beta.kubernetes.io/arch", architecture}};
}

std::string ChooseHostIp(const std::vector<std::string>& addresses) {
  std::string first;
  for (const std::string& address : addresses) {
    if (IsForThisLinkOnly(address)) continue;
    if (address.find(':') == std::string::npos) return address;
    if (first.empty()) first = address;
  }
  return first;
}

Status NodeFacts::MergeTopology(const std::string& driver, const StringMap& topology) {
  for (const auto& [key, value] : topology) {
    auto broken = rules::kQualifiedName.broken(key);
    if (!broken) broken = rules::kLabelValue.broken(value);
    if (!broken) continue;
    return Error::NotApplied(Code::kInvalidArgument, "the topology of CSI driver " + driver +
                                                         " can be no label of a node: " + *broken);
  }
  const Result<bool> changed = AddLabels(driver, topology);
  if (!changed.ok()) return changed.error().With("CSI driver " + driver);
  if (*changed && labels_changed_) labels_changed_();
  return OkStatus();
}

Result<bool> NodeFacts::AddLabels(const std::string& driver, const StringMap& labels) {
  MutexLock lock(mu_);
  for (const auto& [key, value] : labels) {
    const auto known = labels_.find(key);
    if (known == labels_.end() || known->second == value) continue;
    const auto said = said_by_.find(key);
    const bool is_own = said != said_by_.end() && said->second == std::set<std::string>{driver};
    if (is_own) continue;
    const std::string who =
        said == said_by_.end() ? "" : ", as CSI driver " + *said->second.begin() + " has said";
    // %q of Go, whose quotes these values need no escapes for: they are labels.
    return Error::NotApplied(Code::kFailedPrecondition,
                             "detected topology value collision: driver reported \"" + key +
                                 "\":\"" + value + "\" but existing label is \"" + key + "\":\"" +
                                 known->second + "\"" + who);
  }
  bool changed = false;
  for (const auto& [key, value] : labels) {
    const auto [label, is_new] = labels_.emplace(key, value);
    changed = changed || is_new || label->second != value;
    label->second = value;
    if (is_new || said_by_.contains(key)) said_by_[key].insert(driver);
  }
  return changed;
}

void NodeFacts::ReleaseTopology(const std::string& driver) {
  bool changed = false;
  {
    MutexLock lock(mu_);
    for (auto said = said_by_.begin(); said != said_by_.end();) {
      said->second.erase(driver);
      const auto at = said++;
      if (!at->second.empty()) continue;
      labels_.erase(at->first);
      said_by_.erase(at);
      changed = true;
    }
  }
  if (changed && labels_changed_) labels_changed_();
}

std::map<std::string, std::string> NodeFacts::GetNodeLabels() const {
  MutexLock lock(mu_);
  return labels_;
}

std::map<std::string, std::set<std::string>> NodeFacts::LabelsOfDrivers() const {
  MutexLock lock(mu_);
  return said_by_;
}

Result<std::string> NodeFacts::GetHostIp() const {
  if (options_.host_ip.empty()) return HostNode::GetHostIp();
  return options_.host_ip;
}

std::optional<std::string> NodeFacts::GetCloudProvider() const {
  if (options_.cloud_provider.empty()) return std::nullopt;
  return options_.cloud_provider;
}

}  // namespace volumed
