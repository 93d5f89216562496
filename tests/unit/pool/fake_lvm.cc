#include "unit/pool/fake_lvm.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr char kFakeGroup[] = "vg0";
constexpr char kFakeThinPool[] = "thin";

using FakeRow = std::map<std::string, std::string>;

ProgramEnd Failed(const std::string& said) { return {5, "  " + said + "\n"}; }

// The word after this one; empty if it is not there.
std::string WordAfter(const std::vector<std::string>& words, const std::string& option) {
  const auto found = std::find(words.begin(), words.end(), option);
  return found == words.end() || found + 1 == words.end() ? "" : *(found + 1);
}

std::string WithoutGroup(const std::string& path) {
  return std::string(StripPrefix(path, std::string(kFakeGroup) + "/").value_or(path));
}

int64_t WholeExtents(int64_t bytes) {
  return (bytes + FakeLvm::kExtent - 1) / FakeLvm::kExtent * FakeLvm::kExtent;
}

int64_t BytesOf(const std::string& size) {
  if (!size.ends_with('b')) throw std::logic_error("a size without its unit: " + size);
  return ParseInt64(size.substr(0, size.size() - 1)).value();
}

std::string Percent(int64_t hundredths) {
  const std::string rest = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + (rest.size() < 2 ? "0" : "") + rest;
}

// What is asked of a row: terms as FIELD="VALUE", FIELD=NUMBER and FIELD=~"^TEXT", joined by && and
// ||, with parentheses. In a TEXT "[vs]" stands for either of both.
class FakeSelection {
 public:
  FakeSelection(const std::string& text, const FakeRow& row) : text_(text), row_(row) {}
  bool Holds() {
    const bool holds = Either();
    if (at_ != text_.size()) throw std::logic_error("lvs is asked for " + text_);
    return holds;
  }

 private:
  bool Take(const std::string& word) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }
  bool Either() {
    bool holds = Both();
    while (Take("||")) holds = Both() || holds;
    return holds;
  }
  bool Both() {
    bool holds = Term();
    while (Take("&&")) holds = Term() && holds;
    return holds;
  }
  bool Term() {
    if (Take("(")) {
      const bool holds = Either();
      if (!Take(")")) throw std::logic_error("lvs is asked for " + text_);
      return holds;
    }
    Take("");
    const size_t equals = text_.find('=', at_);
    const std::string field = text_.substr(at_, equals - at_);
    at_ = equals + 1;
    const bool is_pattern = Take("~");
    if (field == "thin_id") {
      const size_t after = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
      const std::string number = text_.substr(at_, after - at_);
      at_ = after;
      return row_.at(field) == number;
    }
    if (!Take("\"")) throw std::logic_error("lvs is asked for " + text_);
    const size_t end = text_.find('"', at_);
    const std::string wanted = text_.substr(at_, end - at_);
    at_ = end + 1;
    const std::string& value = row_.at(field);
    return is_pattern ? Begins(value, wanted.substr(1)) : value == wanted;
  }
  static bool Begins(const std::string& value, const std::string& pattern) {
    const auto rest = StripPrefix(pattern, "[vs]");
    if (!rest) return value.starts_with(pattern);
    return value.starts_with("v" + std::string(*rest)) ||
           value.starts_with("s" + std::string(*rest));
  }

  const std::string text_;
  const FakeRow& row_;
  size_t at_ = 0;
};

}  // namespace

FakeLvm::FakeLvm(FakeKernel& kernel, bool is_installed) : kernel_(kernel) {
  if (!is_installed) return;
  for (const char* tool : {"lvs", "lvcreate", "lvchange", "lvextend", "lvremove"}) {
    kernel.AddProgram(std::string("/usr/sbin/") + tool,
                      [this, name = std::string(tool)](FakeKernel&, const Words& words) {
                        return Run(name, words);
                      });
  }
  kernel.AddProgram("/usr/sbin/dmsetup",
                    [this](FakeKernel&, const Words& words) { return Message(words); });
}

std::vector<std::string> FakeLvm::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, volume] : volumes_) names.push_back(name);
  return names;
}

std::vector<std::string> FakeLvm::ActiveNames() const {
  std::vector<std::string> names;
  for (const auto& [name, volume] : volumes_) {
    if (!volume.device.empty()) names.push_back(name);
  }
  return names;
}

void FakeLvm::Add(const std::string& name, FakeLogicalVolume volume) {
  if (volume.uuid.empty()) volume.uuid = "uuid-" + std::to_string(++last_uuid_);
  volumes_[name] = std::move(volume);
}

FakeDevice FakeLvm::Content(const std::string& name) const {
  const FakeLogicalVolume& volume = volumes_.at(name);
  return volume.device.empty() ? volume.content : kernel_.Device(volume.device);
}

void FakeLvm::Reboot() {
  pool_is_suspended = false;
  for (auto& [name, volume] : volumes_) {
    volume.is_suspended = false;
    volume.is_held_open = false;
    if (!volume.device.empty()) Deactivate(volume);
  }
}

