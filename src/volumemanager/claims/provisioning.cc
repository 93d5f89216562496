#include "volumemanager/claims/provisioning.h"

#include "base/strings.h"
#include "kube/selectors.h"
#include "operation/provision_operations.h"
#include "operation/recorded_volume.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "volume/secrets_of_volume.h"

namespace volumed {
namespace {

constexpr const char* kBoundByController = "pv.kubernetes.io/bound-by-controller";
// Source: kubernetes pkg/controller/volume/events/event.go@v1.36.2.
constexpr const char* kProvisioningSucceeded = "ProvisioningSucceeded";
constexpr const char* kProvisioningFailed = "ProvisioningFailed";
// What an error is about (Error::about) if the class and its provisioner do not fit together: its
// text is the whole event, as the controller has it.
constexpr const char* kAboutProvisioner = "provisioner";
constexpr const char* kAdministrator = "an administrator";
constexpr const char* kNobody = "nobody: retried";

std::string InBrackets(const std::vector<std::string>& words) {
  return "[" + Join(words, " ") + "]";
}

std::string FailedText(const std::string& storage_class, const Error& error) {
  return "Failed to provision volume with StorageClass \"" + storage_class +
         "\": " + error.message();
}

// Whoever asks for what the maker of the volume does not have; "" if the error tells of no such
// fault. An administrator can make room where somebody has asked for too much.
std::string WhoAsksInVain(const ClaimDecision& decision, const Error& error) {
  const std::string class_owner = "the owner of StorageClass " + decision.storage_class;
  const std::string claim = "claim " + ToString(decision.claim);
  const Code code = error.code();
  if (error.IsAbout(kAboutClassParameters)) return class_owner;
  if (error.IsAbout(kAboutClaim)) {
    const bool is_room = code == Code::kResourceExhausted;
    return "the owner of " + claim + (is_room ? "; an administrator, if there is to be more" : "");
  }
  const bool is_request = code == Code::kInvalidArgument || code == Code::kNotFound ||
                          code == Code::kOutOfRange || code == Code::kUnimplemented;
  return is_request ? class_owner + ", or of " + claim : "";
}

// Who can mend that a volume is not made.
std::string WhoMends(const ClaimDecision& decision, const FailureHistory& failure) {
  const std::string asks = WhoAsksInVain(decision, failure.last.error);
  return asks.empty() ? WhoActsForNode(failure) : asks;
}

// The same of one that was not planned.
std::string WhoMendsPlan(const ClaimDecision& decision, const Error& error) {
  const std::string asks = WhoAsksInVain(decision, error);
  return asks.empty() ? kAdministrator : asks;
}

// Adds what the controller adds to whatever a provisioner answers.
PersistentVolumePtr Complete(PersistentVolume volume, const std::string& volume_name,
                             const PersistentVolume& planned) {
  volume.metadata.name = volume_name;
  for (const auto& [name, value] : planned.metadata.annotations) {
    volume.metadata.annotations[name] = value;
  }
  volume.metadata.finalizers = planned.metadata.finalizers;
  volume.spec.claim_ref = planned.spec.claim_ref;
  volume.spec.storage_class_name = planned.spec.storage_class_name;
  volume.spec.mount_options = planned.spec.mount_options;
  return std::make_shared<const PersistentVolume>(std::move(volume));
}

}  // namespace

std::string ProvisionedVolumeName(const std::string& claim_uid) { return "pvc-" + claim_uid; }

Provisioning::Provisioning(Parts parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      rows_(parts.rows, kProvisionRecordKind, kProvisionRecordDurability,
            [this](const std::string& name) { RowIsDurable(name); }) {}

void Provisioning::Restore(const std::vector<ProvisionRecord>& records) {
  for (const ProvisionRecord& record : records) {
    Entry entry;
    entry.record = record;
    entry.volume = DecodePersistentVolume(record.volume_json);
    if (entry.volume == nullptr) continue;  // such a row is unreadable, and was set aside
    entry.maybe_made = record.state == ProvisionState::kProvisioning;
    entries_[record.volume_name] = std::move(entry);
  }
  PublishAll();
}

// ---- what is asked for ------------------------------------------------------------------------

bool Provisioning::IsOurs(const ClaimDecision& decision) const {
  return decision.wait == ClaimWait::kProvisioning &&
         parts_.plugins.FindProvisionablePluginByName(decision.provisioner).ok();
}

std::string Provisioning::WhyNobodyMakes(const ClaimDecision& decision) const {
  if (decision.wait != ClaimWait::kProvisioning || IsOurs(decision)) return "";
  return parts_.plugins.WhyNoProvisioner(decision.provisioner);
}

void Provisioning::Serve(const std::vector<PersistentVolumeClaimPtr>& claims,
                         const std::map<ClaimKey, ClaimDecision>& decisions,
                         const std::set<EndedClaim>& ended, bool may_begin) {
  std::set<std::string> wanted;
  std::set<ClaimKey> waiting;
  for (const PersistentVolumeClaimPtr& claim : claims) {
    const auto decision = decisions.find(KeyOfClaim(*claim));
    if (decision == decisions.end() || !IsOurs(decision->second)) continue;
    wanted.insert(ProvisionedVolumeName(claim->metadata.uid));
    waiting.insert(decision->first);
    if (may_begin) ServeClaim(*claim, decision->second);
  }
  std::erase_if(refused_, [&](const auto& one) { return !waiting.contains(one.first); });
  for (auto& [name, entry] : entries_) {
    const bool intent = entry.record.state == ProvisionState::kProvisioning;
    entry.over = intent && !wanted.contains(name) && IsOver(entry.record, decisions, ended);
    if (entry.over && may_begin) Undo(entry);
  }
}

// Whether nobody waits any more for the volume that was begun. The absence of the claim does not
// decide that.
bool Provisioning::IsOver(const ProvisionRecord& record,
                          const std::map<ClaimKey, ClaimDecision>& decisions,
                          const std::set<EndedClaim>& ended) {
  if (ended.contains({record.claim, record.claim_uid})) return true;
  const auto found = decisions.find(record.claim);
  if (found == decisions.end() || found->second.uid != record.claim_uid) return false;
  const ClaimDecision& decision = found->second;
  // The claim still waits for it; only its maker is not known at the moment.
  const bool waits =
      decision.wait == ClaimWait::kProvisioning && decision.provisioner == record.plugin_name;
  return !waits && !decision.missing && decision.wait != ClaimWait::kClassMissing;
}

void Provisioning::ServeClaim(const PersistentVolumeClaim& claim, const ClaimDecision& decision) {
  if (claim.metadata.uid.empty()) return;  // it is not known which claim this is
  const auto found = entries_.find(ProvisionedVolumeName(claim.metadata.uid));
  if (found != entries_.end()) {
    Entry& entry = found->second;
    const bool ready = entry.record.state == ProvisionState::kProvisioning && !entry.running &&
                       !entry.removing && rows_.IsDurable(found->first);
    if (!ready) return;
    Result<ProvisionRequest> request = RequestFor(claim, decision);
    if (!request.ok()) return Refuse(decision, request.error());
    refused_.erase(decision.claim);
    AddRecorded(entry, *request);
    return Make(entry, std::move(request).value());
  }
  const Result<ProvisionRequest> request = PlanFor(claim, decision);
  if (!request.ok()) return Refuse(decision, request.error());
  refused_.erase(decision.claim);
  Intend(claim, *request);
}

void Provisioning::AddRecorded(const Entry& entry, ProvisionRequest& request) {
  request.planned = *entry.volume;
  request.plan = entry.record.plan;
  request.claim_uid = entry.record.claim_uid;
}

Result<ProvisionRequest> Provisioning::RequestFor(const PersistentVolumeClaim& claim,
                                                  const ClaimDecision& decision) const {
  const std::shared_ptr<const StorageClass> storage_class =
      parts_.catalog.FindStorageClass(decision.storage_class);
  if (storage_class == nullptr) {
    return Error::NotApplied(Code::kNotFound, "there is no StorageClass " + decision.storage_class);
  }
  ASSIGN_OR_RETURN(ProvisionableVolumePlugin * plugin,
                   parts_.plugins.FindProvisionablePluginByName(decision.provisioner));
  if (!storage_class->mount_options.empty() && !plugin->plugin().SupportsMountOption()) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "Mount options are not supported by the provisioner but StorageClass "
                             "\"" +
                                 decision.storage_class + "\" has mount options " +
                                 InBrackets(storage_class->mount_options))
        .About(kAboutProvisioner);
  }
  ProvisionRequest request;
  request.plugin_name = decision.provisioner;
  request.options.reclaim_policy = storage_class->reclaim_policy;
  request.options.mount_options = storage_class->mount_options;
  request.options.pv_name = ProvisionedVolumeName(claim.metadata.uid);
  request.options.claim = claim;
  request.options.parameters = storage_class->parameters;
  request.options.allowed_topologies = storage_class->allowed_topologies;
  return request;
}

