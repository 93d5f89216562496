// CsiEarlierSecrets: what drivers were sent as secrets before this agent started, so that their
// words are shown without it. A driver keeps what it was given, and a restart of the agent, which
// calls nobody, sends nothing anew.
//
// The records have no secret, but the names of the Secrets: of the volumes on record, those of a
// driver may have been sent to it, and until each of them was seen nothing that the driver says is
// shown (CsiSecretMemory::Withhold). Those that PersistentVolumes and classes of the sources name
// beside that may have been sent too: they are added as far as they are there, and nobody waits for
// them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "csi/rpc/csi_secret_memory.h"
#include "kube/object_catalog.h"
#include "volume/secrets_of_volume.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: control. Blocks: never. No text of it has a secret. Only the records and the first list
// of each source are gone through as a whole; after that the cost follows what changes.
class CsiEarlierSecrets {
 public:
  struct Parts {
    const HostObjects& objects;
    Logger& log;
    // The driver's words may be shown from now on. Empty: nobody wants to know.
    std::function<void(const std::string& driver)> shown = {};
  };
  explicit CsiEarlierSecrets(Parts parts) : parts_(std::move(parts)) {}
  CsiEarlierSecrets(const CsiEarlierSecrets&) = delete;
  CsiEarlierSecrets& operator=(const CsiEarlierSecrets&) = delete;

  // CsiDriversHooks::made. Before the records are read, and as long as a Secret of them is not
  // known, the driver's words are withheld when this returns.
  void DriverMade(const std::string& driver, const std::shared_ptr<CsiSecretMemory>& memory);
  // Nothing of the driver is here any more.
  void DriverForgotten(const std::string& driver);
  // What the volumes on record name. REQUIRES: it is called once.
  void TakeRecorded(SentSecretsByDriver recorded);
  // Takes over what the catalog reports. REQUIRES: `objects` has followed it.
  void Follow(const std::vector<ObjectChange>& changes);
  // Every source has delivered: what volumes and classes name from now on, this agent sends itself.
  void ObjectsComplete();

 private:
  struct Driver {
    std::weak_ptr<CsiSecretMemory> memory;  // expired: there is no such driver now
    SentSecrets recorded;
    std::set<ObjectKey> awaited;  // those of `recorded` that have not been seen
  };
  using Users = std::map<ObjectKey, std::set<std::string>>;  // Secret -> drivers

  void Learn(const std::string& name, Driver& driver);
  void Withhold(const std::string& name, Driver& driver);
  void SecretCame(const ObjectKey& key, const SecretObject& secret);
  void NoteNamed(const std::string& driver, const std::set<ObjectKey>& secrets);
  std::shared_ptr<CsiSecretMemory> MemoryOf(const std::string& driver) const;

  const Parts parts_;
  bool is_loaded_ = false;          // the records are read
  bool are_objects_known_ = false;  // ObjectsComplete() was called
  std::map<std::string, Driver> drivers_;
  Users recorded_users_;
  Users named_users_;  // by objects; empty once all sources have delivered
};

}  // namespace volumed
