// The files of the directory of applied objects: one for each object,
// "<kind>.<namespace>.<name>.json", written under a temporary name, synced and renamed.
//
// Threads: any. Blocks: on disk, but for the functions about names at the end. Errors: errno's
// code, not applied.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"

namespace volumed {

// Makes the directory with the mode 0700, or takes the permissions of others from an existing one.
// The directory above it has to be there. It fails with ENOTDIR if the name is that of something
// else, a link included.
Status MakePrivateDirectory(const std::string& path);
// Writes a new file with the mode 0600 that does not have its final name yet; a file of that name
// is removed first. It is durable once SyncFiles() was called for it. After an error a part of it
// may be there: the caller removes it, since it may hold a secret.
Status WriteTemporary(const std::string& path, std::string_view bytes);
// Syncs each file, up to 32 at the same time on threads of its own, since files that wait together
// share commits of the filesystem's journal. Returns when all are synced, or after the first error
// of each thread; after an error any of them may be synced.
Status SyncFiles(const std::vector<std::string>& paths);
// Makes renames and removals in the directory durable.
Status SyncDirectory(const std::string& path);
// Follows no link. Stops once it has more than kMaxManifestBytes, which the decoder then refuses.
Result<std::string> ReadWhole(const std::string& path);
// Returns the names of the object files, in no order. Files that a crash left half-written are
// removed, since they may hold a secret.
Result<std::vector<std::string>> ListObjectFiles(const std::string& directory);

// Returns the temporary name of a file, in the same directory: it is hidden, and no object file's
// name.
std::string TemporaryFileOf(const std::string& file);
// Returns the name of the object's file, without the directory. Names are DNS labels and
// subdomains, so they have no '/'. A name that is too long for a file is cut, and a hash tells it
// from others.
std::string ObjectFileName(const ObjectKey& key);
// The inverse of ObjectFileName(); nullopt for a name that was cut, or that is not the name of an
// object file.
std::optional<ObjectKey> KeyOfObjectFile(const std::string& file);

}  // namespace volumed
