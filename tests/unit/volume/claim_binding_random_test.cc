// Random worlds: whatever is there, no volume has two claims, the order of the input does not
// count, a restart changes nothing, and data that is retained never reaches another claim.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "unit/volume/claim_testing.h"

namespace volumed {
namespace {

class RandomWorld {
 public:
  explicit RandomWorld(uint64_t seed) : random_(seed) {
    input_.node = {"node-1", {{"kubernetes.io/hostname", "node-1"}}};
    for (const char* name : {"a", "b"}) {
      StorageClass one = MakeClass(name, Chance(2) ? VolumeBindingMode::kImmediate
                                                   : VolumeBindingMode::kWaitForFirstConsumer);
      if (Chance(3)) {
        one.metadata.annotations["storageclass.kubernetes.io/is-default-class"] = "true";
      }
      input_.classes.push_back(std::make_shared<const StorageClass>(one));
    }
  }

  // Adds and removes objects; what was bound before stays on record.
  void Step() {
    input_.sources_complete = !Chance(5);
    for (uint64_t i = Pick(4); i > 0; --i) AddVolume();
    for (uint64_t i = Pick(4); i > 0; --i) AddClaim();
    if (Chance(2)) RemoveOne(input_.claims);  // it is missing, unless it ends as well
    if (Chance(4)) RemoveOne(input_.volumes);
    for (const ClaimBinding& binding : input_.recorded) {
      if (Chance(3)) input_.ended.insert({binding.claim, binding.claim_uid});
    }
    for (std::set<std::string>* missing : {&input_.missing_volumes, &input_.missing_classes}) {
      missing->clear();
      if (Chance(3)) missing->insert(missing == &input_.missing_classes ? "a" : "v3");
    }
    input_.missing_claims.clear();
    if (Chance(3)) input_.missing_claims.insert({"default", "c5"});
    if (Chance(3)) RemoveOne(input_.uses);
    if (!input_.claims.empty() && Chance(2)) {
      const PersistentVolumeClaimPtr& claim = input_.claims[Pick(input_.claims.size())];
      input_.uses.push_back({"p" + std::to_string(Pick(9)), KeyOfClaim(*claim), ""});
    }
    std::shuffle(input_.claims.begin(), input_.claims.end(), random_);
    std::shuffle(input_.volumes.begin(), input_.volumes.end(), random_);
    std::shuffle(input_.classes.begin(), input_.classes.end(), random_);
    std::shuffle(input_.uses.begin(), input_.uses.end(), random_);
    std::shuffle(input_.recorded.begin(), input_.recorded.end(), random_);
  }

  BindingInput& input() { return input_; }
  std::mt19937_64& random() { return random_; }
  bool Chance(uint64_t one_in) { return Pick(one_in) == 0; }
  uint64_t Pick(uint64_t below) { return random_() % below; }

 private:
  std::string SomeClass() {
    const char* const kClasses[] = {"a", "b", "", "c"};
    return kClasses[Pick(4)];
  }

  void AddVolume() {
    PersistentVolume volume =
        MakeVolume("v" + std::to_string(Pick(12)), std::to_string(1 + Pick(9)) + "Gi", SomeClass());
    for (const PersistentVolumePtr& known : input_.volumes) {
      if (known->metadata.name == volume.metadata.name) return;
    }
    if (Chance(3)) volume.spec.access_modes.push_back(AccessMode::kReadOnlyMany);
    if (Chance(6)) volume.spec.volume_mode = VolumeMode::kBlock;
    if (Chance(4)) volume.spec.node_affinity = OnNode(Chance(2) ? "node-1" : "node-2");
    if (Chance(4)) volume.metadata.labels = {{"disk", "fast"}};
    if (Chance(3)) {
      const std::string claim = "c" + std::to_string(Pick(8));
      const bool with_uid = Chance(2);
      volume.spec.claim_ref =
          ClaimReference{"default", claim, with_uid ? claim + "-" + std::to_string(Pick(3)) : ""};
    }
    const ReclaimPolicy kPolicies[] = {ReclaimPolicy::kRetain, ReclaimPolicy::kDelete,
                                       ReclaimPolicy::kRecycle};
    volume.spec.reclaim_policy = kPolicies[Pick(3)];
    if (Chance(12)) volume.metadata.deletion_unix_millis = 1;
    input_.volumes.push_back(std::make_shared<const PersistentVolume>(volume));
  }

