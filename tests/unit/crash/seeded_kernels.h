// Kernels that make one mistake each.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "fakes/fake_flex_driver.h"
#include "plugins/local.h"
#include "unit/crash/crash_monitor.h"
#include "unit/crash/crash_scenarios.h"
#include "unit/crash/seeded_bugs.h"

namespace volumed {

class PassingKernel : public Kernel {
 public:
  PassingKernel(Kernel& real, CrashWorld& world) : real_(real), world_(world) {}
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    return real_.Do(request, options);
  }

 protected:
  Kernel& real_;
  CrashWorld& world_;
};

// Says that it has unmounted, and has not.
class LazyUnmountKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<Unmount>(request)) return AnyAnswer(Changed{false});
    return real_.Do(request, options);
  }
};

// A tmpfs is mounted only after the next effect: what that one makes lies below it.
class SwappingKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<Mount>(request) && !held_back_) {
      held_back_ = request;
      return AnyAnswer(Done{});
    }
    Result<AnyAnswer> answer = real_.Do(request, options);
    if (held_back_ && KindOfEffect(request) == EffectKind::kMakes) {
      (void)real_.Do(*std::exchange(held_back_, std::nullopt), options);
    }
    return answer;
  }

 private:
  std::optional<AnyRequest> held_back_;
};

// Writes the files of a payload that is there one by one, in place.
class InPlaceKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (const auto* write = std::get_if<WriteAtomicPayload>(&request)) {
      const std::string data = write->target.Display() + "/..data";
      if (world_.kernel->Exists(data) && !world_.kernel->crashed()) {
        for (const PayloadFile& file : write->files) {
          world_.kernel->AddFile(data + "/" + file.path, file.content.Reveal(), file.mode);
          world_.CheckState("while " + write->target.Display() + " is written");
          // An effect like any other: the agent can end here.
          (void)real_.Do(Stat{.path = write->target.Below("..data")}, options);
        }
      }
    }
    return real_.Do(request, options);
  }
};

// Removes a tree with whatever is mounted in it.
class CrossingKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (const auto* remove = std::get_if<RemoveTree>(&request); remove && Alive()) {
      const std::string path = remove->path.Display();
      for (const MountEntry& mount : world_.kernel->Mounts()) {
        if (mount.mount_point.rfind(path + "/", 0) == 0) Empty(mount.mount_point);
      }
      world_.kernel->UnmountBelow(path);
    }
    return real_.Do(request, options);
  }

 private:
  bool Alive() const { return !world_.kernel->crashed(); }
  void Empty(const std::string& mount_point) {
    for (const auto& [path, content] : world_.precious) {
      if (path.rfind(mount_point + "/", 0) == 0) world_.kernel->Remove(path);
    }
    world_.CheckState("after a removal");
  }
};

// Unmounts one mount too many: that of the same volume's name in another pod.
class GreedyUnmountKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    if (std::holds_alternative<Unmount>(request) && !world_.kernel->crashed()) {
      world_.kernel->UnmountBelow(world_.VolumePath("u-other", "mem"));
      world_.CheckState("after an unmount");
    }
    return answer;
  }
};

// Answers that a request is done without doing it.
template <typename Request>
class IdleKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<Request>(request)) return AnyAnswer(typename Request::Answer{});
    return real_.Do(request, options);
  }
};

// Mounts another export of the server for the recycler.
class OtherExportKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* mount = std::get_if<Mount>(&request);
    const bool recycles =
        mount != nullptr && mount->target.Display().find("/recycler/") != std::string::npos;
    if (!recycles) return real_.Do(request, options);
    Mount other = *mount;
    other.source = "nas:/other";
    return real_.Do(other, options);
  }
};

// Sees no NFS in the mount table, and so mounts it where it is mounted.
class NfsBlindKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    mounted_ = std::holds_alternative<Mount>(request);
    if (answer.ok() && !after_mount_ && std::holds_alternative<ListMounts>(request)) {
      std::erase_if(std::get<MountListing>(*answer).mounts,
                    [](const MountEntry& mount) { return mount.fs_type == "nfs4"; });
    }
    after_mount_ = mounted_;
    return answer;
  }

 private:
  bool mounted_ = false;
  bool after_mount_ = false;  // what was just mounted is seen
};

