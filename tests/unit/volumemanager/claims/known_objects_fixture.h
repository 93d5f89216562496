// An agent with a manifest directory and the source of applied objects, which loads what is on
// record before either delivers, as the agent does.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/static_pod.h"
#include "operation/object_record.h"
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {

inline constexpr const char* kApplied = "volumectl-apply";

// As its source reads it from a file on this node.
inline ObjectWithOrigin StaticPod(
    const std::string& node, const std::string& file,
    const std::string& rest = "spec: {containers: [{name: c, image: x}]}\n",
    const std::string& metadata = "name: web") {
  const ManifestDecode decoded =
      DecodeManifest(file, "apiVersion: v1\nkind: Pod\nmetadata: {" + metadata + "}\n" + rest);
  EXPECT_TRUE(decoded.problems.empty());
  Pod pod = std::get<Pod>(decoded.objects.front().object);
  EXPECT_TRUE(ApplyStaticPodDefaults(NodeName(node), pod).ok());
  return {std::make_shared<const Object>(std::move(pod)), file, 0};
}

class TwoSourcesTest : public ManagerTest {
 protected:
  TwoSourcesTest() {
    removal_deletes = false;
    sources = {"manifests", kApplied};
  }

  // Starts an agent and lets it load before any source delivers, as the agent does.
  void Restart() {
    StartAgent();
    Settle();
  }
  void DeliverList(const std::string& source, std::vector<ObjectWithOrigin> objects,
                   std::vector<UnknownObject> unknown = {}) {
    ObjectList list;
    list.source = source;
    list.complete = true;
    list.objects = std::move(objects);
    list.unknown = std::move(unknown);
    agent_->catalog.Update(std::move(list));
    manager().ObjectsChanged();
    Settle();
  }
  ObjectCatalog& catalog() { return agent_->catalog; }
  std::optional<KnownObjectRecord> Row(const ObjectKey& key) {
    const auto row = store.Find(kKnownObjectRecordKind, ToString(key));
    if (!row) return std::nullopt;
    return DecodeKnownObjectRecord(*row).value();
  }
  std::string ProblemsOf(const std::string& source) {
    std::string text;
    for (const SourceStatus& status : catalog().Sources()) {
      if (status.name != source) continue;
      for (const DecodeProblem& problem : status.problems) text += problem.ToString() + "\n";
    }
    return text;
  }
  std::string UidOfPod(const std::string& name) {
    const auto pod = catalog().FindPod("default", name);
    return pod == nullptr ? "no pod" : pod->metadata.uid;
  }
};

}  // namespace volumed
