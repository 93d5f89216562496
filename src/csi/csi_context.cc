#include "csi/csi_context.h"

#include <algorithm>
#include <utility>

#include "csi/rpc/csi_methods.h"
#include "kube/about_object.h"
#include "volume/driver_domain.h"

namespace volumed {

Result<std::shared_ptr<CsiDriver>> FindDriver(const CsiContext& context,
                                              const std::string& driver) {
  std::shared_ptr<CsiDriver> found = context.parts.drivers.Find(driver);
  if (found != nullptr) return found;
  // It has the words for that.
  const Result<CsiDriverFacts> facts = context.parts.drivers.FactsOf(driver);
  if (!facts.ok()) return facts.error();
  return Error::NotApplied(Code::kUnavailable, "CSI driver " + driver + " has just been forgotten");
}

Result<CsiDriverFacts> FactsOf(const CsiContext& context, const std::string& driver) {
  return context.parts.drivers.FactsOf(driver);
}

Result<KubeletHost::CsiDriverPtr> CsiDriverObjectOf(const CsiContext& context,
                                                    const std::string& driver) {
  if (context.host.kubelet == nullptr) return KubeletHost::CsiDriverPtr();
  Result<KubeletHost::CsiDriverPtr> object = context.host.kubelet->GetCsiDriver(driver);
  if (object.ok() || object.error().code() != Code::kNotFound) return object;
  return KubeletHost::CsiDriverPtr();
}

Result<CsiSecretValues> ReadSecret(const CsiContext& context,
                                   const std::optional<SecretReference>& reference,
                                   const std::string& what) {
  if (!reference) return CsiSecretValues();
  const auto secret = context.host.objects.GetSecret(reference->name_space, reference->name);
  if (secret.ok()) return CsiSecretValues((*secret)->data);
  const Error error = Error::NotApplied(
      Code::kUnavailable, "the " + what + " " + reference->name_space + "/" + reference->name +
                              " cannot be had: " + secret.error().message());
  if (secret.error().code() != Code::kNotFound) return error;
  return MissingObject(error, {ObjectKind::kSecret, reference->name_space, reference->name});
}

namespace {

std::string TextAt(const google::protobuf::Message& request, const char* field) {
  const auto* found = request.GetDescriptor()->FindFieldByName(field);
  return found == nullptr ? "" : request.GetReflection()->GetString(request, found);
}

// Where the call puts the volume, or from where it takes it.
struct CalledPlace {
  std::string to{};
  std::string from{};
};

CalledPlace PlaceOf(const google::protobuf::Message& request) {
  const CsiMethod* const method = CsiMethodOf(request.GetDescriptor());
  const std::string_view name = method == nullptr ? std::string_view() : method->name;
  if (name == "NodePublishVolume") return {TextAt(request, "target_path"), ""};
  if (name == "NodeUnpublishVolume") return {"", TextAt(request, "target_path")};
  if (name == "NodeStageVolume") return {TextAt(request, "staging_target_path"), ""};
  if (name == "NodeUnstageVolume") return {"", TextAt(request, "staging_target_path")};
  return {};
}

}  // namespace

Result<CsiCommands::Pass> AdmitCall(const CsiContext& context, const std::string& driver,
                                    const google::protobuf::Message& request,
                                    const CallOptions& call) {
  CsiCommands::Pass pass;
  if (context.parts.commands != nullptr) {
    ASSIGN_OR_RETURN(pass, context.parts.commands->AdmitOperation(driver, request));
  }
  const std::string handle = context.parts.debts == nullptr ? "" : CsiVolumeToChange(request);
  if (handle.empty()) return pass;
  const CalledPlace place = PlaceOf(request);
  Status admitted = DeliverCsiDebts(context, {driver, handle}, call, place.from);
  if (admitted.ok()) admitted = CheckNothingIsOwedAt(context, place.to);
  if (admitted.ok()) return pass;
  const Error& error = admitted.error();
  return AboutAllOf(
      Error::FromParts(error.code(), Outcome::kNotApplied, error.sys_errno(), error.message()),
      error);
}

CsiCallScope::CsiCallScope(const CsiContext& context, const CallOptions& call)
    : token_(call.cancel) {
  const Deadline longest =
      Deadline::After(context.host.clock, context.parts.settings.Get().deadline);
  options_.deadline = std::min(call.deadline, longest, [](const Deadline& a, const Deadline& b) {
    return a.when() < b.when();
  });
  if (token_ == nullptr) return;
  options_.cancel = std::make_shared<CsiCancel>();
  token_->OnCancel([cancel = options_.cancel] { cancel->Cancel(); });
}

CsiCallScope::~CsiCallScope() {
  if (token_ != nullptr) token_->OnCancel({});
}

CsiAwaited::CsiAwaited(const std::string& driver, const google::protobuf::Message& request,
                       const CallOptions& call)
    : call_(call) {
  const CsiMethod* const method = CsiMethodOf(request.GetDescriptor());
  if (!call_.awaits || method == nullptr) return;
  call_.awaits("CSI driver " + driver + ": " + method->name);
}

CsiAwaited::~CsiAwaited() {
  if (call_.awaits) call_.awaits("");
}

CsiSecrets SecretsOf(const CsiContext& context, const std::string& driver) {
  const std::shared_ptr<CsiDriver> found = context.parts.drivers.Find(driver);
  return found == nullptr ? CsiSecrets() : CsiSecrets(found->secrets());
}

Error DriverLied(const CsiContext& context, const CsiAnswered& answered, const std::string& said,
                 const std::string& found) {
  constexpr size_t kMostText = 16 * 1024;
  const std::string& driver = answered.driver;
  const CsiSecrets secrets = SecretsOf(context, driver);
  const std::string shown = secrets.RemovedFrom(found, kMostText);
  if (context.parts.lied) context.parts.lied(answered, shown);
  Error error =
      Error::MaybeApplied(Code::kInternal,
                          driver + ": " + answered.method + ": driver " + driver + " said that " +
                              secrets.RemovedFrom(said, kMostText) + ", and " + shown)
          .About(kDriverAway);
  context.parts.log.LogLimited("csi lie " + driver + " " + answered.method, LogLevel::kWarning,
                               "a CSI driver's answer is not what the node shows",
                               {{"driver", driver}, {"method", answered.method}, {"error", error}});
  return error;
}

}  // namespace volumed
