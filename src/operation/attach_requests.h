// Requests and answers of the operations of the attach pipeline.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "volume/volume_spec.h"

namespace volumed {

struct AttachRequest {
  UniqueVolumeName device;
  VolumeSpec spec;
  // The pods that wait for it: success and failure are events of each.
  std::vector<PodUid> pods;
  std::string limit_key = {};  // of the plugin's attach limits, for the record; or ""
};

struct AttachedVolume {
  std::string plugin_name;
  std::string device_path;  // as the plugin answered; may be empty
};

struct DetachRequest {
  UniqueVolumeName device;
  std::string plugin_name;
  SpecName spec;
};

struct VolumeToVerify {
  UniqueVolumeName device;
  VolumeSpec spec;
};

// Volumes of one plugin.
struct VerifyAttachedRequest {
  std::string plugin_name;
  std::vector<VolumeToVerify> volumes;
};

// Whether each of the requested volumes is attached.
using VerifiedAttachments = std::map<UniqueVolumeName, bool>;

}  // namespace volumed
