// FakeLvm: the tools of lvm2 on a FakeKernel's node, with one volume group, "vg0", that has a thin
// pool, "thin". What the tools do to logical volumes is modelled: which are active, and so have a
// device (/dev/dm-N), what is on them, what they have of the thin pool, and what is suspended.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fakes/fake_kernel.h"

namespace volumed {

struct FakeLogicalVolume {
  std::string uuid;
  std::string origin;
  std::vector<std::string> tags;
  int64_t size_bytes = 0;
  bool is_read_only = false;
  bool skips_activation = false;
  bool is_suspended = false;
  int64_t used = 0;           // hundredths of a percent
  std::string device;         // empty: it is not active
  FakeDevice content;         // while it is not active; else the device has it
  bool is_held_open = false;  // by somebody whom the mount table does not know
};

// It outlives the kernel's calls.
class FakeLvm {
 public:
  static constexpr int64_t kExtent = int64_t{4} << 20;
  // `kernel` outlives this.
  explicit FakeLvm(FakeKernel& kernel, bool is_installed = true);

  FakeLogicalVolume& at(const std::string& name) { return volumes_.at(name); }
  bool Has(const std::string& name) const { return volumes_.contains(name); }
  std::vector<std::string> Names() const;
  std::vector<std::string> ActiveNames() const;
  // Somebody else makes one.
  void Add(const std::string& name, FakeLogicalVolume volume);
  // Somebody removes it.
  void Drop(const std::string& name) { volumes_.erase(name); }
  // What is on it, wherever that is now.
  FakeDevice Content(const std::string& name) const;
  // The node starts anew: nothing is active.
  void Reboot();

  int64_t pool_bytes = int64_t{1} << 30;
  int64_t pool_used = 0;  // hundredths of a percent
  int64_t metadata_used = 100;
  std::string pool_health;
  bool pool_is_active = true;
  bool pool_is_suspended = false;
  bool refuses_new = false;  // as with the thin pool above its threshold
  // The next snapshot is made by a tool that is killed before it wakes the origin and the thin
  // pool.
  bool kill_next_snapshot = false;
  // The same amid what it asks of the thin pool, which no tool gets past then.
  bool kill_next_snapshot_half_made = false;
  std::vector<std::string> commands;  // what was run, without what every tool is told

 private:
  using Words = std::vector<std::string>;
  ProgramEnd Run(const std::string& tool, const Words& arguments);
  ProgramEnd List(const Words& words) const;
  ProgramEnd Create(const Words& words);
  ProgramEnd Change(const Words& words);
  ProgramEnd Extend(const Words& words);
  ProgramEnd Remove(const Words& words);
  // dmsetup: takes a thin device out of the thin pool.
  ProgramEnd Message(const Words& words);
  // The one that the last word names, if the selection has it.
  FakeLogicalVolume* Selected(const Words& words);
  bool IsOpen(const FakeLogicalVolume& volume) const;
  void Activate(FakeLogicalVolume& volume);
  void Deactivate(FakeLogicalVolume& volume);
  // A row of the report, by its fields.
  std::map<std::string, std::string> RowOf(const std::string& name) const;
  std::vector<std::map<std::string, std::string>> Rows(const std::string& selection) const;

  FakeKernel& kernel_;
  std::map<std::string, FakeLogicalVolume> volumes_;
  std::string half_made_;  // its name
  int last_minor_ = 2;
  int last_uuid_ = 0;
};

}  // namespace volumed
