#include "unit/records/fault_vfs.h"

#include <new>

namespace volumed {
namespace {

// SQLite allocates szOsFile bytes: this, and behind it the default VFS's own file.
struct FaultFile {
  sqlite3_file base;
  FaultVfs* faults;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

FaultFile* Self(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Self(file)->real(); }

int Close(sqlite3_file* f) { return Real(f)->pMethods->xClose(Real(f)); }
int Read(sqlite3_file* f, void* data, int size, sqlite3_int64 at) {
  return Real(f)->pMethods->xRead(Real(f), data, size, at);
}
int Write(sqlite3_file* f, const void* data, int size, sqlite3_int64 at) {
  if (Self(f)->faults->no_space) return SQLITE_FULL;
  if (Self(f)->faults->failing_writes) return SQLITE_IOERR_WRITE;
  return Real(f)->pMethods->xWrite(Real(f), data, size, at);
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  if (Self(f)->faults->failing_writes) return SQLITE_IOERR_TRUNCATE;
  return Real(f)->pMethods->xTruncate(Real(f), size);
}
int Sync(sqlite3_file* f, int flags) {
  FaultVfs& faults = *Self(f)->faults;
  ++faults.syncs;
  if (faults.failing_syncs > 0) {
    --faults.failing_syncs;
    return SQLITE_IOERR_FSYNC;
  }
  return Real(f)->pMethods->xSync(Real(f), flags);
}
int FileSize(sqlite3_file* f, sqlite3_int64* size) {
  return Real(f)->pMethods->xFileSize(Real(f), size);
}
int Lock(sqlite3_file* f, int level) { return Real(f)->pMethods->xLock(Real(f), level); }
int Unlock(sqlite3_file* f, int level) { return Real(f)->pMethods->xUnlock(Real(f), level); }
int CheckReservedLock(sqlite3_file* f, int* result) {
  return Real(f)->pMethods->xCheckReservedLock(Real(f), result);
}
int FileControl(sqlite3_file* f, int op, void* arg) {
  return Real(f)->pMethods->xFileControl(Real(f), op, arg);
}
int SectorSize(sqlite3_file* f) { return Real(f)->pMethods->xSectorSize(Real(f)); }
int DeviceCharacteristics(sqlite3_file* f) {
  return Real(f)->pMethods->xDeviceCharacteristics(Real(f));
}

// Version 1: no shared memory, no mmap. Neither is used with an exclusive lock.
const sqlite3_io_methods kMethods = {1,
                                     Close,
                                     Read,
                                     Write,
                                     Truncate,
                                     Sync,
                                     FileSize,
                                     Lock,
                                     Unlock,
                                     CheckReservedLock,
                                     FileControl,
                                     SectorSize,
                                     DeviceCharacteristics,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr};

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* f, int flags, int* out_flags) {
  auto* file = new (f) FaultFile{};
  file->faults = static_cast<FaultVfs*>(vfs->pAppData);
  sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
  const int rc = real->xOpen(real, name, file->real(), flags, out_flags);
  if (file->real()->pMethods != nullptr) file->base.pMethods = &kMethods;
  return rc;
}

}  // namespace

FaultVfs::FaultVfs() : name_("fault-" + std::to_string(reinterpret_cast<uintptr_t>(this))) {
  vfs_ = *sqlite3_vfs_find(nullptr);
  vfs_.pNext = nullptr;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.szOsFile += static_cast<int>(sizeof(FaultFile));
  vfs_.xOpen = Open;
  sqlite3_vfs_register(&vfs_, /*makeDflt=*/0);
}

FaultVfs::~FaultVfs() { sqlite3_vfs_unregister(&vfs_); }

}  // namespace volumed