Result<ProvisionRequest> Provisioning::PlanFor(const PersistentVolumeClaim& claim,
                                               const ClaimDecision& decision) const {
  ASSIGN_OR_RETURN(ProvisionRequest request, RequestFor(claim, decision));
  ASSIGN_OR_RETURN(ProvisionableVolumePlugin * plugin,
                   parts_.plugins.FindProvisionablePluginByName(request.plugin_name));
  if (!Matches(request.options.allowed_topologies, parts_.node.GetNodeLabels())) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "this node is in none of the topologies that the class allows");
  }
  RETURN_IF_ERROR(AddContent(claim, *plugin, request.options));
  Result<std::unique_ptr<Provisioner>> provisioner = plugin->NewProvisioner(request.options);
  if (!provisioner.ok()) {
    return provisioner.error().With("Failed to create provisioner").About(kAboutProvisioner);
  }
  ASSIGN_OR_RETURN(PersistentVolume planned, (*provisioner)->Plan());
  planned.metadata.annotations[kProvisionedBy] = request.plugin_name;
  planned.metadata.annotations[kBoundByController] = "yes";
  planned.metadata.finalizers = {std::string(kPersistentVolumeProtection)};
  planned.spec.claim_ref =
      ClaimReference{claim.metadata.name_space, claim.metadata.name, claim.metadata.uid};
  planned.spec.storage_class_name = decision.storage_class;
  planned.spec.mount_options = request.options.mount_options;
  request.planned = *Complete(planned, request.options.pv_name, planned);
  request.plan = (*provisioner)->PlanText();
  return request;
}