ProgramEnd FakeLvm::Run(const std::string& tool, const Words& arguments) {
  if (arguments.size() < 4 || arguments[1] != "--config") throw std::logic_error(tool);
  const Words words(arguments.begin() + 3, arguments.end());
  commands.push_back(tool + " " + Join(words, " "));
  if (tool == "lvs") return List(words);
  if (words.front() != "--yes") throw std::logic_error(tool + " would ask");
  const bool refreshes = std::find(words.begin(), words.end(), "--refresh") != words.end();
  if (refreshes && WithoutGroup(words.back()) == kFakeThinPool) {
    pool_is_suspended = false;
    return {};
  }
  if (pool_is_suspended) throw std::logic_error("a tool would wait for the thin pool for ever");
  if (!half_made_.empty()) {
    return Failed("Thin pool vg0-thin-tpool (253:2) already contain thin device with device_id " +
                  RowOf(half_made_).at("thin_id") + ".");
  }
  if (tool == "lvcreate") return Create(words);
  if (tool == "lvchange") return Change(words);
  return tool == "lvextend" ? Extend(words) : Remove(words);
}

bool FakeLvm::IsOpen(const FakeLogicalVolume& volume) const {
  if (volume.device.empty()) return false;
  const std::vector<MountEntry> mounts = kernel_.Mounts();
  return volume.is_held_open ||
         std::any_of(mounts.begin(), mounts.end(),
                     [&volume](const MountEntry& mount) { return mount.source == volume.device; });
}

FakeRow FakeLvm::RowOf(const std::string& name) const {
  FakeRow row{{"lv_name", name},          {"vg_uuid", "uuid-of-vg0"},
              {"pool_lv", kFakeThinPool}, {"metadata_percent", ""},
              {"lv_health_status", ""},   {"lv_permissions", "writeable"},
              {"data_percent", ""},       {"thin_id", ""}};
  row["vg_extent_size"] = std::to_string(kExtent);
  if (name == kFakeThinPool) {
    row.insert({{"lv_uuid", "uuid-of-thin"}, {"lv_tags", ""}});
    row["lv_suspended"] = pool_is_suspended ? "suspended" : "";
    row.insert({{"lv_device_open", ""}, {"lv_kernel_minor", "2"}});
    row["pool_lv"] = "";
    row["lv_size"] = std::to_string(pool_bytes);
    row["lv_active"] = pool_is_active ? "active" : "";
    if (pool_is_active) row["data_percent"] = Percent(pool_used);
    if (pool_is_active) row["metadata_percent"] = Percent(metadata_used);
    row["lv_health_status"] = pool_health;
    return row;
  }
  const FakeLogicalVolume& volume = volumes_.at(name);
  const bool is_active = !volume.device.empty();
  row["lv_uuid"] = volume.uuid;
  row["thin_id"] = volume.uuid.substr(volume.uuid.find('-') + 1);
  row["lv_tags"] = Join(volume.tags, ",");
  row["lv_size"] = std::to_string(volume.size_bytes);
  if (volume.is_read_only) row["lv_permissions"] = "read-only";
  row["lv_active"] = is_active ? "active" : "";
  row["lv_suspended"] = volume.is_suspended ? "suspended" : "";
  row["lv_device_open"] = IsOpen(volume) ? "open" : "";
  row["lv_kernel_minor"] = is_active ? volume.device.substr(std::string("/dev/dm-").size()) : "-1";
  if (is_active) row["data_percent"] = Percent(volume.used);
  return row;
}

std::vector<FakeRow> FakeLvm::Rows(const std::string& selection) const {
  std::vector<FakeRow> rows;
  std::vector<std::string> names = Names();
  names.emplace_back(kFakeThinPool);
  for (const std::string& name : names) {
    FakeRow row = RowOf(name);
    if (FakeSelection(selection, row).Holds()) rows.push_back(std::move(row));
  }
  return rows;
}

ProgramEnd FakeLvm::List(const Words& words) const {
  if (words.back() != kFakeGroup) {
    return Failed("Volume group \"" + words.back() + "\" not found");
  }
  const Words fields = Split(WordAfter(words, "-o"), ',');
  std::string text = "  WARNING: a device of another group is missing.\n";
  text += "  {\n      \"report\": [\n          {\n              \"lv\": [\n";
  std::vector<std::string> rows;
  for (const FakeRow& row : Rows(WordAfter(words, "--select"))) {
    std::vector<std::string> values;
    for (const std::string& field : fields) {
      values.push_back("\"" + field + "\":\"" + row.at(field) + "\"");
    }
    rows.push_back("                  {" + Join(values, ", ") + "}");
  }
  text += Join(rows, ",\n") + (rows.empty() ? "" : "\n");
  text += "              ]\n          }\n      ]\n  }\n";
  return {0, text};
}

