// Writes CHAP secrets into open-iscsi's own records of nodes and discoveries. iscsiadm would take a
// password as an argument, which every process of the node can read; so the files are written
// directly, as open-iscsi keeps them itself: "name = value" lines, readable by root only (0600).
// Private to iscsi.
//
//   /etc/iscsi (or /var/lib/iscsi)/nodes/<iqn>/<address>,<port>,<group>/<iface>
//   nodes/<iqn>/<address>,<port>             without a group
//   send_targets/<address>,<port>/st_config
//
// Source: open-iscsi usr/idbm.c; kubernetes pkg/volume/iscsi/iscsi_util.go@v1.36.2 (chapSt,
// chapSess, updateISCSIDiscoverydb, updateISCSINode), which gives the secrets as arguments.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/secret.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "plugins/iscsi_disk.h"

namespace volumed {

enum class ChapUse { kDiscovery, kSession };

// The settings of a record that the secret gives, with the method first.
using ChapSettings = std::vector<std::pair<std::string, Secret<std::string>>>;

// Errors, not applied: InvalidArgument, naming a key (never its value) that a record cannot hold,
// or saying that there is no password.
Result<ChapSettings> ChapSettingsOf(const SecretObject& secret, ChapUse use);

// The text of `record`, in which these settings replace its own. This function is pure.
Secret<std::string> WithSettings(const std::string& record, const ChapSettings& settings);

// Threads: any, one call per target at a time. Blocks: until the call's deadline; only on the
// node's own filesystem.
class IscsiRecords {
 public:
  // `roots` are the directories in which open-iscsi may keep its database. `kernel` outlives this
  // object.
  IscsiRecords(Kernel& kernel, std::vector<std::string> roots)
      : kernel_(kernel), roots_(std::move(roots)) {}

  Result<bool> HasDiscovery(const std::string& portal, const CallOptions& call);
  // Errors: NotFound, not applied, naming the places, if open-iscsi has no such record.
  Status SetDiscovery(const std::string& portal, const ChapSettings& settings,
                      const CallOptions& call);
  Status SetNode(const IscsiDisk& disk, const std::string& portal, const ChapSettings& settings,
                 const CallOptions& call);

 private:
  Result<std::vector<SafePath>> FindDiscovery(const std::string& portal, const CallOptions& call);
  Result<std::vector<SafePath>> FindNode(const IscsiDisk& disk, const std::string& portal,
                                         const CallOptions& call);
  Result<std::vector<DirectoryEntry>> EntriesOf(const SafePath& path, const CallOptions& call);
  Status Rewrite(const std::vector<SafePath>& files, const std::string& what,
                 const ChapSettings& settings, const CallOptions& call);

  Kernel& kernel_;
  const std::vector<std::string> roots_;
};

}  // namespace volumed
