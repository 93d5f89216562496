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

// Makes the directory with the mode 0700, or takes the permissions of others from an existing one.
Status MakePrivateDirectory(const std::string& path);
// Writes a new file that does not have its final name yet; it is durable once SyncFiles() was
// called for it.
Status WriteTemporary(const std::string& path, std::string_view bytes);
// Syncs the files with a few syncs, however many files there are: files of one command share
// commits of the filesystem's journal.
Status SyncFiles(const std::vector<std::string>& paths);
Status SyncDirectory(const std::string& path);
// Follows no link. Reads at most one byte more than a manifest may have.
Result<std::string> ReadWhole(const std::string& path);
// The names of the object files. Files that a crash left half-written are removed, since they may
// hold a secret.
Result<std::vector<std::string>> ListObjectFiles(const std::string& directory);

std::string TemporaryFileOf(const std::string& file);
// Names are DNS labels and subdomains, so they have no '/'. A name that is too long for a file is
// cut, and a hash tells it from others.
std::string ObjectFileName(const ObjectKey& key);
// nullopt for a name that was cut, or that is not the name of an object file.
std::optional<ObjectKey> KeyOfObjectFile(const std::string& file);

}  // namespace volumed