Status Provisioning::AddContent(const PersistentVolumeClaim& claim,
                                const ProvisionableVolumePlugin& plugin,
                                VolumeOptions& options) const {
  const bool has_source =
      !claim.spec.data_source_json.empty() || !claim.spec.data_source_ref_json.empty();
  if (!has_source || !plugin.TakesContents()) return OkStatus();
  ASSIGN_OR_RETURN(options.content, parts_.contents.Find(claim));
  return OkStatus();
}

void Provisioning::Refuse(const ClaimDecision& decision, const Error& error) {
  const auto before = refused_.find(decision.claim);
  const bool known = before != refused_.end() && before->second.message() == error.message();
  refused_.insert_or_assign(decision.claim, error);
  if (known) return;
  changed_.insert(decision.claim);
  parts_.events.RecordObjectEvent(
      ObjectKeyOf(decision.claim), EventType::kWarning, kProvisioningFailed,
      error.IsAbout(kAboutProvisioner) ? error.message()
                                       : FailedText(decision.storage_class, error));
}

// ---- from the intent to the volume ------------------------------------------------------------

void Provisioning::Intend(const PersistentVolumeClaim& claim, const ProvisionRequest& request) {
  const std::string& name = request.planned.metadata.name;
  Entry entry;
  entry.record.volume_name = name;
  entry.record.claim = KeyOfClaim(claim);
  entry.record.claim_uid = claim.metadata.uid;
  entry.record.plugin_name = request.plugin_name;
  entry.record.plan = request.plan;
  if (request.options.content) entry.record.cloned_volume = request.options.content->volume_name;
  PersistentVolume planned = request.planned;
  // What is undone has an age, too. In seconds, as an object has it.
  const int64_t now = parts_.rows.scheduler.clock().WallUnixMillis();
  planned.metadata.creation_unix_millis = now - now % 1000;
  entry.volume = std::make_shared<const PersistentVolume>(std::move(planned));
  changed_.insert(entry.record.claim);
  Write(entries_[name] = std::move(entry));
}

void Provisioning::Write(Entry& entry) {
  entry.record.volume_json =
      EncodeRecordedVolume(VolumeSpec::FromPersistentVolume(*entry.volume, false));
  rows_.Put(EncodeRecord(entry.record));
}

