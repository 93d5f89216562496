#include "plugins/huge_pages.h"

#include <cerrno>
#include <optional>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr std::string_view kSizedMedium = "HugePages-";
constexpr std::string_view kResourcePrefix = "hugepages-";
constexpr std::string_view kPageSizeOption = "pagesize=";

Error Invalid(std::string message) {
  return Error::NotApplied(Code::kInvalidArgument, std::move(message));
}

// What the containers, and the pod as a whole, ask for.
Result<std::vector<Quantity>> RequestedPageSizes(const Pod& pod) {
  std::vector<const ResourceRequirements*> all = {&pod.spec.resources};
  for (const auto* list : {&pod.spec.init_containers, &pod.spec.containers}) {
    for (const Container& container : *list) all.push_back(&container.resources);
  }
  std::vector<Quantity> sizes;
  for (const ResourceRequirements* resources : all) {
    for (const ResourceList* amounts : {&resources->requests, &resources->limits}) {
      for (const auto& [name, amount] : *amounts) {
        const auto size = StripPrefix(name, kResourcePrefix);
        if (!size) continue;
        ASSIGN_OR_RETURN(const Quantity parsed, Quantity::Parse(*size).With("resource " + name));
        sizes.push_back(parsed);
      }
    }
  }
  return sizes;
}

// "2M" of mountinfo is 2Mi. Source: Linux fs/hugetlbfs/inode.c (hugetlbfs_show_options).
std::optional<Quantity> ParseMountedSize(std::string_view text) {
  std::string size(text);
  if (!size.empty() && size.back() != 'i') size += 'i';
  const Result<Quantity> parsed = Quantity::Parse(size);
  return parsed.ok() ? std::optional(*parsed) : std::nullopt;
}

// The pages of what is mounted at `dir`; none for what is no hugetlbfs or does not tell.
Result<std::optional<Quantity>> MountedPageSize(Kernel& kernel, const SafePath& dir,
                                                const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountListing listing, kernel.Call(ListMounts{dir.Display()}, call));
  std::optional<Quantity> size;
  for (const MountEntry& mount : listing.mounts) {  // a later one covers an earlier one
    if (mount.mount_point != dir.Display()) continue;
    size.reset();
    if (mount.fs_type != "hugetlbfs") continue;
    for (const std::string& option : mount.super_options) {
      if (const auto value = StripPrefix(option, kPageSizeOption)) size = ParseMountedSize(*value);
    }
  }
  return size;
}

}  // namespace

bool IsHugePagesMedium(const std::string& medium) {
  return medium == kMediumHugePages || medium.starts_with(kSizedMedium);
}

Result<Quantity> HugePageSizeOf(const Pod& pod, const std::string& medium) {
  std::optional<Quantity> wanted;
  if (const auto size = StripPrefix(medium, kSizedMedium)) {
    ASSIGN_OR_RETURN(wanted, Quantity::Parse(*size).With("medium " + medium));
  }
  ASSIGN_OR_RETURN(const std::vector<Quantity> sizes, RequestedPageSizes(pod));
  std::optional<Quantity> found;
  for (const Quantity& size : sizes) {
    if (wanted && size != *wanted) continue;
    if (found && *found != size) {
      return Invalid("medium: " + medium +
                     " can't be used if container requests multiple huge page sizes");
    }
    found = size;
  }
  if (found) return *found;
  return Invalid("medium " + medium +
                 ": hugePages storage requested, but there is no resource request for huge pages");
}

Status MountHugetlbfs(Kernel& kernel, const SafePath& dir, const Quantity& page_size,
                      const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo place,
                   kernel.Call(Stat{.path = dir, .only_mount_point = true}, call));
  if (place.is_mount_point) {
    ASSIGN_OR_RETURN(const std::optional<Quantity> mounted, MountedPageSize(kernel, dir, call));
    if (mounted == page_size) return OkStatus();  // a set-up that was interrupted
    return Error::NotApplied(
        Code::kFailedPrecondition,
        dir.Display() + " has " +
            (mounted ? "huge pages of " + mounted->String() : "another filesystem") +
            " mounted, not huge pages of " + page_size.String());
  }
  // Bytes: the kernel's own suffixes are not Kubernetes'.
  const auto mounted = kernel.Call(
      Mount{.fs_type = "hugetlbfs",
            .source = "nodev",
            .target = dir,
            .options = {std::string(kPageSizeOption) + std::to_string(page_size.Value())}},
      call);
  if (mounted.ok()) return OkStatus();
  const int number = mounted.error().sys_errno();
  if (number != ENODEV && number != EINVAL) return mounted.error();
  const std::string missing =
      number == ENODEV ? "hugetlbfs" : "huge pages of " + page_size.String();
  return Error::FromParts(
      Code::kUnimplemented, mounted.error().outcome(), number,
      "this node's kernel has no " + missing + ": " + mounted.error().message());
}

}  // namespace volumed
