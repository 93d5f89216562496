// vol_data.json, as a kubelet, a crash or a hand may have left it.
#include <string>

#include "base/printable_text.h"
#include "csi/csi_names.h"
#include "csi/vol_data.h"
#include "fuzz/fuzz.h"

namespace volumed::vol_data_fuzz {

FUZZ_TARGET(vol_data)(const uint8_t* data, size_t size) {
  const Result<StringMap> read = ParseVolData(fuzz::TextOf(data, size));
  if (!read.ok()) {
    fuzz::CheckError(read.error());
    FUZZ_CHECK(read.error().outcome() == Outcome::kNotApplied);
    FUZZ_CHECK(read.error().code() == Code::kDataLoss);
    return 0;
  }
  FUZZ_CHECK(size <= kVolDataLimit);
  const std::string text = FormatVolData(*read);
  FUZZ_CHECK(IsUtf8(text) && text.ends_with("}\n") && text.find('\n') == text.size() - 1);
  // Escapes may take more room than what they stand for.
  if (text.size() <= kVolDataLimit) {
    const Result<StringMap> again = ParseVolData(text);
    FUZZ_CHECK(again.ok() && *again == *read);
  }
  if (const auto id = VolumeIdOf(*read)) {
    const auto found = ParseCsiVolumeName(CsiVolumeName(id->driver, id->handle));
    // A driver whose name has one of these is none.
    const bool is_name = id->driver.find_first_of("^/") == std::string::npos;
    FUZZ_CHECK(!is_name || found == id);
  }
  return 0;
}

}  // namespace volumed::vol_data_fuzz
