#include "csi/csi_volume_files.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "csi/csi_proof.h"
#include "csi/vol_data.h"
#include "operation/call_options.h"
#include "os/place_names.h"

namespace volumed {
namespace {

constexpr uint32_t kVolumeDirectoryMode = 0750;
// Kubelet's, by its usual umask.
constexpr uint32_t kVolDataMode = 0644;

bool IsNotEmpty(const Error& error) {
  return error.sys_errno() == ENOTEMPTY || error.sys_errno() == EEXIST;
}

}  // namespace

Status WriteVolData(const CsiContext& context, const SafePath& directory, const StringMap& data,
                    bool durable, const CallOptions& call) {
  Kernel& kernel = context.kernel();
  const CallOptions own = OnOwnFilesystem(call);
  RETURN_IF_ERROR(kernel.Call(
      MakeDirectory{
          .path = directory, .mode = kVolumeDirectoryMode, .parent_mode = kVolumeDirectoryMode},
      own));
  WriteFile write;
  write.path = directory.Below(kCsiVolDataFile);
  write.content = Secret<std::string>(FormatVolData(data));
  write.mode = kVolDataMode;
  write.unsynced = !durable;
  RETURN_IF_ERROR(kernel.Call(write, own));
  return OkStatus();
}

Result<StringMap> ReadVolData(const CsiContext& context, const SafePath& directory,
                              const CallOptions& call) {
  const SafePath file = directory.Below(kCsiVolDataFile);
  ASSIGN_OR_RETURN(const FileContent content,
                   context.kernel().Call(ReadFile{.path = file, .max_bytes = kVolDataLimit},
                                         OnOwnFilesystem(call)));
  return ParseVolData(content.bytes).With(file.Display());
}

Result<std::optional<CsiVolumeId>> ReadVolumeId(const CsiContext& context,
                                                const SafePath& directory,
                                                const CallOptions& call) {
  const Result<StringMap> data = ReadVolData(context, directory, call);
  if (!data.ok()) {
    if (data.error().code() == Code::kNotFound) return std::optional<CsiVolumeId>();
    return data.error();
  }
  std::optional<CsiVolumeId> id = VolumeIdOf(*data);
  if (id) return id;
  return Error::NotApplied(Code::kDataLoss, directory.Below(kCsiVolDataFile).Display() +
                                                " does not say driver and handle of a volume");
}

Result<std::optional<std::string>> RemoveLeftPlace(const CsiContext& context, const SafePath& place,
                                                   const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  const std::string path = place.Display();
  ASSIGN_OR_RETURN(const FileInfo there, context.kernel().Call(Stat{.path = place}, own));
  if (there.type == FileType::kMissing) return std::optional<std::string>();
  if (there.type != FileType::kDirectory) {
    return std::make_optional(path + " is a " + std::string(FileTypeName(there.type)) +
                              " that it has left");
  }
  const auto removed = context.kernel().Call(RemoveDirectory{place}, own);
  if (removed.ok()) return std::optional<std::string>();
  if (IsNotEmpty(removed.error())) return std::make_optional(path + " is not empty");
  return removed.error();
}

Status RemoveVolData(const CsiContext& context, const SafePath& directory,
                     const CallOptions& call) {
  const CallOptions own = OnOwnFilesystem(call);
  RETURN_IF_ERROR(context.kernel().Call(RemoveFile{directory.Below(kCsiVolDataFile)}, own));
  RETURN_IF_ERROR(context.kernel().Call(RemoveDirectory{directory}, own));
  return OkStatus();
}

Error AfterRefusal(const CsiContext& context, const SafePath& place, const Error& error,
                   const CallOptions& call) {
  if (error.maybe_applied()) return error;
  const Result<std::vector<MountEntry>> layers =
      MountLayers(context.kernel(), place.Display(), call);
  if (!layers.ok()) return error.AsMaybeApplied();
  if (!layers->empty()) {
    return Error::MaybeApplied(error.code(), error.message() + "; " + layers->back().source +
                                                 " is mounted at " + place.Display() +
                                                 " all the same");
  }
  const Result<std::optional<std::string>> left = RemoveLeftPlace(context, place, call);
  if (!left.ok() || *left) return error.AsMaybeApplied();
  return RemoveVolData(context, ParentOf(place), call).ok() ? error : error.AsMaybeApplied();
}

}  // namespace volumed
