// Small files of the agent's own, of which some hold keys: read and replaced beside one open
// directory. Private to volumehost.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/secret.h"

namespace volumed {

// Threads: any. Blocks: on the filesystem. Errors, not applied unless said otherwise: errno's.
// `directory` is an open one, `name` a file in it, `path` what people call that file.

// The directory, made with mode 0700 if it is missing; its parent is there.
Result<Descriptor> OpenPrivateDirectory(const std::string& directory);

// FailedPrecondition for what is no regular file of this user, what others may read, and what is
// longer than any key. A link is not followed, and a FIFO not waited for.
Result<Secret<std::string>> ReadPrivateFile(int directory, const std::string& name,
                                            const std::string& path);

// Whether the file can be read and holds exactly `text`.
bool HoldsText(int directory, const std::string& name, const std::string& text);

// Afterwards the file is complete and durable under its name; after an error it is as it was.
Status WriteFileDurably(int directory, const std::string& name, std::string_view bytes, mode_t mode,
                        const std::string& path);

}  // namespace volumed
