#include "unit/crash/crash_world.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "csi/csi_names.h"
#include "operation/object_record.h"
#include "operation/volume_record.h"
#include "unit/crash/crash_devices.h"
#include "unit/crash/crash_pools.h"
#include "unit/crash/crash_provisioning.h"

namespace volumed {
namespace {

constexpr uint32_t kPodUser = 1000;
constexpr uint32_t kPodGroup = 3000;  // of pods that begin at once
constexpr size_t kMaxViolations = 8;

std::string SortedLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  std::string sorted;
  for (const std::string& line : lines) sorted += line + "\n";
  return sorted;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "..2026_01_31_10_00_00.123" is another name in each run.
std::string WithoutPayloadNames(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool is_name = text.compare(i, 2, "..") == 0 && i + 7 < text.size() &&
                         IsDigit(text[i + 2]) && IsDigit(text[i + 5]) && text[i + 6] == '_';
    if (!is_name) {
      out += text[i++];
      continue;
    }
    out += "..TIMESTAMP";
    for (i += 2; i < text.size() && (IsDigit(text[i]) || text[i] == '_' || text[i] == '.');) ++i;
  }
  return out;
}

// Groups are numbered by the order of mounting, and what was mounted first may differ.
std::string WithoutGroups(const std::string& text) {
  constexpr std::string_view kGroup = " shared:";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const bool is_group = text.compare(i, kGroup.size(), kGroup) == 0;
    out += text[i++];
    if (!is_group) continue;
    out += kGroup.substr(1, kGroup.size() - 2);
    for (i += kGroup.size() - 1; i < text.size() && IsDigit(text[i]);) ++i;
  }
  return out;
}

// What a pod's volume had when it was set up last: a crash may set it up once more, after it grew.
std::string WithoutCapacity(std::string json) {
  const size_t at = json.find("\"capacity\":{");
  if (at != std::string::npos) json.erase(at, json.find('}', at) - at + 1);
  return json;
}

std::string RecordText(const Record& row) {
  const std::string name = row.kind + " " + row.key + ": ";
  if (row.kind == kPodVolumeRecordKind) {
    const Result<PodVolumeRecord> record = DecodePodVolumeRecord(row);
    if (!record.ok()) return name + record.error().ToString() + "\n";
    std::string text = name + record->plugin_name + " " + record->fault_domain + " " +
                       std::string(VolumeStateName(record->state)) +
                       (record->uncertain ? " uncertain" : "") + " " +
                       WithoutCreation(WithoutCapacity(record->volume_json));
    for (const auto& sub : record->sub_paths)
      text += " " + sub.container + std::to_string(sub.index);
    return text + "\n";
  }
  if (row.kind == kPodRecordKind) {
    const Result<PodRecord> record = DecodePodRecord(row);
    if (!record.ok()) return name + record.error().ToString() + "\n";
    return name + record->ns + "/" + record->name + " " + record->source +
           (record->terminating ? " terminating" : "") + "\n";
  }
  if (row.kind == kDeviceRecordKind || row.kind == kClaimBindingRecordKind) {
    return DeviceRecordText(row);
  }
  if (row.kind == kProvisionRecordKind) return ProvisionRecordText(row);
  if (row.kind == kKnownObjectRecordKind) {
    const Result<KnownObjectRecord> record = DecodeKnownObjectRecord(row);
    if (!record.ok()) return name + record.error().ToString() + "\n";
    return name + record->uid + " " + record->source + " " + record->file +
           (record->missing ? " missing" : "") + "\n";
  }
  // How many commands there were, and when, may differ.
  if (row.kind == kCommandNumberRecordKind) return "";
  if (row.kind == kDeletedObjectRecordKind) {
    const Result<DeletedObjectRecord> record = DecodeDeletedObjectRecord(row);
    // Of an object without a uid that was applied anew it goes when claims are next decided about.
    if (record.ok() && record->uid.empty()) return "";
    return row.kind + " " + row.key + (record.ok() && record->ended ? " ended" : "") + "\n";
  }
  return name + "\n";
}

}  // namespace

CrashWorld::CrashWorld() {
  FakeKernelOptions options;
  options.agent_root = kRoot;
  kernel = std::make_unique<FakeKernel>(options);
  store = std::make_unique<MemoryRecordStore>();
  kernel->AddDirectory("/var/lib");
  sources = {{"applied", {}}, {"manifests", {}}};  // both are configured, and empty
  token_rotation_unix_ms = ManualClock::kStartUnixMillis + 20'000'000;
}

