// What a flexVolume driver prints: a script of somebody else's.
#include "plugins/flex_volume_status.h"

#include "fuzz/fuzz.h"

namespace volumed::flex_status_fuzz {

FUZZ_TARGET(flex_status)(const uint8_t* data, size_t size) {
  const std::string_view output = fuzz::TextOf(data, size);
  const Result<FlexStatus> status = ParseFlexStatus(output);
  if (!status.ok()) {
    fuzz::CheckError(status.error());
    FUZZ_CHECK(!status.error().maybe_applied());
    return 0;
  }
  FUZZ_CHECK((status->outcome == FlexOutcome::kSuccess) == (status->status == "Success"));
  FUZZ_CHECK((status->outcome == FlexOutcome::kNotSupported) ==
             (status->status == "Not supported"));
  FUZZ_CHECK(status->new_size_bytes >= 0 || output.find('-') != std::string_view::npos);
  // Blanks around an object say nothing.
  const Result<FlexStatus> again = ParseFlexStatus("\n " + std::string(output) + " \n");
  FUZZ_CHECK(again.ok() && *again == *status);
  return 0;
}

}  // namespace volumed::flex_status_fuzz