// Takes the export away from all pods with the first one's mount of it.
class GreedyExportKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    if (std::holds_alternative<Unmount>(request) && !world_.kernel->crashed()) {
      for (const MountEntry& mount : world_.kernel->Mounts()) {
        if (mount.fs_type == "nfs4") world_.kernel->UnmountBelow(mount.mount_point);
      }
      world_.CheckState("after an unmount");
    }
    return answer;
  }
};

// Says of every filesystem that it has grown to its device, and lets none.
class PretendingGrowthKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* grow = std::get_if<GrowFilesystem>(&request);
    if (grow == nullptr || grow->only_measure) return real_.Do(request, options);
    GrowFilesystem measure = *grow;
    measure.only_measure = true;
    Result<AnyAnswer> answer = real_.Do(measure, options);
    if (answer.ok()) {
      auto& growth = std::get<FilesystemGrowth>(*answer);
      growth.after_bytes = growth.device_bytes;
      growth.fills_device = true;
    }
    return answer;
  }
};

// Forgets to write which target a volume is of.
class NoIscsiFileKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* write = std::get_if<WriteFile>(&request);
    if (write == nullptr || !write->path.relative.ends_with("/iscsi.json")) {
      return real_.Do(request, options);
    }
    return AnyAnswer(Changed{true});
  }
};

// Sees, once it has unmounted a disk, neither other volumes of the target nor their disks.
class LonelyIscsiKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* unmount = std::get_if<Unmount>(&request);
    if (unmount != nullptr && unmount->target.Display().find("/iface-") != std::string::npos) {
      is_blind_ = true;
    }
    Result<AnyAnswer> answer = real_.Do(request, options);
    const auto* list = std::get_if<ListDirectory>(&request);
    if (list == nullptr || !answer.ok() || !is_blind_) return answer;
    auto& entries = std::get<DirectoryListing>(*answer).entries;
    const std::string path = list->path.Display();
    if (path.find("/iface-") != std::string::npos) entries.clear();
    if (path.find("/session") != std::string::npos) {
      std::erase_if(entries,
                    [](const DirectoryEntry& entry) { return entry.name.ends_with(":2"); });
    }
    return answer;
  }

 private:
  bool is_blind_ = false;
};

// Leaves a disk where it is, and says that it is deleted.
class KeepingScsiKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* write = std::get_if<WriteAttribute>(&request);
    if (write == nullptr || !write->path.relative.ends_with("/delete")) {
      return real_.Do(request, options);
    }
    return AnyAnswer(Done{});
  }
};

// Mounts a tmpfs where one is: it does not look first.
class ForgetfulStatKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    if (const auto* stat = std::get_if<Stat>(&request); stat && answer.ok()) {
      if (stat->only_mount_point) std::get<FileInfo>(*answer).is_mount_point = false;
    }
    return answer;
  }
};

// Takes the device away with the first pod's bind of it.
class GreedyDeviceUnmountKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* unmount = std::get_if<Unmount>(&request);
    const auto volume =
        unmount == nullptr ? std::nullopt : world_.paths.ParsePodVolume(unmount->target.Display());
    if (volume && volume->plugin == kLocalVolumePluginName) {
      (void)real_.Do(Unmount{world_.paths.GetDeviceMountDir(volume->plugin, volume->spec)},
                     options);
    }
    return PassingKernel::Do(request, options);
  }
};

// Detaches the disk with the first pod's bind of it.
class GreedyDetachKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* unmount = std::get_if<Unmount>(&request);
    const auto volume =
        unmount == nullptr ? std::nullopt : world_.paths.ParsePodVolume(unmount->target.Display());
    if (volume && volume->plugin == kFakeArrayPlugin && !world_.kernel->crashed()) {
      world_.array.attached.erase(volume->spec.str());
    }
    return PassingKernel::Do(request, options);
  }
};

// Has the flexVolume driver detach the disk with the first pod's bind of it.
class GreedyDriverKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* unmount = std::get_if<Unmount>(&request);
    const auto volume =
        unmount == nullptr ? std::nullopt : world_.paths.ParsePodVolume(unmount->target.Display());
    if (volume && volume->plugin == kFakeFlexDriver && !world_.kernel->crashed()) {
      (void)real_.Do(RunProgram{{kFakeFlexExecutable, "detach", volume->spec.str(), "n1"}},
                     options);
    }
    return PassingKernel::Do(request, options);
  }
};

