// Small files of the agent's own, some of which hold keys. They are read and replaced through an
// open directory. Private to volumehost.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/secret.h"

namespace volumed {

// Threads: any. Blocks: on the filesystem. Errors, not applied unless the comment says otherwise:
// errno's. `directory` is an open directory, `name` a file in it, `path` the name of that file for
// messages.

// Opens the directory, which is made with the mode 0700 if it is missing; its parent exists.
Result<Descriptor> OpenPrivateDirectory(const std::string& directory);

// Errors: FailedPrecondition if it is not a regular file of this user, if others may read it, or if
// it is longer than any key (16 KiB). A link is not followed (FailedPrecondition, ELOOP), and a
// FIFO is not waited for.
Result<Secret<std::string>> ReadPrivateFile(int directory, const std::string& name,
                                            const std::string& path);

// Whether the file can be read and holds exactly `text`. False for every error.
bool HasText(int directory, const std::string& name, const std::string& text);

// After success the file is complete and durable under its name, with exactly this mode. After an
// error it is as it was before, unless that says "maybe applied": then the directory could not be
// synced, so that the new content has the name, and a power cut may bring the old one back. The
// content is written to ".<name>.tmp" first, which an error may leave behind, and the
// next call removes.
Status WriteFileDurably(int directory, const std::string& name, std::string_view bytes, mode_t mode,
                        const std::string& path);

}  // namespace volumed
