#include "agent/describer.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <utility>

#include "agent/object_columns.h"
#include "agent/object_summary.h"
#include "agent/pod_lookup.h"
#include "agent/view_codec.h"
#include "base/printable_text.h"
#include "base/strings.h"
#include "csi/rpc/csi_redact.h"
#include "kube/ephemeral_claim.h"
#include "volumemanager/claims/refused_objects.h"
#include "volumemanager/volume_inputs.h"

namespace volumed {
namespace {

constexpr int kMaxUsers = 100;
constexpr int kMaxListed = 5000;

Error UnknownKind(const std::string& kind) {
  return Error::NotApplied(Code::kInvalidArgument, "unknown kind '" + kind + "'");
}

MountQuestion QuestionOf(const VolumeView& volume) {
  // Of a block volume the device node is mounted; the pod's path is a link to it.
  MountQuestion question{
      volume.spec.str(), volume.is_block ? volume.device_node_path : volume.host_path, {}};
  for (const SubPathMount& mount : volume.sub_paths) question.sub_paths.push_back(mount.host_path);
  return question;
}

// Kubelet's events name a volume in quotes, or at the end of its path.
bool IsAbout(const KeptEvent& event, const std::string& volume) {
  for (const std::string& name : {"\"" + volume + "\"", "/" + volume + " ", "/" + volume + ","}) {
    if (event.message.find(name) != std::string::npos) return true;
  }
  return false;
}

void AddSummaryField(const std::string& name, const std::string& value, v1::DescribeResponse* out) {
  v1::SummaryField* field = out->add_summary();
  field->set_name(name);
  field->set_value(value);
}

void AddSummary(const Object& object, const ShownText& shown, v1::DescribeResponse* out) {
  const SummaryLines lines = SummariseObject(object, shown);
  for (size_t i = 0; i < std::min(lines.size(), kMaxSummaryLines); ++i) {
    AddSummaryField(lines[i].first, lines[i].second, out);
  }
  if (lines.size() > kMaxSummaryLines) out->add_not_shown("more fields of the spec");
}

// Of volumes and claims, where they decide what becomes of the storage. What kubectl keeps there of
// the manifest is in the other lines.
void AddAnnotations(ObjectKind kind, const ObjectMeta& meta, const ShownText& shown,
                    v1::DescribeResponse* out) {
  if (kind != ObjectKind::kPersistentVolume && kind != ObjectKind::kPersistentVolumeClaim) return;
  for (const auto& [name, given] : meta.annotations) {
    if (name == "kubectl.kubernetes.io/last-applied-configuration") continue;
    constexpr size_t kMostShown = 200;
    const std::string value = shown ? shown(given, WordsOf::kOwner) : given;
    const bool is_long = value.size() > kMostShown;
    AddSummaryField(
        "Annotation",
        name + "=" + std::string(BeginningOf(value, kMostShown)) + (is_long ? "..." : ""), out);
  }
}

// Whose context of a volume the object has, as CreateVolume or ControllerPublishVolume gave it.
// Empty: nobody's.
std::string DriverOf(const Object& object) {
  if (const auto* volume = std::get_if<PersistentVolume>(&object)) {
    const auto* csi = std::get_if<CsiPersistentVolumeSource>(&volume->spec.source);
    return csi == nullptr ? "" : csi->driver;
  }
  const auto* attachment = std::get_if<VolumeAttachment>(&object);
  return attachment == nullptr ? "" : attachment->attacher;
}

// As in kubectl, an object that only waits for its end is shown as Terminating; as in `get`, a
// Missing one is marked.
template <typename View>
std::string ShownPhase(const View& view) {
  const std::string phase = view.deleting ? "Terminating (" + view.phase + ")" : view.phase;
  return view.missing ? phase + " (MISSING)" : phase;
}

// Whether a volume of a pod may name objects of this kind. All of these have a namespace.
bool HasUsers(ObjectKind kind) {
  return kind == ObjectKind::kPersistentVolumeClaim || kind == ObjectKind::kSecret ||
         kind == ObjectKind::kConfigMap;
}

// The volumes of the pod that name the object.
std::vector<std::string> VolumesThatUse(const Pod& pod, const ObjectKey& key) {
  std::vector<std::string> volumes;
  if (pod.metadata.name_space != key.name_space) return volumes;
  if (key.kind == ObjectKind::kPersistentVolumeClaim) {
    for (const PodClaim& of : ClaimsOfPod(pod)) {
      if (of.claim == key.name) volumes.push_back(of.volume);
    }
    return volumes;
  }
  for (const PodVolume& volume : pod.spec.volumes) {
    if (ObjectsOfVolume(pod.metadata.name_space, volume.source).contains(key)) {
      volumes.push_back(volume.name);
    }
  }
  return volumes;
}

bool AddListed(v1::ObjectRef ref, v1::ListObjectsResponse* response) {
  if (response->objects_size() >= kMaxListed) {
    response->set_not_shown(response->not_shown() + 1);
    return false;
  }
  *response->add_objects() = std::move(ref);
  return true;
}

}  // namespace

bool IsVolumeKind(const std::string& kind) {
  std::string lower = kind;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower == "volume" || lower == "volumes";
}

Result<MountQuestions> Describer::Describe(const v1::DescribeRequest& request,
                                           v1::DescribeResponse* response) const {
  const v1::ObjectRef& ref = request.object();
  if (IsVolumeKind(ref.kind())) return DescribeVolume(request, response);
  const std::optional<ObjectKind> kind = ParseObjectKind(ref.kind());
  if (!kind) return UnknownKind(ref.kind());
  if (*kind == ObjectKind::kPod) return DescribePod(ref, response);
  RETURN_IF_ERROR(DescribeObject(*kind, ref, response));
  return MountQuestions();
}

Result<MountQuestions> Describer::DescribePod(const v1::ObjectRef& ref,
                                              v1::DescribeResponse* out) const {
  const Result<PodUid> uid = FindPodUid(manager_, ref, node_);
  if (!uid.ok()) {
    // A pod that has ended is known only to its source.
    const std::string name_space = ref.namespace_().empty() ? "default" : ref.namespace_();
    if (uid.error().code() != Code::kNotFound ||
        !AddObject({ObjectKind::kPod, name_space, ref.name()}, out)) {
      return uid.error();
    }
    return MountQuestions();
  }
  const PodView view = *manager_.pods().Find(*uid);
  // The name may belong to another pod by now.
  const std::shared_ptr<const Pod> pod = catalog_.FindPod(*uid);
  if (pod) AddObject({ObjectKind::kPod, view.ns, view.name}, out);
  *out->mutable_object() = MakePodRef(view);
  out->set_source(view.source);
  EncodePod(view, events_.Snapshot(*uid), out->mutable_pod());
  MountQuestions questions;
  for (const VolumeView& volume : view.volumes) {
    if (!volume.host_path.empty()) questions.push_back(QuestionOf(volume));
  }
  return questions;
}

Result<MountQuestions> Describer::DescribeVolume(const v1::DescribeRequest& request,
                                                 v1::DescribeResponse* out) const {
  if (request.volume().empty()) {
    return Error::NotApplied(Code::kInvalidArgument, "a volume is named as POD/VOLUME");
  }
  ASSIGN_OR_RETURN(const PodUid uid, FindPodUid(manager_, request.object(), node_));
  PodView view = *manager_.pods().Find(uid);
  const VolumeView* found = FindVolumeByName(view, request.volume());
  if (found == nullptr) {
    return Error::NotApplied(Code::kNotFound, "pod " + view.ns + "/" + view.name +
                                                  " has no volume \"" + request.volume() + "\"");
  }
  const VolumeView volume = *found;
  *out->mutable_object() = MakePodRef(view);
  out->mutable_object()->set_kind("Volume");
  out->set_source(view.source);
  EncodeVolume(volume, out->mutable_volume());
  view.volumes.clear();
  EncodePod(view, {}, out->mutable_pod());
  for (const KeptEvent& event : events_.Snapshot(uid)) {
    if (IsAbout(event, volume.spec.str())) EncodeEvent(event, out->add_events());
  }
  const std::string& in_pod =
      volume.pod_volumes.empty() ? request.volume() : volume.pod_volumes.front();
  if (const std::shared_ptr<const Pod> pod = catalog_.FindPod(uid)) {
    for (const auto& [name, value] : SummariseObject(Object(*pod))) {
      const bool is_use = value.starts_with(in_pod + " at ");
      if (is_use && name == "  mounts") AddSummaryField("Mounted", value, out);
      if (is_use && name == "  device") AddSummaryField("Device", value, out);
      if (name == "Volume " + in_pod) AddSummaryField("Manifest", value, out);
    }
  }
  if (volume.host_path.empty()) return MountQuestions();
  return MountQuestions{QuestionOf(volume)};
}

Status Describer::DescribeObject(ObjectKind kind, const v1::ObjectRef& ref,
                                 v1::DescribeResponse* out) const {
  ObjectKey key{kind, "", ref.name()};
  if (!IsClusterScoped(kind)) {
    key.name_space = ref.namespace_().empty() ? "default" : ref.namespace_();
  }
  *out->mutable_object() = MakeObjectRef(key);
  const bool is_this_node = kind == ObjectKind::kNode && ref.name() == node_.str();
  const bool is_kept = AddStorageState(key, out) || AddRefusal(key, out);
  // If a source has a claim of that name, it is another claim, and is not used as long as the pod's
  // own exists.
  const bool is_pods_own = !manager_.storage().PodOfClaim(key).empty();
  if (const std::optional<StorageStatus> status = manager_.storage().StatusOf(key)) {
    if (!status->held_by.empty()) AddSummaryField("Held by", status->held_by, out);
  }
  if (snapshots_.held_by) {
    const std::string held_by = snapshots_.held_by(key);
    if (!held_by.empty()) AddSummaryField("Held by", held_by, out);
  }
  if (!(!is_pods_own && AddObject(key, out)) && !is_kept && !is_this_node) {
    return Error::NotApplied(Code::kNotFound, "no " + ToString(key));
  }
  if (is_this_node) AddNodeLabels(out);
  const EventSubject subject = is_this_node ? EventSubject(PodUid()) : EventSubject(key);
  for (const KeptEvent& event : events_.Snapshot(subject)) EncodeEvent(event, out->add_events());
  AddUsers(key, out);
  return OkStatus();
}

bool Describer::AddStorageState(const ObjectKey& key, v1::DescribeResponse* out) const {
  const auto add = [out](const char* name, const std::string& value) {
    if (!value.empty()) AddSummaryField(name, value, out);
  };
  if (key.kind == ObjectKind::kPersistentVolume) {
    const auto volume = manager_.storage().FindPersistentVolume(key.name);
    if (!volume) return false;
    add("Status", ShownPhase(*volume));
    add("Claim", volume->claim);
    add("Reason", volume->reason);
    if (volume->problem) EncodeProblemView(*volume->problem, out->add_problems());
    return true;
  }
  if (key.kind == ObjectKind::kPersistentVolumeClaim) {
    const auto claim = manager_.storage().FindPersistentVolumeClaim({key.name_space, key.name});
    if (!claim) return false;
    out->mutable_object()->set_uid(claim->uid);
    add("Status", ShownPhase(*claim));
    add("Owner", claim->owner);
    add("Volume", claim->volume);
    add("Capacity", claim->capacity);
    add("Reason", claim->reason);
    return true;
  }
  return false;
}

void Describer::AddNodeLabels(v1::DescribeResponse* out) const {
  if (!node_labels_) return;
  for (auto& [name, value] : node_labels_()) (*out->mutable_labels())[name] = value;
  if (!label_givers_) return;
  std::map<std::string, std::vector<std::string>> by_giver;
  for (const auto& [label, giver] : label_givers_()) by_giver[giver].push_back(label);
  for (const auto& [giver, labels] : by_giver) {
    AddSummaryField("Labels by", giver + ": " + Join(labels, ", "), out);
  }
}

bool Describer::AddRefusal(const ObjectKey& key, v1::DescribeResponse* out) const {
  const auto refused = catalog_.Refused().find(key);
  if (refused == catalog_.Refused().end() || catalog_.FindObject(key)) return false;
  const ObjectOrigin& origin = refused->second;
  out->set_source(origin.source);
  out->set_file(origin.file);
  out->set_document(origin.document);
  AddSummaryField("Status", kRefusedPhase, out);
  AddSummaryField("Reason", RefusedText(key.kind, origin), out);
  return true;
}

ShownText Describer::WithoutSecrets(const Object& object) const {
  const std::string driver = DriverOf(object);
  if (driver.empty() || !secrets_of_) return {};
  const std::shared_ptr<CsiSecretMemory> memory = secrets_of_(driver);
  if (memory == nullptr) return {};
  // All texts of the object are one search.
  return [secrets = CsiSecrets(memory), steps = kCsiSearchSteps](const std::string& text,
                                                                 WordsOf whose) mutable {
    const std::string shown = whose == WordsOf::kDriver
                                  ? secrets.Replaced(text, kMaxSummaryValue, steps)
                                  : secrets.ReplacedInOurs(text, kMaxSummaryValue, steps);
    return IsUtf8(shown) ? shown : PrintableText(shown);
  };
}

bool Describer::AddObject(const ObjectKey& key, v1::DescribeResponse* out) const {
  const ObjectPtr object = catalog_.FindObject(key);
  if (!object) return false;
  const ObjectMeta& meta = MetaOf(*object);
  *out->mutable_object() = MakeObjectRef(key);
  out->mutable_object()->set_uid(meta.uid);
  for (const auto& [name, value] : meta.labels) (*out->mutable_labels())[name] = value;
  out->set_created_unix_ms(meta.creation_unix_millis.value_or(0));
  if (const std::optional<ObjectOrigin> origin = catalog_.OriginOf(key)) {
    out->set_source(origin->source);
    out->set_file(origin->file);
    out->set_document(origin->document);
  }
  const ShownText shown_text = WithoutSecrets(*object);
  AddAnnotations(key.kind, meta, shown_text, out);
  if (const auto* claim = std::get_if<PersistentVolumeClaim>(&*object)) {
    PersistentVolumeClaim shown = *claim;
    shown.status = manager_.storage().ClaimStatus(*claim);
    AddSummary(Object(std::move(shown)), shown_text, out);
  } else {
    AddSummary(WithState(*object), shown_text, out);
  }
  for (const DecodeProblem& problem : catalog_.ProblemsOf(key)) {
    v1::Problem* encoded = out->add_problems();
    encoded->set_step("ReadManifest");
    encoded->set_message(problem.ToString());
    encoded->set_who_must_act("the owner of " +
                              (problem.file.empty() ? "the source" : problem.file));
  }
  for (const DecodeProblem& warning : catalog_.WarningsOf(key)) {
    v1::Problem* encoded = out->add_problems();
    encoded->set_step("ReadManifest");
    encoded->set_message(warning.ToString());
    encoded->set_is_warning(true);
  }
  return true;
}

Object Describer::WithState(const Object& object) const {
  return snapshots_.with_state ? snapshots_.with_state(object) : object;
}

void Describer::AddUsers(const ObjectKey& key, v1::DescribeResponse* out) const {
  if (!HasUsers(key.kind)) return;
  int more = 0;
  for (const std::shared_ptr<const Pod>& pod : catalog_.Pods()) {
    for (const std::string& volume : VolumesThatUse(*pod, key)) {
      if (out->used_by_size() >= kMaxUsers) {
        ++more;
        continue;
      }
      v1::VolumeUse* use = out->add_used_by();
      *use->mutable_pod() = MakePodRef(pod->uid(), manager_);
      use->set_volume(volume);
      const std::optional<PodView> view = manager_.pods().Find(pod->uid());
      const VolumeView* shown = view ? FindVolumeByName(*view, volume) : nullptr;
      if (shown == nullptr) continue;
      use->set_state(shown->state);
      if (shown->problem) EncodeProblemView(*shown->problem, use->mutable_problem());
    }
  }
  if (more > 0) out->add_not_shown(std::to_string(more) + " more users");
}

void Describer::AddListedObject(const ObjectKey& key, v1::ListedObject* out) const {
  *out->mutable_object() = MakeObjectRef(key);
  if (const std::optional<ObjectOrigin> origin = catalog_.OriginOf(key)) {
    out->set_source(origin->source);
  }
  const ObjectPtr object = catalog_.FindObject(key);
  if (object == nullptr) return;
  out->mutable_object()->set_uid(MetaOf(*object).uid);
  out->set_created_unix_ms(MetaOf(*object).creation_unix_millis.value_or(0));
  if (const auto* secret = std::get_if<SecretObject>(object.get())) {
    out->set_type(secret->type);
    out->set_keys(static_cast<int64_t>(secret->data.size()));
  } else if (const auto* config_map = std::get_if<ConfigMapObject>(object.get())) {
    out->set_keys(static_cast<int64_t>(config_map->data.size() + config_map->binary_data.size()));
  }
  for (std::string& cell : CellsOf(WithState(*object))) out->add_cells(std::move(cell));
}

Status Describer::List(const v1::ListObjectsRequest& request,
                       v1::ListObjectsResponse* response) const {
  const bool volumes = IsVolumeKind(request.kind());
  const std::optional<ObjectKind> kind = ParseObjectKind(request.kind());
  if (!volumes && !kind) return UnknownKind(request.kind());
  if (volumes) {
    ListVolumes(request.namespace_(), response);
    return OkStatus();
  }
  if (*kind == ObjectKind::kPod) {
    ListPods(request.namespace_(), response);
    return OkStatus();
  }
  for (const std::string_view column : ColumnsOf(*kind)) {
    response->add_columns(std::string(column));
  }
  const std::string name_space = IsClusterScoped(*kind) ? "" : request.namespace_();
  for (const ObjectKey& key : catalog_.KeysOf(*kind, name_space)) {
    if (!request.name().empty() && key.name != request.name()) continue;
    if (AddListed(MakeObjectRef(key), response)) AddListedObject(key, response->add_listed());
  }
  if (*kind == ObjectKind::kNode) ListThisNode(request.name(), response);
  ListRefused(*kind, name_space, request.name(), response);
  return OkStatus();
}

void Describer::ListThisNode(const std::string& name, v1::ListObjectsResponse* response) const {
  const ObjectKey key{ObjectKind::kNode, "", node_.str()};
  const bool is_listed = catalog_.FindObject(key) != nullptr || catalog_.Refused().contains(key);
  if (is_listed || (!name.empty() && name != key.name)) return;
  if (!AddListed(MakeObjectRef(key), response)) return;
  *response->add_listed()->mutable_object() = MakeObjectRef(key);
}

void Describer::ListPods(const std::string& name_space, v1::ListObjectsResponse* response) const {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  for (const PodName& pod : manager_.pods().Names({}, kAll)) {
    if (!name_space.empty() && pod.ns != name_space) continue;
    v1::ObjectRef ref;
    ref.set_kind("Pod");
    ref.set_namespace_(pod.ns);
    ref.set_name(pod.name);
    ref.set_uid(pod.uid.str());
    AddListed(std::move(ref), response);
  }
}

void Describer::ListVolumes(const std::string& name_space,
                            v1::ListObjectsResponse* response) const {
  for (const PodView& pod : manager_.pods().All()) {
    if (!name_space.empty() && pod.ns != name_space) continue;
    v1::ObjectRef ref = MakePodRef(pod);
    ref.set_kind("Volume");
    for (const VolumeView& volume : pod.volumes) {
      ref.set_name(pod.name + "/" + volume.spec.str());
      AddListed(ref, response);
    }
  }
}

void Describer::ListRefused(ObjectKind kind, const std::string& name_space, const std::string& name,
                            v1::ListObjectsResponse* response) const {
  for (const auto& [key, origin] : catalog_.Refused()) {
    const bool is_asked =
        (name_space.empty() || key.name_space == name_space) && (name.empty() || key.name == name);
    if (key.kind != kind || !is_asked || catalog_.FindObject(key)) continue;
    if (response->listed_size() >= kMaxListed) {
      response->set_not_shown(response->not_shown() + 1);
      continue;
    }
    v1::ListedObject* const refused = response->add_listed();
    *refused->mutable_object() = MakeObjectRef(key);
    refused->set_source(origin.source);
    refused->set_phase(kRefusedPhase);
    refused->set_reason(RefusedText(key.kind, origin));
  }
}

}  // namespace volumed
