#include "agent/driver_commands.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/strings.h"
#include "csi/csi_call_by_hand.h"

namespace volumed {
namespace {

using Answered = std::function<void(const Result<std::string>&)>;

// The handle of a PersistentVolume of this driver; null if it is none.
const std::string* HandleOf(const ObjectPtr& object, const std::string& driver) {
  const auto* volume = object == nullptr ? nullptr : std::get_if<PersistentVolume>(object.get());
  if (volume == nullptr) return nullptr;
  const auto* source = std::get_if<CsiPersistentVolumeSource>(&volume->spec.source);
  return source != nullptr && source->driver == driver ? &source->volume_handle : nullptr;
}

Error Unavailable(const std::string& why) { return Error::NotApplied(Code::kUnavailable, why); }

// Why the operation cannot begin; nullopt if it may.
std::optional<Error> WhyNoCommand(const DriverCommands& parts, const CsiDriver& driver,
                                  const CsiMethod& method, const CallByHand& call) {
  if (driver.lane().closed) {
    const std::string why = driver.WhyAway();
    return Unavailable(why.empty() ? "CSI driver " + driver.name() + " takes no calls now" : why);
  }
  const Status may = parts.csi.commands().CheckCommand(call.command);
  if (!may.ok()) return may.error();
  if (!call.volume) return std::nullopt;
  if (method.name == kCsiDeleteVolume && parts.why_unseen) {
    if (std::string why = parts.why_unseen(); !why.empty()) return Unavailable(why);
  }
  const std::string who = parts.who_needs ? parts.who_needs(method, *call.volume) : "";
  if (who.empty()) return std::nullopt;
  const bool is_open = parts.csi.commands().IsOpen(call.command);
  return Error::NotApplied(
      Code::kFailedPrecondition,
      "volume " + call.volume->handle + " of CSI driver " + call.volume->driver +
          " is in use: " + who + " has it" +
          (is_open
               ? "; the outcome of a call by hand about it is open: delete who has it since (pod, "
                 "claim, and `volumectl delete pv NAME --force`), then make this call again"
               : ""));
}

Error WhyPending(const DriverCommands& parts, const CallByHand& call) {
  std::string what = "another call by hand";
  if (call.volume) {
    const auto owner =
        parts.operations.FindOwner(CsiUniqueName(call.volume->driver, call.volume->handle));
    if (owner) what = owner->operation + " of " + owner->key.ToString();
  }
  return Unavailable("what the call is about is in use: " + what + " is at it");
}

Error WithWhatIsOpen(const OperationFailure& failure, const std::string& method) {
  const Error& error = failure.error;
  if (!error.maybe_applied()) return error;
  const std::string inverse(CsiInverseOf(method));
  return Error::FromParts(error.code(), error.outcome(), error.sys_errno(),
                          error.message() +
                              "; until its outcome is known the agent leaves alone "
                              "what it is about: make it again" +
                              (inverse.empty() ? "" : ", or " + inverse + " about the same place"));
}

void Tell(const DriverCommands& parts, const std::string& driver, const std::string& method,
          const OperationOutcome<std::string>& outcome, const Answered& done) {
  // A volume that came while its storage was being deleted was given to nobody.
  if (parts.settled && (method == kCsiDeleteVolume || !parts.csi.commands().HasOf(driver)))
    parts.settled(driver);
  if (!outcome.failure) return done(*outcome.value);
  if (!NeverReachedItsDriver(*outcome.failure)) {
    return done(WithWhatIsOpen(*outcome.failure, method));
  }
  const std::string why = parts.csi.drivers().WhyAway(driver);
  done(Unavailable(why.empty() ? "CSI driver " + driver + " has as many calls as it may have"
                               : why));
}

}  // namespace

void CommandDriver(const DriverCommands& parts, const std::shared_ptr<CsiDriver>& driver,
                   const CsiMethod& method,
                   std::shared_ptr<const google::protobuf::Message> request, Duration patience,
                   const Answered& done) {
  const Clock& clock = parts.scheduler.clock();
  if (!CsiCommandKey(driver->name(), method, *request)) {
    return done(Error::NotApplied(Code::kInvalidArgument,
                                  "the request has no " +
                                      (method.key_field.empty() ? "key" : method.key_field) +
                                      ", so nobody knows what the call would be about"));
  }
  CsiCommandRecord command = CsiCommandOf(driver->name(), method, *request, clock.WallUnixMillis());
  CallByHand call(parts.csi.commands(), driver, std::move(command), std::move(request),
                  Deadline::After(clock, patience));
  if (const auto error = WhyNoCommand(parts, *driver, method, call)) return done(*error);
  parts.operations.ResetBackoff(call.key());  // a person has asked
  const StartResult started =
      parts.operations.Start(call, [parts, name = driver->name(), rpc = method.name,
                                    done](const OperationOutcome<std::string>& outcome) {
        Tell(parts, name, rpc, outcome, done);
      });
  if (started != StartResult::kStarted) return done(WhyPending(parts, call));
  // Nobody waits for it any longer: it must not begin when its driver comes back one day.
  parts.scheduler.PostAfter(patience, [&operations = parts.operations, key = call.key()] {
    operations.GiveUpWaiting(key);
  });
}

std::string WhoNeedsVolume(const VolumeManager& manager, const ObjectCatalog& catalog,
                           const CsiMethod& method, const CsiVolumeId& volume) {
  std::string who = manager.pods().WhoHas(CsiUniqueName(volume.driver, volume.handle));
  if (!who.empty() || method.name != kCsiDeleteVolume) return who;
  const std::vector<SpecName> names = PersistentVolumesOf(manager, catalog, volume);
  return names.empty() ? std::string() : "persistent volume " + names.front().str();
}

std::vector<SpecName> PersistentVolumesOf(const VolumeManager& manager,
                                          const ObjectCatalog& catalog, const CsiVolumeId& volume) {
  std::vector<SpecName> names;
  for (const PersistentVolumeView& view : manager.storage().PersistentVolumes()) {
    const std::string* const handle =
        HandleOf(catalog.FindObject({ObjectKind::kPersistentVolume, "", view.name}), volume.driver);
    if (handle != nullptr && *handle == volume.handle) names.emplace_back(view.name);
  }
  return names;
}

std::string FirstOf(const std::vector<std::string>& texts, size_t shown) {
  shown = std::min(texts.size(), shown);
  std::string text =
      Join(std::vector<std::string>(texts.begin(), texts.begin() + static_cast<long>(shown)), ", ");
  if (texts.size() > shown) text += " and " + std::to_string(texts.size() - shown) + " more";
  return text;
}

}  // namespace volumed
