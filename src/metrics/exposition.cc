#include "metrics/exposition.h"

namespace volumed {

std::string Serialize(const ExportedFamilies& families, const VolumeStatsText& volumes,
                      int64_t now_unix_ms) {
  std::string text;
  families.AppendTo(text);
  volumes.AppendTo(text, now_unix_ms);
  return text;
}

}  // namespace volumed
