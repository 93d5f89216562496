#include "agent/node_attach_detach_host.h"

#include <memory>
#include <variant>

namespace volumed {
namespace {

// The pointer shares the object's reference count.
template <typename T>
std::shared_ptr<const T> PartOf(const ObjectPtr& object) {
  return {object, &std::get<T>(*object)};
}

template <typename T>
std::vector<std::shared_ptr<const T>> PartsOf(const std::vector<ObjectPtr>& objects) {
  std::vector<std::shared_ptr<const T>> parts;
  parts.reserve(objects.size());
  for (const ObjectPtr& object : objects) parts.push_back(PartOf<T>(object));
  return parts;
}

}  // namespace

Result<AttachDetachHost::CsiNodePtr> NodeAttachDetachHost::GetCsiNode(const NodeName& node) const {
  ASSIGN_OR_RETURN(const ObjectPtr object,
                   objects_.GetObject({ObjectKind::kCsiNode, "", node.str()}));
  return PartOf<CsiNodeObject>(object);
}

std::vector<AttachDetachHost::CsiNodePtr> NodeAttachDetachHost::ListCsiNodes() const {
  return PartsOf<CsiNodeObject>(objects_.ListObjects(ObjectKind::kCsiNode));
}

Result<AttachDetachHost::VolumeAttachmentPtr> NodeAttachDetachHost::GetVolumeAttachment(
    const std::string& name) const {
  ASSIGN_OR_RETURN(const ObjectPtr object,
                   objects_.GetObject({ObjectKind::kVolumeAttachment, "", name}));
  return PartOf<VolumeAttachment>(object);
}

std::vector<AttachDetachHost::VolumeAttachmentPtr> NodeAttachDetachHost::ListVolumeAttachments()
    const {
  return PartsOf<VolumeAttachment>(objects_.ListObjects(ObjectKind::kVolumeAttachment));
}

}  // namespace volumed