  void AddClaim() {
    PersistentVolumeClaim claim =
        MakeClaim("c" + std::to_string(Pick(8)), std::to_string(1 + Pick(9)) + "Gi", SomeClass());
    for (const PersistentVolumeClaimPtr& known : input_.claims) {
      if (known->metadata.name == claim.metadata.name) return;
    }
    claim.metadata.uid = claim.metadata.name + "-" + std::to_string(Pick(3));
    if (Chance(4)) claim.spec.storage_class_name.reset();
    if (Chance(5)) claim.spec.access_modes.push_back(AccessMode::kReadOnlyMany);
    if (Chance(6)) claim.spec.volume_mode = VolumeMode::kBlock;
    if (Chance(6)) claim.spec.selector = LabelSelector{{{"disk", "fast"}}, {}};
    if (Chance(5)) claim.spec.volume_name = "v" + std::to_string(Pick(12));
    if (Chance(12)) claim.metadata.deletion_unix_millis = 1;
    input_.claims.push_back(std::make_shared<const PersistentVolumeClaim>(claim));
  }

  template <typename T>
  void RemoveOne(std::vector<T>& from) {
    if (!from.empty()) from.erase(from.begin() + static_cast<ptrdiff_t>(Pick(from.size())));
  }

  std::mt19937_64 random_;
  BindingInput input_;
};

template <typename T>
const T* Named(const std::vector<std::shared_ptr<const T>>& all, const std::string& name) {
  for (const auto& one : all) {
    if (one->metadata.name == name) return one.get();
  }
  return nullptr;
}

// Claims and volumes agree on who has whom, and nobody has two.
void ExpectNoDoubleBinding(const BindingInput& input, const BindingResult& result) {
  std::map<std::string, ClaimKey> owners;
  for (const ClaimDecision& claim : result.claims) {
    if (claim.phase != PersistentVolumeClaimPhase::kBound) continue;
    EXPECT_TRUE(owners.emplace(claim.volume_name, claim.claim).second) << claim.volume_name;
    EXPECT_EQ(claim.wait, ClaimWait::kNone);
  }
  std::set<std::string> recorded;
  for (const ClaimBinding& binding : result.bindings) {
    EXPECT_TRUE(recorded.insert(binding.volume_name).second) << binding.volume_name;
    const auto owner = owners.find(binding.volume_name);
    if (owner != owners.end()) {
      EXPECT_EQ(binding.state, BindingState::kBound);
      EXPECT_EQ(binding.claim, owner->second);
    }
  }
  for (const auto& [volume, claim] : owners) EXPECT_TRUE(recorded.contains(volume)) << volume;
  for (const VolumeDecision& volume : result.volumes) {
    if (owners.contains(volume.volume_name)) {
      EXPECT_EQ(volume.phase, PersistentVolumePhase::kBound);
      EXPECT_FALSE(volume.protection.may_go());
    }
    if (volume.reclaim != ReclaimAction::kNone) {
      EXPECT_FALSE(owners.contains(volume.volume_name));
      EXPECT_TRUE(input.sources_complete);
      EXPECT_FALSE(volume.missing && !volume.protection.deletion_requested);
    }
  }
  size_t alive = 0;
  for (const PersistentVolumeClaimPtr& claim : input.claims) {
    alive += input.ended.contains({KeyOfClaim(*claim), claim->metadata.uid}) ? 0 : 1;
  }
  EXPECT_EQ(result.claims.size(), alive);
  EXPECT_EQ(result.volumes.size(), input.volumes.size());
}

// A volume that was bound is released for a claim that has ended, and for no other reason.
void ExpectReleasedOnlyAtAnEnd(const BindingInput& input, const BindingResult& result) {
  for (const ClaimBinding& before : input.recorded) {
    const auto now =
        std::find_if(result.bindings.begin(), result.bindings.end(),
                     [&](const ClaimBinding& b) { return b.volume_name == before.volume_name; });
    ASSERT_NE(now, result.bindings.end()) << "the binding of " << before.volume_name << " is lost";
    if (before.state != BindingState::kBound || *now == before) continue;
    EXPECT_TRUE(input.ended.contains({before.claim, before.claim_uid})) << before.volume_name;
  }
}

// Said anew and in other words than the matcher's: a binding made now is one that was allowed.
void ExpectNewBindingsAllowed(const BindingInput& input, const BindingResult& result) {
  for (const ClaimDecision& decision : result.claims) {
    if (!decision.newly_bound) continue;
    const PersistentVolume* volume = Named(input.volumes, decision.volume_name);
    const PersistentVolumeClaim* claim = Named(input.claims, decision.claim.name);
    ASSERT_NE(volume, nullptr);
    ASSERT_NE(claim, nullptr);
    const auto& reserved = volume->spec.claim_ref;
    const bool uid_names_it = reserved && reserved->uid == claim->metadata.uid;
    const bool name_names_it =
        reserved && reserved->uid.empty() && reserved->name == claim->metadata.name;
    // A retained volume that returns to its claim was allowed before.
    const ClaimBinding released{decision.claim, decision.uid, decision.volume_name,
                                BindingState::kReleased};
    const bool returns = std::count(input.recorded.begin(), input.recorded.end(), released) > 0;
    if (uid_names_it || name_names_it || returns) continue;
    EXPECT_TRUE(input.sources_complete);
    EXPECT_GE(volume->spec.capacity, claim->spec.storage.request);
    EXPECT_EQ(volume->spec.volume_mode, claim->spec.volume_mode);
    EXPECT_GE(volume->spec.access_modes.size(), claim->spec.access_modes.size());
    EXPECT_EQ(volume->spec.storage_class_name, decision.storage_class);
    if (claim->spec.volume_name.empty()) {
      EXPECT_TRUE(!claim->spec.selector || volume->metadata.labels.contains("disk"));
      EXPECT_TRUE(!volume->spec.node_affinity || volume->spec.node_affinity == OnNode("node-1"));
    } else {
      EXPECT_EQ(claim->spec.volume_name, decision.volume_name);
    }
  }
}

void ExpectStable(RandomWorld& world, const BindingResult& result) {
  BindingInput other = world.input();
  std::shuffle(other.claims.begin(), other.claims.end(), world.random());
  std::shuffle(other.volumes.begin(), other.volumes.end(), world.random());
  std::shuffle(other.classes.begin(), other.classes.end(), world.random());
  std::shuffle(other.uses.begin(), other.uses.end(), world.random());
  std::shuffle(other.recorded.begin(), other.recorded.end(), world.random());
  EXPECT_TRUE(DecideBindings(other) == result);
  // A restart: what was decided is on record, nothing is new, and nothing else differs.
  other.recorded = result.bindings;
  BindingResult again = DecideBindings(other);
  EXPECT_TRUE(again.bindings == result.bindings);
  EXPECT_TRUE(again.volumes == result.volumes);
  BindingResult expected = result;
  for (ClaimDecision& claim : expected.claims) claim.newly_bound = false;
  ASSERT_EQ(again.claims.size(), expected.claims.size());
  for (size_t i = 0; i < again.claims.size(); ++i) {
    EXPECT_TRUE(again.claims[i] == expected.claims[i])
        << "before: " << expected.claims[i].volume_name << " " << expected.claims[i].reason
        << "\nafter: " << again.claims[i].volume_name << " " << again.claims[i].reason;
  }
}

TEST(ClaimBindingRandom, NeverBindsTwiceAndIsStable) {
  size_t bound = 0;
  size_t released = 0;
  size_t lost = 0;
  for (uint64_t seed = 1; seed <= 1200; ++seed) {
    RandomWorld world(seed);
    // Volume -> uid of the claim whose data it retains.
    std::map<std::string, std::string> retained;
    for (int step = 0; step < 12 && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step));
      world.Step();
      const BindingResult result = DecideBindings(world.input());
      ExpectNoDoubleBinding(world.input(), result);
      ExpectNewBindingsAllowed(world.input(), result);
      ExpectReleasedOnlyAtAnEnd(world.input(), result);
      ExpectStable(world, result);
      for (const ClaimDecision& claim : result.claims) {
        lost += claim.phase == PersistentVolumeClaimPhase::kLost;
        if (claim.phase != PersistentVolumeClaimPhase::kBound) continue;
        ++bound;
        const auto kept = retained.find(claim.volume_name);
        if (kept == retained.end()) continue;
        EXPECT_EQ(kept->second, claim.uid) << claim.volume_name;
      }
      retained.clear();
      for (const ClaimBinding& binding : result.bindings) {
        const PersistentVolume* volume = Named(world.input().volumes, binding.volume_name);
        if (binding.state != BindingState::kReleased || volume == nullptr) continue;
        ++released;
        if (volume->spec.reclaim_policy == ReclaimPolicy::kRetain) {
          retained[binding.volume_name] = binding.claim_uid;
        }
      }
      world.input().recorded = result.bindings;
    }
  }
  // The worlds reach every state.
  EXPECT_GT(bound, 2000U);
  EXPECT_GT(released, 500U);
  EXPECT_GT(lost, 100U);
}

}  // namespace
}  // namespace volumed
