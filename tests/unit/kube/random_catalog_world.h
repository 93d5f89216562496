// RandomCatalogWorld: sources with clashing names and uids, the node's pods and the administrator's
// commands, at random. It feeds two catalogs with the same: one hears deltas and merges what
// changed, the other one hears full lists and merges everything each time.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "kube/object_catalog.h"
#include "unit/kube/kube_testing.h"

namespace volumed {

// Who is who, as the volume manager's records say; of a pod also under its other name.
class RecordedIdentities final : public ObjectIdentities {
 public:
  std::string KnownUidOf(const ObjectKey& object) const override;
  std::string UidOf(const ObjectKey& object) override;
  void Adopt(const ObjectKey& object, const std::string& uid) override { uids[object] = uid; }
  void Ended(const ObjectKey& object, const std::string& uid) override;
  std::string NameOf(const Pod& pod) const override;
  std::string OtherNameOf(const Pod& pod) const override;
  std::optional<ObjectKey> PodOfUid(const PodUid& uid) const override;
  PodOnNode FindOnNode(const PodUid& pod) const override;

  std::map<ObjectKey, std::string> uids;
  std::map<PodUid, PodOnNode> on_node;
  std::map<ObjectKey, int> made;  // how many uids it has been given
};

// A catalog with all that hears it.
struct HeardCatalog {
  explicit HeardCatalog(const Clock& clock, const std::set<ObjectKey>& bound);
  void Hear(const std::vector<ObjectChange>& changes);

  RecordedIdentities identities;
  ObjectCatalog catalog;
  std::vector<ObjectChange> changes;
  std::vector<ObjectKey> ended;
};

class RandomCatalogWorld {
 public:
  explicit RandomCatalogWorld(uint64_t seed);

  // One thing happens to both. False, with a failure of the test, if they differ after that.
  bool Step();
  // What happened last, for people.
  const std::string& last() const { return last_; }
  uint64_t deltas() const { return deltas_; }
  uint64_t in_parts() const { return in_parts_; }
  uint64_t visited() const { return merged_.catalog.work().visited(); }
  uint64_t visited_by_whole() const { return whole_.catalog.work().visited(); }

 private:
  struct SourceState {
    bool listed = false;  // has delivered a complete list
    std::map<std::pair<std::string, ObjectKey>, ObjectWithOrigin> objects;
    std::map<ObjectKey, UnknownObject> unknown;
    ObjectDelta::ByFile problems;
    ObjectDelta::ByFile warnings;
    std::string incomplete_because;
  };

  size_t Pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  bool Chance(int percent) { return Pick(100) < static_cast<size_t>(percent); }
  template <typename Container>
  const typename Container::value_type& PickOf(const Container& all) {
    return *std::next(all.begin(), static_cast<std::ptrdiff_t>(Pick(all.size())));
  }
  void Both(const std::function<void(HeardCatalog&)>& act) {
    act(merged_);
    act(whole_);
  }

  void MakePool();
  ObjectWithOrigin RandomListing();
  KnownObject RandomKnown();
  void ChangeObject(SourceState& state, ObjectDelta& delta);
  void ChangeUnknown(SourceState& state, ObjectDelta& delta);
  void ChangeProblems(SourceState& state, ObjectDelta& delta);
  void HearInParts(ObjectUpdate update);
  static bool IsAbsent(const HeardCatalog& heard, const ObjectKey& key);
  void Deliver(const std::string& name);
  ObjectList ListOf(const std::string& name, const SourceState& state, bool complete) const;
  void Command();
  void PodLeavesNode();
  void SourceEvent();
  void Start();

  void CompareChanges();
  void CompareObjects();
  void CompareNames(const ObjectKey& key);
  void CompareSources();

  std::mt19937_64 random_;
  // What is heard in parts: what happens in a world does not depend on it.
  std::mt19937_64 random_parts_;
  ManualClock clock_;
  std::set<ObjectKey> bound_;
  HeardCatalog merged_{clock_, bound_};
  HeardCatalog whole_{clock_, bound_};
  std::vector<ObjectPtr> pool_;
  std::set<ObjectKey> keys_;
  std::map<std::string, SourceState> sources_;
  uint64_t number_ = 0;
  uint64_t deltas_ = 0;
  uint64_t in_parts_ = 0;
  std::set<ObjectKey> gone_;  // between two parts of what happened last
  bool is_in_parts_ = false;  // what happened last
  std::string last_;
};

}  // namespace volumed
