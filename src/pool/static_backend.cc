#include "pool/static_backend.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/byte_text.h"
#include "base/printable_text.h"
#include "mounter/host_directory.h"
#include "pool/pool_backend.h"

namespace volumed {
namespace {

constexpr size_t kShownIdentity = 256;  // bytes of what a device says of itself

Error NotOfStatic(const PoolVolumeRecord& volume, const std::string& what) {
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "volume " + volume.id + " is " + ShownSource(volume) + ", which is not " + what);
}

// Threads and blocking: as PoolBackend says.
class StaticBackend final : public PoolBackend {
 public:
  // `kind` is kStatic or kExport.
  StaticBackend(Kernel& kernel, PoolBackendKind kind) : kernel_(kernel), kind_(kind) {}

  PoolBackendKind kind() const override { return kind_; }
  Result<MadeArtefact> Make(const PoolVolumeRecord& volume, const PoolParameters&,
                            const CallOptions&) override {
    return NotOfStatic(volume, "made here");
  }
  Status PrepareDiscard(const PoolId&, const StorageObject&, const CallOptions&) override {
    return OkStatus();
  }
  // The row alone is the pool's.
  Status Discard(const PoolVolumeRecord&, const CallOptions&) override { return OkStatus(); }
  Result<MadeArtefact> Grow(const PoolVolumeRecord& volume, int64_t, const PoolParameters&,
                            const CallOptions&) override {
    return NotOfStatic(volume, "made larger here");
  }
  Result<OpenedVolume> Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                            bool read_only, const BeforeOpen& before,
                            const CallOptions& call) override;
  // CheckTuning lets nothing else in.
  Status Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
              const CallOptions& call) override;
  // CheckTuning lets none of it in.
  Result<bool> Throttle(const PoolVolumeRecord& volume, const IoLimits&,
                        const std::vector<std::string>&, const CallOptions&) override {
    return NotOfStatic(volume, "throttled here");
  }
  Status Close(const PoolId&, const CallOptions&) override { return OkStatus(); }
  Result<std::vector<PoolId>> ListOpen(const CallOptions&) override {
    return std::vector<PoolId>();
  }
  Result<std::map<PoolId, MadeArtefact>> Measure(const std::vector<PoolId>&, OfDamaged,
                                                 const CallOptions&) override {
    return std::map<PoolId, MadeArtefact>();
  }
  Result<std::vector<MadeCut>> Cut(const std::vector<CutWish>& wishes, const CutLimits&,
                                   const CallOptions&) override {
    if (wishes.empty()) return std::vector<MadeCut>();
    return NotOfStatic(wishes.front().source, "cut here");
  }
  Result<MadeArtefact> CopyCut(const PoolCutRecord&, const PoolVolumeRecord& source, int64_t,
                               const CallOptions&) override {
    return NotOfStatic(source, "cut here");
  }
  Result<MadeArtefact> Materialize(const PoolVolumeRecord& volume, const PoolParameters&,
                                   const PoolCutRecord&, const CallOptions&) override {
    return NotOfStatic(volume, "made here");
  }
  Status DiscardCut(const PoolCutRecord&, const CallOptions&) override { return OkStatus(); }
  Result<ExtentList> ListExtentsOfCut(const PoolCutRecord& cut, int64_t, uint32_t,
                                      const CallOptions&) override {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "snapshot " + cut.id + " is one of a static volume, which has none");
  }

 private:
  Kernel& kernel_;
  const PoolBackendKind kind_;
};

// A device is there whether or not anybody has it open.
Status StaticBackend::Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                           const CallOptions& call) {
  if (!tuning.read_ahead_kib) return OkStatus();
  ASSIGN_OR_RETURN(const IdentifiedDevice device, FindStaticDevice(kernel_, volume, call));
  CallOptions of_device = call;
  of_device.domain = DeviceDomain(volume.source);
  RETURN_IF_ERROR(
      kernel_
          .Call(SetReadAhead{device.path, device.facts.identity, *tuning.read_ahead_kib}, of_device)
          .With("tune the device of volume " + volume.id));
  return OkStatus();
}

// A read-only bind of a node keeps nobody from writing to its device, and to make the device
// read-only is the administrator's, who may have it elsewhere.
Result<OpenedVolume> StaticBackend::Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                                         bool read_only, const BeforeOpen& before,
                                         const CallOptions& call) {
  if (before) return NotOfStatic(volume, "given another filesystem's identity here");
  // Its server is not asked for anything before it is mounted.
  if (kind_ == PoolBackendKind::kExport) return OpenedVolume();
  ASSIGN_OR_RETURN(const IdentifiedDevice device, FindStaticDevice(kernel_, volume, call));
  if (read_only && volume.is_block && !device.read_only) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "block volume " + volume.id + " is the device " + volume.source +
                                 ", which takes writes: whoever only reads cannot have it");
  }
  RETURN_IF_ERROR(Tune(volume, tuning, call));
  OpenedVolume opened;
  opened.device = device.path;
  opened.identity = device.facts.identity;
  opened.direct_io = true;
  return opened;
}

