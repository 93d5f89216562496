// CsiFakeWorld: the storage of a fake CSI driver, and what the driver remembers of it. Volumes and
// their mounts are real, so its process is in the mount namespace of whoever looks at them.
//
// A volume is a folder below the driver's own: a tmpfs, a plain directory, or an image on a loop
// device; a block volume always is an image. Staging mounts it (or attaches the loop device),
// publishing binds what was staged. What the driver knows is in state.json beside the volumes,
// written before each answer: a driver that starts anew knows it still, unless it is to forget.
//
// It holds its caller to the specification: what comes in a wrong order is refused, and told as a
// violation.
#pragma once

#include <google/protobuf/map.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "csi.pb.h"

namespace volumed {

struct CsiFakeWorldOptions {
  std::string directory = {};
  std::string volumes = "tmpfs";  // or "directory", "loop"
  int64_t size_bytes = int64_t{16} << 20;
  bool known_only = false;  // a volume that was not made by CreateVolume is NOT_FOUND
  bool stages = true;
  bool attaches = false;
  std::string node_id = "node-a";
};

struct CsiFakeVolume {
  std::string name = {};  // that CreateVolume was called with
  int64_t size_bytes = 0;
  std::vector<std::string> nodes = {};
  std::vector<std::string> staged = {};        // paths
  std::map<std::string, bool> published = {};  // paths; whether as a block volume
  std::vector<std::string> elsewhere = {};     // mounts of lies
};

// What a node is asked for.
struct CsiFakeUse {
  std::string volume = {};
  std::string staging = {};
  std::string target = {};  // of a publication
  bool block = false;
  bool readonly = false;
  std::map<std::string, std::string> publish_context = {};
};

// Threads: any. Blocks: for mounts, and for mkfs where volumes are images. `effect` is that of a
// rule (fakes/csi_fake_script.h), "" for the right one. Statuses are those of the specification.
class CsiFakeWorld {
 public:
  using Violated = std::function<void(const std::string& text)>;

  // Reads what an earlier driver of this directory knew.
  CsiFakeWorld(CsiFakeWorldOptions options, Violated violated);
  void Configure(bool stages, bool attaches, const std::string& node_id);
  // It knows no volume any more; what is mounted stays.
  void Forget();

  grpc::Status Stage(const CsiFakeUse& use, const std::string& effect);
  grpc::Status Unstage(const std::string& volume, const std::string& path,
                       const std::string& effect);
  grpc::Status Publish(const CsiFakeUse& use, const std::string& effect);
  grpc::Status Unpublish(const std::string& volume, const std::string& path,
                         const std::string& effect);
  grpc::Status Attach(const std::string& volume, const std::string& node,
                      google::protobuf::Map<std::string, std::string>* context);
  grpc::Status Detach(const std::string& volume, const std::string& node);
  grpc::Status Create(const ::csi::v1::CreateVolumeRequest& request, const std::string& effect,
                      ::csi::v1::Volume* volume);
  grpc::Status Delete(const std::string& volume);
  // Of the storage, or of what a node sees of it; `now` is the size then.
  grpc::Status Grow(const std::string& volume, int64_t size_bytes, bool on_node,
                    const std::string& effect, int64_t* now);
  grpc::Status Stats(const std::string& volume, const std::string& path,
                     ::csi::v1::NodeGetVolumeStatsResponse* stats);
  std::map<std::string, CsiFakeVolume> Volumes();
  std::string StateText();  // the same, as state.json has it

  // Takes away all mounts of the volumes of this directory, and their loop devices.
  static void Clear(const std::string& directory);

 private:
  CsiFakeVolume* Find(const std::string& volume, bool may_be_new);
  std::string FolderOf(const std::string& volume) const;
  grpc::Status MakeSource(const std::string& volume, bool block, std::string* source);
  grpc::Status MountSource(const std::string& volume, const std::string& path);
  grpc::Status CheckPublish(const CsiFakeUse& use, CsiFakeVolume* known);
  grpc::Status PublishBlock(const CsiFakeUse& use, const std::string& effect);
  grpc::Status PublishMount(const CsiFakeUse& use, const std::string& effect, CsiFakeVolume* known);
  grpc::Status GrowImage(const CsiFakeVolume& known, const std::string& folder);
  grpc::Status Refuse(const std::string& text);
  void Save();

  std::mutex mu_;
  CsiFakeWorldOptions options_;
  const Violated violated_;
  std::map<std::string, CsiFakeVolume> volumes_;
};

// How many mounts lie on each other at this path.
int LayersAt(const std::string& path);
// The loop device that has this file ("/dev/loop3"), also one that nobody remembers; "": none.
std::string LoopDeviceOf(const std::string& image);

}  // namespace volumed