void Provisioning::Started(Entry& entry, StartResult started) {
  const std::string& name = entry.record.volume_name;
  if (started == StartResult::kStarted) {
    entry.running = true;
  } else if (const auto next = parts_.operations.NextTry(ProvisionKey(name))) {
    hooks_.wake_at(*next);
  }
}

void Provisioning::Make(Entry& entry, ProvisionRequest request) {
  const std::string name = entry.record.volume_name;
  const std::string storage_class = request.planned.spec.storage_class_name;
  Started(entry, parts_.operations.Start(
                     ProvisionVolume(std::move(request)),
                     alive_.Guarded([this, name, storage_class](
                                        const OperationOutcome<PersistentVolume>& outcome) {
                       Made(name, storage_class, outcome);
                     })));
}

void Provisioning::Made(const std::string& volume_name, const std::string& storage_class,
                        const OperationOutcome<PersistentVolume>& outcome) {
  Entry& entry = entries_.at(volume_name);
  entry.running = false;
  changed_.insert(entry.record.claim);
  if (outcome.failure && NeverReachedItsDriver(*outcome.failure)) return hooks_.changed();
  if (outcome.failure) {
    const Error& error = outcome.failure->error;
    NoteFailure(entry.failure, *outcome.failure, parts_.rows.scheduler.clock());
    entry.maybe_made = entry.maybe_made || error.maybe_applied();
    parts_.events.RecordObjectEvent(ObjectKeyOf(entry.record.claim), EventType::kWarning,
                                    kProvisioningFailed, FailedText(storage_class, error));
    return hooks_.changed();
  }
  entry.failure.reset();
  PersistentVolume made = *outcome.value;
  // In seconds, as an object has it.
  const int64_t now = parts_.rows.scheduler.clock().WallUnixMillis();
  made.metadata.creation_unix_millis = now - now % 1000;
  entry.volume = Complete(std::move(made), volume_name, *entry.volume);
  entry.record.state = ProvisionState::kProvisioned;
  Write(entry);
  parts_.events.RecordObjectEvent(
      ObjectKeyOf(entry.record.claim), EventType::kNormal, kProvisioningSucceeded,
      "Successfully provisioned volume " + volume_name + " using " + entry.record.plugin_name);
}

std::set<std::string> Provisioning::Volumes() const {
  std::set<std::string> names;
  for (const auto& [name, entry] : entries_) names.insert(name);
  return names;
}

void Provisioning::Remove(const std::string& volume_name) {
  const auto found = entries_.find(volume_name);
  if (found == entries_.end() || found->second.removing) return;
  found->second.removing = true;
  rows_.Remove(volume_name);
}

std::set<std::string> Provisioning::ClaimUids(const ClaimKey& claim) const {
  std::set<std::string> uids;
  for (const auto& [name, entry] : entries_) {
    if (entry.record.claim == claim && !entry.removing) uids.insert(entry.record.claim_uid);
  }
  return uids;
}

void Provisioning::SetCapacity(const std::string& volume_name, const Quantity& capacity) {
  const auto found = entries_.find(volume_name);
  if (found == entries_.end() || found->second.removing) return;
  Entry& entry = found->second;
  const bool is_made = entry.record.state == ProvisionState::kProvisioned;
  if (!is_made || entry.volume->spec.capacity >= capacity) return;
  PersistentVolume larger = *entry.volume;
  larger.spec.capacity = capacity;
  entry.volume = std::make_shared<const PersistentVolume>(std::move(larger));
  Write(entry);
}

std::optional<ClaimKey> Provisioning::ClonedFor(const std::string& volume_name) const {
  for (const auto& [name, entry] : entries_) {
    const bool clones = entry.record.state == ProvisionState::kProvisioning && !entry.removing &&
                        entry.record.cloned_volume == volume_name;
    if (clones) return entry.record.claim;
  }
  return std::nullopt;
}

void Provisioning::ResetBackoff() {
  ResetBackoffWhere([](const Entry&) { return true; });
}

void Provisioning::ResetBackoffOf(const ClaimKey& claim) {
  ResetBackoffWhere([&claim](const Entry& entry) {
    return entry.record.claim == claim || !entry.record.cloned_volume.empty();
  });
}