// Says that the flexVolume driver has done this call, and does not ask it.
template <const char* kCall>
class PretendingDriverKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* program = std::get_if<RunProgram>(&request);
    const bool is_it = program != nullptr && program->arguments.at(0) == kFakeFlexExecutable &&
                       program->arguments.at(1) == kCall;
    if (!is_it) return PassingKernel::Do(request, options);
    return AnyAnswer(ProgramEnd{0, R"({"status":"Success"})"});
  }
};
inline constexpr char kDetachCall[] = "detach";

// Deletes the disks of a LUN with the first pod's bind of it.
class GreedyDeleteKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* unmount = std::get_if<Unmount>(&request);
    const auto volume =
        unmount == nullptr ? std::nullopt : world_.paths.ParsePodVolume(unmount->target.Display());
    Result<AnyAnswer> answer = PassingKernel::Do(request, options);
    if (volume && volume->plugin == kFcPluginName) {
      (void)real_.Do(WriteAttribute{{"/sys", "block/sdb/device/delete", Resolve::kBeneath}, "1"},
                     options);
    }
    return answer;
  }
};

// Runs no tool, and says that all is well.
class IdleToolKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    if (std::holds_alternative<RunProgram>(request)) return AnyAnswer(ProgramEnd{});
    return PassingKernel::Do(request, options);
  }
};

// Sees no filesystem on any disk.
class BlindProbeKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = PassingKernel::Do(request, options);
    if (!answer.ok() || !std::holds_alternative<ProbeDevice>(request)) return answer;
    DeviceProbe probe = std::get<DeviceProbe>(*answer);
    probe.fs_type.clear();
    probe.blank = true;
    probe.why_not_blank.clear();
    return AnyAnswer(probe);
  }
};

// Changes what a probe answers.
template <void (*kChange)(DeviceProbe&)>
class ProbeChangingKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = PassingKernel::Do(request, options);
    if (answer.ok() && std::holds_alternative<ProbeDevice>(request)) {
      kChange(std::get<DeviceProbe>(*answer));
    }
    return answer;
  }
};
inline void IgnoreMark(DeviceProbe& probe) { probe.unfinished = false; }
inline void SeeMarkEverywhere(DeviceProbe& probe) { probe.unfinished = !probe.fs_type.empty(); }
inline void TakeDataForBlank(DeviceProbe& probe) {
  probe.blank = probe.fs_type.empty() && probe.partition_table.empty();
}

// Finds every filesystem clean, unless it is to mend it.
class CredulousKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* check = std::get_if<CheckFilesystem>(&request);
    if (check == nullptr || check->mode == CheckMode::kPreen) return real_.Do(request, options);
    return AnyAnswer(FilesystemCheck{CheckResult::kClean, 0, "none", ""});
  }
};

// Deletes the storage of a volume that is still bound: with the first look at it.
class EarlyDeletionKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = PassingKernel::Do(request, options);
    const auto* made = std::get_if<MakeDirectory>(&request);
    const bool of_claim =
        made != nullptr && made->path.root == CrashWorld::kProvisionRoot && answer.ok();
    if (of_claim) (void)real_.Do(RemoveTree{made->path}, options);
    return answer;
  }
};

// Takes the nodes of all pods away with that of one.
class GreedyUnmapKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    Result<AnyAnswer> answer = real_.Do(request, options);
    const auto* unmount = std::get_if<Unmount>(&request);
    const auto volume =
        unmount == nullptr ? std::nullopt : world_.paths.ParsePodVolume(unmount->target.Display());
    if (volume && volume->is_block && !world_.kernel->crashed()) {
      world_.kernel->UnmountBelow(
          world_.paths.GetBlockMapDir(volume->plugin, volume->spec).Display());
      world_.CheckState("after an unmap");
    }
    return answer;
  }
};

// Binds the node that is at hand, not the device that was identified.
class AnyDeviceKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* bind = std::get_if<BindMount>(&request);
    if (bind == nullptr || !bind->expected_device) return real_.Do(request, options);
    BindMount other = *bind;
    other.source = {kOtherBlockDevice, ""};
    other.expected_device.reset();
    return real_.Do(other, options);
  }
};

// Holds nothing.
class LoosingKernel final : public PassingKernel {
 public:
  using PassingKernel::PassingKernel;
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) override {
    const auto* identify = std::get_if<IdentifyDevice>(&request);
    if (identify == nullptr) return real_.Do(request, options);
    return real_.Do(IdentifyDevice{identify->path, false}, options);
  }
};

}  // namespace volumed
