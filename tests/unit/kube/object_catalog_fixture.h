// ObjectCatalogTest: a catalog whose objects without a uid get one that tells which they are.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "kube/object_catalog.h"
#include "kube/static_pod.h"
#include "unit/kube/kube_testing.h"

namespace volumed {

// Every object without a uid gets one that tells which one it is.
class TestIdentities final : public ObjectIdentities {
 public:
  std::string KnownUidOf(const ObjectKey& object) const override {
    const auto found = uids.find(object);
    return found == uids.end() ? "" : found->second;
  }
  std::string UidOf(const ObjectKey& object) override {
    return uids.try_emplace(object, "uid of " + object.name).first->second;
  }
  void Adopt(const ObjectKey& object, const std::string& uid) override { uids[object] = uid; }
  void Ended(const ObjectKey& object, const std::string&) override { uids.erase(object); }
  std::string NameOf(const Pod& pod) const override {
    const auto found = names.find(pod.metadata.name);
    return found == names.end() ? pod.metadata.name : found->second;
  }
  std::string OtherNameOf(const Pod& pod) const override {
    return StaticPodBaseName(pod).value_or(StaticPodName(pod.metadata.name, NodeName("n1")));
  }
  std::optional<ObjectKey> PodOfUid(const PodUid& uid) const override {
    for (const auto& [object, known] : uids) {
      if (object.kind == ObjectKind::kPod && known == uid.str()) return object;
    }
    return std::nullopt;
  }
  PodOnNode FindOnNode(const PodUid& pod) const override {
    const auto found = on_node.find(pod);
    return found == on_node.end() ? PodOnNode() : found->second;
  }

  std::map<ObjectKey, std::string> uids;
  // The records have the pod of this manifest under another name.
  void Rename(const std::string& pod, const std::string& name) {
    names[pod] = name;
    if (auto known = uids.extract({ObjectKind::kPod, "default", pod})) {
      known.key().name = name;
      uids.insert(std::move(known));
    }
  }

  std::map<PodUid, PodOnNode> on_node;
  std::map<std::string, std::string> names;  // of a manifest -> on record
};

class ObjectCatalogTest : public testing::Test {
 protected:
  ObjectCatalogTest() {
    catalog_.AddListener([this](const std::vector<ObjectChange>& changes) {
      for (const ObjectChange& change : changes) {
        const char* what = change.what == ObjectChange::What::kAdded     ? "+"
                           : change.what == ObjectChange::What::kChanged ? "*"
                           : change.what == ObjectChange::What::kMissing ? "~"
                           : change.what == ObjectChange::What::kUnknown ? "?"
                           : change.what == ObjectChange::What::kMoved   ? ">"
                                                                         : "-";
        changes_ += what + change.key.name + " ";
      }
    });
  }

  void Deliver(const std::string& source, std::vector<ObjectWithOrigin> objects) {
    catalog_.Update({source, true, std::move(objects), {}});
  }
  std::string TakeChanges() { return std::exchange(changes_, ""); }
  std::string Problems(const std::string& source) {
    for (const SourceStatus& status : catalog_.Sources()) {
      if (status.name == source) return ProblemsText(status.problems);
    }
    return "no such source";
  }

  ManualClock clock_;
  TestIdentities identities_;
  ObjectCatalog catalog_{clock_};
  std::string changes_;
};

inline constexpr const char* kClaim =
    "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: default}\n"
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n";
inline const ObjectKey kClaimKey{ObjectKind::kPersistentVolumeClaim, "default", "data"};
inline const ObjectKey kMapKey{ObjectKind::kConfigMap, "default", "x"};

}  // namespace volumed
