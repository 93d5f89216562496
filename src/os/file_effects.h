// Effects on single files and directories, one function per request of os/kernel_requests.h; its
// comments say what each does. Threads: any. Blocks: as the filesystem does. Paths are opened by
// descriptor (os/safe_open.h), and no path is looked up twice.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// In bytes, of st_blocks, whatever the filesystem's blocks are. Source: stat(3type).
inline constexpr int64_t kStatBlock = 512;

Result<FileInfo> DoStat(const Stat& request);
Result<FsInfo> DoStatFs(const StatFs& request);
Result<Changed> DoMakeDirectory(const MakeDirectory& request);
Result<Changed> DoMakeFile(const MakeFile& request);
Result<Changed> DoMakeSymlink(const MakeSymlink& request);
Result<FileContent> DoReadLink(const ReadLink& request);
Result<Changed> DoRemoveDirectory(const RemoveDirectory& request);
Result<Changed> DoRemoveFile(const RemoveFile& request);
Result<DirectoryListing> DoListDirectory(const ListDirectory& request);
// Lists a directory that is open for reading, from its start, sorted by name. `what` names it in
// errors. Entries that vanish meanwhile are left out. Errors: errno, not applied.
Result<DirectoryListing> ListOpenDirectory(int directory, const std::string& what);
Result<FileContent> DoReadFile(const ReadFile& request);

}  // namespace volumed
