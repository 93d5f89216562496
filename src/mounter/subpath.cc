#include "mounter/subpath.h"

#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

// The same path without empty and "." elements; both are allowed in a manifest.
Result<std::string> CleanSubPath(const std::string& sub_path) {
  const auto refuse = [&](const std::string& reason) {
    return Error::NotApplied(Code::kInvalidArgument, "subPath \"" + sub_path + "\" " + reason);
  };
  if (sub_path.empty()) return refuse("is empty");
  if (sub_path[0] == '/') return refuse("must not be an absolute path");
  std::string cleaned;
  for (const std::string& element : Split(sub_path, '/')) {
    if (element == "..") return refuse("must not contain \"..\"");
    if (element.empty() || element == ".") continue;
    cleaned += cleaned.empty() ? element : "/" + element;
  }
  return cleaned;
}

}  // namespace

Result<PrepareSubPath> SubPathEffect(const KubeletPaths& paths, const SafeSubpathRequest& request) {
  ASSIGN_OR_RETURN(std::string sub_path, CleanSubPath(request.sub_path));
  return PrepareSubPath{.volume = request.volume,
                        .sub_path = std::move(sub_path),
                        .parent = paths.GetPodVolumeSubpathsDir(request.pod)
                                      .Below(request.spec.str())
                                      .Below(request.container),
                        .target = paths.GetPodVolumeSubpathDir(request.pod, request.spec,
                                                               request.container, request.index)};
}

Result<SafePath> PrepareSafeSubpath(Kernel& kernel, const KubeletPaths& paths,
                                    const SafeSubpathRequest& request, const CallOptions& call) {
  ASSIGN_OR_RETURN(const PrepareSubPath effect, SubPathEffect(paths, request));
  RETURN_IF_ERROR(kernel.Call(effect, call));
  return effect.target;
}

RemoveSubPaths SubPathsRemoval(const KubeletPaths& paths, const PodUid& pod, const SpecName& spec,
                               bool keep_directories) {
  const SafePath all = paths.GetPodVolumeSubpathsDir(pod);
  return {.of_volume = all.Below(spec.str()), .all = all, .keep_directories = keep_directories};
}

Result<bool> UnmountSubPaths(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                             const SpecName& spec, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Changed there,
                   kernel.Call(SubPathsRemoval(paths, pod, spec, /*keep_directories=*/true), call));
  return there.changed;
}

Status CleanSubPaths(Kernel& kernel, const KubeletPaths& paths, const PodUid& pod,
                     const SpecName& spec, const CallOptions& call) {
  RETURN_IF_ERROR(kernel.Call(SubPathsRemoval(paths, pod, spec, /*keep_directories=*/false), call));
  return OkStatus();
}

}  // namespace volumed