std::unique_ptr<CrashWorld> CrashWorld::Clone() const {
  auto copy = std::make_unique<CrashWorld>();
  copy->clock.AdvanceTo(clock.Now());
  copy->kernel = kernel->Clone();
  copy->store = store->Clone();
  copy->boots = boots;
  copy->sources = sources;
  copy->replaces = replaces;
  copy->broken = broken;
  copy->processes = processes;
  copy->commands = commands;
  copy->token_rotation_unix_ms = token_rotation_unix_ms;
  copy->object_files = object_files;
  copy->own_directories = own_directories;
  copy->adopt_root = adopt_root;
  copy->removal_deletes = removal_deletes;
  copy->pods = pods;
  copy->uids = uids;
  copy->devices = devices;
  copy->block_volumes = block_volumes;
  copy->array = array;
  copy->csi = csi;
  copy->flex_volumes = flex_volumes;
  copy->fc_volumes = fc_volumes;
  copy->fc_disks = fc_disks;
  copy->pool_volumes = pool_volumes;
  copy->filesystems = filesystems;
  copy->precious = precious;
  return copy;
}

// ---- what happens to the world ------------------------------------------------------------------

void CrashWorld::DeleteByCommand(const std::string& source, const std::string& manifest,
                                 const ObjectKey& object) {
  UserCommand command;
  command.kind = UserCommand::Kind::kDeleteObject;
  command.object = object;
  commands.push_back(command);
  sources.at(source).erase(manifest);
}

void CrashWorld::Reboot(bool power_loss) {
  kernel->Reboot();
  RebootCsi(*this, power_loss);
  if (power_loss) store->PowerLoss();
  ++boots;
  // Its initiator has to log in again.
  for (const std::string& volume : array.attached) kernel->Remove(array.disks.at(volume));
  array.attached.clear();
  // Nobody's mounts either come back by themselves; what lies on them is safe from us now.
  std::erase_if(precious, [](const auto& entry) { return entry.first.rfind(kRoot, 0) == 0; });
  // Pids are given anew: another process has each of them, and started as early in its boot.
  for (auto& [uid, pod] : pods) {
    pod.held_by = 0;
    for (auto& [spec, volume] : pod.volumes) volume.established = false;
    for (PodData& data : pod.data) {
      data.present = data.present && !data.on_tmpfs && !data.on_device;
    }
  }
}

void CrashWorld::EndProcess(int64_t pid) {
  processes.erase(pid);
  for (auto& [uid, pod] : pods) {
    if (pod.held_by == pid) pod.held_by = 0;
  }
}

void CrashWorld::PodWrites(const std::string& pod, const std::string& path,
                           const std::string& content, uint32_t gid, bool on_tmpfs) {
  if (!MayWrite(path, false)) return;
  kernel->AddFile(path, content, 0644, kPodUser, gid);
  pods.at(pod).data.push_back({path, content, gid, on_tmpfs, true});
}

void CrashWorld::PodWritesToDevice(const std::string& pod, const std::string& path,
                                   const std::string& content, uint32_t gid) {
  if (!MayWrite(path, true)) return;
  // As the group has it anyway: a reboot's set-up, which asks for the group again, changes nothing.
  kernel->AddFile(path, content, 0664, kPodUser, gid);
  pods.at(pod).data.push_back({path, content, gid, false, true, true});
}

void CrashWorld::PodBegins(const std::string& pod, const std::string& spec) {
  VolumeTruth& volume = pods.at(pod).volumes.at(spec);
  volume.established = true;
  if (volume.first_write.empty()) return;
  const bool on_device = volume.host_path.empty();
  const std::string path =
      (on_device ? VolumePath(pod, spec) : volume.host_path) + "/" + pod + ".txt";
  const std::vector<PodData>& data = pods.at(pod).data;
  const bool written =
      std::any_of(data.begin(), data.end(), [&](const PodData& one) { return one.path == path; });
  if (written) return;
  if (on_device) {
    PodWritesToDevice(pod, path, volume.first_write, kPodGroup);
  } else {
    PodWrites(pod, path, volume.first_write, 0, false);
  }
  if (volume.first_write_stays) precious[path] = volume.first_write;
}

void CrashWorld::PodsWriteAgain() {
  if (older_records_) return;
  for (auto& [uid, pod] : pods) {
    for (PodData& data : pod.data) {
      if (!pod.wanted || data.present) continue;
      if (data.on_device) {
        // It is looked for with the rest; without a driver nobody mounts its disk.
        data.present = !csi || !csi->away;
        continue;
      }
      kernel->AddFile(data.path, data.content, 0644, kPodUser, data.gid);
      data.present = true;
    }
  }
}

// ---- older records ------------------------------------------------------------------------------

void CrashWorld::BeginOlderRecords() {
  older_records_ = true;
  seen_ = StoredFiles();
}

