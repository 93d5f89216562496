#include "csi/csi_find.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/strings.h"
#include "csi/csi_names.h"
#include "csi/csi_volume_files.h"
#include "csi/vol_data.h"
#include "operation/call_options.h"

namespace volumed {
namespace {

// How many files one request reads.
constexpr size_t kFilesAtOnce = 256;

Error OfNoVolume(const SafePath& directory, const std::string& why) {
  return Error::NotApplied(Code::kDataLoss, directory.Below(kCsiVolDataFile).Display() + " " + why);
}

VolumeSpec FoundSpec(const std::string& name, const CsiVolumeId& id, VolumeMode mode) {
  PersistentVolume volume;
  volume.metadata.name = name;
  volume.spec.volume_mode = mode;
  CsiPersistentVolumeSource source;
  source.driver = id.driver;
  source.volume_handle = id.handle;
  volume.spec.source = std::move(source);
  return VolumeSpec::FromPersistentVolume(std::move(volume), /*read_only=*/false);
}

// The name that a file gives the spec, which has to be that of the directory. A file that gives
// none is taken, as kubelet takes it.
Result<std::string> SpecNameOf(const StringMap& data, const SpecName& directory_name,
                               const SafePath& directory) {
  const std::string& said = VolDataOf(data, kVolDataSpecVolId);
  if (said.empty()) return directory_name.str();
  if (said != directory_name.str() && EscapeQualifiedName(said) != directory_name.str()) {
    return OfNoVolume(directory, "is that of another volume");
  }
  return said;
}

Result<CsiVolumeId> IdOf(const StringMap& data, const SafePath& directory) {
  std::optional<CsiVolumeId> id = VolumeIdOf(data);
  if (!id) return OfNoVolume(directory, "does not say driver and handle of a volume");
  return *std::move(id);
}

// A directory that may have the file of a staged volume.
struct FoundPlace {
  enum class Kind { kStaged, kStagedBefore, kBlock };
  Kind kind = Kind::kStaged;
  std::string driver;  // of a kStaged one
  std::string name;    // the directory's last element
  SafePath directory;  // that has the file
  SafePath place;      // as UnrecordedDevice has it
};

class DeviceFinding {
 public:
  DeviceFinding(const CsiContext& context, const CallOptions& call)
      : context_(context), paths_(context.host.paths), call_(OnOwnFilesystem(call)) {}

  Result<std::vector<UnrecordedDevice>> Find();

 private:
  std::vector<std::string> Subdirectories(const SafePath& path) const;
  std::vector<FoundPlace> Places() const;
  void ReadSome(const std::vector<FoundPlace>& places, size_t first, size_t end);
  void Take(const FoundPlace& place, const Result<AnyAnswer>& answer);
  Result<UnrecordedDevice> DeviceOf(const FoundPlace& place, const StringMap& data) const;
  bool IsMounted(const FoundPlace& place, const std::string& spec) const;
  bool IsMountedBelow(const SafePath& directory) const;

