#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "kube/field_rules.h"
#include "kube/source_checks.h"
#include "kube/storage_fields.h"

namespace volumed {
namespace {

constexpr const char* kNeedsValues = "is required with In and NotIn";
constexpr const char* kNoValues = "must be empty with Exists and DoesNotExist";
// Source: pkg/apis/storage/validation@v1.36.2 (csiNodeIDMaxLength, maxAttachedVolumeMetadataSize,
// maxVolumeErrorMessageSize).
constexpr size_t kMaxNodeIdBytes = 256;
constexpr size_t kMaxAttachmentMetadataBytes = size_t{256} * 1024;
constexpr size_t kMaxVolumeErrorBytes = 1024;

// Source: ValidateVolumeAccessModes: ReadWriteOncePod stands alone.
void CheckAccessModes(const std::vector<AccessMode>& modes, const std::string& path,
                      ProblemSink& problems) {
  const bool once_pod =
      std::find(modes.begin(), modes.end(), AccessMode::kReadWriteOncePod) != modes.end();
  if (once_pod && modes.size() > 1) {
    problems.Add(path, "ReadWriteOncePod excludes every other access mode");
  }
}

void CheckPositive(const Quantity& amount, const std::string& path, ProblemSink& problems) {
  if (amount.Sign() <= 0) problems.Add(path, "must be greater than zero");
}

void CheckLabelSelector(const LabelSelector& selector, const std::string& path,
                        ProblemSink& problems) {
  for (size_t i = 0; i < selector.match_expressions.size(); ++i) {
    const LabelRequirement& requirement = selector.match_expressions[i];
    const std::string values = Indexed(path + ".matchExpressions", i) + ".values";
    switch (requirement.op) {
      case LabelOperator::kIn:
      case LabelOperator::kNotIn:
        if (requirement.values.empty()) problems.Add(values, kNeedsValues);
        break;
      case LabelOperator::kExists:
      case LabelOperator::kDoesNotExist:
        if (!requirement.values.empty()) problems.Add(values, kNoValues);
        break;
    }
  }
}

bool IsInteger(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void CheckNodeRequirement(const NodeRequirement& requirement, const std::string& path,
                          ProblemSink& problems) {
  const std::string values = path + ".values";
  switch (requirement.op) {
    case NodeOperator::kIn:
    case NodeOperator::kNotIn:
      if (requirement.values.empty()) problems.Add(values, kNeedsValues);
      break;
    case NodeOperator::kExists:
    case NodeOperator::kDoesNotExist:
      if (!requirement.values.empty()) problems.Add(values, kNoValues);
      break;
    case NodeOperator::kGt:
    case NodeOperator::kLt:
      // Kubernetes takes any text here, and then no node ever matches.
      if (requirement.values.size() != 1 || !IsInteger(requirement.values.front())) {
        problems.Add(values, "must be one integer with Gt and Lt");
      }
      break;
  }
}

// Source: ValidateNodeFieldSelectorRequirement: the node's name is the only field.
void CheckNodeField(const NodeRequirement& requirement, const std::string& path,
                    ProblemSink& problems) {
  if (requirement.key != "metadata.name") {
    problems.Add(path + ".key", Quoted(requirement.key) + " is no field of a node that can be " +
                                    "selected by; only \"metadata.name\" is");
  }
  if (requirement.op != NodeOperator::kIn && requirement.op != NodeOperator::kNotIn) {
    problems.Add(path + ".operator", "must be In or NotIn for a field");
  } else if (requirement.values.size() != 1) {
    problems.Add(path + ".values", "must be one value for a field");
  }
}

void CheckNodeSelector(const NodeSelector& selector, const std::string& path,
                       ProblemSink& problems) {
  for (size_t t = 0; t < selector.terms.size(); ++t) {
    const NodeSelectorTerm& term = selector.terms[t];
    const std::string term_path = Indexed(path + ".nodeSelectorTerms", t);
    for (size_t i = 0; i < term.match_expressions.size(); ++i) {
      CheckNodeRequirement(term.match_expressions[i], Indexed(term_path + ".matchExpressions", i),
                           problems);
    }
    for (size_t i = 0; i < term.match_fields.size(); ++i) {
      CheckNodeField(term.match_fields[i], Indexed(term_path + ".matchFields", i), problems);
    }
  }
}

void CheckPersistentSource(const PersistentVolumeSpec& spec, const std::string& path,
                           ProblemSink& problems) {
  CheckSourceOf(spec.source, path, problems);
  if (const auto* host_path = std::get_if<HostPathVolumeSource>(&spec.source)) {
    if (host_path->path == "/" && spec.reclaim_policy == ReclaimPolicy::kRecycle) {
      problems.Add(path + ".persistentVolumeReclaimPolicy",
                   "must not be Recycle for the host's whole \"/\"");
    }
  } else if (std::holds_alternative<LocalVolumeSource>(spec.source) && !spec.node_affinity) {
    problems.Add(path + ".nodeAffinity", "is required for a local volume");
  }
}

template <typename SecretRef>
void CheckIscsiSource(const BasicIscsiVolumeSource<SecretRef>& source, const std::string& path,
                      ProblemSink& problems) {
  if ((source.chap_auth_discovery || source.chap_auth_session) && !source.secret_ref) {
    problems.Add(path + ".secretRef", "is required with CHAP authentication");
  }
}

void CheckVolumeError(const std::optional<VolumeError>& error, const std::string& path,
                      ProblemSink& problems) {
  if (!error || error->message.size() <= kMaxVolumeErrorBytes) return;
  problems.Add(path + ".message",
               "must have at most " + std::to_string(kMaxVolumeErrorBytes) + " bytes");
}

}  // namespace

std::string Indexed(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

void CheckSource(const IscsiVolumeSource& source, const std::string& path, ProblemSink& problems) {
  CheckIscsiSource(source, path, problems);
}

void CheckSource(const IscsiPersistentVolumeSource& source, const std::string& path,
                 ProblemSink& problems) {
  CheckIscsiSource(source, path, problems);
}

void CheckSource(const FcVolumeSource& source, const std::string& path, ProblemSink& problems) {
  const bool by_wwn = !source.target_wwns.empty();
  if (by_wwn == !source.wwids.empty()) {
    problems.Add(path, "needs either targetWWNs or wwids, and not both");
  } else if (by_wwn && !source.lun) {
    problems.Add(path + ".lun", "is required with targetWWNs");
  }
}

void CheckClaimSpec(const PersistentVolumeClaimSpec& spec, const std::string& path,
                    ProblemSink& problems) {
  CheckAccessModes(spec.access_modes, path + ".accessModes", problems);
  CheckPositive(spec.storage.request, path + ".resources.requests.storage", problems);
  if (spec.storage.limit && *spec.storage.limit < spec.storage.request) {
    problems.Add(path + ".resources.limits.storage", "must not be less than the request");
  }
  if (spec.selector) CheckLabelSelector(*spec.selector, path + ".selector", problems);
}

void Validate(const PersistentVolume& volume, const std::string& prefix, ProblemSink& problems) {
  const PersistentVolumeSpec& spec = volume.spec;
  const std::string path = prefix + "spec";
  CheckPositive(spec.capacity, path + ".capacity.storage", problems);
  CheckAccessModes(spec.access_modes, path + ".accessModes", problems);
  CheckPersistentSource(spec, path, problems);
  if (spec.node_affinity) {
    CheckNodeSelector(spec.node_affinity->required, path + ".nodeAffinity.required", problems);
  }
}

void Validate(const PersistentVolumeClaim& claim, const std::string& prefix,
              ProblemSink& problems) {
  CheckClaimSpec(claim.spec, prefix + "spec", problems);
}

void Validate(const StorageClass& storage_class, const std::string& prefix, ProblemSink& problems) {
  if (storage_class.reclaim_policy == ReclaimPolicy::kRecycle) {
    problems.Add(prefix + "reclaimPolicy", "must be Delete or Retain in a class");
  }
  for (size_t t = 0; t < storage_class.allowed_topologies.size(); ++t) {
    const auto& expressions = storage_class.allowed_topologies[t].match_label_expressions;
    const std::string list = Indexed(prefix + "allowedTopologies", t) + ".matchLabelExpressions";
    for (size_t i = 0; i < expressions.size(); ++i) {
      if (expressions[i].values.empty()) {
        problems.Add(Indexed(list, i) + ".values", "is required");
      }
    }
  }
}

void Validate(const CsiDriverObject& driver, const std::string& prefix, ProblemSink& problems) {
  if (const auto reason = rules::kDriverName.broken(driver.metadata.name)) {
    problems.Add(prefix + "metadata.name", *reason);
  }
  std::set<std::string> audiences;
  for (size_t i = 0; i < driver.token_requests.size(); ++i) {
    const std::string& audience = driver.token_requests[i].audience;
    if (!audiences.insert(audience).second) {
      problems.Add(Indexed(prefix + "spec.tokenRequests", i) + ".audience",
                   Quoted(audience) + " is the audience of another request too");
    }
  }
  if (driver.service_account_token_in_secrets && driver.token_requests.empty()) {
    problems.Add(prefix + "spec.serviceAccountTokenInSecrets",
                 "is set, but no tokenRequests are specified");
  }
}

void Validate(const CsiNodeObject& node, const std::string& prefix, ProblemSink& problems) {
  std::set<std::string> names;
  for (size_t i = 0; i < node.drivers.size(); ++i) {
    const CsiNodeDriver& driver = node.drivers[i];
    const std::string path = Indexed(prefix + "spec.drivers", i);
    if (!names.insert(driver.name).second) {
      problems.Add(path + ".name", Quoted(driver.name) + " is the name of another driver too");
    }
    if (driver.node_id.size() > kMaxNodeIdBytes) {
      problems.Add(path + ".nodeID",
                   "must be " + std::to_string(kMaxNodeIdBytes) + " characters or less");
    }
    std::set<std::string> keys;
    for (size_t k = 0; k < driver.topology_keys.size(); ++k) {
      const std::string& key = driver.topology_keys[k];
      if (keys.insert(key).second) continue;
      problems.Add(Indexed(path + ".topologyKeys", k), Quoted(key) + " is there already");
    }
  }
}

void Validate(const VolumeAttachment& attachment, const std::string& prefix,
              ProblemSink& problems) {
  const std::string source = prefix + "spec.source";
  const std::optional<InlineVolumeSpec>& of_pod = attachment.inline_volume_spec;
  if (attachment.persistent_volume_name.empty() != of_pod.has_value()) {
    problems.Add(source, "must specify exactly one of inlineVolumeSpec and persistentVolumeName");
  }
  if (of_pod) {
    const std::string path = source + ".inlineVolumeSpec";
    CheckAccessModes(of_pod->access_modes, path + ".accessModes", problems);
    if (of_pod->reclaim_policy != ReclaimPolicy::kRetain) {
      problems.Add(path + ".persistentVolumeReclaimPolicy",
                   "may only be Retain in the context of inline volumes");
    }
  }
  size_t bytes = 0;
  for (const auto& [key, value] : attachment.attachment_metadata) {
    bytes += key.size() + value.size();
  }
  if (bytes > kMaxAttachmentMetadataBytes) {
    problems.Add(prefix + "status.attachmentMetadata",
                 "must have at most " + std::to_string(kMaxAttachmentMetadataBytes) + " bytes");
  }
  CheckVolumeError(attachment.attach_error, prefix + "status.attachError", problems);
  CheckVolumeError(attachment.detach_error, prefix + "status.detachError", problems);
}

}  // namespace volumed
