// A store in a directory of its own, and rows to put in it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "records/sqlite_record_store.h"
#include "unit/records/temp_directory.h"

namespace volumed {

class SqliteRecordStoreTest : public ::testing::Test {
 protected:
  std::string Directory() const { return temp_.path() + "/records"; }
  std::string File() const { return Directory() + "/records.db"; }

  SqliteRecordStoreOptions Options() const {
    SqliteRecordStoreOptions options;
    options.directory = Directory();
    return options;
  }
  std::unique_ptr<SqliteRecordStore> Open(const SqliteRecordStoreOptions& options) {
    auto store = SqliteRecordStore::Open(options);
    if (!store.ok()) {
      ADD_FAILURE() << store.error().ToString();
      return nullptr;
    }
    return std::move(store).value();
  }
  std::unique_ptr<SqliteRecordStore> Open() { return Open(Options()); }
  Error OpenError(const SqliteRecordStoreOptions& options) {
    auto store = SqliteRecordStore::Open(options);
    if (!store.ok()) return store.error();
    ADD_FAILURE() << "the store opened";
    return Error::NotApplied(Code::kUnknown, "");
  }

  TempDirectory temp_;
};

inline const Record kPodA{"pod", "a", 1, std::string("\0bytes\xff", 7)};
inline const Record kPodB{"pod", "b", 7, ""};
inline const Record kDisk{"disk", "a", 1, "d"};

}  // namespace volumed