  const CsiContext& context_;
  const KubeletPaths& paths_;
  const CallOptions call_;
  std::set<std::string> mounted_;
  std::vector<UnrecordedDevice> found_;
};

Result<std::vector<UnrecordedDevice>> DeviceFinding::Find() {
  ASSIGN_OR_RETURN(const MountListing mounts,
                   context_.kernel().Call(
                       ListMounts{.below = paths_.GetPluginDir(kCsiPluginName).Display()}, call_));
  for (const MountEntry& mount : mounts.mounts) mounted_.insert(mount.mount_point);
  const std::vector<FoundPlace> places = Places();
  for (size_t first = 0; first < places.size(); first += kFilesAtOnce) {
    ReadSome(places, first, std::min(places.size(), first + kFilesAtOnce));
  }
  return std::move(found_);
}

std::vector<std::string> DeviceFinding::Subdirectories(const SafePath& path) const {
  std::vector<std::string> names;
  const Result<DirectoryListing> listing = context_.kernel().Call(ListDirectory{path}, call_);
  if (!listing.ok()) {
    if (listing.error().code() != Code::kNotFound) {
      context_.parts.log.Warning("a directory of CSI volumes could not be read",
                                 {{"error", listing.error()}});
    }
    return names;
  }
  for (const DirectoryEntry& entry : listing->entries) {
    if (entry.type == FileType::kDirectory) names.push_back(entry.name);
  }
  return names;
}

std::vector<FoundPlace> DeviceFinding::Places() const {
  std::vector<FoundPlace> places;
  const SafePath top = paths_.GetPluginDir(kCsiPluginName);
  for (const std::string& first : Subdirectories(top)) {
    for (const std::string& name : Subdirectories(top.Below(first))) {
      const SafePath directory = top.Below(first).Below(name);
      if (first == kVolumeDevicesDirName) {
        if (HasSharedBlockDir(SpecName(name))) continue;
        places.push_back(
            {FoundPlace::Kind::kBlock, "", name, directory.Below("data"), directory.Below("dev")});
        continue;
      }
      const bool is_before = directory == CsiOldStageDir(paths_, SpecName(name));
      places.push_back({is_before ? FoundPlace::Kind::kStagedBefore : FoundPlace::Kind::kStaged,
                        first, name, directory, directory.Below("globalmount")});
    }
  }
  return places;
}

void DeviceFinding::ReadSome(const std::vector<FoundPlace>& places, size_t first, size_t end) {
  Batch batch{paths_.GetPluginDir(kCsiPluginName), {}};
  for (size_t i = first; i < end; ++i) {
    batch.items.push_back(
        {ReadFile{.path = places[i].directory.Below(kCsiVolDataFile), .max_bytes = kVolDataLimit}});
  }
  const Result<BatchAnswer> answer = context_.kernel().Call(batch, call_);
  for (size_t i = first; i < end; ++i) {
    Take(places[i],
         answer.ok() ? answer->items[i - first].result : Result<AnyAnswer>(answer.error()));
  }
}

void DeviceFinding::Take(const FoundPlace& place, const Result<AnyAnswer>& answer) {
  const auto not_taken = [&](const Error& error) {
    context_.parts.log.Warning("what is staged here is not known to be a volume",
                               {{"place", place.place.Display()}, {"error", error}});
  };
  if (!answer.ok()) {
    const bool is_nothing =
        answer.error().code() == Code::kNotFound && !mounted_.contains(place.place.Display());
    return is_nothing ? void() : not_taken(answer.error());
  }
  const Result<StringMap> data = ParseVolData(std::get<FileContent>(*answer).bytes);
  if (!data.ok()) return not_taken(data.error());
  Result<UnrecordedDevice> device = DeviceOf(place, *data);
  if (!device.ok()) return not_taken(device.error());
  found_.push_back(*std::move(device));
}

Result<UnrecordedDevice> DeviceFinding::DeviceOf(const FoundPlace& place,
                                                 const StringMap& data) const {
  ASSIGN_OR_RETURN(const CsiVolumeId id, IdOf(data, place.directory));
  const bool is_block = place.kind == FoundPlace::Kind::kBlock;
  // Today's path names no PersistentVolume: the handle stands for its name.
  std::string name = id.handle;
  switch (place.kind) {
    case FoundPlace::Kind::kStaged:
      if (place.driver != id.driver || place.name != CsiHandleHash(id.handle)) {
        return OfNoVolume(place.directory, "is that of another volume");
      }
      break;
    case FoundPlace::Kind::kStagedBefore:
      name = place.name;
      break;
    case FoundPlace::Kind::kBlock: {
      ASSIGN_OR_RETURN(name, SpecNameOf(data, SpecName(place.name), place.directory));
      break;
    }
  }
  UnrecordedDevice device{
      .place = place.place,
      .spec = FoundSpec(name, id, is_block ? VolumeMode::kBlock : VolumeMode::kFilesystem),
      .volume_name = CsiVolumeName(id.driver, id.handle)};
  device.is_block = is_block;
  device.is_mounted = IsMounted(place, name);
  return device;
}

bool DeviceFinding::IsMounted(const FoundPlace& place, const std::string& spec) const {
  if (place.kind != FoundPlace::Kind::kBlock) return mounted_.contains(place.place.Display());
  const SpecName name(spec);
  return IsMountedBelow(place.place) || IsMountedBelow(CsiBlockStagingPath(paths_, name)) ||
         IsMountedBelow(CsiBlockPublishDir(paths_, name));
}

// At the path, or below it.
bool DeviceFinding::IsMountedBelow(const SafePath& directory) const {
  const std::string path = directory.Display();
  if (mounted_.contains(path)) return true;
  const auto next = mounted_.lower_bound(path + "/");
  return next != mounted_.end() && next->starts_with(path + "/");
}

}  // namespace

Result<VolumeSpec> ConstructCsiVolume(const CsiContext& context, const SpecName& spec,
                                      const SafePath& directory, const CallOptions& call) {
  ASSIGN_OR_RETURN(const StringMap data, ReadVolData(context, directory, call));
  ASSIGN_OR_RETURN(const CsiVolumeId id, IdOf(data, directory));
  ASSIGN_OR_RETURN(const std::string name, SpecNameOf(data, spec, directory));
  if (VolDataOf(data, kVolDataLifecycleMode) != kVolDataEphemeral) {
    return FoundSpec(name, id, VolumeMode::kFilesystem);
  }
  CsiVolumeSource source;
  source.driver = id.driver;
  return VolumeSpec::FromVolume({name, std::move(source)});
}

Result<VolumeSpec> ConstructCsiBlockVolume(const CsiContext& context, const SpecName& spec,
                                           const CallOptions& call) {
  const SafePath directory = CsiBlockDataDir(context.host.paths, spec);
  ASSIGN_OR_RETURN(const StringMap data, ReadVolData(context, directory, call));
  ASSIGN_OR_RETURN(const CsiVolumeId id, IdOf(data, directory));
  ASSIGN_OR_RETURN(const std::string name, SpecNameOf(data, spec, directory));
  return FoundSpec(name, id, VolumeMode::kBlock);
}

Result<std::vector<UnrecordedDevice>> FindCsiDevices(const CsiContext& context,
                                                     const CallOptions& call) {
  return DeviceFinding(context, call).Find();
}

}  // namespace volumed
