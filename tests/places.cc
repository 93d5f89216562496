#include "places.h"

namespace volumed {

std::string SourcePath(std::string_view relative) {
  return VOLUMED_SOURCE_DIR "/" + std::string(relative);
}

std::string VolumedPath() { return VOLUMED; }
std::string VolumedWorkerPath() { return VOLUMED_WORKER; }
std::string VolumectlPath() { return VOLUMECTL; }
std::string HangfsPath() { return VOLUMED_HANGFS; }
std::string CsiFakeDriverPath() { return VOLUMED_CSI_FAKE_DRIVER; }
std::string CutWritesPath() { return VOLUMED_CUT_WRITES; }

}  // namespace volumed