Result<IdentifiedDevice> Identify(Kernel& kernel, const std::string& path, bool count_writes,
                                  const CallOptions& call) {
  CallOptions of_device = call;
  of_device.domain = DeviceDomain(path);
  return kernel.Call(IdentifyDevice{.path = HostPath(path), .count_writes = count_writes},
                     of_device);
}

Status CheckIsDeviceOf(const PoolVolumeRecord& volume, const IdentifiedDevice& device) {
  const DeviceIdentity& there = device.facts.identity;
  if (there.stable_id != volume.source_identity) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             volume.source + " is another device than the one of volume " +
                                 volume.id + ": it is " + Quoted(there.stable_id, kShownIdentity) +
                                 ", and not " + Quoted(volume.source_identity, kShownIdentity));
  }
  if (there.size_bytes >= volume.capacity_bytes) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition, volume.source + " has " +
                                                          BytesForPeople(there.size_bytes) +
                                                          ", and volume " + volume.id + " has " +
                                                          BytesForPeople(volume.capacity_bytes));
}

}  // namespace

Result<IdentifiedDevice> IdentifyListed(Kernel& kernel, const std::string& path,
                                        const CallOptions& call) {
  return Identify(kernel, path, /*count_writes=*/false, call);
}

Result<IdentifiedDevice> FindStaticDevice(Kernel& kernel, const PoolVolumeRecord& volume,
                                          const CallOptions& call) {
  ASSIGN_OR_RETURN(IdentifiedDevice device, IdentifyListed(kernel, volume.source, call));
  RETURN_IF_ERROR(CheckIsDeviceOf(volume, device));
  return device;
}

Result<IdentifiedDevice> FindDeviceToCopy(Kernel& kernel, const PoolVolumeRecord& volume,
                                          const CallOptions& call) {
  ASSIGN_OR_RETURN(IdentifiedDevice device,
                   Identify(kernel, volume.source, /*count_writes=*/true, call));
  RETURN_IF_ERROR(CheckIsDeviceOf(volume, device));
  return device;
}

Status CheckNobodyWrites(Kernel& kernel, const PoolVolumeRecord& volume,
                         const IdentifiedDevice& device, const CallOptions& call) {
  CallOptions of_device = call;
  of_device.domain = DeviceDomain(volume.source);
  RETURN_IF_ERROR(kernel.Call(CopyDevice{.device = device.path,
                                         .expected = device.facts.identity,
                                         .to = {},
                                         .bytes = WholeDevice(volume).size_bytes,
                                         .only_look = true,
                                         .writes = device.writes},
                              of_device));
  return OkStatus();
}

Result<FileExtent> CopyStaticDevice(Kernel& kernel, const PoolVolumeRecord& volume,
                                    const PoolCutRecord& cut, const SafePath& to,
                                    int64_t bytes_per_second, const CallOptions& call) {
  ASSIGN_OR_RETURN(const IdentifiedDevice device, FindStaticDevice(kernel, volume, call));
  CallOptions of_device = call;
  of_device.domain = DeviceDomain(volume.source);
  return kernel.Call(CopyDevice{.device = device.path,
                                .expected = device.facts.identity,
                                .to = to,
                                .bytes = cut.size_bytes,
                                .from_offset = cut.copied_bytes,
                                .bytes_per_second = bytes_per_second,
                                .writes = cut.source_writes},
                     of_device);
}

MadeArtefact WholeDevice(const PoolVolumeRecord& volume) {
  constexpr int64_t kRest = kPoolBlockBytes - 1;
  const int64_t bytes = (volume.capacity_bytes + kRest) / kPoolBlockBytes * kPoolBlockBytes;
  return {.object = {}, .size_bytes = bytes, .allocated_bytes = bytes};
}

PoolBackendKind CutBackendOf(PoolBackendKind volume) {
  return volume == PoolBackendKind::kStatic ? PoolBackendKind::kImage : volume;
}

std::string ShownSource(const PoolVolumeRecord& volume) {
  const bool is_export = volume.backend == PoolBackendKind::kExport;
  return (is_export ? "the export " : "the device ") + volume.source;
}

Error WhyNoSize(const PoolVolumeRecord& volume) {
  return Error::NotApplied(Code::kOutOfRange,
                           "volume " + volume.id + " is " + ShownSource(volume) +
                               ", whose size is its server's: nothing makes it larger here");
}

Status CheckListedSize(const PoolVolumeRecord& volume, int64_t bytes) {
  if (volume.backend == PoolBackendKind::kExport) return WhyNoSize(volume);
  const bool fits = volume.backend != PoolBackendKind::kStatic || bytes <= volume.capacity_bytes;
  if (fits) return OkStatus();
  return Error::NotApplied(Code::kOutOfRange, "volume " + volume.id + " is " + ShownSource(volume) +
                                                  ", which has " +
                                                  BytesForPeople(volume.capacity_bytes) +
                                                  ": make that larger, and start the agent again");
}

std::unique_ptr<PoolBackend> MakeStaticBackend(Kernel& kernel, PoolBackendKind kind) {
  return std::make_unique<StaticBackend>(kernel, kind);
}

}  // namespace volumed
