// LvmTools: lvm2's tools, with one function for each call that thin volumes of one group need. No
// shell is involved, and every name is one that was checked (LvmNames) or made from an id. Private
// to the backend lvm.
//
// A tool that changes something suspends devices while it works, and a suspended device holds up
// whoever writes to it: so it is never ended by a deadline, and what it says in the end is not
// believed. The caller looks again (Find).
//
// LVM writes down which snapshot it is about to ask of the thin pool, asks for it, and then for the
// number of its next transaction. A tool that was killed between the latter two, or a node that was
// cut off, leaves a snapshot with whose number no later tool gets anywhere. If what LVM has written
// down with that number bears the tag of its name (LvmTagOf), it is taken out of the thin pool, and
// the tool is run again, which has it made anew. Nobody can have had it: LVM activates nothing
// before. Source: lvs(8), lvmreport(7), lvcreate(8), lvchange(8), lvextend(8), lvremove(8) of
// lvm2 2.03.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "pool/lvm_names.h"

namespace volumed {

// What lvs says of a logical volume.
struct LogicalVolume {
  std::string name;
  std::string uuid;
  std::string group_uuid;
  std::string thin_pool;  // in which it is; empty of what is in none
  std::vector<std::string> tags;
  int64_t size_bytes = 0;
  int64_t extent_bytes = 0;  // of which its size is a multiple
  bool is_read_only = false;
  bool is_active = false;     // it has a device
  bool is_suspended = false;  // whoever writes to its device waits
  bool is_open = false;       // somebody has its device
  std::string device;         // "/dev/dm-3"; empty of what is not active
  // Hundredths of a percent of its size, or of its metadata, that are in use. Nullopt: it is not
  // active, so that LVM does not know.
  std::optional<int64_t> data_used = std::nullopt;
  std::optional<int64_t> metadata_used = std::nullopt;  // of a thin pool alone
  std::string health;                                   // of a thin pool; empty: it is well
};

// The tag of what is called by this id.
inline std::string LvmTagOf(const std::string& id) { return "volumed." + id; }

// All of it.
inline constexpr int64_t kWholeInHundredths = 10000;
// So many bytes of its size are in use for certain, and may be at most: lvs rounds.
int64_t UsedAtLeast(const LogicalVolume& volume);
int64_t UsedAtMost(const LogicalVolume& volume);

// The logical volumes in the output of `lvs --reportformat json`, which may have warnings around
// it. Pure. Errors, not applied: Internal for what cannot be read.
Result<std::vector<LogicalVolume>> ParseLvs(const std::string& output);

// Threads: any; one call per logical volume at a time. Blocks: what asks, until the deadline; what
// changes, until the tool has ended. Errors: FailedPrecondition, not applied, if lvm2 is not there;
// those of RunProgram. Of what asks also: FailedPrecondition, not applied, with the words of lvs.
class LvmTools {
 public:
  LvmTools(Kernel& kernel, LvmNames names) : kernel_(kernel), names_(std::move(names)) {}
  const LvmNames& names() const { return names_; }

  // Those of these names that the group has.
  Result<std::map<std::string, LogicalVolume>> Find(const std::vector<std::string>& names,
                                                    const CallOptions& call) const;
  // The names of those that are active and whose names begin so.
  Result<std::vector<std::string>> FindActive(const std::string& prefix,
                                              const CallOptions& call) const;
  // Those that are suspended and whose names begin so.
  Result<std::vector<LogicalVolume>> FindSuspended(const std::string& prefix,
                                                   const CallOptions& call) const;

  // What a tool complains of when it has ended; empty if it says that all is well.
  using Complaint = std::string;
  // None of the new ones is ever activated but by Activate().
  Result<Complaint> MakeThin(const std::string& name, const std::string& tag, int64_t bytes,
                             const CallOptions& call) const;
  Result<Complaint> MakeSnapshot(const std::string& of, const std::string& name,
                                 const std::string& tag, bool read_only,
                                 const CallOptions& call) const;
  Result<Complaint> Activate(const LogicalVolume& volume, const CallOptions& call) const;
  Result<Complaint> Deactivate(const LogicalVolume& volume, const CallOptions& call) const;
  Result<Complaint> SetReadOnly(const LogicalVolume& volume, bool read_only,
                                const CallOptions& call) const;
  Result<Complaint> Extend(const LogicalVolume& volume, int64_t bytes,
                           const CallOptions& call) const;
  Result<Complaint> Remove(const LogicalVolume& volume, const CallOptions& call) const;
  // Ends what a tool that was killed has left suspended.
  Result<Complaint> Resume(const LogicalVolume& volume, const CallOptions& call) const;

 private:
  Result<ProgramEnd> Run(const std::string& tool, const std::vector<std::string>& arguments,
                         size_t output_bytes, const CallOptions& call) const;
  Result<ProgramEnd> RunLvm(const std::string& tool, const std::vector<std::string>& arguments,
                            size_t output_bytes, const CallOptions& call) const;
  // Takes out of the thin pool what a tool that was killed has left half made there, and what this
  // output of another one complains of. False: it complains of something else, or it is not ours.
  Result<bool> ForgetHalfMade(const std::string& output, const CallOptions& call) const;
  Result<std::string> List(const std::string& fields, const std::string& selection,
                           const CallOptions& call) const;
  Result<std::vector<LogicalVolume>> Select(const std::string& selection,
                                            const CallOptions& call) const;
  Result<Complaint> Change(const std::string& tool, const std::vector<std::string>& arguments,
                           const CallOptions& call) const;
  // The same of a logical volume of which another one may have taken the name meanwhile.
  Result<Complaint> ChangeThis(const std::string& tool, std::vector<std::string> arguments,
                               const LogicalVolume& volume, const CallOptions& call) const;
  std::string PathOf(const std::string& name) const { return names_.volume_group + "/" + name; }

  Kernel& kernel_;
  const LvmNames names_;
};

}  // namespace volumed
