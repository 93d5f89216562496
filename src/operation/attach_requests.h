// Requests and answers of the operations of the attach pipeline.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "volume/volume_spec.h"

namespace volumed {

// The volume of `device` is to be present on this node.
struct AttachRequest {
  UniqueVolumeName device;
  VolumeSpec spec;
  // The pods that wait for it: success and failure are events of each.
  std::vector<PodUid> pods;
  std::string limit_key = {};  // of the plugin's attach limits, for the record; or ""
  // It was found mounted, and no record tells of it.
  bool found_mounted = false;
};

// What a plugin has answered to an attach.
struct AttachedVolume {
  std::string plugin_name;
  // The path of its device on the node, as the plugin answered; empty if that only shows when the
  // device appears (WaitForAttach).
  std::string device_path;
};

// The volume of `device` is to be taken from this node. What its record says decides; `spec` is the
// volume's name.
struct DetachRequest {
  UniqueVolumeName device;
  std::string plugin_name;
  SpecName spec;
};

// A volume of which its plugin shall say whether it is attached.
struct VolumeToVerify {
  UniqueVolumeName device;
  VolumeSpec spec;
};

// Volumes of one plugin.
struct VerifyAttachedRequest {
  std::string plugin_name;
  std::vector<VolumeToVerify> volumes;
};

// Whether each of the requested volumes is attached to this node. Empty without an answer: then
// nothing is known of any of them.
using VerifiedAttachments = std::map<UniqueVolumeName, bool>;

}  // namespace volumed
