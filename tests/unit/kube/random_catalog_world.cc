#include "unit/kube/random_catalog_world.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <tuple>
#include <variant>

#include "kube/static_pod.h"

namespace volumed {
namespace {

const char* const kFiles[] = {"1.yaml", "2.yaml", "3.yaml"};
const char* const kSources[] = {"a", "b", "c", "ends"};
const char* const kPodUids[] = {"", "", "u-1", "u-2", "u-3"};
const char* const kReasons[] = {"cannot be decoded", "is being read"};
const NodeName kNode("n1");

const Pod* PodIn(const ObjectPtr& object) { return std::get_if<Pod>(object.get()); }

// In an order that does not depend on how they were found.
std::string TextOf(const std::vector<DecodeProblem>& problems) {
  std::multiset<std::string> lines;
  for (const DecodeProblem& one : problems) {
    lines.insert(one.ToString() + (one.is_waiting ? " (waits)" : "") + "\n");
  }
  return std::accumulate(lines.begin(), lines.end(), std::string());
}

std::string TextOf(const ObjectOrigin& origin) {
  return origin.source + " " + origin.file + " " + std::to_string(origin.document);
}

std::string TextOf(const std::map<ObjectKey, ObjectOrigin>& objects) {
  std::string text;
  for (const auto& [key, origin] : objects) text += ToString(key) + " " + TextOf(origin) + "\n";
  return text;
}

bool AreAlike(const ObjectPtr& a, const ObjectPtr& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

bool AreAlike(const ObjectChange& a, const ObjectChange& b) {
  return a.what == b.what && a.key == b.key && a.uid == b.uid && AreAlike(a.before, b.before) &&
         AreAlike(a.after, b.after) && a.file == b.file && a.reason == b.reason;
}

bool AreAlike(const ObjectStanding& a, const ObjectStanding& b) {
  const auto all = [](const ObjectStanding& s) {
    return std::tie(s.presence, s.reason, s.goes_at_unix_millis, s.missing,
                    s.missing_since_unix_millis, s.has_first_volumes, s.to_be_replaced);
  };
  return a.origin == b.origin && all(a) == all(b);
}

std::string TextOf(const std::vector<ObjectChange>& changes) {
  std::string text;
  for (const ObjectChange& one : changes) {
    text += std::to_string(static_cast<int>(one.what)) + " " + ToString(one.key) + " " +
            one.uid.str() + " " + one.reason + "; ";
  }
  return text;
}

}  // namespace

// ---- identities ---------------------------------------------------------------------------------

std::string RecordedIdentities::KnownUidOf(const ObjectKey& object) const {
  const auto found = uids.find(object);
  return found == uids.end() ? "" : found->second;
}

std::string RecordedIdentities::UidOf(const ObjectKey& object) {
  std::string& uid = uids[object];
  if (uid.empty()) uid = "made " + object.name + " " + std::to_string(++made[object]);
  return uid;
}

void RecordedIdentities::Ended(const ObjectKey& object, const std::string& uid) {
  if (object.kind != ObjectKind::kPod && KnownUidOf(object) == uid) uids.erase(object);
}

// As volumemanager/claims/known_objects has it.
std::string RecordedIdentities::NameOf(const Pod& pod) const {
  const ObjectKey own = KeyOf(Object(pod));
  if (uids.contains(own)) return own.name;
  const std::optional<std::string> base = StaticPodBaseName(pod);
  ObjectKey other = own;
  other.name = OtherNameOf(pod);
  const auto known = uids.find(other);
  if (known == uids.end()) return own.name;
  const PodOnNode here = FindOnNode(PodUid(known->second));
  if (here.pod == nullptr) return own.name;
  const std::optional<std::string> its = StaticPodBaseName(*here.pod);
  return (base ? !its.has_value() : its == own.name) ? other.name : own.name;
}

std::string RecordedIdentities::OtherNameOf(const Pod& pod) const {
  return StaticPodBaseName(pod).value_or(StaticPodName(pod.metadata.name, kNode));
}

std::optional<ObjectKey> RecordedIdentities::PodOfUid(const PodUid& uid) const {
  for (const auto& [object, known] : uids) {
    if (object.kind == ObjectKind::kPod && known == uid.str()) return object;
  }
  return std::nullopt;
}

PodOnNode RecordedIdentities::FindOnNode(const PodUid& pod) const {
  const auto found = on_node.find(pod);
  return found == on_node.end() ? PodOnNode() : found->second;
}

// ---- what hears the catalog ---------------------------------------------------------------------

HeardCatalog::HeardCatalog(const Clock& clock, const std::set<ObjectKey>& bound) : catalog(clock) {
  catalog.IdentifyBy(&identities);
  catalog.SetBoundCheck([&bound](const ObjectKey& key) { return bound.contains(key); });
  catalog.AddListener([this](const std::vector<ObjectChange>& news) { Hear(news); });
  catalog.SetEndedListener([this](const ObjectKey& key) { ended.push_back(key); });
  catalog.AbsenceEnds("ends");
}

// A pod that comes is on the node, one that leaves its sources leaves the node later; who an object
// is that certainly ended is forgotten.
void HeardCatalog::Hear(const std::vector<ObjectChange>& news) {
  for (const ObjectChange& change : news) {
    changes.push_back(change);
    const bool is_gone = change.what == ObjectChange::What::kRemoved;
    if (change.key.kind != ObjectKind::kPod) {
      if (is_gone) identities.uids.erase(change.key);
    } else if (change.after != nullptr) {
      identities.on_node[change.uid] = {std::make_shared<const Pod>(*PodIn(change.after)), false,
                                        true};
    } else if (const auto here = identities.on_node.find(change.uid);
               is_gone && here != identities.on_node.end()) {
      here->second.has_left = true;
    }
  }
}

// ---- the world ----------------------------------------------------------------------------------

RandomCatalogWorld::RandomCatalogWorld(uint64_t seed) : random_(seed), random_parts_(seed) {
  whole_.catalog.MergeWholeForTest();
  MakePool();
  Start();
}

void RandomCatalogWorld::MakePool() {
  const auto add = [this](Object object) {
    pool_.push_back(std::make_shared<const Object>(std::move(object)));
    keys_.insert(KeyOf(*pool_.back()));
  };
  const char* const volumes[] = {"", "  volumes: [{name: v, emptyDir: {}}]\n"};
  for (const char* name : {"web", "web-n1", "db", "log"}) {
    for (const char* uid : kPodUids) {
      for (const char* spec : volumes) {
        Pod pod = DecodePod(PodYaml(name, uid, spec));
        const bool is_static = pod.metadata.uid.empty() && ApplyStaticPodDefaults(kNode, pod).ok();
        add(pod);
        if (!is_static) continue;
        pod.metadata.labels["app"] = "other";
        add(std::move(pod));
      }
    }
  }
  for (const char* value : {"1", "2"}) {
    for (const char* name : {"conf", "keys"}) add(DecodeOne(ConfigMapYaml(name, value)));
  }
  for (const char* size : {"1Gi", "2Gi"}) {
    for (const char* name : {"data", "logs"}) {
      for (const char* uid : {"", "c-1"}) {
        Object claim = DecodeOne(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + std::string(name) +
            "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: " + size +
            "}}}\n");
        MetaOf(claim).uid = uid;
        add(std::move(claim));
      }
    }
    add(
        DecodeOne("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv}\nspec: {capacity: "
                  "{storage: " +
                  std::string(size) + "}, accessModes: [ReadWriteOnce], hostPath: {path: /x}}\n"));
  }
}

// What the last agent knew.
void RandomCatalogWorld::Start() {
  for (const ObjectPtr& object : pool_) {
    const ObjectKey key = KeyOf(*object);
    if (key.kind != ObjectKind::kPod || !Chance(10)) continue;
    std::string uid = MetaOf(*object).uid;
    if (uid.empty()) uid = "old " + key.name;
    if (merged_.identities.PodOfUid(PodUid(uid))) continue;
    Both([&](HeardCatalog& heard) { heard.identities.uids.try_emplace(key, uid); });
  }
  for (const char* name : kSources) {
    if (Chance(30)) continue;
    std::vector<KnownObject> known;
    for (size_t i = Pick(4); i > 0; --i) known.push_back(RandomKnown());
    Both([&](HeardCatalog& heard) { heard.catalog.Remember(name, known); });
    sources_[name];
  }
  if (Chance(30)) {
    const std::vector<KnownObject> known = {RandomKnown(), RandomKnown()};
    Both([&](HeardCatalog& heard) { heard.catalog.KeepUnconfigured("gone", known); });
  }
  KnownObject missing = RandomKnown();
  const bool is_there = merged_.catalog.FindObject(missing.key) != nullptr;
  if (missing.object == nullptr || !OutlivesPods(missing.key.kind) || is_there) return;
  Both([&](HeardCatalog& heard) { heard.catalog.RememberMissing("a", missing, 7); });
}

KnownObject RandomCatalogWorld::RandomKnown() {
  const ObjectPtr object = PickOf(pool_);
  const ObjectKey key = KeyOf(*object);
  const bool only_name = key.kind == ObjectKind::kConfigMap || Chance(10);
  const std::string on_record = merged_.identities.KnownUidOf(key);
  const std::string uid = on_record.empty() ? MetaOf(*object).uid : on_record;
  return {key, uid, kFiles[Pick(3)], only_name ? nullptr : object};
}

ObjectWithOrigin RandomCatalogWorld::RandomListing() {
  ObjectWithOrigin one;
  one.object = PickOf(pool_);
  if (Chance(20)) one.object = std::make_shared<const Object>(*one.object);
  one.file = kFiles[Pick(3)];
  one.document = static_cast<int>(Pick(2));
  one.index = Pick(2);
  if (Chance(25)) {
    one.presence = Chance(50) ? ObjectPresence::kUnproven : ObjectPresence::kGoing;
    one.reason = kReasons[Pick(2)];
    if (one.presence == ObjectPresence::kGoing) one.goes_at_unix_millis = 5;
  }
  if (Chance(10)) one.number = ++number_;
  const bool may_replace = PodIn(one.object) != nullptr && !merged_.identities.uids.empty();
  if (may_replace && Chance(15)) {
    one.replaces.insert(PodUid(PickOf(merged_.identities.uids).second));
  }
  return one;
}

void RandomCatalogWorld::ChangeObject(SourceState& state, ObjectDelta& delta) {
  if (!state.objects.empty() && Chance(40)) {
    const auto [file, key] = PickOf(state.objects).first;
    state.objects.erase({file, key});
    std::erase_if(delta.objects, [&, &its_file = file, &its_key = key](const auto& one) {
      return one.file == its_file && KeyOf(*one.object) == its_key;
    });
    delta.removed.push_back({key, file});
    return;
  }
  ObjectWithOrigin one = RandomListing();
  const ObjectKey key = KeyOf(*one.object);
  std::erase_if(delta.removed, [&](const ObjectDelta::Removed& removed) {
    return removed.file == one.file && removed.key == key;
  });
  std::erase_if(delta.objects, [&](const ObjectWithOrigin& other) {
    return other.file == one.file && KeyOf(*other.object) == key;
  });
  state.objects.insert_or_assign({one.file, key}, one);
  delta.objects.push_back(std::move(one));
}

void RandomCatalogWorld::ChangeUnknown(SourceState& state, ObjectDelta& delta) {
  if (!state.unknown.empty() && Chance(60)) {
    const ObjectKey key = PickOf(state.unknown).first;
    state.unknown.erase(key);
    delta.not_unknown.push_back(key);
    std::erase_if(delta.unknown, [&](const UnknownObject& one) { return one.key == key; });
    return;
  }
  const UnknownObject one{PickOf(keys_), kFiles[Pick(3)], kReasons[Pick(2)]};
  std::erase(delta.not_unknown, one.key);
  std::erase_if(delta.unknown, [&](const UnknownObject& other) { return other.key == one.key; });
  state.unknown.insert_or_assign(one.key, one);
  delta.unknown.push_back(one);
}

void RandomCatalogWorld::ChangeProblems(SourceState& state, ObjectDelta& delta) {
  const std::string file = kFiles[Pick(3)];
  const bool is_warning = Chance(30);
  std::vector<DecodeProblem> problems;
  for (size_t i = Pick(3); i > 0; --i) {
    const std::string object = Chance(30) ? "" : ToString(PickOf(keys_));
    problems.push_back({file, static_cast<int>(i), object, "spec", kReasons[Pick(2)]});
  }
  (is_warning ? state.warnings : state.problems)[file] = problems;
  (is_warning ? delta.warnings : delta.problems)[file] = problems;
}

ObjectList RandomCatalogWorld::ListOf(const std::string& name, const SourceState& state,
                                      bool complete) const {
  ObjectList list;
  list.source = name;
  list.complete = complete;
  list.incomplete_because = state.incomplete_because;
  for (const auto& [file, problems] : state.problems) {
    list.problems.insert(list.problems.end(), problems.begin(), problems.end());
  }
  for (const auto& [file, warnings] : state.warnings) {
    list.warnings.insert(list.warnings.end(), warnings.begin(), warnings.end());
  }
  if (!complete) return list;
  for (const auto& [place, object] : state.objects) list.objects.push_back(object);
  for (const auto& [key, unknown] : state.unknown) list.unknown.push_back(unknown);
  return list;
}

bool RandomCatalogWorld::IsAbsent(const HeardCatalog& heard, const ObjectKey& key) {
  return heard.catalog.LookUp(key).answer == ObjectLookup::Answer::kAbsent;
}

// Some at once; the others in parts so small that nearly each name is merged by itself.
void RandomCatalogWorld::HearInParts(ObjectUpdate update) {
  std::uniform_int_distribution<size_t> percent(0, 99);
  std::uniform_int_distribution<size_t> pieces(1, 3);
  if (percent(random_parts_) < 70) return merged_.catalog.Update(std::move(update));
  last_ += " in parts";
  is_in_parts_ = true;
  ++in_parts_;
  std::set<ObjectKey> there;
  for (const ObjectKey& key : keys_) {
    if (!IsAbsent(merged_, key)) there.insert(key);
  }
  merged_.catalog.Begin(std::move(update));
  for (bool is_over = false; !is_over;) {
    TaskLimit limit(clock_, pieces(random_parts_));
    is_over = merged_.catalog.TakeSome(limit);
    for (const ObjectKey& key : there) {
      if (IsAbsent(merged_, key)) gone_.insert(key);
    }
  }
}

void RandomCatalogWorld::Deliver(const std::string& name) {
  SourceState& state = sources_[name];
  ObjectDelta delta;
  delta.source = name;
  for (size_t changes = 1 + Pick(3); changes > 0; --changes) {
    const size_t what = Pick(10);
    if (what < 7) {
      ChangeObject(state, delta);
    } else if (what < 9) {
      ChangeUnknown(state, delta);
    } else {
      ChangeProblems(state, delta);
    }
  }
  if (Chance(15)) state.incomplete_because = Chance(50) ? "" : kReasons[Pick(2)];
  delta.incomplete_because = state.incomplete_because;
  const bool complete = state.listed || Chance(80);
  const bool by_delta = state.listed && Chance(75);
  state.listed = state.listed || complete;
  const ObjectList list = ListOf(name, state, complete);
  last_ = std::string(by_delta ? "delta of " : "list of ") + name;
  if (by_delta) {
    ++deltas_;
    HearInParts(ObjectUpdate(std::move(delta)));
  } else {
    HearInParts(list);
  }
  whole_.catalog.Update(list);
  // What is there before and after was never gone in between.
  for (const ObjectKey& key : std::exchange(gone_, {})) {
    EXPECT_TRUE(IsAbsent(whole_, key)) << ToString(key) << " was gone between two parts";
  }
}

void RandomCatalogWorld::Command() {
  const ObjectKey key = PickOf(keys_);
  if (key.kind != ObjectKind::kPod || Chance(30)) {
    const std::string uid = Chance(70) ? merged_.identities.KnownUidOf(key) : "";
    last_ = "end " + ToString(key);
    ++number_;
    return Both([&](HeardCatalog& heard) { heard.catalog.End(key, uid, number_); });
  }
  const std::optional<ObjectStanding> standing = merged_.catalog.StandingOf(key);
  if (!standing || !standing->to_be_replaced) return;
  last_ = "replace " + ToString(key);
  Both([&](HeardCatalog& heard) { heard.catalog.Replace(key); });
}

// The manager forgets who it was, and tells the catalog.
void RandomCatalogWorld::PodLeavesNode() {
  if (merged_.identities.on_node.empty()) return;
  const auto& [uid, here] = PickOf(merged_.identities.on_node);
  const std::optional<ObjectKey> key = merged_.identities.PodOfUid(uid);
  const bool no_source_has_it = merged_.catalog.FindPod(uid) == nullptr;
  if (!key || (!no_source_has_it && !Chance(10))) return;
  last_ = "no more on the node: " + ToString(*key);
  const PodUid gone = uid;
  Both([&, &pod = *key](HeardCatalog& heard) {
    heard.identities.on_node.erase(gone);
    heard.catalog.PodRemoved(pod);
    if (!no_source_has_it) return;
    heard.identities.uids.erase(pod);
    heard.catalog.PodGone(pod);
  });
}

void RandomCatalogWorld::SourceEvent() {
  const std::string name = kSources[Pick(4)];
  const size_t what = Pick(6);
  last_ = "source event " + std::to_string(what) + " of " + name;
  if (what == 0) {
    const std::string forgotten = Chance(30) ? "gone" : name;
    sources_.erase(forgotten);
    Both([&](HeardCatalog& heard) { heard.catalog.ForgetSource(forgotten); });
  } else if (what == 1) {
    Both([&](HeardCatalog& heard) { heard.catalog.AcceptSource(name); });
  } else if (what == 2) {
    Both([&](HeardCatalog& heard) { heard.catalog.ExpectSource(name); });
  } else if (what == 3 && !sources_[name].listed) {
    const std::vector<KnownObject> known = {RandomKnown()};
    Both([&](HeardCatalog& heard) { heard.catalog.Remember(name, known); });
  } else if (what == 4) {
    const ObjectKey key = PickOf(keys_);
    if (bound_.erase(key) == 0) bound_.insert(key);
  } else if (Chance(5)) {
    Both([&](HeardCatalog& heard) { heard.catalog.IdentifyBy(nullptr); });
    Both([&](HeardCatalog& heard) { heard.catalog.IdentifyBy(&heard.identities); });
  }
}

bool RandomCatalogWorld::Step() {
  last_ = "nothing";
  is_in_parts_ = false;
  if (Chance(5)) clock_.Advance(std::chrono::seconds(1));
  const size_t what = Pick(100);
  if (what < 70) {
    Deliver(kSources[Pick(4)]);
  } else if (what < 80) {
    Command();
  } else if (what < 92) {
    PodLeavesNode();
  } else {
    SourceEvent();
  }
  CompareChanges();
  CompareObjects();
  CompareSources();
  return !testing::Test::HasFailure();
}

// ---- comparison ---------------------------------------------------------------------------------

void RandomCatalogWorld::CompareChanges() {
  // In parts they are told in another order: what is told of each name is the same.
  if (is_in_parts_) {
    const auto by_key = [](const ObjectChange& a, const ObjectChange& b) {
      return std::tie(a.key, a.uid, a.what) < std::tie(b.key, b.uid, b.what);
    };
    for (HeardCatalog* heard : {&merged_, &whole_}) {
      std::stable_sort(heard->changes.begin(), heard->changes.end(), by_key);
    }
  }
  const bool alike = std::equal(
      merged_.changes.begin(), merged_.changes.end(), whole_.changes.begin(), whole_.changes.end(),
      [](const ObjectChange& a, const ObjectChange& b) { return AreAlike(a, b); });
  EXPECT_TRUE(alike) << "told: " << TextOf(merged_.changes) << "\nis: " << TextOf(whole_.changes);
  EXPECT_EQ(merged_.ended, whole_.ended);
  EXPECT_EQ(merged_.identities.uids, whole_.identities.uids);
  for (HeardCatalog* heard : {&merged_, &whole_}) {
    heard->changes.clear();
    heard->ended.clear();
  }
}

void RandomCatalogWorld::CompareObjects() {
  for (const ObjectKey& key : keys_) CompareNames(key);
  const ObjectCatalog& merged = merged_.catalog;
  const ObjectCatalog& whole = whole_.catalog;
  EXPECT_EQ(merged.size(), whole.size());
  EXPECT_EQ(TextOf(merged.Refused()), TextOf(whole.Refused()));
  EXPECT_EQ(merged.Replaced(), whole.Replaced());
  EXPECT_EQ(merged.ReplacedByCommand(), whole.ReplacedByCommand());
  EXPECT_EQ(merged.last_number(), whole.last_number());
  const auto waits = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.uid == b.second.uid && a.second.origin == b.second.origin;
  };
  EXPECT_TRUE(std::equal(merged.Waiting().begin(), merged.Waiting().end(), whole.Waiting().begin(),
                         whole.Waiting().end(), waits));
  const auto pods = merged.Pods();
  const auto all = whole.Pods();
  EXPECT_TRUE(std::equal(pods.begin(), pods.end(), all.begin(), all.end(),
                         [](const auto& a, const auto& b) { return *a == *b; }));
}

void RandomCatalogWorld::CompareNames(const ObjectKey& key) {
  const ObjectCatalog& merged = merged_.catalog;
  const ObjectCatalog& whole = whole_.catalog;
  const ObjectLookup found = merged.LookUp(key);
  const ObjectLookup is = whole.LookUp(key);
  EXPECT_TRUE(found.answer == is.answer && AreAlike(found.object, is.object) &&
              found.file == is.file && found.reason == is.reason)
      << ToString(key) << ": " << static_cast<int>(found.answer) << " " << found.reason << ", is "
      << static_cast<int>(is.answer) << " " << is.reason;
  const std::optional<ObjectStanding> standing = merged.StandingOf(key);
  const std::optional<ObjectStanding> real = whole.StandingOf(key);
  EXPECT_TRUE(standing.has_value() == real.has_value() && (!real || AreAlike(*standing, *real)))
      << ToString(key);
  EXPECT_EQ(TextOf(merged.NamedBy(key).value_or(ObjectOrigin())),
            TextOf(whole.NamedBy(key).value_or(ObjectOrigin())))
      << ToString(key);
  EXPECT_EQ(merged.EndedBy(key), whole.EndedBy(key)) << ToString(key);
  EXPECT_EQ(TextOf(merged.ProblemsOf(key)), TextOf(whole.ProblemsOf(key))) << ToString(key);
  EXPECT_EQ(TextOf(merged.WarningsOf(key)), TextOf(whole.WarningsOf(key))) << ToString(key);
  for (const char* source : kSources) {
    EXPECT_EQ(merged.IsPresentIn(source, key), whole.IsPresentIn(source, key)) << ToString(key);
  }
}

void RandomCatalogWorld::CompareSources() {
  const std::vector<SourceStatus> merged = merged_.catalog.Sources();
  const std::vector<SourceStatus> whole = whole_.catalog.Sources();
  ASSERT_EQ(merged.size(), whole.size());
  for (size_t i = 0; i < merged.size(); ++i) {
    const auto state = [](const SourceStatus& one) {
      return std::tie(one.name, one.complete, one.last_list_complete, one.objects, one.last_error,
                      one.last_list_unix_millis, one.incomplete_because, one.unconfigured);
    };
    EXPECT_TRUE(state(merged[i]) == state(whole[i])) << merged[i].name;
    EXPECT_EQ(TextOf(merged[i].problems), TextOf(whole[i].problems)) << merged[i].name;
    EXPECT_EQ(TextOf(merged[i].warnings), TextOf(whole[i].warnings)) << merged[i].name;
    const std::string& name = merged[i].name;
    EXPECT_EQ(TextOf(merged_.catalog.HandedOverBy(name)), TextOf(whole_.catalog.HandedOverBy(name)))
        << name;
  }
}

}  // namespace volumed
