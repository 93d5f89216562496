// What the operations of the attach pipeline are asked for, and what they answer.
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
  std::vector<PodUid> pods;    // that wait for it: success and failure are events of each
  std::string limit_key = {};  // of the plugin's attach limits, for the record; "": has none
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

// Whether each volume that was asked for is attached.
using VerifiedAttachments = std::map<UniqueVolumeName, bool>;

}  // namespace volumed
