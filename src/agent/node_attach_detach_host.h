// NodeAttachDetachHost: the AttachDetachHost of this agent, which attaches volumes to its own node.
#pragma once

#include <string>
#include <vector>

#include "agent/catalog_host_objects.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Errors, not applied: NotFound, if the object is certainly absent; Unavailable, naming the file,
// if that is not known. Threads: any. Blocks: never.
class NodeAttachDetachHost final : public AttachDetachHost {
 public:
  // Both outlive this object.
  NodeAttachDetachHost(const CatalogHostObjects& objects, const KubeletHost& kubelet)
      : objects_(objects), kubelet_(kubelet) {}

  Result<CsiNodePtr> GetCsiNode(const NodeName& node) const override;
  std::vector<CsiNodePtr> ListCsiNodes() const override;
  Result<KubeletHost::CsiDriverPtr> GetCsiDriver(const std::string& name) const override {
    return kubelet_.GetCsiDriver(name);
  }
  std::vector<KubeletHost::CsiDriverPtr> ListCsiDrivers() const override {
    return kubelet_.ListCsiDrivers();
  }
  Result<VolumeAttachmentPtr> GetVolumeAttachment(const std::string& name) const override;
  std::vector<VolumeAttachmentPtr> ListVolumeAttachments() const override;

 private:
  const CatalogHostObjects& objects_;
  const KubeletHost& kubelet_;
};

}  // namespace volumed
