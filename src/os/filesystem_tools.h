// Making and checking filesystems by the system's tools; os/device_requests.h says what each request
// does.
//
// Threads: any. Blocks: as the device and the tools do.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

Result<Done> DoFormatDevice(const FormatDevice& request,
                            const std::vector<std::string>& tool_directories,
                            const CallOptions& options);

Result<FilesystemCheck> DoCheckFilesystem(const CheckFilesystem& request,
                                          const std::vector<std::string>& tool_directories,
                                          const CallOptions& options);

// The arguments of mkfs.<type>, without the device. Pure. InvalidArgument, not applied, for a type
// that is none of FormatDevice's.
Result<std::vector<std::string>> MkfsArguments(const FormatDevice& request);

}  // namespace volumed
