#include "csi/vol_data.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "csi/csi_capabilities.h"
#include "csi/go_json.h"

namespace volumed {
namespace {

Error BrokenVolData(const std::string& why) {
  return Error::NotApplied(Code::kDataLoss, std::string(kCsiVolDataFile) + ": " + why);
}

// Takes one object of texts. Whatever else comes ends the reading, so nothing is kept of a text
// that is deep or large in another way.
class VolDataReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  StringMap Take() { return std::move(data_); }
  const std::string& why() const { return why_; }

  bool start_object(std::size_t) override {
    if (begun_) return Fail("\"" + key_ + "\" is not a text");
    begun_ = true;
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool string(string_t& text) override { return Put(std::move(text)); }
  bool null() override { return Put(""); }
  bool end_object() override { return true; }

  bool boolean(bool) override { return NoText(); }
  bool number_integer(number_integer_t) override { return NoText(); }
  bool number_unsigned(number_unsigned_t) override { return NoText(); }
  bool number_float(number_float_t, const string_t&) override { return NoText(); }
  bool binary(binary_t&) override { return NoText(); }
  bool start_array(std::size_t) override { return NoText(); }
  bool end_array() override { return NoText(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return Fail("it is no JSON from byte " + std::to_string(position) + " on");
  }

 private:
  bool Put(std::string text) {
    if (!begun_) return Fail("it is no object");
    data_[key_] = std::move(text);
    return true;
  }
  bool NoText() { return Fail(begun_ ? "\"" + key_ + "\" is not a text" : "it is no object"); }
  bool Fail(std::string why) {
    why_ = std::move(why);
    return false;
  }

  StringMap data_;
  std::string key_;
  std::string why_;
  bool begun_ = false;
};

}  // namespace

Result<StringMap> ParseVolData(std::string_view text) {
  if (text.size() > kVolDataLimit) {
    return BrokenVolData("it has more than " + std::to_string(kVolDataLimit) + " bytes");
  }
  VolDataReader reader;
  // Not strict: as kubelet's, it reads the first value and no further.
  const bool read = nlohmann::json::sax_parse(text.begin(), text.end(), &reader,
                                              nlohmann::json::input_format_t::json,
                                              /*strict=*/false);
  if (!read) return BrokenVolData(reader.why());
  return reader.Take();
}

std::string FormatVolData(const StringMap& data) { return GoJsonObject(data) + "\n"; }

const std::string& VolDataOf(const StringMap& data, const std::string& key) {
  static const std::string kNothing;
  const auto found = data.find(key);
  return found == data.end() ? kNothing : found->second;
}

std::optional<CsiVolumeId> VolumeIdOf(const StringMap& data) {
  const std::string& driver = VolDataOf(data, kVolDataDriverName);
  const std::string& handle = VolDataOf(data, kVolDataVolumeHandle);
  if (driver.empty() || handle.empty()) return std::nullopt;
  return CsiVolumeId{driver, handle};
}

StringMap StageVolData(const CsiVolume& volume, const std::string& selinux_label) {
  StringMap data = {{kVolDataVolumeHandle, volume.handle}, {kVolDataDriverName, volume.driver}};
  if (!selinux_label.empty()) data[kVolDataSeLinuxContext] = selinux_label;
  return data;
}

StringMap PublishVolData(const CsiVolume& volume, const SpecName& spec, const NodeName& node,
                         const std::string& selinux_label) {
  StringMap data = BlockVolData(volume, spec, node);
  data[kVolDataLifecycleMode] = volume.is_ephemeral() ? kVolDataEphemeral : kVolDataPersistent;
  if (!selinux_label.empty()) data[kVolDataSeLinuxContext] = selinux_label;
  return data;
}

StringMap BlockVolData(const CsiVolume& volume, const SpecName& spec, const NodeName& node) {
  return {{kVolDataSpecVolId, spec.str()},
          {kVolDataVolumeHandle, volume.handle},
          {kVolDataDriverName, volume.driver},
          {kVolDataNodeName, node.str()},
          {kVolDataAttachmentId, CsiAttachmentName(volume.handle, volume.driver, node.str())}};
}

}  // namespace volumed