bool CrashWorld::MayWrite(const std::string& path, bool on_device) const {
  if (!older_records_) return true;
  if (on_device) {
    const std::vector<MountEntry> mounts = kernel->Mounts();
    return std::any_of(mounts.begin(), mounts.end(), [&](const MountEntry& mount) {
      return mount.mount_point.starts_with(kRoot) && path.starts_with(mount.mount_point + "/");
    });
  }
  if (IsProvisioned(path)) {
    const size_t name = std::string_view(kProvisionRoot).size() + 1;
    return kernel->Exists(path.substr(0, path.find('/', name)));
  }
  return !path.starts_with(kRoot) || kernel->Exists(path.substr(0, path.rfind('/')));
}

std::map<std::string, std::string> CrashWorld::StoredFiles() const {
  std::map<std::string, std::string> files = kernel->StoredFiles();
  // The agent's own root and what belongs to the system are no persistent volumes.
  std::erase_if(files, [](const auto& file) {
    for (const char* other : {kRoot, "/dev/", "/sys/", "/etc/", "/run/", "/sbin/", "/usr/",
                              "/proc/", "/var/lib/iscsi/"}) {
      if (file.first.find(':') == std::string::npos && file.first.starts_with(other)) {
        return !file.first.starts_with("/dev/") || file.second.empty();
      }
    }
    return false;
  });
  return files;
}

void CrashWorld::CheckNothingLost(const std::map<std::string, std::string>& with_right_records,
                                  const std::string& when) {
  const std::map<std::string, std::string> now = StoredFiles();
  for (const auto& [name, content] : seen_) {
    const auto kept = with_right_records.find(name);
    if (kept == with_right_records.end()) continue;
    const auto there = now.find(name);
    if (there == now.end()) {
      Loss("lost: " + name + " " + when);
    } else if (there->second != content && kept->second == content) {
      Loss("lost: what " + name + " had " + when);
    }
  }
  for (const auto& [name, content] : now) seen_[name] = content;
}

// ---- what is owed -------------------------------------------------------------------------------

void CrashWorld::Violation(const std::string& what) {
  if (!older_records_) Loss(what);
}

void CrashWorld::Loss(const std::string& what) {
  if (violations.size() >= kMaxViolations) return;
  if (std::find(violations.begin(), violations.end(), what) != violations.end()) return;
  violations.push_back(what);
}

std::string CrashWorld::VolumePath(const std::string& pod, const std::string& spec) const {
  const VolumeTruth& volume = pods.at(pod).volumes.at(spec);
  if (volume.is_block) {
    return paths.GetPodVolumeDeviceDir(PodUid(pod), volume.plugin).Below(spec).Display();
  }
  if (volume.plugin == kCsiPluginName) {
    return CsiTargetPath(paths, PodUid(pod), SpecName(spec)).Display();
  }
  return paths.GetPodVolumeDir(PodUid(pod), volume.plugin, SpecName(spec)).Display();
}

std::string CrashWorld::NodePath(const std::string& pod, const std::string& spec) const {
  return paths.GetBlockMapDir(pods.at(pod).volumes.at(spec).plugin, SpecName(spec))
      .Below(pod)
      .Display();
}

void CrashWorld::CheckMapping(const std::string& pod, const std::string& spec,
                              const std::string& when) {
  const std::string& device = devices.at(spec);
  if (kernel->Find(VolumePath(pod, spec)).content != device) {
    Violation("pod " + pod + " has no link to device " + device + " " + when);
  }
  const std::string node = NodePath(pod, spec);
  const std::vector<MountEntry> mounts = kernel->Mounts();
  const bool is_bound = std::any_of(mounts.begin(), mounts.end(), [&](const MountEntry& mount) {
    return mount.mount_point == node && mount.root == device;
  });
  if (!is_bound) Violation("the node of pod " + pod + " is not device " + device + " " + when);
}

void CrashWorld::CheckState(const std::string& when, const std::string& changed) {
  CheckDevices(*this, when);
  for (const auto& [path, content] : precious) {
    if (kernel->Find(path).content != content) {
      Violation(path + ", which is nobody's to remove, is gone or changed " + when);
    }
  }
  for (const auto& [uid, pod] : pods) {
    if (!pod.is_protected()) continue;
    for (const PodData& data : pod.data) {
      if (data.present && kernel->Find(data.path).content != data.content) {
        Violation("data of pod " + uid + " is lost: " + data.path + " " + when);
      }
    }
    for (const auto& [spec, volume] : pod.volumes) {
      if (volume.established) CheckVolume(uid, spec, volume, when, changed);
    }
  }
}