void Provisioning::ResetBackoffOf(const std::string& storage_class) {
  ResetBackoffWhere([&storage_class](const Entry& entry) {
    return entry.volume->spec.storage_class_name == storage_class;
  });
}

bool Provisioning::ResetBackoffWith(const ObjectKey& secret) {
  bool any = false;
  ResetBackoffWhere([&](const Entry& entry) {
    const bool concerns = entry.failure && SecretsNamedBy(*entry.volume).contains(secret);
    any = any || concerns;
    return concerns;
  });
  return any;
}

void Provisioning::ResetBackoffWhere(const std::function<bool(const Entry&)>& concerns) {
  for (const auto& [name, entry] : entries_) {
    if (concerns(entry)) parts_.operations.ResetBackoff(ProvisionKey(name));
  }
}

void Provisioning::RowIsDurable(const std::string& volume_name) {
  const auto found = entries_.find(volume_name);
  std::vector<std::function<void(Status)>> given_up;
  bool ends_undo = false;
  if (found->second.removing) {
    given_up = std::move(found->second.given_up);
    ends_undo = found->second.over && found->second.maybe_made;
    entries_.erase(found);
    parts_.operations.ForgetMade(volume_name);
  }
  Publish(volume_name);
  hooks_.changed();
  if (ends_undo) return EndUndo(volume_name, std::move(given_up));
  for (const auto& done : given_up) done(OkStatus());
}

// Only a volume that is on record as made counts. While a change of its row is being written, it
// stays what it was.
PersistentVolumePtr Provisioning::MadeOf(const std::string& volume_name) const {
  const auto found = entries_.find(volume_name);
  const bool is_made =
      found != entries_.end() && found->second.record.state == ProvisionState::kProvisioned;
  if (!is_made) return nullptr;
  if (rows_.IsDurable(volume_name)) return found->second.volume;
  const auto before = published_.find(volume_name);
  return before == published_.end() ? nullptr : before->second;
}

void Provisioning::PublishAll() {
  ObjectList list;
  list.source = kSourceName;
  list.complete = true;
  std::map<std::string, PersistentVolumePtr> made;
  for (const auto& [name, entry] : entries_) {
    PersistentVolumePtr volume = MadeOf(name);
    if (volume == nullptr) continue;
    list.objects.push_back({std::make_shared<const Object>(*volume), "", 0});
    made.emplace(name, std::move(volume));
  }
  if (made == published_) return;
  published_ = std::move(made);
  has_list_ = true;
  parts_.catalog.Update(std::move(list));
}

void Provisioning::Publish(const std::string& volume_name) {
  if (!has_list_) return PublishAll();
  const PersistentVolumePtr made = MadeOf(volume_name);
  const auto before = published_.find(volume_name);
  if (made == (before == published_.end() ? nullptr : before->second)) return;
  ObjectDelta delta;
  delta.source = kSourceName;
  if (made == nullptr) {
    delta.removed.push_back({KeyOf(Object(*before->second)), ""});
    published_.erase(before);
  } else {
    delta.objects.push_back({std::make_shared<const Object>(*made), "", 0});
    published_.insert_or_assign(volume_name, made);
  }
  parts_.catalog.Update(std::move(delta));
}

std::optional<WantedProblem> Provisioning::ProblemOf(const ClaimDecision& decision) const {
  if (!IsOurs(decision)) return std::nullopt;
  const std::string claim = "error processing PVC " + ToString(decision.claim) + ": ";
  if (const auto refused = refused_.find(decision.claim); refused != refused_.end()) {
    return WantedProblem{"PlanVolume", refused->second.With(claim + "PVC is not bound"),
                         WhoMendsPlan(decision, refused->second)};
  }
  const std::string name = ProvisionedVolumeName(decision.uid);
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.failure) {
    const FailureHistory& failure = *found->second.failure;
    return WantedProblem{"Provision", failure.last.error.With(claim + "PVC is not bound"),
                         WhoMends(decision, failure), ProvisionKey(name), failure.attempts};
  }
  return WantedProblem{"Provision",
                       Error::NotApplied(Code::kUnavailable,
                                         claim + "PVC is not bound: its volume is being made by " +
                                             decision.provisioner),
                       kNobody, ProvisionKey(name)};
}

}  // namespace volumed
