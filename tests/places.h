// Where the sources are that were built, and the programs. One small object alone knows it, so that
// the objects of tests are the same in every checkout, and a compiler cache serves a clean clone.
// Threads: any. Blocks: never.
#pragma once

#include <string>
#include <string_view>

namespace volumed {

// The absolute path of a file of the project: SourcePath("docs/METRICS.md").
std::string SourcePath(std::string_view relative);

// The absolute paths of what was built. Whether it is there is not looked at: a test that runs it
// has it as a dependency.
std::string VolumedPath();
std::string VolumedWorkerPath();
std::string VolumectlPath();
std::string HangfsPath();
std::string CsiFakeDriverPath();
std::string CutWritesPath();  // a library, to be preloaded

}  // namespace volumed
