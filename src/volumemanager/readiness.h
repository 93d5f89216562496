// Readiness: whether the records of the last run are loaded, and whether absence from the sources
// means something.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kube/object_catalog.h"

namespace volumed {

// Threads: the control thread. Blocks: never. The catalog outlives this object.
class Readiness {
 public:
  explicit Readiness(const ObjectCatalog& catalog) : catalog_(catalog) {}

  // To be called once, when the records of the last run are taken over.
  void SetLoaded() { loaded_ = true; }
  // Why the records could not be loaded; nullopt once they could be read.
  void SetLoadError(std::optional<Error> error) { load_error_ = std::move(error); }

  bool loaded() const { return loaded_; }
  const std::optional<Error>& load_error() const { return load_error_; }
  // True once records are loaded and every configured source has delivered: unmounting is allowed.
  bool Ready() const { return loaded_ && NotReadyReason().empty(); }
  // "" if Ready(). For people: "no complete list yet from: manifests:/etc/pods".
  std::string NotReadyReason() const;
  // Why nothing may be done by which storage comes to be or is gone, even if Ready(): a source has
  // not been looked into since the start, and what has come into it since the last run may have the
  // very storage. Once "" it stays so. For people.
  std::string WhyUnseen() const;
  // Whether that may last, as something is wrong with such a source.
  bool IsUnseenForAFault() const;

 private:
  std::string WhyIncomplete() const;

  const ObjectCatalog& catalog_;
  bool loaded_ = false;
  std::optional<Error> load_error_;
};

// Refuses a command that came before the records of the last run were loaded: Unavailable, not
// applied.
Error NotLoaded();

}  // namespace volumed