void CrashWorld::CheckVolume(const std::string& pod, const std::string& spec,
                             const VolumeTruth& volume, const std::string& when,
                             const std::string& changed) {
  const std::string name = "volume " + pod + "/" + spec;
  for (const std::string& target : volume.sub_path_targets) {
    if (!volume.sub_path_follows_content && !kernel->IsMountPoint(target)) {
      Violation("sub-path mount of " + name + " is gone " + when);
    }
  }
  if (!volume.host_path.empty()) {
    if (!kernel->Exists(volume.host_path)) Violation(name + " has no directory " + when);
    return;
  }
  if (volume.plugin == kCsiPluginName) CheckCsiVolume(*this, pod, spec, when);
  if (volume.is_block) {
    if (volume.plugin != kCsiPluginName) CheckMapping(pod, spec, when);
    return;
  }
  const std::string path = VolumePath(pod, spec);
  const FakeFile there = kernel->Find(path);
  if (there.type != FileType::kDirectory) {
    Violation(name + " is gone " + when);
  } else if (volume.has_mount && !there.is_mount_point) {
    Violation("the mount of " + name + " is gone " + when);
  } else if (changed.rfind(path, 0) == 0 || path.rfind(changed, 0) == 0) {
    if (ShowsOneVersion(path, volume)) return;
    Violation(name + " shows a content that is no complete version " + when);
  }
}

bool CrashWorld::ShowsOneVersion(const std::string& path, const VolumeTruth& volume) const {
  if (volume.versions.empty()) return true;
  std::set<std::string> names;
  for (const PayloadVersion& version : volume.versions) {
    for (const auto& [name, content] : version) names.insert(name);
  }
  PayloadVersion seen;
  for (const std::string& name : names) {
    const FakeFile file = kernel->Find(path + "/..data/" + name);
    if (file.type != FileType::kMissing) seen[name] = file.content;
    const std::string top = name.substr(0, name.find('/'));
    const bool is_linked = kernel->Find(path + "/" + top).type == FileType::kSymlink;
    if (is_linked != (file.type != FileType::kMissing)) return false;
  }
  return std::find(volume.versions.begin(), volume.versions.end(), seen) != volume.versions.end();
}

// ---- what is compared ---------------------------------------------------------------------------

std::string CrashWorld::Snapshot() const {
  const std::string files = WithoutUids(WithoutPayloadNames(WithoutPoolIds(kernel->DumpTree("/"))));
  std::string text = "files:\n" + SortedLines(files);
  const std::string mounts = WithoutPoolIds(WithoutGroups(kernel->DumpMounts()));
  text += "mounts:\n" + SortedLines(WithoutPayloadNames(mounts));
  std::string records;
  for (const Record& row : store->All()) records += RecordText(row);
  // Numbers of commands may differ.
  std::string objects;
  for (const auto& [file, content] : ObjectFiles()) objects += "object " + file + "\n";
  return text + "records:\n" + SortedLines(WithoutUids(WithoutPoolIds(records))) + objects +
         CsiText(*this);
}

std::string CrashWorld::NewUid(const ObjectKey& object) {
  const std::string number = std::to_string(uids.size() + 1);
  const std::string uid = "uid-" + std::string(6 - number.size(), '0') + number;
  uids[uid] = ToString(object);
  return uid;
}

std::string CrashWorld::WithoutUids(std::string text) const {
  for (auto one = uids.rbegin(); one != uids.rend(); ++one) {
    const auto& [uid, object] = *one;
    // A volume that is called after a claim's uid has a uid itself: that one is replaced later.
    const std::string name = "UID(" + object + ")";
    for (size_t at = text.find(uid); at != std::string::npos; at = text.find(uid)) {
      text.replace(at, uid.size(), name);
    }
  }
  return text;
}

std::string CrashWorld::ProvisionedPath(const std::string& claim) const {
  for (const Record& row : store->All()) {
    if (row.kind != kProvisionRecordKind) continue;
    const Result<ProvisionRecord> record = DecodeProvisionRecord(row);
    if (record.ok() && record->claim.name == claim) {
      return std::string(kProvisionRoot) + "/" + record->volume_name;
    }
  }
  return "";
}

std::string CrashWorld::LeftOf(const std::string& pod) const {
  const std::string directory = paths.GetPodDir(PodUid(pod)).Display();
  if (kernel->Exists(directory)) return "directory " + directory;
  for (const MountEntry& mount : kernel->Mounts()) {
    if (mount.mount_point.rfind(directory, 0) == 0) return "mount " + mount.mount_point;
  }
  for (const Record& row : store->All()) {
    if (row.key.substr(0, row.key.find('/')) == pod) return "record " + row.kind + " " + row.key;
  }
  return "";
}

}  // namespace volumed