ProgramEnd FakeLvm::Create(const Words& words) {
  const std::string name = WordAfter(words, "--name");
  if (Has(name)) return Failed("Logical Volume \"" + name + "\" already exists");
  if (refuses_new) {
    return Failed("Free space in pool vg0/thin is above threshold, new volumes are not allowed.");
  }
  FakeLogicalVolume volume;
  volume.tags = {WordAfter(words, "--addtag")};
  volume.skips_activation = WordAfter(words, "--setactivationskip") == "y";
  if (WordAfter(words, "--type") != "thin") throw std::logic_error("lvcreate would load a module");
  const bool is_snapshot = WordAfter(words, "--virtualsize").empty();
  if (is_snapshot) {
    volume.origin = WithoutGroup(words.back());
    if (!Has(volume.origin)) return Failed("Failed to find logical volume " + words.back());
    FakeLogicalVolume& origin = volumes_.at(volume.origin);
    volume.size_bytes = origin.size_bytes;
    volume.used = origin.used;
    volume.is_read_only = WordAfter(words, "--permission") == "r";
    volume.content = Content(volume.origin);
    volume.content.filesystem = 0;
    const bool is_half_made = std::exchange(kill_next_snapshot_half_made, false);
    if (is_half_made) half_made_ = name;
    if (is_half_made || std::exchange(kill_next_snapshot, false)) {
      origin.is_suspended = true;
      pool_is_suspended = true;
      Add(name, std::move(volume));
      return {137, ""};
    }
  } else {
    volume.size_bytes = WholeExtents(BytesOf(WordAfter(words, "--virtualsize")));
  }
  Add(name, std::move(volume));
  if (!volumes_.at(name).skips_activation) Activate(volumes_.at(name));
  return {};
}

FakeLogicalVolume* FakeLvm::Selected(const Words& words) {
  const std::string name = WithoutGroup(words.back());
  const std::string selection = WordAfter(words, "--select");
  if (!Has(name)) return nullptr;
  if (!selection.empty() && !FakeSelection(selection, RowOf(name)).Holds()) return nullptr;
  return &volumes_.at(name);
}

void FakeLvm::Activate(FakeLogicalVolume& volume) {
  volume.device = "/dev/dm-" + std::to_string(++last_minor_);
  FakeDevice device = volume.content;
  device.read_only = volume.is_read_only;
  device.identity.size_bytes = volume.size_bytes;
  device.identity.stable_id = "dm:LVM-" + volume.uuid;
  device.identity.disk_sequence = 0;  // a new device
  kernel_.AddDevice(volume.device, device);
}

void FakeLvm::Deactivate(FakeLogicalVolume& volume) {
  volume.content = kernel_.Device(volume.device);
  kernel_.ChangeDevice(volume.device, [](FakeDevice& gone) { gone = FakeDevice(); });
  if (kernel_.Exists(volume.device)) kernel_.Remove(volume.device);
  volume.device.clear();
}

ProgramEnd FakeLvm::Change(const Words& words) {
  FakeLogicalVolume* const volume = Selected(words);
  if (volume == nullptr) return {};
  if (std::find(words.begin(), words.end(), "--refresh") != words.end()) {
    volume->is_suspended = false;
    return {};
  }
  if (volume->is_suspended) throw std::logic_error("a tool would wait for ever");
  const std::string permission = WordAfter(words, "--permission");
  if (!permission.empty()) {
    volume->is_read_only = permission == "r";
    return {};
  }
  if (WordAfter(words, "--activate") == "n") {
    if (IsOpen(*volume)) return Failed("Logical volume " + words.back() + " in use.");
    if (!volume->device.empty()) Deactivate(*volume);
    return {};
  }
  const bool ignores =
      std::find(words.begin(), words.end(), "--ignoreactivationskip") != words.end();
  if (volume->device.empty() && (ignores || !volume->skips_activation)) Activate(*volume);
  return {};
}

ProgramEnd FakeLvm::Extend(const Words& words) {
  FakeLogicalVolume* const volume = Selected(words);
  if (volume == nullptr) return Failed("Failed to find logical volume " + words.back());
  const int64_t bytes = WholeExtents(BytesOf(WordAfter(words, "--size")));
  if (bytes <= volume->size_bytes) return Failed("New size matches existing size.");
  volume->size_bytes = bytes;
  if (volume->device.empty()) return {};
  kernel_.ChangeDevice(volume->device,
                       [bytes](FakeDevice& device) { device.identity.size_bytes = bytes; });
  return {};
}

ProgramEnd FakeLvm::Message(const Words& words) {
  commands.push_back("dmsetup " + Join(Words(words.begin() + 1, words.end()), " "));
  const Words wanted = {"message", "vg0-thin-tpool", "0"};
  if (half_made_.empty() || words.size() != 5 ||
      !std::equal(wanted.begin(), wanted.end(), words.begin() + 1) ||
      words[4] != "delete " + RowOf(half_made_).at("thin_id")) {
    throw std::logic_error("a thin device that somebody has would be gone");
  }
  half_made_.clear();
  return {};
}

ProgramEnd FakeLvm::Remove(const Words& words) {
  FakeLogicalVolume* const volume = Selected(words);
  if (volume == nullptr) return {};
  if (volume->is_suspended) throw std::logic_error("a tool would wait for ever");
  if (IsOpen(*volume)) return Failed("Logical volume " + words.back() + " in use.");
  if (!volume->device.empty()) Deactivate(*volume);
  volumes_.erase(WithoutGroup(words.back()));
  return {};
}

}  // namespace volumed
