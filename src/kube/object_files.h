// The files of the directory of applied objects: one for each object,
// "<kind>.<namespace>.<name>.json", written under a temporary name, synced and renamed.
//
// Threads: any. Blocks: on disk. Errors: errno's code, not applied.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// Makes the directory (0700), or narrows one that is wider.
Status MakePrivateDirectory(const std::string& path);
// Under its own name and not yet in its directory; durable once SyncFiles() has been told of it.
Status WriteTemporary(const std::string& path, std::string_view bytes);
// At the price of a few syncs, however many files there are: those of one command share commits of
// the filesystem's journal.
Status SyncFiles(const std::vector<std::string>& paths);
Status SyncDirectory(const std::string& path);
// Follows no link. At most one byte more than a manifest may have.
Result<std::string> ReadWhole(const std::string& path);
// The names of the object files; what a crash left half-written is removed on the way: it may hold
// a secret.
Result<std::vector<std::string>> ListObjectFiles(const std::string& directory);

std::string TemporaryFileOf(const std::string& file);
// Names are DNS labels and subdomains, so there is no '/' in them; a name too long for a file is
// cut, and told from others by a hash.
std::string ObjectFileName(const ObjectKey& key);
// Nothing for a name that was cut, or is of no object's file.
std::optional<ObjectKey> KeyOfObjectFile(const std::string& file);

}  // namespace volumed
